"""What the steps of a task do not show, and why, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .chain import MIN_MOVED
from .contact import LEAST_IN_REACH, MIN_ONSETS, MIN_PROBES
from .mirrors import FEWEST_EPISODES, MOST_GROUPS

if TYPE_CHECKING:
    from .findings import Structure


def explain_missing(found: Structure) -> list[str]:
    """Return one sentence for each kind of structure that was not found or is uncertain."""
    if not found.parts.has_object or not found.copies.is_complete:
        return [f"no object, so no subgoals and hidden columns: {_why_no_object(found)}", *_mirrors(found)]
    if found.contact is None:
        return [f"no tool that moves the object, so no subgoals, hidden columns and symmetries: {_why_no_contact(found)}"]
    return list(_with_contact(found))


def _mirrors(found: Structure) -> Iterator[str]:
    if found.parts.has_object or not found.copies.is_complete:
        yield "no symmetries: they are looked for where columns show all numbers of the goal, and these rarely rest"
    elif found.mirrors is None:
        yield (
            f"no mirrors yet: {FEWEST_EPISODES} episodes that visit each place more than once are needed, and at most "
            f"{MOST_GROUPS} groups of numbers that change their signs together"
        )
    elif not found.mirrors:
        yield "no mirrors: with each change of signs moves are predicted worse, or places lie where none was visited"


def _why_no_object(found: Structure) -> str:
    parts, copies = found.parts, found.copies.columns
    if not parts.goal_std:
        return "all episodes so far have the same goal"
    if not parts.has_object:
        return f"{parts.evidence()}; an object rests in most of them, and at the start of most episodes"
    if not found.copies.is_complete:
        numbers = _listed([k for k, column in enumerate(copies) if column is None])
        return f"no column of the observation shows achieved_goal[{numbers}], in any units"
    return "the action moves columns that show the achieved goal"


def _why_no_contact(found: Structure) -> str:
    moved, played = found.probes
    if played and len(found.parts.objects) > 1 and moved >= MIN_PROBES * played:
        each = f"in {_listed(found.moved)} of {played} episodes, {MIN_MOVED} needed"
        return f"actions that bring the likely tool to the objects moved them {each}"
    if played:
        return (
            f"actions that bring the likely tool to the object moved it in {moved} of {played} episodes, and "
            f"{MIN_PROBES:.0%} are needed"
        )
    unknown = [column for column in found.controlled.columns if not found.units.is_known[column]]
    if not found.controlled.columns:
        return "the action explains the change of no column"
    if found.n_onsets < MIN_ONSETS:
        return f"the object began to move in {found.n_onsets} episodes, and {MIN_ONSETS} are needed"
    if unknown:
        return (
            f"it is uncertain in which units columns {_listed(unknown)} show places, since no exact linear relation "
            "connects them with the achieved goal. Add columns with the gap between tool and object, or show all places in "
            "the units of the goal"
        )
    return f"no columns were clearly nearest to the object in the {found.n_onsets} episodes in which it began to move"


def _with_contact(found: Structure) -> Iterator[str]:
    if found.contact is not None and not found.contact.leads_to_goals:
        reach = f"{found.contact.in_reach:.0%} of the goals lie within the reach of the tool"
        yield f"no subgoal: {reach}, and {LEAST_IN_REACH:.0%} are needed"
    if found.relevance is not None and found.relevance.uncertain:
        columns = found.relevance.uncertain
        evidence = found.relevance.evidence(columns)
        yield f"it is uncertain whether columns {_listed(columns)} matter, so they stay: {evidence}"
    if not found.symmetries:
        yield "no symmetries: along no axis do goals lie on both sides of the place where the tool starts"
    for symmetry in found.symmetries:
        if not symmetry.holds:
            yield symmetry.evidence()


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
