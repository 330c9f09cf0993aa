"""Mirrors and quarter turns of the goal's axes under which the visible part of the world moves alike.

Each visible column and each action is assigned to an axis of the goal: a mirror of that axis changes its sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry, generate_group
from .columns import ControlledColumns, Units
from .contact import Contact, is_at_task
from .model import Difference, DisplacementModel, informative_steps, inputs_of
from .steps import LITTLE, Steps, lie_on_one_side

SYMMETRY_MARGIN = (
    0.35  # growth of the loss: one wrong sign adds 0.4 to 6, unless that sign hardly matters; true symmetries add up to 0.2
)
MIRRORED = ("in transformed steps", "in the steps themselves")
ASSOCIATED = 0.3  # correlation with signals of an axis from which on a column belongs to it
OTHER_AXIS = 0.6  # largest correlation with another axis, as a fraction of that with its own axis
SAME_PROFILE = 0.35  # root mean square difference of correlations between columns that are exchanged


@dataclass(frozen=True)
class SymmetryVerdict:
    """Whether a symmetry holds. text: as `Symmetry.parse` reads it.

    loss: how much worse transformed steps are predicted, by a model of the steps themselves.
    n_tested: how many symmetries were tested together.
    """

    axes: tuple[int, ...]  # of the goal: one for a mirror, two for a quarter turn, none for an exchange of objects
    text: str
    loss: Difference
    n_tested: int = 1
    objects: tuple[int, ...] = ()  # that are exchanged
    is_product: bool | None = None  # of those that hold together; None: not known yet
    column: int | None = None  # that refutes it

    @property
    def holds(self) -> bool:
        """Whether it is used: transformed steps are predicted about as well as the steps themselves, for certain.

        Or it follows from others that are used. If a product of it and others is refuted, it may be left out.
        """
        return self.loss.is_below(SYMMETRY_MARGIN, self.n_tested) if self.is_product is None else self.is_product

    @property
    def is_refuted(self) -> bool:
        """Whether transformed steps are predicted worse for certain."""
        return self.loss.is_above(SYMMETRY_MARGIN, self.n_tested)

    @property
    def is_uncertain(self) -> bool:
        """Whether more steps are needed to tell."""
        return not self.holds and not self.is_refuted

    @property
    def name(self) -> str:
        """As "mirror of axis 0"."""
        names = ("exchange of objects {} and {}", "mirror of axis {}", "quarter turn of axes {} and {}")
        return names[len(self.axes)].format(*self.axes, *(k + 1 for k in self.objects))

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return f"{self.name} {self.verdict}: {self.reason()}"

    @property
    def verdict(self) -> str:
        """In a few words. What is uncertain is not used."""
        if self.holds:
            return "holds" if self.loss.is_below(SYMMETRY_MARGIN, self.n_tested) else "follows from others"
        return "does not hold" if self.is_refuted else "is uncertain, so it is not used"

    def reason(self) -> str:
        """Return the figures that decide."""
        if self.column is None:
            return self.loss.explain(*MIRRORED, SYMMETRY_MARGIN, self.n_tested)
        growth = self.loss.in_percent(SYMMETRY_MARGIN, self.n_tested)
        return f"in transformed steps the error of column {self.column} grows, relative to its variance, by {growth}"


Candidate = tuple[tuple[int, ...], Symmetry, tuple[int, ...]]  # axes, the symmetry, exchanged objects


class SymmetryFinder:
    """Tries mirrors of each axis and quarter turns of each pair of axes on the steps of a task, in the units of the goal.

    visible: observation columns that the networks see. contact: the columns that are positions, one of each axis.
    controlled: what the action moves. units: how the observation holds the columns.
    """

    def __init__(
        self, steps: Steps, visible: Sequence[int], contact: Contact, controlled: ControlledColumns, units: Units
    ) -> None:
        self._steps, self._visible, self._contact = steps, list(visible), contact
        start = steps.observation[steps.starts_episode][:, list(contact.tool)].mean(0)
        digits = 4 - math.ceil(math.log10(steps.goal_std + 1e-12))  # of the size of the task, wherever it lies
        self._centre = start.round(digits)  # where the tool starts; rounded, so that the symmetries form a finite group
        positions = {*contact.tool, *contact.object_columns}
        self._others = [column for column in self._visible if column not in positions]
        self._signals = axis_signals(steps, contact.tool)
        self._n_axes = len(contact.axes)
        self._actions = find_action_axes(controlled.effect_on(contact.axes))
        self._controlled, self._units, self._std = controlled, units, np.maximum(steps.observation.std(0), 1e-12)
        self._columns = find_column_axes(steps, self._others, self._signals, self._actions)
        picked = informative_steps(steps)
        picked = picked[is_at_task(steps, contact)[picked]]
        self._seen, self._action = steps.observation[picked], steps.action[picked]
        self._displacements = [each[picked] for each in (steps.displacement, steps.change[:, list(contact.tool)])]
        self._changes = steps.change[picked]
        inputs = inputs_of(self._seen, self._action, self._visible, contact)
        targets = np.column_stack([*self._displacements, self._changes[:, self._others]])
        self._model = DisplacementModel(inputs, targets, steps.episode[picked])

    @property
    def unclear(self) -> tuple[int, ...]:
        """Visible columns of which signals do not show to which axis they belong."""
        return tuple(c for c, axis in zip(self._others, self._columns.of, strict=True) if axis == UNCLEAR_AXIS)

    @property
    def has_hand(self) -> bool:
        """Whether an action without an axis moves a visible column: a hand opens along one axis, so turns do not hold."""
        mover = np.abs(self._controlled.effect).argmax(0)
        pairs = zip(self._controlled.columns, mover, strict=True)
        return any(column in self._visible and self._actions.of[action] == SCALAR for column, action in pairs)

    def find(self) -> list[SymmetryVerdict]:
        """Return the symmetries that could be tested, whether they hold or not."""
        moved = np.abs(self._steps.displacement).mean(0).reshape(-1, self._n_axes).mean(0)
        axes = [k for k in range(len(moved)) if moved[k] >= LITTLE * moved.max() and self._goals_lie_around(k)]
        candidates: list[Candidate] = [((k,), self._mirror(k), ()) for k in axes]
        for k, other in combinations(axes, 2) if not self.has_hand and not self.unclear else ():
            if (turn := self._quarter_turn(k, other)) is not None:
                candidates.append(((k, other), turn, ()))
        exchanges = {(k, k + 1): self._exchange_objects(k, k + 1) for k in range(len(self._centre) // self._n_axes - 1)}
        candidates += [((), each, pair) for pair, each in exchanges.items() if each and not self.unclear]
        tested = [self._test(*candidate, len(candidates)) for candidate in candidates]
        symmetries = [symmetry for _, symmetry, _ in candidates]
        return with_consequences(tested, symmetries)

    def _exchange_objects(self, one: int, other: int) -> Symmetry | None:
        """Exchange two objects; None if the columns that show them cannot be paired."""
        pairs = pair_columns(self._steps, self._others, self._contact.tool, one, other)
        if pairs is None:
            return None
        goal = AffineMap.identity(len(self._centre))
        dimensions = goal.source.reshape(-1, self._n_axes)
        dimensions[[one, other]] = dimensions[[other, one]]
        observation = self._identity_with_positions(goal)
        for column, source in pairs:
            same_units = source == column or self._units.is_known[[column, source]].all()
            observation.source[column] = source
            observation.factor[column] = 1.0 if same_units else self._std[column] / self._std[source]
        return Symmetry(observation, goal, AffineMap.identity(len(self._actions.of)))

    def _goals_lie_around(self, axis: int) -> bool:
        """Whether desired goals lie on both sides of the centre. If not, the mirrored half of the task never occurs."""
        gaps = (self._steps.desired_goal - self._centre)[self._steps.starts_episode, axis :: self._n_axes]
        return bool((np.abs(gaps.mean(0)) <= gaps.std(0)).all())

    def _mirror(self, axis: int) -> Symmetry:
        goal = AffineMap.identity(len(self._centre))
        goal.factor[axis :: self._n_axes], goal.offset[axis :: self._n_axes] = -1.0, 2 * self._centre[axis]
        observation, action = self._identity_with_positions(goal), AffineMap.identity(len(self._actions.of))
        observation.factor[[self._others[i] for i in self._columns.members(axis)]] = -1.0
        action.factor[self._actions.members(axis)] = -1.0
        mirror = Symmetry(observation, goal, action)
        for column in self.unclear:  # each gets the sign with which mirrored steps are predicted better
            loss = self._loss(mirror)[0].mean
            observation.factor[column] = -1.0
            observation.factor[column] = -1.0 if self._loss(mirror)[0].mean < loss else 1.0
        return mirror

    def _quarter_turn(self, axis: int, other: int) -> Symmetry | None:
        """x -> -y, y -> x about the centre; None if the columns of the two axes cannot be paired."""
        pairs, action_pairs = (pair_axes(table, axis, other) for table in (self._columns, self._actions))
        if pairs is None or action_pairs is None:
            return None
        goal = AffineMap.identity(len(self._centre))
        for first in range(0, len(self._centre), self._n_axes):
            _exchange(goal, first + axis, first + other, 1.0)
        goal.offset[axis :: self._n_axes] = self._centre[axis] + self._centre[other]
        goal.offset[other :: self._n_axes] = self._centre[other] - self._centre[axis]
        observation, action = self._identity_with_positions(goal), AffineMap.identity(len(self._actions.of))
        for i, j, factor in pairs:
            _exchange(observation, self._others[i], self._others[j], factor * self._ratio(i, j))
        for i, j, factor in action_pairs:
            _exchange(action, i, j, factor)
        return Symmetry(observation, goal, action)

    def _ratio(self, i: int, j: int) -> float:
        """Return the unit of column i in units of column j, which a quarter turn exchanges: 1 if both are known.

        Otherwise it is the ratio of their linear dependence on the signals of their axes.
        """
        if self._units.is_known[[self._others[i], self._others[j]]].all():
            return 1.0
        size = []
        for which in (i, j):
            values, signals = self._steps.observation[:, self._others[which]], self._signals[self._columns.of[which]]
            weights = np.linalg.lstsq(signals.T, values - values.mean(), rcond=None)[0]
            size.append(float(np.linalg.norm(weights * self._signals.std((0, 2)))))
        return size[0] / size[1]

    def _identity_with_positions(self, goal: AffineMap) -> AffineMap:
        """Positions are transformed as goals are, hidden or not: subgoals and differences are made of them."""
        observation = AffineMap.identity(self._steps.n_columns)
        for columns in (self._contact.tool, self._contact.object_columns):
            for k, column in enumerate(columns):
                observation.source[column] = columns[goal.source[k]]
                observation.factor[column], observation.offset[column] = goal.factor[k], goal.offset[k]
        return observation

    def _loss(self, symmetry: Symmetry) -> tuple[Difference, int | None]:
        """Return how much worse transformed steps are predicted than the steps themselves, and None.

        That is the displacement of objects and tool, or the change of the other visible columns if that is predicted worse
        still. If one column is certain to refute the symmetry, as of a key that lies on one side, the second value is it.
        """
        seen, action = symmetry.observation.apply(self._seen), symmetry.action.apply(self._action)
        displacements = [symmetry.goal.apply_to_displacements(each) for each in self._displacements]
        changes = symmetry.observation.apply_to_displacements(self._changes)[:, self._others]
        inputs, n_first = (
            inputs_of(seen, action, self._visible, self._contact),
            sum(each.shape[1] for each in displacements),
        )
        loss, target = self._model.growth(inputs, np.column_stack([*displacements, changes]), n_first, SYMMETRY_MARGIN)
        return loss, None if target is None else self._others[target - n_first]

    def _test(self, axes: tuple[int, ...], symmetry: Symmetry, objects: tuple[int, ...], n_tested: int) -> SymmetryVerdict:
        in_observation = symmetry.observation.from_units(self._units.factor, self._units.offset)
        text = replace(symmetry, observation=in_observation).text()
        loss, column = self._loss(symmetry)
        return SymmetryVerdict(axes, text, loss, n_tested, objects, column=column)


def with_consequences(tested: Sequence[SymmetryVerdict], symmetries: Sequence[Symmetry]) -> list[SymmetryVerdict]:
    """Return the verdicts. What is a product of symmetries that hold holds too: sampled batches contain it.

    If a product is refuted, one of its factors fits by accident: the least certain one of those that hold is left out.
    """
    sizes = [len(part.source) for part in symmetries[0].parts] if symmetries else []
    holding = sorted((k for k, verdict in enumerate(tested) if verdict.holds), key=lambda k: tested[k].loss.interval(1)[1])
    while holding:
        chosen = [symmetries[k] for k in holding]
        group, largest_offset = generate_group(chosen, Symmetry.identity(*sizes)), max(s.largest_offset for s in chosen)
        products = [any(each.is_same(element, largest_offset) for element in group) for each in symmetries]
        if not any(is_product and verdict.is_refuted for is_product, verdict in zip(products, tested, strict=True)):
            return [replace(verdict, is_product=product) for verdict, product in zip(tested, products, strict=True)]
        holding.pop()
    return [replace(verdict, is_product=False) for verdict in tested]


def _exchange(transform: AffineMap, i: int, j: int, factor: float) -> None:
    transform.source[i], transform.source[j] = j, i
    transform.factor[i], transform.factor[j] = -factor, 1 / factor


@dataclass(frozen=True)
class AxisTable:
    """of[i]: the axis of the goal that column (or action) i belongs to, SCALAR for none, UNCLEAR_AXIS if that is not clear.

    profile[i]: its correlations with the signals of its axis, (signals,), which distinguish columns of one axis.
    """

    of: tuple[int, ...]
    profile: Array

    def members(self, axis: int) -> list[int]:
        """Return what belongs to an axis."""
        return [i for i, found in enumerate(self.of) if found == axis]


SCALAR, UNCLEAR_AXIS = -1, -2


def axis_signals(steps: Steps, tool: Sequence[int]) -> Array:
    """Return what belongs to each axis for certain, (axes, signals, N): the signals of all objects."""
    return np.concatenate(list(object_signals(steps, tool)), axis=1)


def object_signals(steps: Steps, tool: Sequence[int]) -> Array:
    """Return the gap between tool and object and the displacements of both, (objects, axes, signals, N).

    tool: for each dimension of the goal the column that the action moves along its axis, the same for all objects.
    """
    position, object_position = steps.observation[:, list(tool)], steps.achieved_goal
    displacements = steps.change[:, list(tool)], steps.displacement
    signals = [object_position - position, *displacements, *map(steps.of_step_before, displacements)]
    by_dimension = np.stack(signals).transpose(2, 0, 1)
    return by_dimension.reshape(-1, len(set(tool)), *by_dimension.shape[1:])


def find_action_axes(effect: Array) -> AxisTable:
    """Assign each entry of the action to the axis along which it moves the tool most; SCALAR if it hardly moves it.

    effect: (action size, axes), change of the tool's position per unit of action.
    """
    size = np.abs(effect)
    axes = tuple(SCALAR if row.max() < LITTLE * size.max() else int(row.argmax()) for row in size)
    return AxisTable(axes, np.take_along_axis(effect, size.argmax(1)[:, None], 1) / size.max())


def find_column_axes(steps: Steps, columns: Sequence[int], signals: Array, actions: AxisTable) -> AxisTable:
    """Assign each column to the axis with whose signals or actions it correlates.

    A column that correlates with no axis is SCALAR if its values lie on one side of 0, or if an action without an axis
    moves it. Otherwise, or if it correlates with several axes, it is UNCLEAR_AXIS.
    """
    values = steps.observation[:, list(columns)]
    is_scalar = lie_on_one_side(values)
    at = actions.members(SCALAR)
    if at and len(columns):
        both = np.concatenate([steps.action[:, at], steps.of_step_before(steps.action)[:, at]], 1)
        is_scalar |= np.abs(correlations(values, both.T[None])).max((1, 2)) >= LITTLE
    return _assign(values, signals, is_scalar)


def _assign(values: Array, signals: Array, is_scalar: Array) -> AxisTable:
    """values: (N, m). signals: (axes, signals, N). is_scalar: (m,), what a column is if it correlates with no axis."""
    correlation = correlations(values, signals)  # (m, axes, signals)
    strength = np.abs(correlation).max(2)
    axes, profiles = [], []
    for row, by_axis, without_axis in zip(strength, correlation, is_scalar, strict=True):
        best = int(row.argmax())
        others = np.delete(row, best).max(initial=0.0)
        if row[best] < ASSOCIATED:
            axes.append(SCALAR if without_axis else UNCLEAR_AXIS)
        else:
            axes.append(best if others <= OTHER_AXIS * row[best] else UNCLEAR_AXIS)
        profiles.append(by_axis[best])
    return AxisTable(tuple(axes), np.array(profiles))


def correlations(values: Array, signals: Array) -> Array:
    """Return the correlations of columns (N, m) with signals (axes, signals, N), (m, axes, signals)."""

    def unit(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-12))

    return np.asarray(np.einsum("mn,asn->mas", unit(values.T), unit(signals)))


def pair_columns(
    steps: Steps, columns: Sequence[int], tool: Sequence[int], one: int, other: int
) -> list[tuple[int, int]] | None:
    """Return pairs of columns: the first describes one object as the second describes the other. Both may be the same.

    columns: those that are no positions. tool: as in `object_signals`. one, other: the objects. None if one has no pair.
    """
    if not columns:
        return []
    signals = object_signals(steps, tool)
    values = steps.observation[:, list(columns)]
    first, second = (correlations(values, signals[k]).reshape(len(columns), -1) for k in (one, other))
    gap = np.sqrt(np.square(first[:, None] - second).mean(2))
    gap = np.maximum(gap, gap.T)  # what the first is to the other object, the second is to the one
    pair = gap.argmin(1)
    is_paired = (pair[pair] == np.arange(len(columns))).all() and gap.min(1).max() <= SAME_PROFILE
    return [(column, columns[at]) for column, at in zip(columns, pair.tolist(), strict=True)] if is_paired else None


def pair_axes(table: AxisTable, axis: int, other: int) -> list[tuple[int, int, float]] | None:
    """Pair what belongs to one axis with what belongs to the other, by the likeness of their profiles.

    Returns (i, j, sign that makes their profiles alike); None if one is left over or too different from all others.
    """
    free, pairs = table.members(other), []
    if len(table.members(axis)) != len(free):
        return None
    for i in table.members(axis):
        gaps = [
            (float(np.sqrt(np.square(table.profile[i] - factor * table.profile[j]).mean())), at, factor)
            for at, j in enumerate(free)
            for factor in (1.0, -1.0)
        ]
        gap, at, factor = min(gaps)
        if gap > SAME_PROFILE:
            return None
        pairs.append((i, free.pop(at), factor))
    return pairs
