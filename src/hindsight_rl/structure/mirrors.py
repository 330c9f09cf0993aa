"""Symmetries of a task without an object: changes of sign under which the world moves alike, where it was visited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ..records import Array
from ..task_structure.symmetries import LARGEST_ORDER, Symmetry
from .columns import Units
from .linear_copies import find_linear_copies
from .model import MOST_MODEL_STEPS
from .relevance import COLUMN_MARGIN
from .steps import (
    BESIDE,
    EXCEPTIONS,
    FEWEST,
    HELD_OUT,
    LITTLE,
    ROUNDED,
    Steps,
    at_equal_intervals,
    clear_mean,
    correlations,
    lie_on_one_side,
)
from .success import RewardPairs
from .symmetry_verdicts import (
    Candidate,
    SymmetryTest,
    SymmetryVerdict,
    centre_of,
    generators,
    with_consequences,
    with_rewards,
)

# of columns and actions that change their signs together: each doubles the number of symmetries
MOST_GROUPS = int(math.log2(LARGEST_ORDER))


class Mirrors:
    """Proposes and tests changes of sign of columns, with the dimensions of the goal that they hold, and of actions.

    steps: in the units of the goal. copies: the column of each dimension of the goal. constant: columns that
    stay. units: how the observation holds the columns. known: mirrors that held before. rewards: of the task.
    """

    def __init__(
        self,
        steps: Steps,
        copies: Sequence[int],
        constant: Sequence[int],
        units: Units,
        known: Sequence[Symmetry] = (),
        rewards: RewardPairs | None = None,
    ) -> None:
        self._steps, self._copies, self._units, self._known = steps, list(copies), units, known
        self._rewards = rewards
        self._columns = [c for c in range(steps.n_columns) if c not in constant]
        self._centre = np.zeros(steps.n_columns)
        self._centre[self._copies] = centre_of(known, _centre_of_task(steps))
        for each in find_linear_copies(steps, self._copies, self._columns):
            self._centre[each.column] = each.factor * self._centre[each.position] + each.constant
        centres = self._centre[self._copies]
        self._staying = [c for c in self._columns if not steps.change[:, c].any()]  # one may be the position of a gate, say
        for column in self._staying:
            mean = steps.observation[:, column].mean()
            self._centre[column] = min(centres, key=lambda centre: abs(centre - mean))
        self._values = np.column_stack([(steps.observation - self._centre)[:, self._columns], steps.action])
        is_two_sided = np.isin(self._columns, self._copies) | ~lie_on_one_side(self._values[:, : len(self._columns)])
        self._can_change = np.append(is_two_sided, np.ones(steps.action.shape[1], bool))

    def find(self) -> list[SymmetryVerdict]:
        """Return the verdicts of mirrors of which all others that hold are products; that of the most likely if none holds.

        Nothing if too little was visited, or for too many columns.
        """
        most = MOST_GROUPS + len(self._staying)  # with each of these that is fixed there may be one less
        if self._steps.episode[-1] + 1 < FEWEST or not 0 < len(self._groups()) <= most:
            return []
        picked = at_equal_intervals(len(self._values), MOST_MODEL_STEPS)
        test = SymmetryTest(self._steps, picked, self._columns, self._copies)
        groups = self._groups(self._needless(test))
        if not 0 < len(groups) <= MOST_GROUPS:
            return []
        positions = self._positions(test)
        usual = self._distance(Symmetry.identity(*self._sizes), positions)
        if usual > BESIDE:  # a tenth of the positions has none of another episode beside it
            return []
        subsets = _subsets(groups)
        tested = test.verdicts([self._mirror(chosen) for chosen in subsets], self._units, self._known)
        # if it may have either sign, it could get the wrong one, which may matter in a collision: too rare to be predicted
        is_free = [len(chosen) == 1 or self._is_apart(chosen) for chosen in subsets]
        if any(free and verdict.is_close for free, verdict in zip(is_free, tested, strict=True)):
            return []
        tested = [self._with_distance(verdict, positions, usual) for verdict in tested]
        found = with_consequences(with_rewards(tested, self._rewards))
        return generators(found) or [min(found, key=lambda verdict: verdict.loss.mean)]

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self._steps.n_columns, len(self._copies), self._steps.action.shape[1]

    def _needless(self, test: SymmetryTest) -> list[int]:
        """Return columns that stay in each episode and do not matter so far, which mirrors leave as they are.

        Either sign of such a column fits. If it is the position of a gate, it matters once many steps have met the gate.
        """
        staying = [self._columns.index(column) for column in self._staying]
        return [i for i in staying if test.model.without([i]).is_below(COLUMN_MARGIN, 1)]

    def _groups(self, fixed: Sequence[int] = ()) -> list[frozenset[int]]:
        """Return what can change its sign together. Each change of signs that fits is a combination of them.

        fixed: columns that keep theirs, besides those that lie on one side.
        If the change of a column follows a value, both change their signs or none. If it follows the product of two values,
        as the position of a cart follows its speed and the cosine of its heading, the sign of the column changes if that of
        one of both does.
        """
        rules = [frozenset({i}) for i in [*np.flatnonzero(~self._can_change).tolist(), *fixed]]
        rules += [frozenset({column}).symmetric_difference(signal) for column, signal in self._followed]
        return _even_sets(rules, self._values.shape[1])

    @cached_property
    def _followed(self) -> list[tuple[int, tuple[int, ...]]]:
        """The values that the change of each column follows: one, or the product of two if it follows that more than each.

        What follows what is seen in single episodes: in one of them the change of a car along one axis may follow its speed
        along the other, but not in most.
        """
        picked = at_equal_intervals(len(self._values), MOST_MODEL_STEPS)
        change, episode = self._steps.change[picked][:, self._columns], self._steps.episode[picked]
        n_values = self._values.shape[1]
        pairs = list(combinations(range(n_values), 2))
        pairs = pairs if len(pairs) <= len(picked) // HELD_OUT else []
        signals = [*((v,) for v in range(n_values)), *pairs]
        values = np.stack([self._values[picked][:, signal].prod(1) for signal in signals])
        each = [correlations(change[episode == k], values[:, episode == k]) for k in np.unique(episode)]
        fits = np.square(np.mean(each, axis=0))  # (columns, signals)
        followed = []
        for column, at in np.argwhere(fits >= LITTLE).tolist():
            signal = signals[at]
            if len(signal) == 1 or fits[column, at] >= fits[column, list(signal)].max() + LITTLE:
                followed.append((column, signal))
        return followed

    def _is_apart(self, chosen: frozenset[int]) -> bool:
        """Whether no goal follows these columns and actions, directly or through other columns: something else moves.

        It may be a tram, or a paddle that hits a ball too rarely to be seen in its motion.
        """
        leading = {self._columns.index(column) for column in self._copies if column in self._columns}
        while more := {value for column, signal in self._followed if column in leading for value in signal} - leading:
            leading |= more
        return leading.isdisjoint(chosen)

    def _mirror(self, chosen: frozenset[int]) -> Candidate:
        """chosen: which columns, and after them which actions, change their signs."""
        n, copies = len(self._columns), np.array(self._copies)
        symmetry = Symmetry.identity(*self._sizes)
        observation, goal, action = symmetry.parts
        columns = [self._columns[i] for i in chosen if i < n]
        dimensions = np.isin(copies, columns)
        observation.factor[columns], observation.offset[columns] = -1.0, 2 * self._centre[columns]
        goal.factor[dimensions], goal.offset[dimensions] = -1.0, 2 * self._centre[copies[dimensions]]
        action.factor[[i - n for i in chosen if i >= n]] = -1.0
        changed = [f"o{column}" for column in sorted(columns)] + [f"a{i - n}" for i in sorted(chosen) if i >= n]
        return Candidate(f"mirror of {' '.join(changed)}", symmetry)

    def _positions(self, test: SymmetryTest) -> Array:
        """Return which dimensions of the goal are positions, (g,): displacements depend on them at walls only."""
        at = [self._columns.index(c) if c in self._columns else None for c in self._copies]
        is_position = np.array([i is not None and test.model.without([i]).mean <= COLUMN_MARGIN for i in at])
        return is_position if is_position.any() else ~is_position

    def _with_distance(self, verdict: SymmetryVerdict, positions: Array, usual: float) -> SymmetryVerdict:
        if verdict.is_refuted:
            return verdict
        return replace(verdict, distance=_ratio(self._distance(verdict.candidate.symmetry, positions), usual))

    def _distance(self, symmetry: Symmetry, positions: Array) -> float:
        """Return how far transformed positions are from those of other episodes (0.9 quantile, standard deviations)."""
        picked = at_equal_intervals(len(self._steps), MOST_MODEL_STEPS // 2)
        columns, episode = np.array(self._copies)[positions], self._steps.episode[picked]
        seen = self._steps.observation[picked]
        scale = np.maximum(self._steps.observation[:, columns].std(0), ROUNDED)
        visited, transformed = (each[:, columns] / scale for each in (seen, symmetry.observation.apply(seen)))
        square = np.zeros((len(picked), len(picked)))
        for one, other in zip(transformed.T, visited.T, strict=True):
            square += np.square(one[:, None] - other)
        square[episode[:, None] == episode] = np.inf
        return float(np.sqrt(np.quantile(square.min(1), 1 - EXCEPTIONS)))


def _even_sets(rules: Sequence[frozenset[int]], n: int) -> list[frozenset[int]]:
    """Return sets of numbers below n that have an even number of members of each rule, as all combinations of them do.

    Combination: what is in an odd number of them. The solutions of linear equations of zeros and ones, by elimination.
    """
    solved: dict[int, frozenset[int]] = {}  # by its first number, which is in no other
    for rule in rules:
        for first, other in solved.items():
            rule = rule ^ other if first in rule else rule
        if rule:
            first = min(rule)
            solved = {known: other ^ rule if first in other else other for known, other in solved.items()} | {first: rule}
    free = [number for number in range(n) if number not in solved]
    return [frozenset([number, *(first for first, rule in solved.items() if number in rule)]) for number in free]


def _subsets(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Return each combination of groups but that of none: what is in an odd number of them."""
    combined = [frozenset[int]()]
    for group in groups:
        combined += [each ^ group for each in combined]
    return sorted(combined[1:], key=len)


def _ratio(distance: float, usual: float) -> float:
    """Return a distance relative to the usual one, which is 0 where episodes visit the very same positions."""
    return distance / usual if usual > 0 else 0.0 if distance == 0 else float("inf")


def _centre_of_task(steps: Steps) -> Array:
    """Return the centre of starts and goals, (g,): 0 unless they clearly lie elsewhere."""
    start = steps.starts_episode
    ends = np.concatenate([steps.desired_goal[start], steps.achieved_goal[start]])
    return clear_mean(ends)
