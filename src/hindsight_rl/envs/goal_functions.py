"""The reward, the termination and the success of an environment as functions of any number of goals.

Some functions accept one goal, some N goals, some either. Some return a plain number for a batch of one, write into their
arguments, need goals of one dtype, or expect infos in a list or in an array of objects. Each function is tried once, on
goals of one step and on goals that are made up from them: one at a time, and in batches of one and of more.
From then on it is called in the form that was right, with copies of the goals in the dtypes of the environment.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium
import numpy as np

from ..errors import GoalEnvError, InputError
from ..records import Array
from .random_play import Environment, describe_failure, name_of, numeric_info, random_actions, random_state_kept, step

SUCCESS_KEYS = ("is_success", "success")  # of an info, the first that is there
REQUIRED_ROWS = [0, 2]  # rows of sample goals that every function must answer for
N_OBSERVED = 3  # rows of sample goals that the environment returned
BATCH_SIZES = (1, 8)  # of the trial, besides all sample goals
RTOL, ATOL = 1e-4, 1e-5  # batches may round differently; both beside the size of the values

Function = Callable[[Any, Any, Any], Any]
Info = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class SampleGoals:
    """N rows of goals (N, ...) with the info (N, ...) of one step.

    Row 0 is the step itself, rows 1 and 2 are successes, the others are made up. The goals have the dtypes of the
    environment's own.
    terminated: what the step returned. step_info: its whole info.
    """

    achieved: Array
    desired: Array
    info: dict[str, Array]
    terminated: bool
    step_info: Mapping[str, Any]

    def goals(self, rows: Any) -> tuple[Array, Array, dict[str, Array]]:
        """Return some rows as the arguments of a function. rows: an index of the leading axis."""
        return self.achieved[rows], self.desired[rows], {key: values[rows] for key, values in self.info.items()}


def sample_goals(env: Environment) -> SampleGoals:
    """Reset and step the environment once, and return goals to try. Raises GoalEnvError if that fails."""
    with random_state_kept(env):
        try:
            reset, _ = env.reset(seed=0)
            first = copy.deepcopy(reset)
            second, _, terminated, _, info = step(env, next(random_actions(env, 0)))
            start, goal = np.asarray(first["achieved_goal"]), np.asarray(first["desired_goal"])
            space: Any = env.observation_space
            made_up = _goals_between(start, goal, space["desired_goal"])
            achieved = np.stack([np.asarray(second["achieved_goal"]), goal, start, *made_up]).astype(start.dtype)
            desired = np.stack([goal] * len(achieved))
            desired[2] = start
        except Exception as problem:
            raise GoalEnvError(
                f"The first reset and step of {name_of(env)} failed ({describe_failure(problem)})."
            ) from problem
    return SampleGoals(achieved, desired, numeric_info([info] * len(achieved)), bool(terminated), dict(info))


def _goals_between(start: Array, goal: Array, space: gymnasium.Space[Any]) -> Array:
    """Return achieved goals on the line from `goal` through `start`, dense near the goal, where rewards change.

    They are clipped to the space. Whole numbers are combined instead: the first elements of `start`, the last of `goal`.
    """
    if goal.dtype.kind == "f":
        fractions = np.r_[np.geomspace(0.001, 1, 48), 2, 10, 100].reshape(-1, *[1] * goal.ndim)
        goals = np.asarray(goal + fractions * (start - goal), goal.dtype)
        return np.clip(goals, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else goals
    cuts = np.unique(np.linspace(0, goal.size, 9).astype(int))
    return np.stack([np.r_[start.ravel()[:cut], goal.ravel()[cut:]].reshape(goal.shape) for cut in cuts])


@dataclass(frozen=True)
class CallForm:
    """How N goals are passed to a function.

    goals: "batch": in one call, (N, ...). "ones": one call per goal, (1, ...). "single": one call per goal, (...).
    infos: what a call with a leading axis gets: one info with arrays (N, ...), or one info for each goal, in a list or in
        an array of objects, as `HerReplayBuffer` of Stable-Baselines3 passes it.
    """

    goals: Literal["batch", "ones", "single"] = "batch"
    infos: Literal["arrays", "list", "objects"] = "arrays"

    def call(self, function: Function, achieved: Array, desired: Array, info: Info) -> Array:
        """Return the function's value for each goal, (N,) numbers. achieved, desired: (N, ...). info: (N, ...) arrays.

        The function gets copies. Raises what it raises, and TypeError if it does not return one number for each goal.
        """
        rows: list[Any] = [slice(None)] if self.goals == "batch" else list(range(len(achieved)))
        if self.goals == "ones":
            rows = [slice(i, i + 1) for i in rows]
        calls = [(np.array(achieved[i]), np.array(desired[i]), {key: v[i] for key, v in info.items()}) for i in rows]
        return np.concatenate([self._values(function, *each) for each in calls])

    def _values(self, function: Function, achieved: Array, desired: Array, info: dict[str, Array]) -> Array:
        """Return the values of one call, (N,), or (1,) for a single goal."""
        n_goals = 1 if self.goals == "single" else len(achieved)
        values = np.asarray(function(achieved, desired, self._infos(info, n_goals)))
        if values.size != n_goals or values.dtype.kind not in "fiub":
            returned = f"{values.dtype} of shape {values.shape}"
            raise TypeError(f"it returned {returned}, not one number for each of {n_goals} goals")
        return values.reshape(n_goals)

    def _infos(self, info: dict[str, Array], n_goals: int) -> Any:
        if self.infos == "arrays":
            return info
        rows = [{key: values[i] for key, values in info.items()} for i in range(n_goals)]
        return rows if self.infos == "list" else np.array(rows, dtype=object)


SINGLE_FORMS = (CallForm("single"), CallForm("ones"), CallForm("ones", "list"), CallForm("ones", "objects"))
BATCH_FORMS = (CallForm("batch"), CallForm("batch", "list"), CallForm("batch", "objects"))


@dataclass(frozen=True, eq=False, repr=False)
class GoalFunction:
    """A function of an environment, called as its trial found: (achieved_goal, desired_goal, info) -> values.

    The goals may have any leading shape, and the values have that shape: floats, or truth values for a flag. info: a
    mapping of arrays with the same leading shape, or one info for each of N goals.
    function, name: of the environment. goal_shape: of one goal. form: how it is called. is_flag: truth values are returned.
    dtypes: of the achieved and the desired goals that the function gets; None: those of the caller.
    needs_float64: whether it fails if goals are rounded to float32. info_dtypes: of the environment's own info.
    Raises GoalEnvError, which names the call, if the function fails or returns another form than in its trial.
    """

    function: Function
    name: str
    goal_shape: tuple[int, ...]
    form: CallForm
    is_flag: bool = False
    dtypes: tuple[Any, Any] = (None, None)
    needs_float64: bool = False
    info_dtypes: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self, achieved_goal: Any, desired_goal: Any, info: Info | Sequence[Mapping[str, Any]] | None = None
    ) -> Array:
        """Return the values for these goals, of their leading shape."""
        achieved, desired = (np.asarray(g, d) for g, d in zip((achieved_goal, desired_goal), self.dtypes, strict=True))
        info = info if isinstance(info, Mapping) else numeric_info(() if info is None else info)
        info = {key: self._as_given(key, np.asarray(values)) for key, values in info.items()}
        leading = achieved.shape[: achieved.ndim - len(self.goal_shape)]
        n_goals, n_axes = math.prod(leading), len(leading)
        if not n_goals:
            return np.zeros(leading, np.bool_ if self.is_flag else np.float64)
        if n_axes != 1:
            achieved, desired = (goal.reshape(n_goals, *self.goal_shape) for goal in (achieved, desired))
            info = {key: values.reshape(n_goals, *values.shape[n_axes:]) for key, values in info.items()}
        try:
            values = self.form.call(self.function, achieved, desired, info)
        except Exception as problem:
            raise GoalEnvError(self._failure(leading, info, problem)) from problem
        if self.is_flag:
            values = values.astype(np.bool_)
        elif values.dtype.kind != "f":
            values = values.astype(np.float64)
        return values.reshape(leading)

    def _as_given(self, key: str, values: Array) -> Array:
        """Return values of an entry as the environment gives them: buffers hold flags and whole numbers as floats."""
        dtype = self.info_dtypes.get(key, values.dtype)
        if dtype == values.dtype or dtype.kind == "f":
            return values
        given = values.astype(dtype)
        return given if np.array_equal(given, values) else values

    def entries_read(self, achieved: Array, desired: Array, info: Info) -> set[str]:
        """Return the entries of info that the function reads for N goals, in the dtypes of the environment."""
        read: set[str] = set()

        def call(achieved: Array, desired: Array, passed: Any) -> Any:
            if self.form.infos == "arrays":
                return self.function(achieved, desired, RecordedInfo(passed, read))
            for i, row in enumerate(passed):
                passed[i] = RecordedInfo(row, read)
            return self.function(achieved, desired, passed)

        self.form.call(call, achieved, desired, info)
        return read

    def _failure(self, leading: tuple[int, ...], info: Info, problem: Exception) -> str:
        """Return which call failed, and what may be done. A KeyError may be about info."""
        entries, why = ", ".join(info) or "no entries", describe_failure(problem)
        hint = " If it reads other entries, name them in the option info_keys." if isinstance(problem, KeyError) else ""
        return (
            f"{self.name} failed for goals of leading shape {leading} and an info with {entries} ({why}). "
            f"It must return one number for every goal that the environment produces, as it did when it was tried.{hint}"
        )


class RecordedInfo(dict[str, Any]):
    """An info that records which of its entries are read."""

    def __init__(self, info: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(info)
        self.read = read

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, and record it."""
        self.read.add(key)
        return super().get(key, default)


