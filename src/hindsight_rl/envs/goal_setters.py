"""How an episode of an environment is started with a given desired goal, found by trying."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
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


class _Attribute(NamedTuple):
    """An attribute that equals the desired goal. path: its name from the environment on. value: after a reset."""

    path: str
    owner: Any
    name: str
    value: Any


def find_goal_setters(env: Environment, seeds: tuple[int, int]) -> Iterator[GoalSetter]:
    """Yield what sets the desired goal: the options of reset, or attributes of the environment or of objects in it.

    An attribute is found by its value: after both resets it equals the desired goal, and after it was changed the next
    observation shows the change. A position may equal a goal once, where an episode starts at its goal. An environment may
    hold its goal several times: all of them are tried together, and then each alone. An attribute is restored if it does
    not set the goal, or if the next setter is requested. The environment is reset.
    seeds: of two resets. If their goals are equal, nothing is yielded, since a set goal would not show.
    """
    for setter in list(_candidates(env, seeds)):
        if _works(env, setter, seeds):
            yield setter
        setter.undo()


def _candidates(env: Environment, seeds: tuple[int, int]) -> Iterator[GoalSetter]:
    """Yield what may set the goal. seeds: of two resets."""
    yield GoalSetter("the reset option 'goal'", lambda seed, goal: env.reset(seed=seed, options={"goal": goal.copy()})[0])
    goal = np.array(env.reset(seed=seeds[0])[0]["desired_goal"])
    parts = _parts(env.unwrapped) if goal.ndim else ()  # many parts hold a single number that is equal by chance
    found = [
        _Attribute(f"{path}{name}", owner, name, value)
        for path, owner in (("", env.unwrapped), *parts)
        for name, value in list(vars(owner).items())
        if _equals(value, goal)
    ]
    other = np.array(env.reset(seed=seeds[1])[0]["desired_goal"])
    found = [each for each in found if _equals(getattr(each.owner, each.name, None), other)]
    for attributes in ([found] if len(found) > 1 else []) + [[each] for each in found]:
        names = " and ".join(each.path for each in attributes)
        start = functools.partial(_start_with_attributes, env, attributes)
        yield GoalSetter(
            f"the attribute{'s' * (len(attributes) > 1)} {names}", start, functools.partial(_restore, attributes)
        )


def _parts(env: Environment) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) for the objects in an environment, such as its task, or the environment behind an adapter.

    Classes and modules are left out, because others use them too.
    """
    for name, value in list(vars(env).items()):
        if hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
            yield f"{name}.", value


def _equals(value: Any, goal: Array) -> bool:
    """Return whether a value is the goal, in every element. A long sequence is not read. An array may have further axes.

    Environments may round the goal that they show to float32, whatever dtype they declare. They may hold a goal of one
    dimension as a number.
    """
    dtype = np.float32 if goal.dtype.kind == "f" else goal.dtype
    if isinstance(value, np.ndarray | float | np.floating) and np.size(value) == goal.size:
        value = np.reshape(value, goal.shape)
    with contextlib.suppress(Exception):  # not numbers
        is_long = goal.ndim and len(value) != len(goal)
        return not is_long and np.isrealobj(value) and np.array_equal(np.asarray(value).astype(dtype), goal.astype(dtype))
    return False


def _start_with_attributes(env: Environment, attributes: Sequence[_Attribute], seed: int, goal: Array) -> Any:
    observation = env.reset(seed=seed)[0]
    for each in attributes:
        value = getattr(each.owner, each.name)
        if isinstance(value, np.ndarray):
            changed: Any = goal.astype(value.dtype).reshape(value.shape)
        else:
            changed = type(value)(goal.item() if isinstance(value, float | np.floating) else goal.tolist())
        setattr(each.owner, each.name, changed)
    return {**observation, "desired_goal": goal.copy()}


def _restore(attributes: Sequence[_Attribute]) -> None:
    for each in attributes:
        with contextlib.suppress(Exception):  # the attribute must not change
            setattr(each.owner, each.name, each.value)


def _works(env: Environment, setter: GoalSetter, seeds: tuple[int, int]) -> bool:
    """Return whether the set goal appears in the observation after the next step."""
    try:
        goal, other = (np.array(env.reset(seed=seed)[0]["desired_goal"]) for seed in seeds)
        observations = [setter.start(seeds[1], goal), env.step(next(random_actions(env, 0)))[0]]
        is_set = all(np.array_equal(observation["desired_goal"], goal) for observation in observations)
        return is_set and not np.array_equal(goal, other)
    except Exception:  # the option is unknown, or the attribute must not change
        return False
