"""Find out how the desired goal of an environment can be set, so that a success can be produced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array
from .random_play import Environment, random_actions

SEEDS = (1, 2)  # the goal of the first one is set in place of the goal of the second one


@dataclass(frozen=True)
class GoalSetter:
    """A way to start an episode with a given desired goal.

    name: how the goal is set, for messages.
    start: (env, seed, goal) -> first observation.
    """

    name: str
    start: Callable[[Environment, int, Array], Any]

    def with_goal(self, goal: Array) -> Callable[[Environment, int], Any]:
        """Return the function (env, seed) -> first observation for one goal."""
        return lambda env, seed: self.start(env, seed, goal)


def find_goal_setter(env: Environment) -> GoalSetter | None:
    """Return a way to set the desired goal: by the options of reset, or by an attribute. None if there is none.

    An attribute is found by its value: after two resets it equals the desired goal, and after it was changed the next
    observation shows the change. The environment is reset.
    """
    return next((setter for setter in _candidates(env) if _works(env, setter)), None)


def _candidates(env: Environment) -> Iterator[GoalSetter]:
    yield GoalSetter("the reset option 'goal'", lambda env, seed, goal: env.reset(seed=seed, options={"goal": goal})[0])
    goal = np.asarray(env.reset(seed=SEEDS[0])[0]["desired_goal"])
    inner: Any = env.unwrapped
    for path, owner in (("", inner), ("task.", getattr(inner, "task", None))):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            if isinstance(value, np.ndarray | list | tuple | np.number) and _is_equal(value, goal):
                yield GoalSetter(f"the attribute {path}{name}", _by_attribute(path, name))


def _is_equal(value: Any, goal: Array) -> bool:
    try:
        return np.array_equal(np.asarray(value).astype(goal.dtype), goal)
    except (TypeError, ValueError):  # not numbers
        return False


def _by_attribute(path: str, name: str) -> Callable[[Environment, int, Array], Any]:
    def start(env: Environment, seed: int, goal: Array) -> Any:
        observation = env.reset(seed=seed)[0]
        owner: Any = env.unwrapped.task if path else env.unwrapped  # type: ignore[attr-defined]
        value = getattr(owner, name)
        setattr(owner, name, goal.astype(value.dtype) if isinstance(value, np.ndarray) else type(value)(goal.tolist()))
        return {**observation, "desired_goal": goal.copy()}

    return start


def _works(env: Environment, setter: GoalSetter) -> bool:
    """Return whether the set goal appears in the observation after the next step."""
    try:
        goal, other = (np.array(env.reset(seed=seed)[0]["desired_goal"]) for seed in SEEDS)
        if np.array_equal(goal, other):
            return False
        first = setter.start(env, SEEDS[1], goal)
        second = env.step(next(random_actions(env, 0)))[0]
        return all(np.array_equal(observation["desired_goal"], goal) for observation in (first, second))
    except Exception:  # the option is unknown, or the attribute must not change
        return False
