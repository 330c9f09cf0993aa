"""Which observation columns are hidden from networks, and why: the decision, its reasons, and the options that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..options import Choice
from ..records import Finding
from .columns import ColumnDifference, Units, listed
from .contact import Contact, gap_columns
from .controlled import ControlledColumns
from .model import Difference
from .relevance import COLUMN_MARGIN, ColumnTest, NeededColumns, Relevance
from .steps import LITTLE, Steps
from .symmetry_verdicts import SYMMETRY_MARGIN, SymmetryVerdict


@dataclass(frozen=True)
class DecidedColumns:
    """What is decided before: see `infer_structure`."""

    shown: Sequence[int] = ()
    hidden: Sequence[int] | None = None
    may_show: bool = False


@dataclass(frozen=True)
class HiddenColumns:
    """Which columns are hidden, with all that was tested for it.

    A column is hidden if it is constant; if networks predict as well without it; if it is a position of the tool or of an
    object along an axis of a mirror, and networks that see only the gaps between both predict as well; or if an option or
    an earlier inference hides it, and networks do not clearly need it.

    columns: that are hidden. visible: for which symmetries must hold, ascending.
    contact: of the tool with the objects. constant: columns that never change.
    positions: of tool and objects along axes of which a mirror holds. without_positions: how much worse networks predict
        that see only the gaps between them; None: not tested.
    needed: columns that were hidden and are shown again.
    n_failed: number of episodes that ended too early, and without a success. If there are any, no column is hidden that
        changes: any of them may say where that is, and too few steps show it.
    """

    columns: tuple[int, ...]
    visible: tuple[int, ...]
    contact: Contact
    constant: tuple[int, ...]
    relevance: Relevance
    positions: tuple[int, ...] = ()
    without_positions: Difference | None = None
    needed: tuple[NeededColumns, ...] = ()
    n_failed: int = 0

    @property
    def is_uncertain(self) -> bool:
        """Whether more episodes that seek contact may decide whether positions matter."""
        without, margin = self.without_positions, SYMMETRY_MARGIN
        is_decided = without is not None and (without.is_below(margin, 1) or without.is_above(margin, 1))
        return bool(self.positions) and not is_decided

    def choices(self, goal_size: int) -> Iterator[Choice]:
        """Yield the options that follow. goal_size: the number of dimensions of the goal."""
        if self.needed:
            why = "; ".join(
                f"columns {listed(each.columns)} matter: the held-out error changes by {each.loss} without them"
                for each in self.needed
            )
            yield Choice("hidden_observation", self.columns, why)
        elif self.columns:
            yield Choice("hidden_observation", self.columns, self._why())
            why = f"goal - achieved_goal has all {goal_size} dimensions, wherever the goal lies"
            yield Choice("hidden_goal", tuple(range(goal_size)), why)

    def _why(self) -> str:
        reasons = [f"columns {listed(self.constant)} are constant"] if self.constant else []
        if self.without_positions is not None and set(self.positions) <= set(self.columns):
            figures = f"without them the held-out error changes by {self.without_positions}"
            reasons.append(f"columns {listed(self.positions)} are positions along axes of mirrors: {figures}")
        tested = [c for c in self.columns if c in self.relevance.without]
        return "; ".join([*reasons, self.relevance.evidence(tested)] if tested else reasons)

    def findings(self) -> Iterator[Finding]:
        """Yield the verdict of each column that was tested, or is hidden, with its figures."""
        relevance = self.relevance
        for column in sorted({*self.columns, *relevance.without}):
            verdict = "is hidden" if column in self.columns else "is shown"
            if (loss := relevance.without.get(column)) is None:
                yield Finding("column", f"column {column}", verdict, self._why_untested(column))
            else:
                reason = self._why_uncertain(column, loss) + loss.explain("without", "with", LITTLE, 1)
                yield loss.as_finding("column", f"column {column}", verdict, reason, 1, LITTLE)
        if (loss := self.without_positions) is not None:
            verdict = "are not needed" if loss.is_below(SYMMETRY_MARGIN, 1) else "are shown"
            reason = f"beside the gaps between them, {loss.explain('without', 'with', SYMMETRY_MARGIN, 1)}"
            yield loss.as_finding("column", f"positions {listed(self.positions)}", verdict, reason, 1, SYMMETRY_MARGIN)
        for each in self.needed:
            name, reason = f"columns {listed(each.columns)}", each.loss.explain("without", "with", each.margin, 1)
            yield each.loss.as_finding("column", name, "are shown again", reason, 1, each.margin)
        if (loss := relevance.together) is not None:
            name = f"these {len(relevance.needless)} columns together"
            reason = f"columns {listed(relevance.needless)}, {loss.explain('without', 'with', COLUMN_MARGIN, 1)}"
            yield loss.as_finding("column", name, "are not needed", reason, 1, COLUMN_MARGIN)

    def _why_untested(self, column: int) -> str:
        if column in self.constant:
            return "it never changes"
        if column in (*self.contact.tool, *self.contact.object_columns):
            return "it is a position along an axis of which a mirror holds, and differences of positions suffice"
        return "an option or an earlier inference hides it"

    def _why_uncertain(self, column: int, loss: Difference) -> str:
        """Return why a column is shown whose own figure does not say it."""
        if column in self.columns or not loss.is_below(LITTLE, 1):
            is_uncertain = column in self.relevance.uncertain and column not in self.columns
            return "it is uncertain whether it matters, " if is_uncertain else ""
        if not self.relevance.needless:
            return "the model explains too little of what happens, or needs one of the columns that add little, "
        return "others that add less are hidden first, and without this one too the error would grow too much, "

    def missing(self) -> Iterator[str]:
        """Yield why columns are not hidden."""
        if self.n_failed and set(self.columns) <= set(self.constant):
            yield f"no hidden columns that change: {self.n_failed} episodes failed, and any column may say where that is"
        if columns := self.relevance.uncertain:
            evidence = self.relevance.evidence(columns)
            yield f"it is uncertain whether columns {listed(columns)} matter, so they stay: {evidence}"


@dataclass(frozen=True, eq=False)
class HiddenColumnSearch:
    """Looks for columns to hide: first those that do not matter, then positions, once it is known which mirrors hold.

    steps: with random actions, and such that seek contact, in the units of the goal. contact: of the tool with the objects.
    differences, controlled, constant: see `Structure`.
    """

    steps: Steps
    contact: Contact
    units: Units
    differences: Sequence[ColumnDifference]
    controlled: ControlledColumns
    constant: tuple[int, ...]
    decided: DecidedColumns

    @cached_property
    def _test(self) -> ColumnTest:
        return ColumnTest(self.steps, self.contact, self._live)

    @cached_property
    def _live(self) -> list[int]:
        return [c for c in range(self.units.n_columns) if c not in self.constant]

    @property
    def _tool_and_objects(self) -> set[int]:
        return {*self.contact.tool, *self.contact.object_columns}

    @property
    def _may_hide(self) -> bool:
        return self.decided.hidden is None and not len(self.steps.failures)

    def before_symmetries(self) -> HiddenColumns:
        """Return the columns to hide before symmetries are known: what is decided, or what is constant or does not matter.

        Gaps, what actions clearly move, and what an option shows is always seen.
        """
        gaps = {*gap_columns(self.contact, self.differences), *(gap.column for gap in self.units.gaps)}
        always = {*gaps, *self.controlled.clear, *self.decided.shown, *self._tool_and_objects}
        relevance = self._test.relevance([c for c in self._live if c not in always] if self._may_hide else [])
        if self.decided.hidden is None:
            needed: tuple[NeededColumns, ...] = ()
            visible = [c for c in self._live if c not in relevance.needless]
            seen = {*visible, *self.decided.shown, *self._tool_and_objects}
            hidden = set(range(self.units.n_columns)) - seen
        else:
            needed = self._needed(set(self.decided.hidden).intersection(self._live))
            hidden = set(self.decided.hidden).difference(*(each.columns for each in needed))
            visible = [c for c in self._live if c not in hidden]
        return HiddenColumns(
            tuple(sorted(hidden)),
            tuple(visible),
            self.contact,
            self.constant,
            relevance,
            needed=needed,
            n_failed=len(self.steps.failures),
        )

    def _needed(self, hidden: set[int]) -> tuple[NeededColumns, ...]:
        """Return which hidden columns networks need. Positions are tested together, and so are all others."""
        if not (hidden and self.decided.may_show and self._test.knows_something):
            return ()
        positions = hidden & self._tool_and_objects
        return self._test.needed([(sorted(positions), SYMMETRY_MARGIN), (sorted(hidden - positions), COLUMN_MARGIN)])

    def after_symmetries(self, hidden: HiddenColumns, symmetries: Sequence[SymmetryVerdict]) -> HiddenColumns:
        """Return the columns to hide with positions along axes of mirrors among them, if networks do not need these.

        An action may be a target position, or a spring may pull: then the gaps are not enough.
        """
        mirrored = mirrored_positions(self.contact, symmetries) if self._may_hide else []
        positions = tuple(c for c in mirrored if c in hidden.visible)
        if not positions or not self._test.knows_something:
            return replace(hidden, positions=positions)
        without = self._test.without(positions, hidden.relevance.needless)
        more = positions if without.is_below(SYMMETRY_MARGIN, 1) else ()
        columns = tuple(sorted({*hidden.columns, *more}))
        return replace(hidden, columns=columns, positions=positions, without_positions=without)


def mirrored_positions(contact: Contact, symmetries: Sequence[SymmetryVerdict]) -> list[int]:
    """Return the positions of tool and objects along axes of which the mirror holds.

    Along the other axes the position may matter (gravity, the edge of the reach), whatever a few steps show.
    """
    holding = [symmetry.candidate.axes for symmetry in symmetries if symmetry.holds]
    mirrored, n_axes = {axes[0] for axes in holding if len(axes) == 1}, len(contact.axes)
    axis_of = {c: k % n_axes for columns in (contact.tool, contact.object_columns) for k, c in enumerate(columns)}
    return sorted(column for column, axis in axis_of.items() if axis in mirrored)
