"""The reward, the termination and the success of an environment as functions of any number of goals.

Each function is tried once: with a single goal, a batch of one, and larger batches of one and of two leading axes, in the
dtypes of the environment and of the buffer, read-only. From then on it is called in the form that was right.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import GoalEnvError, InputError
from ..records import Array
from .call_forms import SINGLE_FORMS, CallForm, Function, GoalFunction, batch_forms, describe, row_forms
from .random_play import Environment, name_of
from .sample_goals import N_OBSERVED, REQUIRED, SampleGoals, sample_goals

SUCCESS_KEYS = ("is_success", "success")  # of an info, the first that is there
LEADING_SHAPES = ((), (1,), (8,), (4, 8))
RTOL, ATOL = 1e-4, 1e-5  # batches may round differently; both beside the size of the values


def reward_function(env: Environment) -> GoalFunction:
    """Return the environment's reward of goals: (achieved_goal (..., n), desired_goal (..., n), info) -> (...) floats.

    info: a dict of arrays, or {}. The outermost wrapper with a `compute_reward` is used. If it is wrong for a batch of
    goals, it is called for each goal, with one warning.
    The environment is reset. Reset it again before the next step.
    Raises GoalEnvError if there is none, if it fails, or if it returns NaN.
    """
    function, problem = find_reward(env, sample_goals(env))
    if problem:
        warnings.warn(problem, UserWarning, stacklevel=2)
    return function


def find_reward(env: Environment, samples: SampleGoals) -> tuple[GoalFunction, str]:
    """Return the function of `reward_function`, and what is wrong with the environment's own ("" if nothing)."""
    name, compute = f"compute_reward of {name_of(env)}", own_function(env, "compute_reward")
    if compute is None:
        raise GoalEnvError(
            f"{name_of(env)} has no compute_reward(achieved_goal, desired_goal, info). hindsight-rl needs it."
        )
    try:
        trial, again = (Trial(compute, samples) for _ in range(2))
    except Exception as problem:
        raise GoalEnvError(f"{name} failed ({describe(problem)}).") from problem
    if not np.isfinite(trial.values[list(REQUIRED)]).all():
        raise GoalEnvError(f"{name} must return finite rewards, got {trial.values[:N_OBSERVED].tolist()}.")
    if not np.array_equal(trial.values, again.values, equal_nan=True):
        raise GoalEnvError(f"{name} returns other rewards on a second call. It must not be random.")
    return _choose(trial, name)


def terminated_function(env: Environment) -> GoalFunction | None:
    """Return the environment's termination of goals: (achieved_goal, desired_goal, info) -> (...) bools, or None.

    None if there is no `compute_terminated`, if it fails or contradicts a step, and if it returns False for a goal that is
    reached (Fetch, Hand, mazes with continuing_task). Then no goal ends an episode. If it is wrong for a batch of goals, it
    is called for each goal. The environment is reset.
    """
    if own_function(env, "compute_terminated") is None:
        return None
    return find_terminated(env, sample_goals(env))[0]


def find_terminated(env: Environment, samples: SampleGoals) -> tuple[GoalFunction | None, str]:
    """Return the function of `terminated_function`, and what is wrong with the environment's own ("" if nothing)."""
    compute = own_function(env, "compute_terminated")
    if compute is None:
        return None, ""
    return _find_flag(compute, "compute_terminated", samples, samples.terminated, "terminated")


def success_function(env: Environment) -> GoalFunction | None:
    """Return the environment's success of goals, or None. It is found like `terminated_function`, in `compute_success`.

    `compute_success` takes (achieved_goal, desired_goal), or info besides.
    """
    if own_function(env, "compute_success") is None:
        return None
    return find_success(env, sample_goals(env))[0]


def find_success(env: Environment, samples: SampleGoals) -> tuple[GoalFunction | None, str]:
    """Return the function of `success_function`, and what is wrong with the environment's own ("" if nothing)."""
    compute = own_function(env, "compute_success")
    if compute is None:
        return None, ""
    return _find_flag(_with_info(compute), "compute_success", samples, read_success(samples.step_info), "success")


def _find_flag(
    compute: Function, name: str, samples: SampleGoals, of_step: bool | None, word: str
) -> tuple[GoalFunction | None, str]:
    """Return a function with truth values, and what is wrong with it. of_step: the value of the step; None: unknown."""
    try:
        trial = Trial(compute, samples, is_flag=True)
    except Exception as problem:
        return None, f"{name} failed, so it is not used ({describe(problem)})."
    if of_step is not None and trial.values[0] != of_step:
        return None, f"{name} contradicts a step with {word}={of_step}, so it is not used."
    if not (trial.values > 0).any():
        return None, ""
    return _choose(trial, name)


