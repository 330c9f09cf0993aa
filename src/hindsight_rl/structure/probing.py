"""From what the action controls and what touches the object to a plan that seeks contact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records.probing import Probing
from .columns import ControlledColumns
from .contact import Contact
from .units import Units


def plan_probing(controlled: ControlledColumns, contact: Contact, units: Units, others: Sequence[Contact] = ()) -> Probing:
    """Return how to bring the tool of a contact to its object. others: contacts of the same tool with further objects.

    The change of the tool's columns is linear in the action, as regression found: the pseudo-inverse of that effect steers.
    """
    steer = np.linalg.pinv(controlled.effect_on(contact.tool).T)  # (action size, goal size)
    tool, thing = units.of(contact.tool), units.of(contact.thing)
    further = tuple(units.of(other.thing) for other in others)
    return Probing(tool, thing, tuple(map(tuple, steer.tolist())), contact.distances[1], further)
