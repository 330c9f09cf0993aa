"""EpisodeRelabelling: hindsight goals that are drawn once, when an episode ends, and the rewards under them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import GoalEnvError, OptionError, ShapeError
from ..records import Array
from ..replay.rows import as_array
from ..replay.strategies import goal_rows
from .cpprb_fields import NUMERIC_KINDS, StepFields, cast

RewardFunction = Callable[[Array, Array, Array], Any]
GoalFunction = Callable[[Array], Any]


@dataclass
class EpisodeRelabelling:
    """Makes transitions of an episode, under its desired goal and under hindsight goals (Andrychowicz et al. 2017).

    fields: the record of a step.
    reward_func: (next_state, action, goal) -> (T,) or (T, 1).
    goal_func: T states -> T goals; None takes the states themselves.
    goal_shape: shape of a goal.
    strategy: "future", "final", "episode" or "random".
    additional_goals: hindsight goals per step.
    """

    fields: StepFields
    reward_func: RewardFunction
    goal_func: GoalFunction | None
    goal_shape: tuple[int, ...]
    strategy: str
    additional_goals: int

    @cached_property
    def transition(self) -> np.dtype[Any]:
        """Return the record of a transition: the number of its step, its goal and its reward.

        The goal has the dtype of the state, unless `goal_func`, called on one state, makes something else of integers.
        """
        state = self.fields.dtype[self.fields.state]
        goal = state.base
        if self.goal_func is not None and goal.kind != "f":
            returned = np.asarray(self.goal_func(np.zeros((1, *state.shape), goal))).dtype
            goal = goal if np.can_cast(returned, goal, "same_kind") else returned
        if goal.kind not in NUMERIC_KINDS:
            raise OptionError(f"Goals must be numeric, got {goal}. Change the dtype of {self.fields.state!r}.")
        return np.dtype([("step", np.int64), ("goal", goal, self.goal_shape), ("rew", self.fields.reward)])

    def relabel(self, steps: Array, goal: Any, ring: Array, stored: range, rng: np.random.Generator) -> Array:
        """Return the transitions of T steps: under `goal`, then under each of their hindsight goals.

        steps: (T,) records. goal: (goal_shape) or (T, goal_shape).
        ring, stored: where "random" takes goals from: step i of `stored` lies in ring[i % len(ring)].
        Raises ShapeError, CastError, NonFiniteError or GoalEnvError.
        """
        goals = [self._desired_goals(goal, len(steps))]
        achieved = self._achieved_goals(steps)
        goals += [self._hindsight_goals(achieved, ring, stored, rng) for _ in range(self.additional_goals)]
        transitions = np.zeros((len(goals), len(steps)), self.transition)
        transitions["step"] = stored.stop + np.arange(len(steps))
        for rows, each in zip(transitions, goals, strict=True):
            rows["goal"], rows["rew"] = each, self._rewards(steps, each)
        return transitions.ravel()

    def _desired_goals(self, goal: Any, count: int) -> Array:
        array, shape = as_array(goal, "goal"), (count, *self.goal_shape)
        try:
            goals = np.broadcast_to(array, shape)
        except ValueError:
            expected = f"{self.goal_shape} for `goal`, or {shape}, one goal per step"
            raise ShapeError(f"Expected shape {expected}, got {array.shape}.") from None
        return cast("goal", goals, self.transition["goal"].base)

    def _achieved_goals(self, steps: Array) -> Array:
        """Return the goals that the next states of T steps achieve, (T, goal_shape)."""
        states, shape = np.array(steps[self.fields.next_state]), (len(steps), *self.goal_shape)
        goals = as_array(states if self.goal_func is None else self.goal_func(states), "goal_func")
        if goals.shape[:1] != shape[:1] or goals.size != math.prod(shape):
            raise ShapeError(
                f"Expected goals of shape {shape} for {len(steps)} states, got {goals.shape}. Set `goal_shape`."
            )
        return cast("goal_func", goals.reshape(shape), self.transition["goal"].base)

    def _hindsight_goals(self, achieved: Array, ring: Array, stored: range, rng: np.random.Generator) -> Array:
        """Return a hindsight goal for each step. achieved: (T, goal_shape), after each step."""
        step = np.arange(len(achieved))
        if self.strategy != "random":
            row = goal_rows(self.strategy, step, step, len(step) - step, rng.random(len(step)), step)
            return np.asarray(achieved[row - 1])  # row t + 1 holds what step t achieves
        number = rng.integers(stored.start, stored.stop + len(step), len(step))  # from stored.stop on: of this episode
        goals, is_stored = achieved[(number - stored.stop) % len(step)], number < stored.stop
        if is_stored.any():
            goals[is_stored] = self._achieved_goals(ring[number[is_stored] % len(ring)])
        return goals

    def _rewards(self, steps: Array, goals: Array) -> Array:
        """Return the rewards of T steps under T goals, (T,). `reward_func` gets copies."""
        next_state, action = (np.array(steps[name]) for name in (self.fields.next_state, self.fields.action))
        rewards, count = np.asarray(self.reward_func(next_state, action, np.array(goals))), len(steps)
        if rewards.shape not in ((count,), (count, 1)) or rewards.dtype.kind not in NUMERIC_KINDS:
            raise GoalEnvError(
                f"`reward_func` must return shape ({count},) or ({count}, 1) for {count} steps, got shape {rewards.shape} "
                f"and dtype {rewards.dtype}. Vectorize it."
            )
        return cast("reward_func", rewards.reshape(count), self.fields.reward)
