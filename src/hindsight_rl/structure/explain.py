"""What the steps of a task show, one finding after another, each with its reason and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records.findings import Finding, FindingKind
from .axis_symmetries import SYMMETRY_MARGIN
from .contact import TOLERANCE, Contact, gap_columns
from .findings import Structure
from .model import Difference
from .relevance import COLUMN_MARGIN, Relevance


def explain_findings(found: Structure) -> list[Finding]:
    """Return the parts of the goal, the roles of the columns, and what was tested with which result."""
    return [*_parts(found), *_groups(found), *_columns(found), *_contacts(found), *_symmetries(found)]


def _parts(found: Structure) -> Iterator[Finding]:
    for part in found.parts.parts:
        reason = f"it rests in {part.rest:.0%} of the random steps"
        yield Finding("part", f"achieved_goal[{_listed(part.dimensions)}]", f"is {part.name}", reason, part.dimensions)


def _groups(found: Structure) -> Iterator[Finding]:
    """Yield the roles of columns. Each column has the first role that fits."""
    rest = set(range(len(found.units.factor)))
    roles: list[tuple[str, Iterable[int | None], str]] = [
        (
            f"columns of achieved_goal[{_listed(part.dimensions)}]",
            (found.copies.columns[k] for k in part.dimensions),
            "they equal it, or are linear functions of it",
        )
        for part in found.parts.parts
    ]
    if found.contact is not None:
        roles.append(
            ("gap columns", gap_columns(found.contact, found.differences), "they are the gap between tool and object")
        )
    roles += [
        ("constant columns", found.constant, "they never change"),
        ("agent columns", found.controlled.columns, "the action explains how they change"),
        ("other columns", tuple(rest), "neither the achieved goal, nor changed by the action at once"),
    ]
    for name, columns, reason in roles:
        members = tuple(sorted(rest & {column for column in columns if column is not None}))
        rest -= set(members)
        if members:
            yield Finding("group", name, f"are {_listed(members)}", reason, members)


def _columns(found: Structure) -> Iterator[Finding]:
    """Yield the verdict of each column that was tested, or is hidden."""
    relevance, contact = found.relevance, found.contact
    if relevance is None or contact is None:
        return
    for column in sorted({*found.hidden, *relevance.without}):
        verdict = "is hidden" if column in found.hidden else "is shown"
        if (loss := relevance.without.get(column)) is None:
            yield Finding("column", f"column {column}", verdict, _why_untested(column, found, contact))
        else:
            reason = _why_uncertain(column, found, relevance) + _figures(loss)
            yield _tested("column", f"column {column}", verdict, reason, loss, 1, COLUMN_MARGIN)
    if relevance.together is not None:
        name, loss = f"these {len(relevance.needless)} columns together", relevance.together
        reason = f"columns {_listed(relevance.needless)}, {_figures(loss)}"
        yield _tested("column", name, "are not needed", reason, loss, 1, COLUMN_MARGIN)


def _why_untested(column: int, found: Structure, contact: Contact) -> str:
    if column in found.constant:
        return "it never changes"
    if column in (*contact.tool, *contact.thing):
        return "it is a position along an axis of which a mirror holds, so differences of positions suffice"
    return "an option hides it"


def _why_uncertain(column: int, found: Structure, relevance: Relevance) -> str:
    """Return why a column is shown whose own figure does not say it."""
    loss = relevance.without[column]
    if column in found.hidden or not loss.is_below(COLUMN_MARGIN, 1):
        is_uncertain = column in relevance.uncertain and column not in found.hidden
        return "it is uncertain whether it matters, " if is_uncertain else ""
    if not relevance.needless:
        return "the model explains too little of what happens, or needs one of the columns that add little, "
    return "others that add less are hidden first, and without this one too the error would grow too much, "


def _figures(loss: Difference) -> str:
    return loss.explain("without", "with", COLUMN_MARGIN, 1)


def _contacts(found: Structure) -> Iterator[Finding]:
    contacts = found.chain.contacts if found.chain else () if found.contact is None else (found.contact,)
    for contact in contacts:
        low, middle, high = contact.distances
        reason = (
            f"they were near in all {contact.n_onsets} episodes where the goal moved from rest (distance {low:.3f}, "
            f"{middle:.3f}, {high:.3f} at the 10, 50 and 90 % quantiles); {contact.in_reach:.0%} of the goals lie within "
            "reach"
        )
        name, verdict = f"columns {_listed(contact.tool)}", f"move columns {_listed(contact.thing)} by touch"
        yield Finding("contact", name, verdict, reason, contact.tool, middle, low, high, TOLERANCE * low)


def _symmetries(found: Structure) -> Iterator[Finding]:
    for tested in found.symmetries:
        reason, n = tested.reason(), tested.n_tested
        yield _tested("symmetry", tested.name, tested.verdict, reason, tested.loss, n, SYMMETRY_MARGIN)
    for mirror in found.mirrors or ():
        name = f"mirror {mirror.text}"
        yield _tested("symmetry", name, "holds", mirror.evidence(), mirror.loss, 1, SYMMETRY_MARGIN)


def _tested(
    kind: FindingKind, name: str, verdict: str, reason: str, loss: Difference, n_tested: int, limit: float
) -> Finding:
    low, high = loss.interval(n_tested)
    return Finding(kind, name, verdict, reason, (), loss.mean, low, high, limit)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
