"""Symmetries of a task: one test for all of them, with and without an object.

Steps that a symmetry transforms must be predicted as well as the steps themselves. `axis_symmetries` and `mirrors` propose
what is tested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import OptionError
from ..records import Array
from ..task_structure.symmetries import Symmetry, generate_group
from .columns import Units
from .failures import Failures
from .model import Difference, DisplacementModel, inputs_of
from .steps import EXCEPTIONS, LITTLE, MOSTLY, Steps
from .success import RewardPairs

MOST_DRIFT = LITTLE  # of the usual change of velocity; true mirrors of recorded runs have at most 0.10 +- 0.07
# growth of the loss, which is at most 0.21 for true symmetries of 46 recorded runs; for false ones it is at least 0.51,
# unless only walls break them
SYMMETRY_MARGIN = 0.35
# times the distance between visited positions: transformed positions may be so far from them; farther, there may be a wall
UNVISITED = 1.4
# with 0.1 or with 3 the held-out loss is larger on 15 of 21 recorded runs; with 0.1 by up to 1.3 times, at few contacts
STRONG_DECAY = 1.0  # of the weights
_USUAL = ("in transformed steps", "in the steps themselves")


@dataclass(frozen=True)
class Candidate:
    """A symmetry to test, in the units of the goal.

    axes: of the goal: one for a mirror of an axis, two for a quarter turn, none for others.
    objects: the numbers of two objects that are exchanged.
    undecided: actions of which it is not known yet whether they change their signs, or are exchanged.
    """

    name: str
    symmetry: Symmetry
    axes: tuple[int, ...] = ()
    objects: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()


@dataclass(frozen=True)
class SymmetryVerdict:
    """Whether a symmetry holds. text: as `Symmetry.parse` reads it.

    loss: how much worse transformed steps are predicted, by a model of the steps themselves.
    failures: how much less often episodes fail beside transformed failures than beside the failures; None: not known.
    opposite: the same for motion in the opposite directions, which cannot hold. A model that knows too little of what
        happens does not refute it, and so accepts nothing.
    n_tested: how many symmetries share one error rate.
    column: that refutes it alone.
    changed_rewards: fraction of pairs of goals whose reward it changes; see `RewardPairs`. None: no answer.
    drift: of objects that move on by themselves, along one of its axes; see `find_drift`. None: it has no axes.
    visited: fraction of the transformed steps that lie beside steps of other episodes: only these are compared.
    distance: from transformed to visited positions, divided by that between visited positions of different episodes.
    is_known: whether it held before. Then it holds until it is refuted.
    is_product: of symmetries that hold together; None: not known yet.
    """

    candidate: Candidate
    text: str
    loss: Difference
    opposite: Difference
    n_tested: int = 1
    column: int | None = None
    failures: Difference | None = None
    changed_rewards: float | None = 0.0
    drift: Difference | None = None
    visited: float = MOSTLY
    distance: float = 0.0
    is_known: bool = False
    is_product: bool | None = None

    @property
    def holds(self) -> bool:
        """Whether it is used: the test accepts it, or it follows from others that are used.

        If a product of it and others cannot hold, it may be left out.
        """
        return self.is_certain if self.is_product is None else self.is_product

    @property
    def is_certain(self) -> bool:
        """Whether the test alone accepts it."""
        is_seen = self.opposite.is_above(SYMMETRY_MARGIN, 1) and not self.candidate.undecided
        is_accepted = self.is_close and is_seen and self.keeps_failures
        return (is_accepted or self.is_known) and not self.is_refuted

    @property
    def is_close(self) -> bool:
        """Whether transformed steps are predicted about as well as the steps themselves, for certain."""
        return self.loss.is_below(SYMMETRY_MARGIN, self.n_tested)

    @property
    def is_refuted(self) -> bool:
        """Whether transformed steps are predicted worse for certain, or lead where nobody was, or objects drift.

        So it is if episodes fail elsewhere, or if the reward of transformed goals is another one.
        """
        is_elsewhere = self.visited < LITTLE or self.distance > UNVISITED or self.loses_failures
        return is_elsewhere or self.drifts or self.changes_rewards or self.loss.is_above(SYMMETRY_MARGIN, self.n_tested)

    @property
    def drifts(self) -> bool:
        """Whether objects that move on by themselves drift to one side for certain."""
        return self.drift is not None and self.drift.is_above(MOST_DRIFT, self.n_tested)

    @property
    def changes_rewards(self) -> bool:
        """Whether rewards are not those of the transformed goals: a task may ask for more on one side.

        Without an answer objects are not exchanged: one may count more.
        """
        if self.changed_rewards is None:
            return bool(self.candidate.objects)
        return self.changed_rewards > EXCEPTIONS

    @property
    def loses_failures(self) -> bool:
        """Whether episodes do not fail where it leads their failures, for certain: a pit may be on one side."""
        return self.failures is not None and self.failures.is_above(EXCEPTIONS, self.n_tested)

    @property
    def keeps_failures(self) -> bool:
        """Whether episodes fail where it leads their failures, for certain, as far as failures are known."""
        return self.failures is None or self.failures.is_below(MOSTLY, self.n_tested)

    @property
    def may_follow(self) -> bool:
        """Whether it may hold because others do. Where there may be walls, its own figures alone say so."""
        return self.is_certain or not (self.is_refuted or self.distance)

    @property
    def is_uncertain(self) -> bool:
        """Whether more steps may show that it holds."""
        return not self.holds and not self.is_refuted and self.loss.mean < SYMMETRY_MARGIN

    @property
    def verdict(self) -> str:
        """In a few words. What is uncertain is not used."""
        if self.holds:
            return "holds" if self.is_certain else "follows from others"
        return "does not hold" if self.is_refuted else "is uncertain, so it is not used"

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return f"{self.candidate.name} {self.verdict}: {self.reason()}"

    def reason(self) -> str:
        """Return the figures that decide."""
        if self.visited < LITTLE:
            return f"only {self.visited:.0%} of the transformed steps lie beside steps of other episodes"
        if self.drift is not None and self.drifts:
            drift = self.drift.in_percent(MOST_DRIFT, self.n_tested)
            return f"far from the tool objects drift to one side: of the usual change of their velocity this is {drift}"
        if self.changes_rewards:
            if self.changed_rewards is None:
                return "the reward does not say whether both objects count alike"
            return f"it changes {self.changed_rewards:.0%} of the rewards that are not the usual one"
        if self.failures is not None and not self.holds and (self.loses_failures or not self.keeps_failures):
            fewer = self.failures.in_percent(EXCEPTIONS if self.loses_failures else MOSTLY, self.n_tested)
            return f"episodes fail less often beside transformed failures than beside the failures, by {fewer}"
        if self.column is None:
            reason = self.loss.explain(*_USUAL, SYMMETRY_MARGIN, self.n_tested)
        else:
            growth = self.loss.in_percent(SYMMETRY_MARGIN, self.n_tested)
            reason = f"in transformed steps the error of column {self.column} grows, relative to its variance, by {growth}"
        if self.candidate.undecided:
            actions = ", ".join(map(str, self.candidate.undecided))
            reason += f"; with another sign or order of action {actions} the error is about the same"
        if not self.opposite.is_above(SYMMETRY_MARGIN, 1):
            reason += "; the model knows too little: of opposite motion the error would hardly be larger"
        if not self.distance:
            return reason
        return (
            f"{reason}; transformed positions are {self.distance:.2f} times as far from visited positions as those are "
            "from each other"
        )


class SymmetryTest:
    """Tests symmetries on some of the steps of a task, in the units of the goal.

    picked: the steps, (M,). visible: the columns that the networks see. positions: the column of each dimension of the
    goal. tool: the column that meets each of them; none without an object. holding: symmetries that hold; the model is
    fitted to the steps that they and their products transform, too. angles: the columns of other dimensions of the goal.
    Steps in which episodes fail are always among them: failures are transformed, too.
    """

    def __init__(
        self,
        steps: Steps,
        picked: Array,
        visible: Sequence[int],
        positions: Sequence[int],
        tool: Sequence[int] = (),
        holding: Sequence[Symmetry] = (),
        angles: Sequence[int] = (),
    ) -> None:
        self._visible, self._tool, self._positions = list(visible), list(tool), list(positions)
        picked = self._picked = np.union1d(picked, steps.failures)
        self.others = [column for column in visible if column not in {*tool, *positions}]
        identity = Symmetry.identity(steps.n_columns, steps.goal_size, steps.action.shape[1])
        group = generate_group(list(holding), identity)
        seen, changes = steps.observation[picked], steps.change[picked]
        self._seen = np.concatenate([each.observation.apply(seen) for each in group])
        self._changes = np.concatenate([each.observation.apply_to_displacements(changes) for each in group])
        self._action = np.concatenate([each.action.apply(steps.action[picked]) for each in group])
        displacement = steps.displacement[picked]
        self._displacement = np.concatenate([each.goal.apply_to_displacements(displacement) for each in group])
        targets = np.column_stack([self._displacement, self._changes[:, [*self._tool, *self.others]]])
        episode = np.tile(steps.episode[picked], len(group))
        self._angles = [targets.shape[1] - len(self.others) + self.others.index(column) for column in angles]
        self.model = DisplacementModel(self._inputs(self._seen, self._action), targets, episode, STRONG_DECAY)
        self._failures = Failures(self._states(identity), np.isin(picked, steps.failures), steps.episode[picked])

    def verdict(self, candidate: Candidate, text: str = "", is_known: bool = False) -> SymmetryVerdict:
        """Test one symmetry: how much worse are transformed steps predicted than the steps themselves?

        That is the displacement of goal and tool, or the change of the other visible columns if that is predicted worse
        still. If one column is certain to refute the symmetry, as of a key that lies on one side, it alone counts. Angles
        of the goal count by themselves, as a small part of all change.
        Only transformed steps beside steps of other episodes are compared: elsewhere the model knows nothing.
        """
        inputs, targets = self._transformed(candidate.symmetry)
        is_visited, n_first = self.model.is_near(inputs), targets.shape[1] - len(self.others)
        loss, target = self.model.growth(inputs, targets, n_first, SYMMETRY_MARGIN, is_visited)
        is_changed = (targets != self.model.targets).any(0)
        opposite = self.model.compare(inputs, np.where(is_changed, -targets, targets), is_visited)
        column = None if target is None else self.others[target - n_first]
        if self._angles and column is None:
            turned = self.model.growth_of(self._angles, inputs, targets, is_visited)
            back = self.model.growth_of(self._angles, inputs, -targets, is_visited)
            loss = max(loss, turned, key=lambda each: each.mean + each.error)
            opposite = min(opposite, back, key=lambda each: each.mean - each.error)
        visited = float(is_visited.mean())
        failures = self._failures.lost(self._states(candidate.symmetry)) if self._failures.is_known else None
        return SymmetryVerdict(
            candidate, text, loss, opposite, column=column, failures=failures, visited=visited, is_known=is_known
        )

    def losses(self, symmetry: Symmetry) -> Array:
        """Return the squared error of transformed steps in each episode, (episodes,). All visible columns count."""
        return self.model.losses(*self._transformed(symmetry))

    def _transformed(self, symmetry: Symmetry) -> tuple[Array, Array]:
        """Return what the model sees of transformed steps, and what it should predict: as `model.inputs` and `targets`."""
        inputs = self._inputs(symmetry.observation.apply(self._seen), symmetry.action.apply(self._action))
        goal = symmetry.goal.apply_to_displacements(self._displacement)
        changes = symmetry.observation.apply_to_displacements(self._changes)
        return inputs, np.column_stack([goal, changes[:, [*self._tool, *self.others]]])

    def _states(self, symmetry: Symmetry) -> Array:
        """Return what is seen after the steps as they were, transformed, (M, inputs)."""
        n = len(self._picked)  # after these come the same steps as other symmetries transform them
        seen = symmetry.observation.apply(self._seen[:n] + self._changes[:n])
        return self._inputs(seen, np.zeros((n, 0)))

    def verdicts(self, candidates: Sequence[Candidate], units: Units, known: Sequence[Symmetry]) -> list[SymmetryVerdict]:
        """Test candidates, but for those that would use a column twice, as where the tool and an object share one.

        units: how the observation holds the columns. known: symmetries that held before.
        """
        tested = []
        for candidate in [each for each in candidates if each.symmetry.is_one_to_one]:
            seen, is_known = as_known(candidate.symmetry, units, known)
            tested.append(self.verdict(candidate, seen.text(), is_known))
        return with_one_error_rate(tested)

    def _inputs(self, observation: Array, action: Array) -> Array:
        return inputs_of(observation, action, self._visible, self._tool, self._positions)


def as_known(symmetry: Symmetry, units: Units, known: Sequence[Symmetry]) -> tuple[Symmetry, bool]:
    """Return a symmetry as the observation shows it, and whether it held before: then that one, to the last digit.

    units: how the observation holds the columns. known: symmetries that held before.
    """
    symmetry = replace(symmetry, observation=units.in_observation(symmetry.observation))
    same = next((each for each in known if each.is_same(symmetry, symmetry.largest_offset)), None)
    return same or symmetry, same is not None


def with_one_error_rate(tested: Sequence[SymmetryVerdict]) -> list[SymmetryVerdict]:
    """Return the verdicts, which share one. Those that are clearly worse do not count: there may be many of them."""
    n_likely = sum(verdict.loss.mean < SYMMETRY_MARGIN or verdict.is_known for verdict in tested)
    return [replace(verdict, n_tested=max(n_likely, 1)) for verdict in tested]


def with_rewards(tested: Sequence[SymmetryVerdict], rewards: RewardPairs | None) -> list[SymmetryVerdict]:
    """Return the verdicts with the fraction of rewards that each changes, if it may hold otherwise."""
    return [
        each
        if rewards is None or each.is_refuted
        else replace(each, changed_rewards=rewards.changed_by(each.candidate.symmetry.goal))
        for each in tested
    ]


def with_consequences(tested: Sequence[SymmetryVerdict]) -> list[SymmetryVerdict]:
    """Return the verdicts. What is a product of symmetries that hold holds too: sampled batches contain it.

    If a product cannot hold, one of its factors fits by accident: the least certain one of those that hold is left out. So
    it is if there are too many products.
    """
    holding = sorted(
        (each for each in tested if each.holds and each.may_follow), key=lambda verdict: verdict.loss.interval(1)[1]
    )
    while holding:
        with contextlib.suppress(OptionError):  # too many products
            group = _generate(holding)[1]
            products = [_is_in(group, verdict.candidate.symmetry) for verdict in tested]
            if all(verdict.may_follow for verdict, is_product in zip(tested, products, strict=True) if is_product):
                return [replace(verdict, is_product=product) for verdict, product in zip(tested, products, strict=True)]
        holding.pop()
    return [replace(verdict, is_product=False) for verdict in tested]


def generators(verdicts: Sequence[SymmetryVerdict]) -> list[SymmetryVerdict]:
    """Return those that hold, without products of others before them."""
    return _generate([verdict for verdict in verdicts if verdict.holds])[0]


def _generate(verdicts: Sequence[SymmetryVerdict]) -> tuple[list[SymmetryVerdict], tuple[Symmetry, ...]]:
    """Return the verdicts without products of others before them, and their group. Raises OptionError if it is large."""
    chosen: list[SymmetryVerdict] = []
    group: tuple[Symmetry, ...] = ()
    for verdict in verdicts:
        if not _is_in(group, verdict.candidate.symmetry):
            chosen.append(verdict)
            symmetries = [each.candidate.symmetry for each in chosen]
            group = generate_group(symmetries, Symmetry.identity(*(len(part.source) for part in symmetries[0].parts)))
    return chosen, group


def _is_in(group: Sequence[Symmetry], symmetry: Symmetry) -> bool:
    largest_offset = max((each.largest_offset for each in group), default=0.0)
    return any(symmetry.is_same(element, largest_offset) for element in group)


def centre_of(known: Sequence[Symmetry], otherwise: Array) -> Array:
    """Return the point that symmetries leave where it is, (goal size,). otherwise: where no symmetry says it, (goal size,).

    Symmetries of one task must share it: two mirrors at different places make a shift.
    """
    identity = np.eye(len(otherwise))
    moved, offset = np.zeros((0, len(otherwise))), np.zeros(0)
    for each in known:
        moved = np.concatenate([moved, identity - each.goal.factor[:, None] * identity[each.goal.source]])
        offset = np.concatenate([offset, each.goal.offset])
    return np.where(moved.any(0), np.linalg.lstsq(moved, offset, rcond=None)[0], otherwise)
