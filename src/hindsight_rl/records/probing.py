"""Probing: actions that seek contact with an object, as plain data that a job carries."""

from __future__ import annotations

from dataclasses import dataclass

from ..task_structure.affine import AffineColumns


@dataclass(frozen=True)
class Probing:
    """How to steer a tool, which the action controls, to an object, which it does not.

    tool, thing: columns of the observation, places of the tool and of the object, in the units of the goal.
    steer: the action for a wanted change of the tool's place, one row per entry of the action.
    reach: usual distance between tool and object when the object begins to move.
    others: places of further objects. The tool is steered to one of all objects after another, in random order.
    """

    tool: AffineColumns
    thing: AffineColumns
    steer: tuple[tuple[float, ...], ...]
    reach: float
    others: tuple[AffineColumns, ...] = ()
