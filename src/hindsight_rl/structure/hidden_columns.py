"""Which observation columns are hidden from networks, and why: the decision, its reasons, and the options that follow."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
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
class GivenColumns:
    """Columns that the caller fixes.

    shown: stay shown, unless they are positions along axes of mirrors.
    hidden: all that are hidden; None: the search decides.
    may_show: whether hidden columns that clearly matter are shown again.
    """

    shown: Sequence[int]
    hidden: Sequence[int] | None
    may_show: bool


@dataclass(frozen=True)
class HiddenColumns:
    """Hidden observation columns, and the tests behind them.

    If options or an earlier inference say which columns are hidden, these are. Otherwise a column is hidden for one of
    three reasons: it is constant; networks predict as well without it; or it is a position of the tool or of an object
    along an axis of a mirror, and networks that see only the gaps between both predict as well. Constants that the caller
    shows, or that are positions, are shown.

    tested: the columns that symmetries must hold for, ascending. Positions that are hidden afterwards stay among them.
    constant: columns that never change.
    positions: of tool and objects along axes of which a mirror holds. without_positions: how much worse networks predict
        that see only the gaps between them; None: not tested.
    needed: columns that were hidden and are shown again.
    n_failed: number of episodes that ended too early, and without a success. If there are any, the search hides constants
        only: any other column may say where that is, and too few steps show it.
    """

    columns: tuple[int, ...]
    tested: tuple[int, ...]
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
            why += f"; columns {listed(self.columns)} stay hidden" if self.columns else ""
            yield Choice("hidden_observation", self.columns, why)
        elif self.columns:
            yield Choice("hidden_observation", self.columns, self._reason())
            why = f"goal - achieved_goal has all {goal_size} dimensions, wherever the goal lies"
            yield Choice("hidden_goal", tuple(range(goal_size)), why)

    def _reason(self) -> str:
        constant = [c for c in self.columns if c in self.constant]
        reasons = [f"columns {listed(constant)} are constant"] if constant else []
        if self.without_positions is not None and set(self.positions) <= set(self.columns):
            figures = f"without them the held-out error changes by {self.without_positions}"
            reasons.append(f"columns {listed(self.positions)} are positions along axes of mirrors: {figures}")
        tested = [c for c in self.columns if c in self.relevance.without]
        reasons += [self.relevance.evidence(tested)] if tested else []
        return "; ".join(reasons) or "an option or an earlier inference hides them"

    def findings(self) -> Iterator[Finding]:
        """Yield the verdict of each column that was tested, or is hidden, with its figures."""
        relevance = self.relevance
        for column in sorted({*self.columns, *relevance.without}):
            name, verdict = f"column {column}", "is hidden" if column in self.columns else "is shown"
            if (loss := relevance.without.get(column)) is None:
                yield Finding("column", name, verdict, self._why_untested(column))
            else:
                yield _tested(name, verdict, loss, LITTLE, self._why_shown(column, loss))
        if (loss := self.without_positions) is not None:
            verdict = "are not needed" if loss.is_below(SYMMETRY_MARGIN, 1) else "are shown"
            why = "beside the gaps between them, "
            yield _tested(f"positions {listed(self.positions)}", verdict, loss, SYMMETRY_MARGIN, why)
        for each in self.needed:
            yield _tested(f"columns {listed(each.columns)}", "are shown again", each.loss, each.margin)
        if (loss := relevance.together) is not None:
            name, why = f"these {len(relevance.needless)} columns together", f"columns {listed(relevance.needless)}, "
            yield _tested(name, "are not needed", loss, COLUMN_MARGIN, why)

    def _why_untested(self, column: int) -> str:
        if column in self.constant:
            return "it never changes"
        if column in self.positions:
            return "it is a position along an axis of which a mirror holds, and differences of positions suffice"
        return "an option or an earlier inference hides it"

    def _why_shown(self, column: int, loss: Difference) -> str:
        """Return why a column is shown, if its own loss does not say it."""
        if column in self.columns:
            return ""
        if not loss.is_below(LITTLE, 1):
            return "it is uncertain whether it matters, " if column in self.relevance.uncertain else ""
        if not self.relevance.needless:
            return "the model explains too little of what happens, or needs one of the columns that add little, "
        return "others that add less are hidden first, and without this one too the error would grow too much, "

    def why_not_more(self) -> Iterator[str]:
        """Yield why other columns are not hidden."""
        if self.n_failed and set(self.columns) <= set(self.constant):
            yield f"no hidden columns that change: {self.n_failed} episodes failed, and any column may say where that is"
        if columns := self.relevance.uncertain:
            evidence = self.relevance.evidence(columns)
            yield f"it is uncertain whether columns {listed(columns)} matter, so they stay: {evidence}"


def _tested(name: str, verdict: str, loss: Difference, margin: float, why: str = "") -> Finding:
    """Return what follows from the loss without some columns. why: stands before the figures."""
    reason = why + loss.explain("without", "with", margin, 1)
    return loss.as_finding("column", name, verdict, reason, n_tested=1, margin=margin)


@dataclass(frozen=True, eq=False)
class HiddenColumnSearch:
    """Looks for columns to hide: first `find_needless`, then `add_positions`, once it is known which mirrors hold.

    steps: all of them, in the units of the goal. contact: of the tool with the objects.
    differences, controlled, constant: see `Structure`.
    """

    steps: Steps
    contact: Contact
    units: Units
    differences: Sequence[ColumnDifference]
    controlled: ControlledColumns
    constant: tuple[int, ...]
    given: GivenColumns

    @cached_property
    def _test(self) -> ColumnTest:
        return ColumnTest(self.steps, self.contact, self._changing)

    @cached_property
    def _changing(self) -> list[int]:
        return [c for c in range(self.units.n_columns) if c not in self.constant]

    @property
    def _positions(self) -> set[int]:
        return {*self.contact.tool, *self.contact.object_columns}

    @property
    def _may_hide(self) -> bool:
        return self.given.hidden is None and not len(self.steps.failures)

    def find_needless(self) -> HiddenColumns:
        """Return the columns to hide before it is known which mirrors hold."""
        if self.given.hidden is None:
            return self._searched()
        needed = self._needed(set(self.given.hidden).intersection(self._changing))
        columns = set(self.given.hidden).difference(*(each.columns for each in needed))
        return self._hidden(columns, columns, self._test.relevance([]), needed)

    def _searched(self) -> HiddenColumns:
        """Hide constants, and columns that do not matter.

        Positions, gaps, columns that actions clearly move and those that the caller shows are not tested.
        """
        shown = {*self.given.shown, *self._positions}
        gaps = {*gap_columns(self.contact, self.differences), *(gap.column for gap in self.units.gaps)}
        always = {*shown, *gaps, *self.controlled.clear}
        relevance = self._test.relevance([c for c in self._changing if c not in always] if self._may_hide else [])
        columns = {*self.constant, *relevance.needless} - shown
        return self._hidden(columns, relevance.needless, relevance)

    def _hidden(
        self,
        columns: Iterable[int],
        untested: Container[int],
        relevance: Relevance,
        needed: tuple[NeededColumns, ...] = (),
    ) -> HiddenColumns:
        """Return hidden columns. untested: changing columns that symmetries need not hold for."""
        return HiddenColumns(
            columns=tuple(sorted(columns)),
            tested=tuple(c for c in self._changing if c not in untested),
            constant=self.constant,
            relevance=relevance,
            needed=needed,
            n_failed=len(self.steps.failures),
        )

    def _needed(self, columns: set[int]) -> tuple[NeededColumns, ...]:
        """Return which hidden columns networks need. Positions are tested together, and so are all others."""
        if not (columns and self.given.may_show and self._test.knows_something):
            return ()
        positions = columns & self._positions
        return self._test.needed([(sorted(positions), SYMMETRY_MARGIN), (sorted(columns - positions), COLUMN_MARGIN)])

    def add_positions(self, found: HiddenColumns, symmetries: Sequence[SymmetryVerdict]) -> HiddenColumns:
        """Return what was found, with positions along axes of mirrors hidden too, if networks do not need these.

        An action may be a target position, or a spring may pull: then the gaps are not enough.
        """
        mirrored = mirrored_positions(self.contact, symmetries) if self._may_hide else []
        positions = tuple(c for c in mirrored if c in found.tested)
        if not positions or not self._test.knows_something:
            return replace(found, positions=positions)
        without = self._test.without(positions, found.relevance.needless)
        added = positions if without.is_below(SYMMETRY_MARGIN, 1) else ()
        columns = tuple(sorted({*found.columns, *added}))
        return replace(found, columns=columns, positions=positions, without_positions=without)


def mirrored_positions(contact: Contact, symmetries: Sequence[SymmetryVerdict]) -> list[int]:
    """Return the positions of tool and objects along axes of which the mirror holds.

    Along the other axes the position may matter (gravity, the edge of the reach), whatever a few steps show.
    """
    holding = [symmetry.candidate.axes for symmetry in symmetries if symmetry.holds]
    mirrored, n_axes = {axes[0] for axes in holding if len(axes) == 1}, len(contact.axes)
    axis_of = {c: k % n_axes for columns in (contact.tool, contact.object_columns) for k, c in enumerate(columns)}
    return sorted(column for column, axis in axis_of.items() if axis in mirrored)
