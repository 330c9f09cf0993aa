"""Settings for a task that nobody has tuned: chosen from its sizes and its time limit, and the choices explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..records import ArraySpec, GoalSpec
from . import Recipe

SMALL, MIDDLE = 20, 100  # numbers that a network sees and does (of a Discrete space each value), up to which it is enough
EPISODES_TO_START = 10  # random ones, which set the normaliser
LONGEST_DISCOUNT = 0.99  # beyond it values are too large to be learnt from few samples


class Choice(NamedTuple):
    """A value of an option; in words what it is and why, where that is worth telling."""

    option: str
    value: Any
    reason: str = ""


def fit(recipe: Recipe, spec: GoalSpec) -> Recipe:
    """The recipe with what it leaves open chosen for this task, where it says `from_spec`; else as it is."""
    if not recipe.from_spec:
        return recipe
    chosen = [choice for choice in _choices(spec) if choice.option not in recipe.options]
    options = {choice.option: choice.value for choice in chosen} | dict(recipe.options)
    return replace(recipe, options=options, reasons={choice.option: choice.reason for choice in chosen if choice.reason})


def _choices(spec: GoalSpec) -> Iterator[Choice]:
    yield _horizon(spec)
    yield from _networks(spec)
    yield _start(spec)
    yield from _goal_features(spec.goal)


def _horizon(spec: GoalSpec) -> Choice:
    """As Plappert et al. (2018): 1 - 1/T, for an episode of T steps."""
    limit = spec.max_episode_steps
    if limit is None:
        return Choice("discount", 0.98, "discount 0.98, since there is no time limit")
    discount = round(min(max(1 - 1 / limit, 0.9), LONGEST_DISCOUNT), 3)
    return Choice("discount", discount, f"discount {discount:g} for episodes of {limit} steps")


def _networks(spec: GoalSpec) -> Iterator[Choice]:
    """The smallest networks that serve tasks of this size, and as many updates as their speed affords."""
    observation, goal, action = (part.n_values or part.size for part in (spec.observation, spec.goal, spec.action))
    size = observation + 2 * goal + action
    hidden, updates = ([64, 64], 4) if size <= SMALL else ([128, 128], 2) if size <= MIDDLE else ([256, 256], 1)
    asked = f"observation {observation}, goal {goal}, action {action}"
    yield Choice("hidden", hidden, f"networks of {'x'.join(map(str, hidden))} for {asked}")
    yield Choice("updates_per_step", updates, f"{updates} update{'s' * (updates > 1)} per step")
    yield Choice("critic_layer_norm", updates > 1)


def _start(spec: GoalSpec) -> Choice:
    steps = min(max(EPISODES_TO_START * (spec.max_episode_steps or 100), 200), 1_000)
    return Choice("random_steps", steps, f"{steps:,} random steps first")


def _goal_features(goal: ArraySpec) -> Iterator[Choice]:
    """Places are compared by their difference, bits and listed numbers by whether they agree; pictures are not."""
    if goal.dtype.startswith("float"):
        yield Choice("goal_features", "relative", "networks also see goal - achieved_goal")
    elif goal.n_values is not None or (goal.is_bounded and np.ptp(goal.bounds(), axis=0).max() == 1):
        yield Choice("goal_features", "agreement", "networks also see where goal and achieved_goal agree")
