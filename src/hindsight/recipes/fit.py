"""Settings for a task that nobody has tuned: chosen from its sizes and its time limit, and each choice explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..records import ArraySpec, GoalSpec
from . import Recipe

SMALL, MIDDLE = 20, 100  # numbers that a network sees and does, up to which so large a one is enough
EPISODES_TO_START = 10  # random ones, which set the normaliser
LONGEST_DISCOUNT = 0.99  # beyond it values are too large to be learnt from few samples


class Choice(NamedTuple):
    """Options that belong together, and why."""

    options: dict[str, Any]
    reason: str


def fit(recipe: Recipe, spec: GoalSpec) -> Recipe:
    """The recipe with what it leaves open chosen for this task, where it says `from_spec`; else as it is."""
    if not recipe.from_spec:
        return recipe
    chosen = list(_choices(spec))
    options = {name: value for choice in chosen for name, value in choice.options.items()}
    return replace(recipe, options=options | dict(recipe.options), reasons=tuple(choice.reason for choice in chosen))


def _choices(spec: GoalSpec) -> Iterator[Choice]:
    yield _horizon(spec)
    yield _networks(spec)
    yield _start(spec)
    yield from _goal_features(spec.goal)


def _horizon(spec: GoalSpec) -> Choice:
    """As Plappert et al. (2018): 1 - 1/T, for an episode of T steps."""
    limit = spec.max_episode_steps
    if limit is None:
        return Choice({"discount": 0.98}, "discount 0.98, since there is no time limit")
    discount = round(min(max(1 - 1 / limit, 0.9), LONGEST_DISCOUNT), 3)
    return Choice({"discount": discount}, f"discount {discount:g} for episodes of {limit} steps")


def _networks(spec: GoalSpec) -> Choice:
    """The smallest networks that serve tasks of this size, and as many updates as their speed affords."""
    size = spec.observation.size + 2 * spec.goal.size + spec.action.size
    hidden, updates = ([64, 64], 4) if size <= SMALL else ([128, 128], 2) if size <= MIDDLE else ([256, 256], 1)
    options = {"hidden": hidden, "updates_per_step": updates, "critic_layer_norm": updates > 1}
    asked = f"observation {spec.observation.size}, goal {spec.goal.size}, action {spec.action.size}"
    said = f"networks of {'x'.join(map(str, hidden))} and {updates} update{'s' * (updates > 1)} per step for {asked}"
    return Choice(options, said)


def _start(spec: GoalSpec) -> Choice:
    steps = min(max(EPISODES_TO_START * (spec.max_episode_steps or 100), 200), 1_000)
    return Choice({"random_steps": steps}, f"{steps:,} random steps first")


def _goal_features(goal: ArraySpec) -> Iterator[Choice]:
    """Places are compared by their difference, bits and listed numbers by whether they agree; pictures are not."""
    if goal.dtype.startswith("float"):
        yield Choice({"goal_features": "relative"}, "networks also see goal - achieved_goal")
    elif goal.n_values is not None or (goal.is_bounded and np.ptp(goal.bounds(), axis=0).max() == 1):
        yield Choice({"goal_features": "agreement"}, "networks also see where goal and achieved_goal agree")
