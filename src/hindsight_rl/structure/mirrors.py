"""Mirrors of a task without an object: changes of sign under which the world moves alike, at positions that are visited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations

import numpy as np

from ..records import Array
from ..task_structure.symmetries import Symmetry
from .axis_symmetries import MIRRORED, SYMMETRY_MARGIN, correlations
from .columns import Units
from .model import COLUMN_MARGIN, MOST_MODEL_STEPS, Difference, DisplacementModel
from .steps import Steps, at_equal_intervals, lie_on_one_side

FEWEST_EPISODES = 10
MOST_GROUPS = 8  # of columns and actions that change their signs together: all 2^8 changes of sign are compared
TIED = 0.3  # squared correlation of a column's change with a value from which on both change their signs together
ELSEWHERE = 3.0  # standard errors: starts and goals so far from 0 are mirrored at their mean instead
COVERED = 0.25  # standard deviations: 90 % of the positions must have one of another episode so near
UNVISITED = 1.4  # mirrored positions may be farther from visited ones by this factor; farther, there may be a wall
REFUTED = 1.2  # times the limit: a mirror that held before is dropped if its error is larger


@dataclass(frozen=True)
class Mirror:
    """A change of signs. text: as `Symmetry.parse` reads it.

    loss: how much worse mirrored steps are predicted, by a model of the steps themselves.
    distance: from mirrored positions to visited ones, divided by the distance between visited positions of other episodes.
    """

    text: str
    loss: Difference
    distance: float

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return (
            f"{self.loss.explain(*MIRRORED, SYMMETRY_MARGIN, 1)}; "
            f"mirrored positions are {self.distance:.2f} times as far from visited positions as those are from each other"
        )


class MirrorFinder:
    """Tries changes of sign of columns, with the dimensions of the goal that they hold, and of actions.

    steps: in the units of the goal. copies: the column of each dimension of the goal. constant: columns that
    stay. units: how the observation holds the columns. is_centred: whether the bounds of each action are symmetric,
    (actions,).
    """

    def __init__(
        self, steps: Steps, copies: Sequence[int], constant: Sequence[int], units: Units, is_centred: Array
    ) -> None:
        self._steps, self._copies, self._units = steps, list(copies), units
        self._columns = [c for c in range(steps.n_columns) if c not in constant]
        self._centre = np.zeros(steps.n_columns)
        self._centre[self._copies] = _centre_of_task(steps)
        columns = (steps.observation - self._centre)[:, self._columns]
        self._values = np.column_stack([columns, steps.action])
        is_two_sided = np.isin(self._columns, self._copies) | ~lie_on_one_side(columns)
        self._can_flip = np.append(is_two_sided, is_centred)

    def find(self, known: Sequence[str] = ()) -> tuple[Mirror, ...] | None:
        """Return generators of the group of mirrors that hold; None if too little was visited, or for too many columns.

        All products of mirrors must hold too: if one does not, one of its factors fits by accident.
        known: texts of mirrors that held before. They stay unless they are clearly refuted.
        """
        groups = self._groups()
        if self._steps.episode[-1] + 1 < FEWEST_EPISODES or not 0 < len(groups) <= MOST_GROUPS:
            return None
        model = self._model()
        positions = self._positions(model)
        usual = self._distance(frozenset(), positions)
        if usual > COVERED:
            return None
        if any(len(group) == 1 and not self._loss(model, group).is_above(0.0, 1) for group in groups):
            return ()  # a false sign of it would not be seen
        flips = _products(groups)
        texts = {_names(text): text for text in known}  # their centres may differ from those of now
        before = _products([flipped for flipped in flips if _names(self._text(flipped)) in texts])
        losses = {flipped: self._loss(model, flipped) for flipped in flips}
        likely = {flipped for flipped, loss in losses.items() if loss.mean < SYMMETRY_MARGIN or flipped in before}
        distance = {flipped: _ratio(self._distance(flipped, positions), usual) for flipped in likely}
        holding = {
            flipped
            for flipped in likely
            if (losses[flipped].is_below(SYMMETRY_MARGIN, len(likely)) and distance[flipped] <= UNVISITED)
            or (
                flipped in before
                and not losses[flipped].is_above(SYMMETRY_MARGIN, 1)
                and distance[flipped] <= REFUTED * UNVISITED
            )
        }
        found = _generators(holding, {flipped: loss.mean for flipped, loss in losses.items()})
        own = {flipped: self._text(flipped) for flipped in found}
        return tuple(
            Mirror(texts.get(_names(text), text), losses[flipped], distance[flipped]) for flipped, text in own.items()
        )

    def _groups(self) -> list[frozenset[int]]:
        """Return what can change its sign, in groups: if the change of a column follows a value, both change it."""
        n = len(self._columns)
        tied = np.eye(self._values.shape[1], dtype=bool)
        tied[:n] |= np.square(correlations(self._steps.change[:, self._columns], self._values.T[None])[:, 0]) >= TIED
        tied |= tied.T
        for _ in range(len(tied)):
            tied = tied @ tied
        groups = {frozenset(np.flatnonzero(row).tolist()) for row in tied}
        return sorted((group for group in groups if self._can_flip[list(group)].all()), key=min)

    def _model(self) -> DisplacementModel:
        picked = at_equal_intervals(len(self._values), MOST_MODEL_STEPS)
        change = self._steps.change[:, self._columns]
        return DisplacementModel(self._values[picked], change[picked], self._steps.episode[picked])

    def _loss(self, model: DisplacementModel, flipped: AbstractSet[int]) -> Difference:
        """Return how much worse mirrored steps are predicted."""
        signs = np.where(np.isin(np.arange(self._values.shape[1]), list(flipped)), -1.0, 1.0)
        return model.compare(model.inputs * signs, model.targets * signs[: len(self._columns)])

    def _positions(self, model: DisplacementModel) -> Array:
        """Return which dimensions of the goal are positions, (g,): displacements depend on them at walls only."""
        at = [self._columns.index(c) if c in self._columns else None for c in self._copies]
        is_position = np.array([i is not None and model.without([i]).mean <= COLUMN_MARGIN for i in at])
        return is_position if is_position.any() else ~is_position

    def _distance(self, flipped: AbstractSet[int], positions: Array) -> float:
        """Return the distance from mirrored to visited positions of other episodes (0.9 quantile, standard deviations)."""
        picked = at_equal_intervals(len(self._values), MOST_MODEL_STEPS // 2)
        centred = (self._steps.observation - self._centre)[:, np.array(self._copies)[positions]]
        visited, episode = (centred / np.maximum(centred.std(0), 1e-12))[picked], self._steps.episode[picked]
        columns = [self._columns[i] for i in flipped if i < len(self._columns)]
        mirrored = np.where(np.isin(self._copies, columns), -1.0, 1.0)[positions] * visited
        square = np.zeros((len(picked), len(picked)))
        for one, other in zip(mirrored.T, visited.T, strict=True):
            square += np.square(one[:, None] - other)
        square[episode[:, None] == episode] = np.inf
        return float(np.sqrt(np.quantile(square.min(1), 0.9)))

    def _text(self, flipped: AbstractSet[int]) -> str:
        n, copies = len(self._columns), np.array(self._copies)
        symmetry = Symmetry.identity(self._steps.n_columns, len(copies), self._values.shape[1] - n)
        observation, goal, action = symmetry.parts
        columns = [self._columns[i] for i in flipped if i < n]
        dimensions = np.isin(copies, columns)
        observation.factor[columns], observation.offset[columns] = -1.0, 2 * self._centre[columns]
        goal.factor[dimensions], goal.offset[dimensions] = -1.0, 2 * self._centre[copies[dimensions]]
        action.factor[[i - n for i in flipped if i >= n]] = -1.0
        in_observation = observation.from_units(self._units.factor, self._units.offset)
        return replace(symmetry, observation=in_observation).text()


def _names(text: str) -> frozenset[str]:
    """Return what a mirror changes, as {"o0", "g0", "a0"}."""
    return frozenset(entry.partition("=")[0] for entry in text.split())


def _ratio(distance: float, usual: float) -> float:
    """Return a distance relative to the usual one, which is 0 where episodes visit the very same positions."""
    return distance / usual if usual > 0 else 0.0 if distance == 0 else float("inf")


def _centre_of_task(steps: Steps) -> Array:
    """Return the centre of starts and goals, (g,): 0 unless they clearly lie elsewhere."""
    start = steps.starts_episode
    ends = np.concatenate([steps.desired_goal[start], steps.achieved_goal[start]])
    mean, error = ends.mean(0), ends.std(0) / np.sqrt(len(ends))
    return np.where(np.abs(mean) > ELSEWHERE * error, mean, 0.0)


def _products(flips: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Return what changes its sign under each product of some changes of sign; what does so twice does not."""
    some = chain.from_iterable(combinations(flips, n) for n in range(1, len(flips) + 1))
    return [reduce(frozenset.symmetric_difference, chosen) for chosen in some]


def _generators(holding: AbstractSet[frozenset[int]], error: Mapping[frozenset[int], float]) -> list[frozenset[int]]:
    """Return generators of a group whose elements all hold, the same ones for the same group."""
    group = {frozenset[int]()}
    for flipped in sorted(holding, key=error.__getitem__):
        products = {flipped ^ each for each in group}
        if products <= holding and _is_certain(flipped, holding):
            group |= products
    generators: list[frozenset[int]] = []
    for flipped in sorted(group, key=lambda flipped: (len(flipped), sorted(flipped)))[1:]:
        if flipped not in _products(generators):
            generators.append(flipped)
    return generators


def _is_certain(flipped: frozenset[int], holding: AbstractSet[frozenset[int]]) -> bool:
    """Return whether each sign matters: the mirror fails if one sign is changed, unless that sign alone may change."""
    return all(len(flipped ^ other) != 1 or flipped ^ other in holding for other in holding)
