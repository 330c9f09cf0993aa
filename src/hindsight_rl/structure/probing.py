"""From what the action controls and what touches the object to a plan that seeks contact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records.exploration import Probing
from .contact import Contact
from .findings import Structure

GUESSED_REACH = 0.25  # of the standard deviation of the goals: objects are smaller than the space in which they are moved


def plan_probing(found: Structure, contact: Contact) -> Probing:
    """Return how to bring the tool to its objects. contact: what was found; of several objects the joint one."""
    contacts = found.chain.contacts if found.chain else (contact,)
    return _steer(found, contacts[0].tool, [each.thing for each in contacts], contacts[0].distances[1])


def plan_guesses(found: Structure) -> tuple[Probing, ...]:
    """Return how to bring each possible tool to the objects, where no contact was seen yet."""
    if not found.guesses:
        return ()
    sizes = [len(dimensions) for dimensions in found.parts.objects]
    things = [
        tuple(found.copies.complete[k] for k in dimensions)
        for dimensions in found.parts.objects
        if len(dimensions) == sizes[0]
    ]
    return tuple(_steer(found, tool, things, GUESSED_REACH * found.parts.goal_std) for tool in found.guesses)


def _steer(found: Structure, tool: Sequence[int], things: Sequence[Sequence[int]], reach: float) -> Probing:
    """The change of the tool's columns is linear in the action, by regression: the pseudo-inverse of that effect steers."""
    steer = np.linalg.pinv(found.controlled.effect_on(tool).T)  # (action size, goal size)
    objects = tuple(found.units.of(thing) for thing in things)
    return Probing(found.units.of(tool), objects, tuple(map(tuple, steer.tolist())), reach)
