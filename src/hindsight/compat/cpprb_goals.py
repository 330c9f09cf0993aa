"""EpisodeRelabelling: hindsight goals that are drawn once, when an episode ends, and the rewards under them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import GoalEnvError, OptionError, ShapeError
from ..records import Array
from ..replay.strategies import goal_rows
from .cpprb_fields import NUMERIC_KINDS, StepFields, as_array, cast
from .cpprb_storage import StepStorage

RewardFunction = Callable[[Array, Array, Array], Any]
GoalFunction = Callable[[Array], Any]


class EpisodeRelabelling:
    """Goals and rewards of the steps of an episode (Andrychowicz et al. 2017).

    fields: names of the fields that are read.
    reward_func: (next_state, action, goal) -> (T,) or (T, 1).
    goal_func: T states -> T goals; None takes the states themselves.
    strategy: "future", "final", "episode" or "random".
    n_goals: goals per step: the desired goal and the hindsight goals.
    """

    def __init__(
        self, fields: StepFields, reward_func: RewardFunction, goal_func: GoalFunction | None, strategy: str, n_goals: int
    ) -> None:
        self._fields, self._reward_func, self._goal_func = fields, reward_func, goal_func
        self._strategy, self._n_goals = strategy, n_goals

    def record(self, goal_shape: tuple[int, ...], reward_dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of a step with its goals "goal", (n_goals, *goal_shape), and rewards "rew", (n_goals,)."""
        if reward_dtype.kind not in NUMERIC_KINDS:
            raise OptionError(f"`default_dtype` must be numeric, since the rewards have it, got {reward_dtype}.")
        step, n_goals = self._fields.dtype, self._n_goals
        given = [(name, step[name].base, step[name].shape) for name in step.names or ()]
        goals = ("goal", self._goal_dtype(step[self._fields.state]), (n_goals, *goal_shape))
        return np.dtype([*given, goals, ("rew", reward_dtype, (n_goals,))])

    def _goal_dtype(self, state: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the state, unless `goal_func`, called on one state, makes something else of integers."""
        found = state.base
        if self._goal_func is not None and found.kind != "f":
            returned = np.asarray(self._goal_func(np.zeros((1, *state.shape), found))).dtype
            found = found if np.can_cast(returned, found, "same_kind") else returned
        if found.kind not in NUMERIC_KINDS:
            raise OptionError(f"Goals must be numeric, got {found}. Change the dtype of {self._fields.state!r}.")
        return found

    def relabel(self, records: Array, goal: Any, storage: StepStorage, rng: np.random.Generator) -> None:
        """Write the goals and the rewards of T steps; goal 0 of each step is the desired one.

        records: (T,) steps. goal: desired goal, (goal_shape) or (T, goal_shape). storage: read by "random".
        Raises ShapeError, CastError, NonFiniteError or GoalEnvError.
        """
        goals, rewards = records["goal"], records["rew"]
        goals[:, 0] = self._desired_goals(goal, goals[:, 0])
        achieved = self._achieved_goals(records) if self._n_goals > 1 else goals[:, 0]
        for i in range(1, self._n_goals):
            goals[:, i] = self._hindsight_goals(achieved, storage, rng)
        for i in range(self._n_goals):
            rewards[:, i] = self._rewards(records, goals[:, i], rewards.dtype)

    def _desired_goals(self, goal: Any, goals: Array) -> Array:
        """Return `goal` in the shape and the dtype of `goals`."""
        array = as_array("goal", goal)
        try:
            given = np.broadcast_to(array, goals.shape)
        except ValueError:
            expected = f"{goals.shape[1:]} for `goal`, or {goals.shape}, one goal per step"
            raise ShapeError(f"Expected shape {expected}, got {array.shape}.") from None
        return cast("goal", given, goals.dtype)

    def _achieved_goals(self, records: Array) -> Array:
        """Return the goals that the next states of T steps achieve, (T, goal_shape)."""
        states, goals = np.array(records[self._fields.next_state]), records["goal"]
        achieved = as_array("goal_func", states if self._goal_func is None else self._goal_func(states))
        shape = (len(goals), *goals.shape[2:])
        if achieved.shape[:1] != shape[:1] or achieved.size != math.prod(shape):
            raise ShapeError(
                f"Expected goals of shape {shape} for {len(goals)} states, got {achieved.shape}. Set `goal_shape`."
            )
        return cast("goal_func", achieved.reshape(shape), goals.dtype)

    def _hindsight_goals(self, achieved: Array, storage: StepStorage, rng: np.random.Generator) -> Array:
        """Return one hindsight goal for each step. achieved: (T, goal_shape), after each step."""
        count, step = len(achieved), np.arange(len(achieved))
        if self._strategy == "random":
            return self._random_goals(achieved, storage, rng)
        row = goal_rows(self._strategy, step, step, count - step, rng.random(count), step)
        goals: Array = achieved[row - 1]  # row t + 1 holds what step t achieves
        return goals

    def _random_goals(self, achieved: Array, storage: StepStorage, rng: np.random.Generator) -> Array:
        """Return goals that any stored step or any step of this episode achieved, each equally likely."""
        count = len(achieved)
        place = rng.integers(count + len(storage), size=count)
        goals, is_stored = achieved[place % count], place >= count
        if is_stored.any():
            goals[is_stored] = self._achieved_goals(storage.take(storage.first_step + place[is_stored] - count))
        return goals

    def _rewards(self, records: Array, goals: Array, dtype: np.dtype[Any]) -> Array:
        """Return the rewards of T steps under T goals, (T,). `reward_func` gets copies."""
        next_state, action = (np.array(records[name]) for name in (self._fields.next_state, self._fields.action))
        rewards = np.asarray(self._reward_func(next_state, action, np.array(goals)))
        count = len(records)
        if rewards.shape not in ((count,), (count, 1)) or rewards.dtype.kind not in NUMERIC_KINDS:
            raise GoalEnvError(
                f"`reward_func` must return shape ({count},) or ({count}, 1) for {count} steps, got shape {rewards.shape} "
                f"and dtype {rewards.dtype}. Vectorize it."
            )
        if not np.isfinite(rewards).all():
            raise GoalEnvError("`reward_func` returned NaN or infinity. The reward must be finite for every goal.")
        return cast("reward_func", rewards.reshape(count), dtype)
