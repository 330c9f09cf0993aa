"""Automatic settings: options chosen from the sizes of a task and its time limit, for a task that nobody has tuned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..records import ArraySpec, GoalSpec

SMALL, MEDIUM = 20, 100  # largest number of inputs and outputs for networks of 2x64 and of 2x128
WARM_UP_EPISODES = 10  # random episodes at the start, from which the normalizer is estimated
FITTED = ("discount", "hidden", "updates_per_step", "critic_layer_norm", "random_steps", "goal_features")
LARGEST_DISCOUNT = 0.99  # beyond it, values are too large to be learned from few samples


class Choice(NamedTuple):
    """The value of an option and the reason for it."""

    option: str
    value: Any
    reason: str


def fit(spec: GoalSpec) -> tuple[Choice, ...]:
    """Return the options chosen for a task."""
    return (_discount(spec), *_networks(spec), _random_steps(spec), *_goal_features(spec.goal))


def _discount(spec: GoalSpec) -> Choice:
    """Return 1 - 1/T for episodes of T steps, after Plappert et al. (2018)."""
    limit = spec.max_episode_steps
    if limit is None:
        return Choice("discount", 0.98, "no time limit")
    discount = round(min(max(1 - 1 / limit, 0.9), LARGEST_DISCOUNT), 3)
    return Choice("discount", discount, f"episodes of {limit} steps")


def _networks(spec: GoalSpec) -> Iterator[Choice]:
    """Yield the smallest networks that suffice for the size of the task, and as many updates as their speed allows."""
    observation, goal, action = (part.n_values or part.size for part in (spec.observation, spec.goal, spec.action))
    size = observation + 2 * goal + action
    hidden, updates = ((64, 64), 4) if size <= SMALL else ((128, 128), 2) if size <= MEDIUM else ((256, 256), 1)
    sizes = f"observation {observation}, goal {goal}, action {action}"
    yield Choice("hidden", hidden, sizes)
    yield Choice("updates_per_step", updates, "the smaller the networks, the more updates")
    yield Choice("critic_layer_norm", updates > 1, "for more than one update per step")


def _random_steps(spec: GoalSpec) -> Choice:
    steps = min(max(WARM_UP_EPISODES * (spec.max_episode_steps or 100), 200), 1_000)
    return Choice("random_steps", steps, f"about {WARM_UP_EPISODES} episodes, for the normalizer")


def _goal_features(goal: ArraySpec) -> Iterator[Choice]:
    """Yield how goals are compared: vectors by their difference, bits and indices by equality, images not at all."""
    if goal.dtype.startswith("float"):
        yield Choice("goal_features", "relative", "goals are vectors")
    elif goal.n_values is not None or (goal.is_bounded and np.ptp(goal.bounds(), axis=0).max() == 1):
        yield Choice("goal_features", "agreement", "goals are bits or indices")
