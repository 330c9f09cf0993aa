"""Episodes in cpprb's form: the fields of a step (any names, shapes and dtypes), hindsight goals and their rewards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import GoalEnvError, MissingKeyError, OptionError, ShapeError
from ..records import Array
from ..replay.rows import Fields, as_array, whole_number
from ..replay.strategies import goal_rows

RewardFunc = Callable[[Array, Array, Array], Any]
GoalFunction = Callable[[Array], Any]
RESERVED = ("rew", "goal", "weights", "indexes")  # keys of a sample that env_dict may not define
NUMERIC_KINDS = "biuf"


class MissingFieldError(MissingKeyError, KeyError):
    """A required field is missing."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class StepFields(NamedTuple):
    """The record dtype of a step, the dtype of rewards, and the names of the fields that relabelling reads."""

    dtype: np.dtype[Any]
    reward: np.dtype[Any]
    state: str
    action: str
    next_state: str


def step_fields(
    env_dict: Mapping[str, Mapping[str, Any]], default_dtype: Any, state: str, action: str, next_state: str
) -> StepFields:
    """Return the fields of a step.

    env_dict: {name: {"shape": 1, "dtype": default_dtype}}.
    default_dtype: also of the rewards; None is float32.
    state, action, next_state: names of fields that must be there.
    Raises MissingFieldError, or OptionError for a reserved name, an unusable dtype or a bad shape.
    """
    missing = [name for name in (state, action, next_state) if name not in env_dict]
    if missing:
        raise MissingFieldError(f"env_dict lacks {', '.join(missing)}. It has {', '.join(env_dict) or 'no fields'}.")
    default = np.dtype(default_dtype or np.float32)
    if default.kind not in NUMERIC_KINDS:
        raise OptionError(f"`default_dtype` must be numeric, since the rewards have it, got {default}.")
    fields = [_field(name, entry, default) for name, entry in env_dict.items()]
    return StepFields(np.dtype(fields), default, state, action, next_state)


def _field(name: str, entry: Mapping[str, Any], default: np.dtype[Any]) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Return name, dtype and shape of a field."""
    dtype = np.dtype(entry.get("dtype") or default)
    if name in RESERVED:
        raise OptionError(f"The field name {name!r} in env_dict is reserved for samples. Rename the field.")
    if dtype.hasobject:
        raise OptionError(f"The field {name!r} in env_dict has dtype {dtype}. Use a dtype of fixed size.")
    return name, dtype, as_shape(entry.get("shape", 1), f"shape of {name}")


def as_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Return a number or a sequence of numbers, each at least 1, as a tuple; raise OptionError for others."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return tuple(as_count(name, size, 1) for size in sizes)


def as_count(name: str, value: Any, lowest: int) -> int:
    """Return a whole number of at least `lowest`, such as 1e6, as an int; raise OptionError for others."""
    is_whole_float = isinstance(value, float) and value.is_integer()
    return whole_number(name, int(value) if is_whole_float else value, lowest)


def as_steps(name: str, value: Any, field: np.dtype[Any]) -> Array:
    """Return the values of one or several steps in the dtype of `field`, shape (n, *field.shape).

    Raises ShapeError, and what `as_array` and `cast` raise.
    """
    array = as_array(value, name)
    if not array.size or array.size % math.prod(field.shape):
        raise ShapeError(f"Expected shape {field.shape} for `{name}`, or (n, ...) for n steps, got {array.shape}.")
    return cast(name, array.reshape(-1, *field.shape), field.base)


def cast(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy of `array` in `dtype`.

    Raises NonFiniteError for NaN and infinity, and CastError for values that `dtype` cannot hold.
    """
    if dtype.kind not in NUMERIC_KINDS:
        return array.astype(dtype)
    converted = np.empty(array.shape, dtype)
    field = Fields({f"`{name}`": converted})
    field.write([array])
    field.refuse([array])
    return converted


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
    reward_func: RewardFunc
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