class Trial:
    """The values of a function for sample goals that are passed one by one.

    values: (N,) floats. NaN where the function cannot answer for goals that were made up.
    form: in which it answers for single goals.
    Raises what the function raises for the goals that the environment returned.
    """

    def __init__(self, function: Function, samples: SampleGoals, is_flag: bool = False) -> None:
        self.function, self.samples, self.is_flag = function, samples, is_flag
        self.form = self._single_form()
        self.values = self.values_of(samples)

    def values_of(self, samples: SampleGoals) -> Array:
        """Return the values of other goals with the same info. Raises what the function raises for required rows."""
        return np.array([self._value(samples, row) for row in range(len(samples.achieved))])

    def is_right(self, function: GoalFunction, dtype: str | None, expected: Array) -> bool:
        """Return whether a function has the expected values for goals of this dtype, in every leading shape.

        dtype: None: that of the environment. expected: (N,), NaN for goals that are left out.
        """
        rows = np.flatnonzero(np.isfinite(expected))
        shapes = [*LEADING_SHAPES, (len(rows),)]
        chosen = [np.resize(part, shape) for shape in shapes for part in (rows, rows[1:])]  # a failure first, or a success
        try:
            return all(self._agrees(function, dtype, each, expected) for each in chosen)
        except GoalEnvError:
            return False

    def _agrees(self, function: GoalFunction, dtype: str | None, rows: Array, expected: Array) -> bool:
        achieved, desired, info = self.samples.goals(rows)
        if dtype is not None:
            achieved, desired = achieved.astype(dtype), desired.astype(dtype)
        wanted = expected[rows]
        return np.allclose(function(achieved, desired, info), wanted, RTOL, ATOL * float(np.abs(wanted).max(initial=0.0)))

    def _single_form(self) -> CallForm:
        problems: list[Exception] = []
        for form in SINGLE_FORMS:
            try:
                form.call(self.function, *self.samples.goals(list(REQUIRED)))
                return form
            except Exception as problem:
                problems.append(problem)
        raise problems[0]

    def _value(self, samples: SampleGoals, row: int) -> float:
        try:
            value = self.form.call(self.function, *samples.goals([row]))[0]
        except Exception:  # goals that were made up may lie off a grid, or not in a table
            if row in REQUIRED:
                raise
            return np.nan
        return float(value != 0) if self.is_flag else float(value)


def _choose(trial: Trial, name: str) -> tuple[GoalFunction, str]:
    """Return the function in the least expensive form that is right, and what is wrong with the function."""
    samples, needs_float64 = trial.samples, False
    expected: dict[str | None, Array] = {None: trial.values}
    for dtype in samples.stored:
        try:
            expected[dtype] = trial.values_of(samples.as_stored(dtype))
        except Exception:  # goals in a table are not found after rounding
            needs_float64 = needs_float64 or dtype == "float32"
    shape = samples.achieved.shape[1:]
    for form in (*batch_forms(samples.dtypes), *row_forms(trial.form, samples.dtypes)):
        function = GoalFunction(trial.function, name, shape, form, trial.is_flag, needs_float64)
        if all(trial.is_right(function, dtype, values) for dtype, values in expected.items()):
            break
    is_batch = function.form.goals == "batch"
    fault = f"{name} is wrong for a batch of goals. It is called for each goal, which is slow. Return (N,) for (N, ...)."
    return function, "" if is_batch else fault


def _with_info(function: Callable[..., Any]) -> Function:
    """Return a function of three arguments. function: of two or three."""
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        return lambda achieved, desired, info: function(achieved, desired)
    except ValueError:  # functions without a signature
        pass
    return function


def read_success(info: Mapping[str, Any]) -> bool | None:
    """Return `is_success` of an info, else `success`, or None without both.

    Raises InputError unless it is True, False, 1 or 0.
    """
    for key in SUCCESS_KEYS:
        if info.get(key) is not None:
            value = np.asarray(info[key])
            if value.size != 1 or value.dtype.kind not in "biuf" or value.item() not in (0, 1):
                raise InputError(f"`{key}` of an info must be True, False, 1 or 0, got {info[key]!r}.")
            return bool(value.item())
    return None


def own_function(env: Environment, name: str) -> Callable[..., Any] | None:
    """Return a method of the outermost wrapper that has it, or of the environment; None if there is none."""
    try:
        found = env.get_wrapper_attr(name)
    except AttributeError:
        return None
    return found if callable(found) else None