def reward_function(env: Environment) -> GoalFunction:
    """Return the environment's reward of goals: (achieved_goal (..., n), desired_goal (..., n), info) -> (...) floats.

    info: a dict of arrays, or {}. The outermost wrapper with a `compute_reward` is used. If it is wrong for a batch of
    goals, it is called for each goal, with one warning.
    The environment is reset. Reset it again before the next step.
    Raises GoalEnvError if there is none, if it fails, or if it returns NaN.
    """
    function, fault = find_reward(env, sample_goals(env))
    if fault:
        warnings.warn(fault, UserWarning, stacklevel=2)
    return function


def terminated_function(env: Environment) -> GoalFunction | None:
    """Return the environment's termination of goals: (achieved_goal, desired_goal, info) -> (...) bools, or None.

    None if there is no `compute_terminated`, if it fails or contradicts a step, and if it returns False for a goal that is
    reached (Fetch, Hand, mazes with continuing_task). Then no goal ends an episode. If it is wrong for a batch of goals, it
    is called for each goal. The environment is reset.
    """
    return find_flag(env, sample_goals(env), "terminated")[0] if own_function(env, "compute_terminated") else None


def success_function(env: Environment) -> GoalFunction | None:
    """Return the environment's success of goals, or None. It is found like `terminated_function`, in `compute_success`.

    `compute_success` takes (achieved_goal, desired_goal), or info besides.
    """
    return find_flag(env, sample_goals(env), "success")[0] if own_function(env, "compute_success") else None


