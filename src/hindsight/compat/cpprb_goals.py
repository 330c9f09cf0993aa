"""EpisodeRelabelling: hindsight goals that are drawn once, when an episode ends, and the rewards under them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import GoalEnvError, OptionError, ShapeError
from ..records import Array, Episode
from ..replay.strategies import goal_rows
from ..replay.timeline import Timeline
from .cpprb_fields import NUMERIC_KINDS, StepFields, as_array, cast

RewardFunction = Callable[[Array, Array, Array], Any]
GoalFunction = Callable[[Array], Any]


class EpisodeRelabelling:
    """An episode under its desired goal and under hindsight goals (Andrychowicz et al. 2017).

    fields: the record of a step.
    reward_func: (next_state, action, goal) -> (T,) or (T, 1).
    goal_func: T states -> T goals; None takes the states themselves.
    goal_shape: shape of a goal.
    strategy: "future", "final", "episode" or "random".
    """

    def __init__(
        self,
        fields: StepFields,
        reward_func: RewardFunction,
        goal_func: GoalFunction | None,
        goal_shape: tuple[int, ...],
        strategy: str,
    ) -> None:
        self._fields, self._reward_func, self._goal_func = fields, reward_func, goal_func
        self.goal_shape, self.strategy, self.goal_dtype = goal_shape, strategy, self._find_goal_dtype()

    def _find_goal_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the state, unless `goal_func`, called on one state, makes something else of integers."""
        state = self._fields.dtype[self._fields.state]
        found = state.base
        if self._goal_func is not None and found.kind != "f":
            returned = np.asarray(self._goal_func(np.zeros((1, *state.shape), found))).dtype
            found = found if np.can_cast(returned, found, "same_kind") else returned
        if found.kind not in NUMERIC_KINDS:
            raise OptionError(f"Goals must be numeric, got {found}. Change the dtype of {self._fields.state!r}.")
        return found

    def relabel(
        self, steps: Array, goal: Any, additional_goals: int, stored: Timeline, rng: np.random.Generator
    ) -> Episode:
        """Return the steps under `goal`, then under each of `additional_goals` hindsight goals per step, as one episode.

        steps: (T,) records, which become the bytes of the actions. goal: (goal_shape) or (T, goal_shape).
        stored: where "random" takes goals from. Raises ShapeError, CastError, NonFiniteError or GoalEnvError.
        """
        goals = [self._desired_goals(goal, len(steps))]
        achieved = self._achieved_goals(steps)
        goals += [self._hindsight_goals(achieved, 1 + additional_goals, stored, rng) for _ in range(additional_goals)]
        total = len(goals) * len(steps)
        return Episode(
            observation=np.zeros((total + 1, 0), np.uint8),
            achieved_goal=np.concatenate([achieved[:1], *len(goals) * [achieved]]),
            desired_goal=np.concatenate([*goals, goals[-1][-1:]]),
            action=np.tile(steps.view(np.uint8).reshape(len(steps), -1), (len(goals), 1)),
            reward=np.concatenate([self._rewards(steps, each) for each in goals]),
        )

    def _desired_goals(self, goal: Any, count: int) -> Array:
        array, shape = as_array("goal", goal), (count, *self.goal_shape)
        try:
            goals = np.broadcast_to(array, shape)
        except ValueError:
            expected = f"{self.goal_shape} for `goal`, or {shape}, one goal per step"
            raise ShapeError(f"Expected shape {expected}, got {array.shape}.") from None
        return cast("goal", goals, self.goal_dtype)

    def _achieved_goals(self, steps: Array) -> Array:
        """Return the goals that the next states of T steps achieve, (T, goal_shape)."""
        states, shape = np.array(steps[self._fields.next_state]), (len(steps), *self.goal_shape)
        goals = as_array("goal_func", states if self._goal_func is None else self._goal_func(states))
        if goals.shape[:1] != shape[:1] or goals.size != math.prod(shape):
            raise ShapeError(
                f"Expected goals of shape {shape} for {len(steps)} states, got {goals.shape}. Set `goal_shape`."
            )
        return cast("goal_func", goals.reshape(shape), self.goal_dtype)

    def _hindsight_goals(self, achieved: Array, n_goals: int, stored: Timeline, rng: np.random.Generator) -> Array:
        """Return one of `n_goals` goals for each step. achieved: (T, goal_shape), after each step."""
        step = np.arange(len(achieved))
        if self.strategy != "random":
            row = goal_rows(self.strategy, step, step, len(step) - step, rng.random(len(step)), step)
            return np.asarray(achieved[row - 1])  # row t + 1 holds what step t achieves
        live, n_own = stored.live_rows(), n_goals * len(step)  # each step is stored n_goals times
        place = rng.integers(n_own + len(live), size=len(step))
        goals, is_stored = achieved[place % len(step)], place >= n_own
        goals[is_stored] = stored.rows["achieved_goal"][live[place[is_stored] - n_own] + 1]
        return goals

    def _rewards(self, steps: Array, goals: Array) -> Array:
        """Return the rewards of T steps under T goals, (T,). `reward_func` gets copies."""
        next_state, action = (np.array(steps[name]) for name in (self._fields.next_state, self._fields.action))
        rewards, count = np.asarray(self._reward_func(next_state, action, np.array(goals))), len(steps)
        if rewards.shape not in ((count,), (count, 1)) or rewards.dtype.kind not in NUMERIC_KINDS:
            raise GoalEnvError(
                f"`reward_func` must return shape ({count},) or ({count}, 1) for {count} steps, got shape {rewards.shape} "
                f"and dtype {rewards.dtype}. Vectorize it."
            )
        return cast("reward_func", rewards.reshape(count), self._fields.reward)
