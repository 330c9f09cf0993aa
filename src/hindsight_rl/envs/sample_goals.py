"""Goals of one step of an environment, and goals that are made up from them, to try functions on."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ..errors import GoalEnvError
from ..records import Array
from .random_play import Environment, describe_failure, name_of, numeric_info, random_actions, random_state_kept, step

REQUIRED = (0, 2)  # rows with goals that every function must answer for
N_OBSERVED = 3  # rows with goals that the environment returned


@dataclass(frozen=True, eq=False)
class SampleGoals:
    """N rows of goals (N, ...) with the info (N, ...) of one step.

    Row 0 is the step itself, rows 1 and 2 are successes, the others are made up. The goals have the dtypes of the
    environment's own.
    terminated: what the step returned. step_info: its whole info.
    stored: dtypes in which a buffer may store the goals.
    """

    achieved: Array
    desired: Array
    info: dict[str, Array]
    terminated: bool
    step_info: Mapping[str, Any]
    stored: tuple[str, ...]

    @property
    def dtypes(self) -> tuple[str, str]:
        """The dtypes of the environment's own achieved and desired goals."""
        return self.achieved.dtype.name, self.desired.dtype.name

    def goals(self, rows: Any) -> tuple[Array, Array, dict[str, Array]]:
        """Return some rows as the arguments of a function. rows: an index of the leading axis."""
        return self.achieved[rows], self.desired[rows], {key: values[rows] for key, values in self.info.items()}

    def as_stored(self, dtype: str) -> SampleGoals:
        """Return the goals as they are after they were stored as `dtype`, in the dtypes of the environment."""
        achieved, desired = (goal.astype(dtype).astype(goal.dtype) for goal in (self.achieved, self.desired))
        return SampleGoals(achieved, desired, self.info, self.terminated, self.step_info, self.stored)


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
            achieved = np.stack([np.asarray(second["achieved_goal"]), goal.astype(start.dtype), start, *made_up])
            desired = np.stack([goal if i != 2 else start.astype(goal.dtype) for i in range(len(achieved))])
        except Exception as problem:
            raise GoalEnvError(
                f"The first reset and step of {name_of(env)} failed ({describe_failure(problem)})."
            ) from problem
    stored = ("float32", "float64") if space["desired_goal"].dtype.kind == "f" else (space["desired_goal"].dtype.name,)
    return SampleGoals(
        achieved.astype(start.dtype),
        desired.astype(goal.dtype),
        numeric_info([info] * len(achieved)),
        bool(terminated),
        dict(info),
        stored,
    )


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