def find_reward(env: Environment, samples: SampleGoals) -> tuple[GoalFunction, str]:
    """Return the function of `reward_function`, and what is wrong with the environment's own ("" if nothing)."""
    name, compute = f"compute_reward of {name_of(env)}", own_reward(env)
    try:
        trial, again = (Trial(compute, samples) for _ in range(2))
    except Exception as problem:
        raise GoalEnvError(f"{name} failed ({describe_failure(problem)}).") from problem
    if not np.isfinite(trial.values[REQUIRED_ROWS]).all():
        raise GoalEnvError(f"{name} must return finite rewards, got {trial.values[:N_OBSERVED].tolist()}.")
    if not np.array_equal(trial.values, again.values, equal_nan=True):
        raise GoalEnvError(f"{name} returns other rewards on a second call. It must not be random.")
    return trial.goal_function(name)


def find_flag(
    env: Environment, samples: SampleGoals, word: Literal["terminated", "success"]
) -> tuple[GoalFunction | None, str]:
    """Return `compute_terminated` or `compute_success`, and what is wrong with the environment's own ("" if nothing).

    It takes (achieved_goal, desired_goal), or info besides.
    """
    name = f"compute_{word}"
    if (compute := own_function(env, name)) is None:
        return None, ""
    of_step = samples.terminated if word == "terminated" else read_success(samples.step_info)
    try:
        trial = Trial(_with_info(compute), samples, is_flag=True)
    except Exception as problem:
        return None, f"{name} failed, so it is not used ({describe_failure(problem)})."
    if of_step is not None and trial.values[0] != of_step:
        return None, f"{name} contradicts a step with {word}={of_step}, so it is not used."
    return trial.goal_function(name) if (trial.values > 0).any() else (None, "")


