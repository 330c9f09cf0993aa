"""Symmetries of a task with an object: mirrors and quarter turns of its axes, and exchanges of objects.

Such a symmetry says how positions change. How each other column changes follows from its profile: what it correlates with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry
from .choices import effect_beside_tool, exchange_alike, match_choices
from .columns import Units, find_delayed_columns
from .contact import Contact, is_at_task
from .controlled import ControlledColumns
from .drift import find_drift
from .linear_copies import find_linear_copies, follow_positions
from .model import Difference, informative_steps, mean_and_error
from .steps import ALIKE, LITTLE, MOSTLY, ROUNDED, TINY, Steps, clear_mean, correlations, lie_on_one_side, rounded
from .symmetry_verdicts import Candidate, SymmetryTest, SymmetryVerdict, centre_of, with_consequences, with_one_error_rate

Pair = tuple[int, int, float, float]  # i, j, the sign of j in the place of i, and that of i in the place of j
Proposal = tuple[str, AffineMap, tuple[int, ...], tuple[int, ...]]  # name, how goals change, axes, exchanged objects


class AxisSymmetries:
    """Proposes and tests symmetries on the steps of a task, in the units of the goal.

    visible: observation columns that the networks see. contact: the columns that are positions, one of each axis.
    controlled: what the action moves. units: how the observation holds the columns. known: symmetries that held before.
    has_choices: whether actions are Discrete, and one-hot here. angles: columns of the goal besides its positions.
    """

    def __init__(
        self,
        steps: Steps,
        visible: Sequence[int],
        contact: Contact,
        controlled: ControlledColumns,
        units: Units,
        known: Sequence[Symmetry] = (),
        has_choices: bool = False,
        angles: Sequence[int] = (),
    ) -> None:
        self._steps, self._visible, self._contact, self._known = steps, list(visible), contact, known
        self._controlled, self._units, self._n_axes, self._has_choices = controlled, units, len(contact.axes), has_choices
        self._angles, self._start = list(angles), steps.observation[steps.starts_episode].mean(0)
        # where the tool starts; rounded, so that the symmetries form a finite group
        start = clear_mean(steps.observation[steps.starts_episode][:, list(contact.tool)])
        self._centre = centre_of(known, rounded(start, steps.goal_std))
        self._effect, self._drives = effect_on_tool(steps, contact, controlled, has_choices)
        self._picked = informative_steps(steps, is_at_task(steps, contact))
        self._test = self._new_test()
        self._std = np.maximum(steps.observation.std(0), ROUNDED)
        positions = {*contact.tool, *contact.object_columns}
        varying = np.ptp(steps.observation[:, : units.n_columns], axis=0) > 0
        hidden = [column for column in np.flatnonzero(varying).tolist() if column not in {*visible, *positions}]
        self._copies = find_linear_copies(steps, [*contact.tool, *contact.object_columns], [*self._test.others, *hidden])
        self._late_of = {early: late for late, early in find_delayed_columns(steps).items()}
        is_copy = {each.column for each in self._copies}
        self._shown = [column for column in self._test.others if column not in is_copy]
        # `find` keeps those hidden columns that a symmetry needs
        self._others = [*self._shown, *(column for column in hidden if column not in is_copy)]
        self._profiles = profiles(steps, list(contact.tool), steps.observation[:, self._others])

    def find(self) -> list[SymmetryVerdict]:
        """Return the verdict of each symmetry that is proposed."""
        steps, centre, size, n = self._steps, self._centre, len(self._centre), self._n_axes
        moved = np.abs(steps.displacement).mean(0).reshape(-1, n).mean(0)
        axes = [k for k in range(n) if moved[k] >= LITTLE * moved.max() and goals_lie_around(steps, centre[k::n], k)]
        is_seen = [column < self._units.n_columns for column in self._contact.axes]  # a seen column can't become another
        pairs = [] if self._actions_of_hand or self._angles else combinations(axes, 2)  # a hand opens along one axis
        turned = [(k, m) for k, m in pairs if is_seen[k] == is_seen[m]]
        exchanged = [(k, k + 1) for k in range(size // n - 1)]
        proposals: list[Proposal] = [(f"mirror of axis {k}", mirror(centre, n, k), (k,), ()) for k in axes]
        proposals += [(f"quarter turn of axes {k} and {m}", quarter_turn(centre, n, k, m), (k, m), ()) for k, m in turned]
        proposals += [
            (f"exchange of objects {k + 1} and {m + 1}", exchange(size, n, k, m), (), (k, m)) for k, m in exchanged
        ]
        self._keep_partners([goal for _, goal, *_ in proposals])
        candidates = [self._candidate(*proposal) for proposal in proposals]
        of_axes, of_objects = ([each for each in candidates if bool(each.objects) == is_exchange] for is_exchange in (0, 1))
        drift = find_drift(steps, self._contact)
        tested = [
            replace(verdict, drift=max((drift[axis] for axis in verdict.candidate.axes), key=lambda each: each.mean))
            for verdict in self._test.verdicts(of_axes, self._units, self._known)
        ]
        if of_objects:  # a model that knows how one object moves alike in all directions needs fewer contacts with each
            holding = [verdict.candidate.symmetry for verdict in with_consequences(tested) if verdict.holds]
            tested += self._new_test(holding).verdicts(of_objects, self._units, self._known)
        return with_consequences(with_one_error_rate(tested))

    def _new_test(self, holding: Sequence[Symmetry] = ()) -> SymmetryTest:
        positions, tool = self._contact.object_columns, self._contact.tool
        return SymmetryTest(self._steps, self._picked, self._visible, positions, tool, holding, self._angles)

    def _keep_partners(self, goals: Sequence[AffineMap]) -> None:
        """Of the hidden columns keep those that a change of goals exchanges with visible ones, as the fingers of a hand."""
        n_visible, partners = len(self._shown), set()
        for goal in goals:
            pairs = self._pairs(self._transformed(goal, self._actions(goal)))
            partners |= {j for i, j, *_ in pairs if i < n_visible <= j}
        kept = [*range(n_visible), *sorted(partners)]
        self._others, self._profiles = [self._others[k] for k in kept], self._profiles[kept]

    @cached_property
    def _actions_of_hand(self) -> list[int]:
        """Actions without an axis that move a visible column: they open a hand or turn a paddle."""
        moves_tool = np.abs(self._effect).max(1) >= LITTLE
        columns = [column for column in self._controlled.clear if column in self._visible]
        movers = np.abs(self._controlled.effect[:, self._controlled.at(columns)]).argmax(0)
        return sorted({action for action in movers.tolist() if not moves_tool[action]})

    def _transformed(self, goal: AffineMap, action: AffineMap) -> Array:
        """Return the profiles that columns would have in a transformed world."""
        n_actions = len(action.source)
        n_signals = (self._profiles.shape[1] - 1 - 2 * n_actions) // len(goal.source)  # of each dimension of the goal
        source = [*(goal.source[:, None] * n_signals + np.arange(n_signals)).ravel()]
        source += [len(source) + now for now in (*action.source, *(action.source + n_actions))]
        factor = [*np.repeat(goal.factor, n_signals), *action.factor, *action.factor, 1.0]
        return np.asarray(factor * self._profiles[:, [*source, len(source)]])

    def _pairs(self, transformed: Array) -> list[Pair]:
        """Return which column takes the place of which. The values of two that are exchanged overlap."""
        mean, std = self._steps.observation[:, self._others].mean(0), self._std[self._others]
        ratio = np.array([[self._ratio(i, j) for j in self._others] for i in self._others])
        return pair_columns(self._profiles, transformed, values_overlap(mean, std, ratio))

    def _ratio(self, one: int, other: int) -> float:
        """Return the factor with which a column takes the place of another one: where units are known, they are equal."""
        has_known_units = self._units.is_known[[one, other]].all()
        return 1.0 if one == other or has_known_units else float(self._std[one] / self._std[other])

    def _actions(self, goal: AffineMap) -> AffineMap:
        """Return how actions change with the goals: as what they move does."""
        action, axes = AffineMap.identity(len(self._effect)), goal.source[: self._n_axes] % self._n_axes
        transformed = goal.factor[: self._n_axes] * self._effect[:, axes]
        if self._has_choices:
            others = effect_beside_tool(self._controlled.effect, self._effect)
            return replace(action, source=match_choices(self._effect, transformed, others))
        for pair in pair_columns(self._effect, transformed):
            _swap(action, *pair)
        return action

    def _candidate(self, name: str, goal: AffineMap, axes: tuple[int, ...], objects: tuple[int, ...]) -> Candidate:
        """Return the symmetry that changes goals so, with what follows for actions and columns.

        Two actions without an axis are exchanged if steps are predicted better then, as those of a left and a right wheel.
        """
        if self._has_choices:
            first = self._with_actions(goal, self._actions(goal))
            change = partial(self._with_actions, goal)
            return Candidate(name, exchange_alike(first, self._effect, change, self._growth, self._is_close), axes, objects)
        hand = self._actions_of_hand
        found = [self._with_signs(goal, self._actions(goal))]
        if len(hand) == 2:
            exchanged = self._actions(goal)
            _swap(exchanged, hand[0], hand[1], 1.0, 1.0)
            found.append(self._with_signs(goal, exchanged))
        (best, undecided), *others = sorted(found, key=lambda each: float(self._test.losses(each[0]).mean()))
        if not all(self._growth(best, other).is_above(0.0, 1) for other, _ in others):
            undecided = hand
        return Candidate(name, best, axes, objects, tuple(undecided))

    def _with_signs(self, goal: AffineMap, action: AffineMap) -> tuple[Symmetry, list[int]]:
        """Return the symmetry, and the actions whose signs are undecided.

        An action of a hand changes its sign if steps are predicted better then: a mirrored paddle turns the other way. The
        best change comes first: while it is wrong, it hides what others do. If both signs make a symmetry for certain, the
        sign of an action that drives the tool stays: a round robot may as well drive backward.
        """
        best, hand = self._with_actions(goal, action), self._actions_of_hand
        while True:
            others = {k: self._with_other_sign(goal, best, k) for k in hand}
            growths = {k: self._growth(best, other) for k, other in others.items()}
            first = min(hand, key=lambda k: growths[k].mean, default=None)
            if first is None or growths[first].mean >= 0:
                break
            best = others[first]
        undecided = [k for k in hand if not growths[k].is_above(0.0, 1)]
        for k in [k for k in undecided if self._drives[k]]:
            if all(map(self._is_close, (best, others[k]))):
                undecided.remove(k)
                best = max(best, others[k], key=lambda each: float(each.action.factor[k]))
        return best, undecided

    def _with_other_sign(self, goal: AffineMap, symmetry: Symmetry, action: int) -> Symmetry:
        sign = np.where(np.arange(len(symmetry.action.factor)) == action, -1.0, 1.0)
        return self._with_actions(goal, replace(symmetry.action, factor=sign * symmetry.action.factor))

    def _is_close(self, symmetry: Symmetry) -> bool:
        return self._test.verdict(Candidate("", symmetry)).is_close

    def _growth(self, one: Symmetry, other: Symmetry) -> Difference:
        """Return how much larger the squared error of each episode is with another symmetry."""
        return mean_and_error(self._test.losses(other) - self._test.losses(one))

    def _with_actions(self, goal: AffineMap, action: AffineMap) -> Symmetry:
        """Return the symmetry that changes goals and actions so, with what follows for columns.

        Positions are transformed as goals are, hidden or not: subgoals and differences are made of them.
        """
        observation = AffineMap.identity(self._steps.n_columns)
        for columns in (self._contact.tool, self._contact.object_columns):
            for k, column in enumerate(columns):
                observation.source[column] = columns[goal.source[k]]
                observation.factor[column], observation.offset[column] = goal.factor[k], goal.offset[k]
        follow_positions(observation, self._copies)
        symmetry, transformed = Symmetry(observation, goal, action), self._transformed(goal, action)
        pairs = self._pairs(transformed)
        for pair in pairs:
            self._set_pair(symmetry, *pair)
        follow_early(observation, self._late_of)
        unclear = [pair for pair in pairs if abs(self._profiles[pair[0]] @ transformed[pair[1]]) < LITTLE]
        unclear = [pair for pair in unclear if self._others[pair[0]] not in self._late_of.values()]
        symmetry = self._with_best_signs(symmetry, unclear)
        observation = symmetry.observation
        self._turn_over(symmetry)
        follow_early(observation, self._late_of)
        return symmetry

    def _with_best_signs(self, symmetry: Symmetry, unclear: Sequence[Pair]) -> Symmetry:
        """Of columns that fit with either sign, take that with which steps are predicted better.

        First come those whose other sign alone is best: of a heading's cosine it may seem better if the sine is wrong. The
        cosine of an angle of the goal and the speed with which it turns have wrong signs together.
        """
        alone = sorted(unclear, key=lambda pair: self._loss(self._with_other_signs(symmetry, pair)))
        turned = [two for two in combinations(alone, 2) if any(self._others[i] in self._angles for i, *_ in two)]
        least = self._loss(symmetry)
        for pairs in [*((pair,) for pair in alone), *turned]:
            other = self._with_other_signs(symmetry, *pairs)
            if (loss := self._loss(other)) < least:
                symmetry, least = other, loss
        return symmetry

    def _loss(self, symmetry: Symmetry) -> float:
        return float(self._test.losses(symmetry).mean())

    def _with_other_signs(self, symmetry: Symmetry, *pairs: Pair) -> Symmetry:
        seen = symmetry.observation
        changed = replace(symmetry, observation=replace(seen, factor=seen.factor.copy(), offset=seen.offset.copy()))
        for i, j, *_ in pairs:
            signs = np.sign(changed.observation.factor[[self._others[i], self._others[j]]])
            self._set_pair(changed, i, j, *-signs)
        return changed

    def _turn_over(self, symmetry: Symmetry) -> None:
        """Let columns that refute it alone by staying as they are change their sign, if they do not refute it then."""
        observation = symmetry.observation
        for _ in self._test.others:
            column = self._test.verdict(Candidate("", symmetry)).column
            if column is None or observation.source[column] != column or observation.factor[column] != 1:
                return
            observation.factor[column], observation.offset[column] = -1.0, self._offset(column)
            if self._test.verdict(Candidate("", symmetry)).column == column:
                observation.factor[column], observation.offset[column] = 1.0, 0.0
                return

    def _offset(self, column: int) -> float:
        """Return the offset with which a column changes its sign: about 0, or where it starts if it lies on one side of 0.

        So does the last joint of an arm, which is bent from the start.
        """
        if not lie_on_one_side(self._steps.observation[:, [column]])[0]:
            return 0.0
        # so few digits that more episodes seldom change them
        return 2 * float(rounded(self._start[column], self._std[column], digits=2))

    def _set_pair(self, symmetry: Symmetry, i: int, j: int, sign: float, back: float) -> None:
        one, other = self._others[i], self._others[j]
        ratio = self._ratio(one, other)
        _swap(symmetry.observation, one, other, sign * ratio, back / ratio)
        if one == other:
            symmetry.observation.offset[one] = self._offset(one) if sign < 0 else 0.0


def profiles(steps: Steps, tool: Sequence[int], values: Array) -> Array:
    """Return the correlations of columns (N, m) with signals of each dimension of the goal, and actions, (m, signals).

    Signals of a dimension are the gap between tool and object, and the displacements of both in this step and the last.
    The last signal is a constant: a column that lies on one side of 0 does not change its sign.
    """
    displacements = steps.change[:, tool], steps.displacement
    gap = steps.achieved_goal - steps.observation[:, tool]
    by_dimension = np.stack([gap, *displacements, *map(steps.of_step_before, displacements)]).transpose(2, 0, 1)
    signals = [*by_dimension.reshape(-1, len(gap)), *steps.action.T, *steps.previous_action.T]
    mean = values.mean(0) / np.maximum(np.sqrt(np.square(values).mean(0)), TINY)
    return np.column_stack([correlations(values, np.array(signals)), mean])


def effect_on_tool(steps: Steps, contact: Contact, controlled: ControlledColumns, has_choices: bool) -> tuple[Array, Array]:
    """Return how each action moves the tool, relative to the strongest, (action size, axes), and which of them drive it.

    Of an action along a direction that turns with the tool, the mean effect is small beside its deviations: it drives the
    tool, and the first value is 0. What a choice changes includes what all choices change.
    """
    at = controlled.at(contact.axes)
    effect, by_posture = controlled.effect[:, at], controlled.by_posture[:, :, at]
    if has_choices:
        own, constant = controlled.drift[:, at]
        effect = effect + constant + own * steps.observation[:, list(contact.axes)].mean(0)
    by_posture = np.tensordot(controlled.posture.of(steps.observation), by_posture, 1)
    mean, deviation = np.abs(effect).max(1), by_posture.std(0).max(1)
    drives = deviation >= ALIKE * np.maximum(mean, deviation).max()
    turns = mean < MOSTLY * deviation
    return np.where(turns[:, None], 0.0, effect / np.maximum(mean.max(), TINY)), drives


def follow_early(observation: AffineMap, late_of: Mapping[int, int]) -> None:
    """Let columns change as those do that they show one step later. late_of: the later column of each."""
    for early, late in late_of.items():
        if (source := late_of.get(int(observation.source[early]))) is not None:
            observation.source[late] = source
            observation.factor[late], observation.offset[late] = observation.factor[early], observation.offset[early]


def goals_lie_around(steps: Steps, centre: Array, axis: int) -> bool:
    """Whether desired goals lie on both sides of a centre along an axis. If not, the mirrored half of a task never occurs.

    Goals that always ask for what is there at the start do not count: no reward depends on them. centre: (objects,).
    """
    of_axis = slice(axis, None, steps.goal_size // len(centre))
    gaps, matters = steps.desired_goal[steps.starts_episode, of_axis] - centre, steps.is_asked[of_axis]
    return bool(matters.any() and (np.abs(gaps.mean(0)) <= gaps.std(0))[matters].all())


def mirror(centre: Array, n_axes: int, axis: int) -> AffineMap:
    """Return how goals change in a mirror of one of the axes that each object has. centre: of the goal, (g,)."""
    goal = AffineMap.identity(len(centre))
    goal.factor[axis::n_axes], goal.offset[axis::n_axes] = -1.0, 2 * centre[axis]
    return goal


def quarter_turn(centre: Array, n_axes: int, axis: int, other: int) -> AffineMap:
    """x -> -y, y -> x about the centre."""
    goal = AffineMap.identity(len(centre))
    x, y = (slice(k, None, n_axes) for k in (axis, other))
    goal.source[x], goal.source[y], goal.factor[x] = goal.source[y].copy(), goal.source[x].copy(), -1.0
    goal.offset[x] = centre[axis] + centre[other]
    goal.offset[y] = centre[other] - centre[axis]
    return goal


def exchange(size: int, n_axes: int, one: int, other: int) -> AffineMap:
    """Return how goals of this size change if two objects take each other's places."""
    goal = AffineMap.identity(size)
    dimensions = goal.source.reshape(-1, n_axes)
    dimensions[[one, other]] = dimensions[[other, one]]
    return goal


