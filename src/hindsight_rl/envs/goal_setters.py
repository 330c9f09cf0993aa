"""How an episode of an environment is started with a given desired goal, found by trying."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..records import Array
from .random_play import Environment, random_actions


class GoalSetter(NamedTuple):
    """How an episode of an environment is started with a given desired goal.

    name: how the goal is set, for messages.
    start: (seed, goal) -> first observation.
    undo: restores an attribute that was changed.
    """

    name: str
    start: Callable[[int, Array], Any]
    undo: Callable[[], object] = lambda: None


def find_goal_setters(env: Environment, seeds: tuple[int, int]) -> Iterator[GoalSetter]:
    """Yield what sets the desired goal: the options of reset, or attributes of the environment or of an object in it.

    An attribute is found by its value: after a reset it equals the desired goal, and after it was changed the next
    observation shows the change. It is restored if it does not set the goal, or if the next setter is requested. The
    environment is reset.
    seeds: of two resets. If their goals are equal, nothing is yielded, since a set goal would not show.
    """
    for setter in list(_candidates(env, seeds[0])):
        if _works(env, setter, seeds):
            yield setter
        with contextlib.suppress(Exception):  # the attribute must not change
            setter.undo()


def _candidates(env: Environment, seed: int) -> Iterator[GoalSetter]:
    """Yield what may set the goal."""
    yield GoalSetter("the reset option 'goal'", lambda seed, goal: env.reset(seed=seed, options={"goal": goal.copy()})[0])
    goal = np.asarray(env.reset(seed=seed)[0]["desired_goal"])
    parts = _parts(env.unwrapped) if goal.ndim else ()  # many parts hold a single number that is equal by chance
    for path, owner in (("", env.unwrapped), *parts):
        for name, value in list(vars(owner).items()):
            with contextlib.suppress(Exception):  # not numbers
                if _equals(value, goal):
                    start = functools.partial(_start_with_attribute, env, owner, name)
                    undo = functools.partial(setattr, owner, name, value)
                    yield GoalSetter(f"the attribute {path}{name}", start, undo)


def _parts(env: Environment) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) for the objects in an environment, such as its task, or the environment behind an adapter.

    Classes and modules are left out, because others use them too.
    """
    for name, value in list(vars(env).items()):
        if hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
            yield f"{name}.", value


def _equals(value: Any, goal: Array) -> bool:
    """Return whether a value is the goal, in every element. A long sequence is not read. An array may have further axes.

    Environments may round the goal that they show to float32, whatever dtype they declare.
    """
    dtype = np.float32 if goal.dtype.kind == "f" else goal.dtype
    if isinstance(value, np.ndarray) and value.size == goal.size:
        value = value.reshape(goal.shape)
    return (not goal.ndim or len(value) == len(goal)) and np.array_equal(
        np.asarray(value).astype(dtype), goal.astype(dtype)
    )


def _start_with_attribute(env: Environment, owner: Any, name: str, seed: int, goal: Array) -> Any:
    observation = env.reset(seed=seed)[0]
    value = getattr(owner, name)
    is_array = isinstance(value, np.ndarray)
    setattr(owner, name, goal.astype(value.dtype).reshape(value.shape) if is_array else type(value)(goal.tolist()))
    return {**observation, "desired_goal": goal.copy()}


def _works(env: Environment, setter: GoalSetter, seeds: tuple[int, int]) -> bool:
    """Return whether the set goal appears in the observation after the next step."""
    try:
        goal, other = (np.array(env.reset(seed=seed)[0]["desired_goal"]) for seed in seeds)
        observations = [setter.start(seeds[1], goal), env.step(next(random_actions(env, 0)))[0]]
        is_set = all(np.array_equal(observation["desired_goal"], goal) for observation in observations)
        return is_set and not np.array_equal(goal, other)
    except Exception:  # the option is unknown, or the attribute must not change
        return False