def _with_info(function: Callable[..., Any]) -> Function:
    """Return a function that accepts an info too, for one that does not."""
    with contextlib.suppress(ValueError):  # functions without a signature
        if len(inspect.signature(function).parameters) == 2:
            return lambda achieved, desired, info: function(achieved, desired)
    return function


class Trial:
    """The values of a function for sample goals that are passed one by one.

    values: (N,) floats. NaN where the function cannot answer for goals that were made up.
    form: in which it answers for single goals.
    Raises what the function raises for the goals that the environment returned.
    """

    def __init__(self, function: Function, samples: SampleGoals, is_flag: bool = False) -> None:
        self.function, self.samples, self.is_flag = function, samples, is_flag
        problems: list[Exception] = []
        for self.form in SINGLE_FORMS:
            try:
                self.values = np.array([self._value(row) for row in range(len(samples.achieved))])
                return
            except Exception as problem:
                problems.append(problem)
        raise problems[0]

    def _value(self, row: int) -> float:
        try:
            value = self.form.call(self.function, *self.samples.goals([row]))[0]
        except Exception:  # goals that were made up may lie off a grid, or not in a table
            if row in REQUIRED_ROWS:
                raise
            return np.nan
        return float(value != 0) if self.is_flag else float(value)

    def goal_function(self, name: str) -> tuple[GoalFunction, str]:
        """Return the function in the least expensive form that is right, and what is wrong with it for a batch."""
        dtypes, shape = (self.samples.achieved.dtype, self.samples.desired.dtype), self.samples.achieved.shape[1:]
        of_info = {key: values.dtype for key, values in self.samples.info.items()}
        rest = self.is_flag, dtypes, self._needs_float64(), of_info
        for form in (*BATCH_FORMS, self.form):
            function = GoalFunction(self.function, name, shape, form, *rest)
            if form is self.form or self._is_right(function):
                break
        fault = "is wrong for a batch of goals. It is called for each goal, which is slow. Return (N,) for (N, ...)."
        return function, f"{name} {fault}" if form is self.form else ""

    def _is_right(self, function: GoalFunction) -> bool:
        """Return whether a function has the values of this trial for one goal and for many."""
        rows = np.flatnonzero(np.isfinite(self.values))
        sizes = (*BATCH_SIZES, len(rows))
        chosen = [np.resize(part, size) for size in sizes for part in (rows, rows[1:])]  # a failure first, or a success
        try:
            return all(self._agrees(function(*self.samples.goals(each)), self.values[each]) for each in chosen)
        except GoalEnvError:
            return False

    def _agrees(self, values: Array, expected: Array) -> bool:
        return np.allclose(values, expected, RTOL, ATOL * float(np.abs(expected).max(initial=0.0)))

    def _needs_float64(self) -> bool:
        """Return whether the function fails for goals of the environment after they were rounded to float32."""
        achieved, desired, info = self.samples.goals(REQUIRED_ROWS)
        if desired.dtype.kind != "f":
            return False
        achieved, desired = (goal.astype(np.float32).astype(goal.dtype) for goal in (achieved, desired))
        try:
            self.form.call(self.function, achieved, desired, info)
            return False
        except Exception:  # goals in a table are not found after rounding
            return True


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


def own_reward(env: Environment) -> Function:
    """Return the environment's compute_reward. Raises GoalEnvError if there is none."""
    if (found := own_function(env, "compute_reward")) is None:
        raise GoalEnvError(
            f"{name_of(env)} is not a goal environment: it has no compute_reward(achieved_goal, desired_goal, info), which "
            f"relabelling needs."
        )
    return found


def own_function(env: Environment, name: str) -> Callable[..., Any] | None:
    """Return a method of the outermost wrapper that has it, or of the environment; None if there is none."""
    found = env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
    return found if callable(found) else None
