"""What the steps of a task show, one finding after another, each with its figures; and why other structure is not used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import Finding, FindingKind
from .columns import listed
from .contact import MIN_ONSETS, TOLERANCE, Contact, gap_columns
from .findings import Structure
from .mirrors import MOST_GROUPS
from .model import Difference
from .relevance import COLUMN_MARGIN, Relevance
from .steps import FEWEST, LITTLE, MOSTLY
from .symmetry_verdicts import SYMMETRY_MARGIN


def explain_findings(found: Structure) -> list[Finding]:
    """Return the parts of the goal, the roles of the columns, and what was tested with which result."""
    return [*_parts(found), *_groups(found), *_columns(found), *_contacts(found), *_symmetries(found)]


def _parts(found: Structure) -> Iterator[Finding]:
    for part in found.parts.parts:
        yield Finding("part", f"achieved_goal[{listed(part.dimensions)}]", f"is {part.name}", part.reason, part.dimensions)


def _groups(found: Structure) -> Iterator[Finding]:
    """Yield the roles of columns. Each column has the first role that fits."""
    rest = set(range(found.units.n_columns))
    roles: list[tuple[str, Iterable[int | None], str]] = [
        (
            f"columns of achieved_goal[{listed(part.dimensions)}]",
            (found.copies.columns[k] for k in part.dimensions),
            "they equal it, up to little noise, or are linear functions of it",
        )
        for part in found.parts.parts
    ]
    if found.contact is not None:
        roles.append(
            ("gap columns", gap_columns(found.contact, found.differences), "they are the gap between tool and object")
        )
    roles += [
        ("constant columns", found.constant, "they never change"),
        ("agent columns", found.controlled.columns, "actions move them"),
        ("other columns", tuple(rest), "neither the achieved goal, nor moved by actions at once"),
    ]
    for name, columns, reason in roles:
        members = tuple(sorted(rest & {column for column in columns if column is not None}))
        rest -= set(members)
        if members:
            yield Finding("group", name, f"are {listed(members)}", reason, members)


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
            reason = _why_uncertain(column, found, relevance) + loss.explain("without", "with", LITTLE, 1)
            yield _tested("column", f"column {column}", verdict, reason, loss, 1, LITTLE)
    if (loss := found.without_positions) is not None:
        verdict = "are not needed" if loss.is_below(SYMMETRY_MARGIN, 1) else "are shown"
        reason = f"beside the gaps between them, {loss.explain('without', 'with', SYMMETRY_MARGIN, 1)}"
        yield _tested("column", f"positions {listed(found.positions)}", verdict, reason, loss, 1, SYMMETRY_MARGIN)
    for each in found.needed:
        reason = each.loss.explain("without", "with", each.margin, 1)
        yield _tested("column", f"columns {listed(each.columns)}", "are shown again", reason, each.loss, 1, each.margin)
    if relevance.together is not None:
        name, loss = f"these {len(relevance.needless)} columns together", relevance.together
        reason = f"columns {listed(relevance.needless)}, {loss.explain('without', 'with', COLUMN_MARGIN, 1)}"
        yield _tested("column", name, "are not needed", reason, loss, 1, COLUMN_MARGIN)


def _why_untested(column: int, found: Structure, contact: Contact) -> str:
    if column in found.constant:
        return "it never changes"
    if column in (*contact.tool, *contact.object_columns):
        return "it is a position along an axis of which a mirror holds, and differences of positions suffice"
    return "an option or an earlier inference hides it"


def _why_uncertain(column: int, found: Structure, relevance: Relevance) -> str:
    """Return why a column is shown whose own figure does not say it."""
    loss = relevance.without[column]
    if column in found.hidden or not loss.is_below(LITTLE, 1):
        is_uncertain = column in relevance.uncertain and column not in found.hidden
        return "it is uncertain whether it matters, " if is_uncertain else ""
    if not relevance.needless:
        return "the model explains too little of what happens, or needs one of the columns that add little, "
    return "others that add less are hidden first, and without this one too the error would grow too much, "


def _contacts(found: Structure) -> Iterator[Finding]:
    for contact in found.sequence.contacts if found.sequence else ():
        low, middle, high = contact.distances
        reason = f"they were near on average where the goal moved from rest, in {contact.figures()}"
        name, columns = f"columns {found.units.listed(contact.tool)}", found.units.of(contact.tool).columns
        verdict = f"move columns {listed(contact.object_columns)} by touch"
        yield Finding("contact", name, verdict, reason, columns, middle, low, high, TOLERANCE * low)
    for handle in found.handles:
        low, middle, high = handle.distances
        reason = f"they were near where it moved from rest, in {handle.figures()}"
        name, columns = f"columns {found.units.listed(handle.tool)}", found.units.of(handle.tool).columns
        verdict = f"move achieved_goal[{handle.dimension}] at {handle.place_of(found.units).text()}"
        yield Finding("contact", name, verdict, reason, columns, middle, low, high, TOLERANCE * low)


def _symmetries(found: Structure) -> Iterator[Finding]:
    for tested in found.symmetries:
        reason, n = tested.reason(), tested.n_tested
        yield _tested("symmetry", tested.candidate.name, tested.verdict, reason, tested.loss, n, SYMMETRY_MARGIN)


def _tested(
    kind: FindingKind, name: str, verdict: str, reason: str, loss: Difference, n_tested: int, limit: float
) -> Finding:
    low, high = loss.interval(n_tested)
    return Finding(kind, name, verdict, reason, (), loss.mean, low, high, limit)


def explain_missing(found: Structure) -> list[str]:
    """Return one sentence for each kind of structure that was not found or is uncertain."""
    if found.contact is None and found.handles:
        return ["no hidden columns and symmetries: they are looked for where a tool meets the positions of objects"]
    if not found.parts.has_object or not found.copies.is_complete:
        what = "no tool" if found.parts.has_object else "no object"
        return [f"{what}, so no subgoals and hidden columns: {_why_no_object(found)}", *_mirrors(found), *_paths(found)]
    if found.contact is None:
        return [f"no tool that moves the object, so no subgoals, hidden columns and symmetries: {_why_no_contact(found)}"]
    return list(_with_contact(found))


def _mirrors(found: Structure) -> Iterator[str]:
    if found.parts.has_object or not found.copies.is_complete:
        yield "no symmetries: they are looked for where columns show all dimensions of the goal, and these rarely rest"
    elif found.has_choices:
        yield "no mirrors: without an object they are looked for where actions are vectors, and not choices"
    elif found.stopped is not None and found.has_walls:
        n_stopped, n_episodes = found.stopped
        yield (
            f"no mirrors: something stops the body between other positions in {n_stopped} of {n_episodes} episodes; walls "
            "break mirrors"
        )
    elif not found.symmetries:
        yield (
            f"no mirrors yet: {FEWEST} episodes that visit each position more than once are needed, and at most "
            f"{MOST_GROUPS} groups of columns and actions that change their signs together, each of which matters"
        )
    yield from (symmetry.evidence() for symmetry in found.symmetries if not symmetry.holds)


def _paths(found: Structure) -> Iterator[str]:
    if found.stopped is not None and found.is_far_on_paths and found.is_open_room:
        yield (
            "no planned paths: goals are far away, but nothing stopped the body between other positions in "
            f"{found.stopped[1]} episodes, so straight lines may lead to them"
        )


def _why_no_object(found: Structure) -> str:
    parts, copies = found.parts, found.copies.columns
    if not parts.goal_std:
        return "all episodes so far start at the same goal"
    if not parts.has_object:
        return f"{parts.evidence()}; an object rests in most of them, and at the start of most episodes"
    missing = listed([k for k, column in enumerate(copies) if column is None])
    return f"no column of the observation shows achieved_goal[{missing}], in any units"


def _why_no_contact(found: Structure) -> str:
    moved, played = found.probes
    if played and len(found.moved) > 1 and moved >= MOSTLY * played:
        each = f"in {listed(found.moved)} of {played} episodes, {MIN_ONSETS} needed"
        return f"actions that bring the likely tool to the objects moved them {each}"
    if played:
        return (
            f"actions that bring the likely tool to the object moved it in {moved} of {played} episodes. {MOSTLY:.0%} are "
            "needed, or the same columns must still be clearly the likeliest, with these episodes"
        )
    unknown = [
        column for column in found.controlled.columns if column < found.units.n_columns and not found.units.is_known[column]
    ]
    if not found.controlled.columns:
        return "the action explains the change of no column"
    if found.n_onsets < MIN_ONSETS:
        return f"the object began to move in {found.n_onsets} episodes, and {MIN_ONSETS} are needed"
    if unknown:
        return (
            f"it is uncertain in which units columns {listed(unknown)} show positions, since no exact linear relation "
            "connects them with the achieved goal. Add columns with the gap between tool and object, or show all "
            "positions in the units of the goal"
        )
    return f"no columns were clearly nearest to the object in the {found.n_onsets} episodes in which it began to move"


def _with_contact(found: Structure) -> Iterator[str]:
    if found.contact is not None and not found.contact.leads_to_goals:
        yield f"no subgoal, as the object must be hit: {found.contact.reasons}"
    if found.n_failed and set(found.hidden) <= set(found.constant):
        yield f"no hidden columns that change: {found.n_failed} episodes failed, and any column may say where that is"
    if found.relevance is not None and found.relevance.uncertain:
        columns = found.relevance.uncertain
        evidence = found.relevance.evidence(columns)
        yield f"it is uncertain whether columns {listed(columns)} matter, so they stay: {evidence}"
    if not found.symmetries:
        yield f"no symmetries: {_why_no_symmetries(found)}"
    yield from (symmetry.evidence() for symmetry in found.symmetries if not symmetry.holds)


def _why_no_symmetries(found: Structure) -> str:
    if found.contact is not None and not found.contact.has_equal_objects:
        return "they are looked for where all parts of a goal are positions with as many dimensions"
    if found.sequence is not None and found.sequence.has_poses:
        return "what a mirror does with dimensions besides the positions of objects, such as their angles, is not clear"
    return "along no axis do goals lie on both sides of the position where the tool starts"
