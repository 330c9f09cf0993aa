"""How objects move by themselves: on a belt, down a slope, or as a ball that rolls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..records import Array
from .columns import GoalCopies
from .controlled import ControlledColumns
from .parts import Parts
from .steps import MOST_DEVIATIONS, TINY, UPPER_QUARTILE, Steps


@dataclass(frozen=True, eq=False)
class OwnMotion:
    """How some dimensions of the goal move in most steps, whatever the actions: touch moves them otherwise.

    dimensions: of the goal. columns: of the observation, on which their displacement in a step depends, besides that in the
        step before. weights: of a constant, of displacements and of columns, (1 + d + columns, d).
    deviation: standard deviation of displacements from what is predicted, (d,).
    """

    dimensions: tuple[int, ...]
    columns: tuple[int, ...]
    weights: Array
    deviation: Array

    def subtract(self, steps: Steps) -> Steps:
        """Return steps without this motion: what is left of displacements is noise, or the effect of touch.

        steps: with the observation as the task has it. The first step of an episode shows no touch: nothing precedes it.
        """
        at, (own, noise) = list(self.dimensions), (np.zeros((n, steps.goal_size)) for n in (len(steps), 1))
        displacement, inputs = _displacement_and_inputs(steps, at, self.columns)
        own[:, at] = np.where(steps.starts_episode[:, None], displacement, inputs @ self.weights)
        noise[:, at] = self.deviation
        return replace(steps, own_motion=own, noise=noise[0] if steps.noise is None else np.maximum(noise[0], steps.noise))


def find_own_motion(steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns) -> OwnMotion | None:
    """Return how those parts move that look like bodies, although actions move no column of them; None without such parts.

    It is fitted to most of the steps: those in which something touches them are few, and are left out.

    steps: with random actions, and the observation as the task has it.
    """
    bodies = [part.dimensions for part in parts.parts if part.kind == "body"]
    at = [k for each in bodies for k in each if not {copies.columns[d] for d in each} & {None, *controlled.columns}]
    if not at or steps.starts_episode.all():
        return None
    others = [c for c in range(steps.n_columns) if c not in controlled.columns and c not in copies.columns]
    displacement, inputs = _displacement_and_inputs(steps, at, others)
    is_used = is_later = ~steps.starts_episode
    for _ in range(2):  # the second time to the steps that the first fit explains
        weights = np.linalg.lstsq(inputs[is_used], displacement[is_used], rcond=None)[0]
        size = np.abs(displacement - inputs @ weights)
        deviation = np.maximum(np.median(size[is_later], axis=0) / UPPER_QUARTILE, TINY)
        is_used = is_later & (size <= MOST_DEVIATIONS * deviation).all(1)
    return OwnMotion(tuple(at), tuple(others), weights, deviation)


def _displacement_and_inputs(steps: Steps, dimensions: list[int], columns: Sequence[int]) -> tuple[Array, Array]:
    displacement = (steps.next_achieved_goal - steps.achieved_goal)[:, dimensions]
    before = steps.of_step_before(displacement)
    return displacement, np.column_stack([np.ones(len(steps)), before, steps.observation[:, list(columns)]])