def values_overlap(mean: Array, std: Array, ratio: Array) -> Array:
    """Return whether values of one column, times a ratio, may be those of another one with either sign, (m, m) bool.

    So a finger is not exchanged with a position, whatever both correlate with. mean, std: (m,). ratio: (m, m).
    """
    return np.asarray(np.abs(np.abs(mean)[:, None] - ratio * np.abs(mean)) <= std[:, None] + ratio * std)


def pair_columns(profiles: Array, transformed: Array, may_exchange: Array | bool = True) -> list[Pair]:
    """Return which column takes the place of which, with its sign: those whose transformed profile is most alike.

    profiles, transformed: (m, signals). A column stays in its place unless an exchange with another fits clearly better.
    may_exchange: (m, m) bool.
    """
    fit = profiles @ transformed.T
    unlike = np.square(profiles).sum(1)[:, None] + np.square(transformed).sum(1) - 2 * np.abs(fit)
    sign = np.where(fit < -(LITTLE**2), -1.0, 1.0)
    alone = np.diag(unlike)
    gain = alone[:, None] + alone - unlike - unlike.T  # of an exchange
    free, pairs = set(range(len(profiles))), []
    for i, j in sorted(
        np.argwhere(np.triu((gain > MOSTLY) & may_exchange, 1)).tolist(), key=lambda pair: -gain[tuple(pair)]
    ):
        if {i, j} <= free:
            free -= {i, j}
            pairs.append((i, j, float(sign[i, j]), float(sign[j, i])))
    return [*pairs, *((i, i, float(sign[i, i]), float(sign[i, i])) for i in sorted(free))]


def _swap(transform: AffineMap, i: int, j: int, factor: float, back: float) -> None:
    """Let two columns, or one with itself, take each other's places. factor: of column j in the place of i; back: of i."""
    transform.source[i], transform.source[j] = j, i
    transform.factor[i], transform.factor[j] = factor, back
