"""What the steps of a task show, one finding after another, each with its figures; and why other structure is not used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import Finding
from .columns import listed
from .contact import MIN_ONSETS, TOLERANCE, gap_columns
from .findings import Structure
from .mirrors import MOST_GROUPS
from .steps import FEWEST, MOSTLY
from .symmetry_verdicts import SYMMETRY_MARGIN


def explain_findings(found: Structure) -> list[Finding]:
    """Return the parts of the goal, the roles of the columns, and what was tested with which result."""
    columns = found.hidden.findings() if found.hidden is not None else ()
    return [*_parts(found), *_groups(found), *columns, *_contacts(found), *_symmetries(found)]


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
        name, n_tested = tested.candidate.name, tested.n_tested
        yield tested.loss.as_finding(
            "symmetry", name, tested.verdict, tested.reason(), n_tested=n_tested, margin=SYMMETRY_MARGIN
        )


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
    elif found.stops is not None and found.stops.are_walls:
        yield found.stops.why_no_mirrors()
    elif not found.symmetries:
        yield (
            f"no mirrors yet: {FEWEST} episodes that visit each position more than once are needed, and at most "
            f"{MOST_GROUPS} groups of columns and actions that change their signs together, each of which matters"
        )
    yield from (symmetry.evidence() for symmetry in found.symmetries if not symmetry.holds)


def _paths(found: Structure) -> Iterator[str]:
    if found.stops is not None and found.is_far_on_paths and found.is_open_room:
        yield found.stops.why_no_paths()


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
    if found.hidden is not None:
        yield from found.hidden.why_not_more()
    if not found.symmetries:
        yield f"no symmetries: {_why_no_symmetries(found)}"
    yield from (symmetry.evidence() for symmetry in found.symmetries if not symmetry.holds)


def _why_no_symmetries(found: Structure) -> str:
    if found.contact is not None and not found.contact.has_equal_objects:
        return "they are looked for where all parts of a goal are positions with as many dimensions"
    if found.sequence is not None and found.sequence.has_poses:
        return "what a mirror does with dimensions besides the positions of objects, such as their angles, is not clear"
    return "along no axis do goals lie on both sides of the position where the tool starts"
