"""The reward and the termination of an environment as functions of N goals.

Some environments accept a batch of goals, some only one goal, and some return wrong values for a batch without an error.
Each function is tried on a few rows first, and wrapped if it needs to be.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ..errors import GoalEnvError, InputError
from ..records import Array
from .random_play import Environment, describe_failure, name_of, numeric_info, random_actions, random_state_kept, step

GoalFunction = Callable[[Any, Any, Any], Any]
N_OBSERVED = 3  # rows of SampleGoals with goals that the environment returned
SUCCESS_KEYS = ("is_success", "success")  # of an info, the first that is there


@dataclass(frozen=True, eq=False)
class SampleGoals:
    """N rows of goals (N, ...) with the info (N, ...) of one step, to try functions on.

    Row 0 is the step itself, rows 1 and 2 are successes, the others are made up.
    terminated: what the step returned.
    """

    achieved: Array
    desired: Array
    info: dict[str, Array]
    terminated: bool

    def first(self, n_rows: int) -> SampleGoals:
        """Return the first rows."""
        info = {key: values[:n_rows] for key, values in self.info.items()}
        return SampleGoals(self.achieved[:n_rows], self.desired[:n_rows], info, self.terminated)


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
            achieved = np.stack([np.asarray(second["achieved_goal"]), goal, start, *made_up])
            desired = np.stack([goal if i != 2 else start for i in range(len(achieved))])
        except Exception as problem:
            raise GoalEnvError(
                f"The first reset and step of {name_of(env)} failed ({describe_failure(problem)})."
            ) from problem
    return SampleGoals(achieved, desired, numeric_info([info] * len(achieved)), bool(terminated))


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


def reward_function(env: Environment) -> GoalFunction:
    """Return the environment's reward of N goals: (achieved_goal (N, ...), desired_goal (N, ...), info) -> (N,) floats.

    info: a dict of (N, ...) arrays, or {}.
    A `compute_reward` that does this already is returned as it is; the outermost wrapper that has one is used. If it is
    wrong for a batch of goals, it is called for each goal, with one warning.
    The environment is reset. Reset it again before the next step.
    Raises GoalEnvError if there is none, if it fails, or if it returns NaN.
    """
    function, problem = find_reward(env, sample_goals(env))
    if problem:
        warnings.warn(problem, UserWarning, stacklevel=2)
    return function


def find_reward(env: Environment, samples: SampleGoals) -> tuple[GoalFunction, str]:
    """Return the function of `reward_function`, and what is wrong with the environment's own ("" if nothing)."""
    name, compute = name_of(env), own_function(env, "compute_reward")
    if compute is None:
        raise GoalEnvError(f"{name} has no compute_reward(achieved_goal, desired_goal, info). Hindsight needs it.")
    try:
        expected, again = (_one_by_one(compute, samples) for _ in range(2))
    except Exception as problem:
        raise GoalEnvError(f"compute_reward of {name} failed ({type(problem).__name__}: {problem}).") from problem
    if not np.isfinite(expected).all():
        raise GoalEnvError(f"compute_reward of {name} must return finite rewards, got {expected.tolist()}.")
    if not np.array_equal(expected, again):
        raise GoalEnvError(f"compute_reward of {name} returns other rewards on a second call. It must not be random.")
    return _for_batches(compute, f"compute_reward of {name}", samples.first(len(expected)), expected)


def terminated_function(env: Environment) -> GoalFunction | None:
    """Return the environment's termination of N goals: (achieved_goal, desired_goal, info) -> (N,) bools, or None.

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
    try:
        expected = _one_by_one(compute, samples).astype(bool)
    except Exception as problem:
        return None, f"compute_terminated failed, so it is not used ({type(problem).__name__}: {problem})."
    if expected[0] != samples.terminated:
        return None, f"compute_terminated contradicts a step with terminated={samples.terminated}, so it is not used."
    if not expected.any():
        return None, ""
    return _for_batches(compute, "compute_terminated", samples.first(len(expected)), expected)


def _for_batches(compute: GoalFunction, name: str, samples: SampleGoals, expected: Array) -> tuple[GoalFunction, str]:
    """Return a function that is right for a batch, and what is wrong with `compute`. expected: its values one by one."""
    achieved, desired = samples.achieved.copy(), samples.desired.copy()
    achieved.flags.writeable = desired.flags.writeable = False  # as the replay buffer passes them
    try:
        values = compute(achieved, desired, samples.info)
        is_right = np.size(values) == len(expected) and np.allclose(
            np.ravel(values),
            expected,
            rtol=1e-4,
            atol=1e-5,  # batches may round differently
        )
    except Exception:  # it does not accept batches
        is_right = False
    if not is_right:
        fault = (
            f"{name} is wrong for a batch of goals. It is called for each goal, which is slow. Return (N,) for (N, ...)."
        )
        return _flat(row_by_row(compute), expected.dtype), fault
    is_plain = (
        isinstance(values, np.ndarray) and values.shape == expected.shape and values.dtype.kind == expected.dtype.kind
    )
    return (compute if is_plain else _flat(compute, expected.dtype)), ""


def read_success(info: Mapping[str, Any]) -> bool | None:
    """Return `is_success` of an info, else `success`, or None without both. Raises InputError unless it is one value."""
    for key in SUCCESS_KEYS:
        if info.get(key) is not None:
            value = np.asarray(info[key])
            if value.size != 1 or value.dtype.kind not in "biuf":
                raise InputError(f"{key} of an info must be one truth value, got {info[key]!r}.")
            return bool(value.item())
    return None


def own_function(env: Environment, name: str) -> GoalFunction | None:
    """Return a method of the outermost wrapper that has it, or of the environment; None if there is none."""
    try:
        found = env.get_wrapper_attr(name)
    except AttributeError:
        return None
    return found if callable(found) else None


def row_by_row(function: GoalFunction) -> GoalFunction:
    """Return a function of N goals (N, ...) that calls `function` for each goal and returns (N,) values."""

    def call_rows(achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        n_rows = len(achieved_goal)
        is_dict = isinstance(info, Mapping)
        infos = [{key: values[i] for key, values in info.items()} for i in range(n_rows)] if is_dict else list(info)
        rows = zip(achieved_goal, desired_goal, infos, strict=True)
        return np.array([np.asarray(function(a.copy(), d.copy(), i)).item() for a, d, i in rows])

    return call_rows


def _one_by_one(compute: GoalFunction, samples: SampleGoals) -> Array:
    """Return a function's value for each row. If it rejects made-up goals, only for the observed ones."""
    function = _flat(row_by_row(compute), np.dtype(np.float64))
    with contextlib.suppress(Exception):
        values = np.asarray(function(samples.achieved, samples.desired, samples.info))
        if np.isfinite(values).all():
            return values
    observed = samples.first(N_OBSERVED)
    return np.asarray(function(observed.achieved, observed.desired, observed.info))


def _flat(compute: GoalFunction, dtype: np.dtype[Any]) -> GoalFunction:
    return lambda achieved, desired, info: np.asarray(compute(achieved, desired, info), dtype).reshape(len(achieved))
