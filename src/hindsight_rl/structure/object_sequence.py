"""The objects of a task, one after another, and the contact of the tool with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..task_structure.affine import AffineMap
from .columns import GoalCopies, Units
from .contact import Contact, find_onsets, is_at_rest, measure_contact
from .controlled import ControlledColumns
from .parts import Dimensions, Parts
from .steps import HARDLY, MOSTLY, Steps
from .tool import find_tool


@dataclass(frozen=True)
class ObjectSequence:
    """The objects of a task, one after another. There may be only one.

    dimensions: of the goal, of each object in the order of the goal. contacts: of the tool with each of them.
        These are the dimensions of a position: an object may have others, such as its angle.
    others: the columns of the dimensions of the goal that belong to none of these objects, those of bodies; they are placed
        last.
    has_poses: whether objects have dimensions besides their position.
    at_rest: fraction of each object's goals that lie where this object rests without being placed.
    success_distances: how far each object may be from its goal if all of them are, in a success; None: not known.
    columns: of the observation, all that are about each object, in the same order for each; none if that is not known.
    """

    dimensions: tuple[Dimensions, ...]
    contacts: tuple[Contact, ...]
    others: tuple[tuple[int, int], ...]
    at_rest: tuple[float, ...]
    success_distances: tuple[float, ...] | None = None
    columns: tuple[tuple[int, ...], ...] = ()
    has_poses: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """Return the objects in the order in which they are placed: first those whose goals lie where they rest."""
        if max(self.at_rest) - min(self.at_rest) < MOSTLY:
            return tuple(range(len(self.dimensions)))
        return tuple(sorted(range(len(self.dimensions)), key=lambda k: self.at_rest[k] < max(self.at_rest) - MOSTLY))

    @property
    def is_plain(self) -> bool:
        """Whether the goal is the position of one object, perhaps with its angle, and nothing else."""
        return len(self.contacts) == 1 and not self.others

    @property
    def joint_dimensions(self) -> Dimensions:
        """The dimensions of the goal that the tool meets, or that are placed last, ascending."""
        return tuple(sorted({*(k for each in self.dimensions for k in each), *(k for k, _ in self.others)}))

    @property
    def joint(self) -> Contact:
        """Return the contacts as one, in the order of the goal: its `tool` has the tool's columns again for each object.

        A body takes part as an object that the tool meets, dimension by dimension. Angles of objects do not.
        """
        n_axes, columns = len(self.contacts[0].tool), dict[int, tuple[int, int]]()
        for dimensions, each in zip(self.dimensions, self.contacts, strict=True):
            columns |= dict(zip(dimensions, zip(each.tool, each.object_columns, strict=True), strict=True))
        for position, (dimension, column) in enumerate(self.others):
            columns[dimension] = (self.contacts[0].tool[position % n_axes], column)
        tool, object_columns = zip(*(columns[k] for k in self.joint_dimensions), strict=True)
        low, middle, high = np.max([each.distances for each in self.contacts], axis=0).tolist()
        return Contact(
            tool,
            object_columns,
            min(each.n_onsets for each in self.contacts),
            (low, middle, high),
            min(each.in_reach for each in self.contacts),
            max(each.moves_on for each in self.contacts),
        )

    def placed(self, k: int) -> float:
        """Return how near to its goal object k counts as placed: if all are, that is a success."""
        return self.contacts[k].distances[1] if self.success_distances is None else self.success_distances[k]

    def subgoals(self, units: Units, are_all: bool = True) -> tuple[str, ...]:
        """Return a subgoal for each object, as the option `subgoals` writes them.

        are_all: whether there are no others. All subgoals of a task share columns, or none do.
        """
        if self.is_plain and are_all:
            reach = self.contacts[0].subgoal(units)
            return (replace(reach, dimensions=self.dimensions[0] if self.has_poses else ()).text(),)
        found = []
        for k in self.order:
            reach, columns = self.contacts[k].subgoal(units), self.columns[k] if self.columns and are_all else ()
            found.append(replace(reach, dimensions=self.dimensions[k], placed=self.placed(k), columns=columns).text())
        return tuple(found)

    def with_columns(self, exchanges: Mapping[tuple[int, ...], AffineMap], units: Units) -> ObjectSequence:
        """Return the sequence with the columns that are about each object, if there are such for neighbouring objects.

        Networks see the numbers of one object in the place of another, so columns of other units or signs are left out. A
        tool whose position is made of columns of an object cannot share them.

        exchanges: by the numbers of two objects among equal parts of the goal, how columns change in the goal's units. They
            need not hold: as long as one of both was hardly touched, it seems to move otherwise.
        units: how the observation holds the columns.
        """
        n_axes = len(self.dimensions[0])
        numbers = [dimensions[0] // n_axes for dimensions in self.dimensions]
        pairs = list(pairwise(numbers))
        if self.has_poses or not pairs or not exchanges.keys() >= set(pairs):
            return self  # the angle of another object than the first one would stand beside its position
        maps = [exchanges[pair] for pair in pairs]
        first, second = (self.contacts[k].object_columns for k in (0, 1))
        is_first_lower = first[0] < second[0]
        moved = [(c, other) for c, other in enumerate(maps[0].source.tolist()) if c != other]
        rows = [[c] for c, other in moved if c in first or (c not in second and (c < other) == is_first_lower)]
        for each in maps:
            rows = [[*row, int(each.source[row[-1]])] for row in rows if _has_same_scale(each, units, row[-1])]
        rows = [row for row in rows if len(set(row)) == len(row)]
        has_positions = set(first) <= {row[0] for row in rows}
        if not units.of(self.contacts[0].tool).all_columns.isdisjoint(column for row in rows for column in row):
            return self
        return replace(self, columns=tuple(zip(*rows, strict=True)) if has_positions else ())

    def evidence(self, units: Units) -> str:
        """Return the evidence in one sentence. units: how the observation holds the columns."""
        if self.is_plain:
            return self.contacts[0].evidence(units)
        each = "; ".join(f"object {k + 1}: {contact.evidence(units)}" for k, contact in enumerate(self.contacts))
        at_rest = ", ".join(f"{fraction:.0%}" for fraction in self.at_rest)
        why = "the order of the goal" if self.order == tuple(range(len(self.dimensions))) else "not the order of the goal"
        order = f"order {', '.join(str(k + 1) for k in self.order)}, {why}: {at_rest} of their goals lie where they rest"
        if self.success_distances is None:
            placed = (
                "an object counts as placed within the median distance of contact, as rewards show no distance of success"
            )
        else:
            placed = f"an object counts as placed within {self.placed(0):.3g}, as all of them are in a success"
        shared = "; networks see the object that is acted for in the place of the first one" if self.columns else ""
        return (
            f"{len(self.contacts)} objects, as their dimensions of the goal change one at a time; {each}; {order}; {placed}"
            f"{shared}"
        )


def find_sequence(
    steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns, units: Units, may_tie: bool = True
) -> ObjectSequence | None:
    """Find what touches the objects; None if no contact with any of them is clear. steps: in the units of the goal.

    may_tie: see `find_tool`.

    One tool moves all objects. For an object that it did not touch yet, the distance of contact is that of another object.
    Objects with fewer dimensions than others have no contact of their own: they are placed last, as bodies are.
    """
    size = max(map(len, parts.objects))
    whole = [dimensions for dimensions in parts.objects if len(dimensions) == size]
    shown = [copies.complete[k] for k in whole[0]]
    no_tool = copies.of_objects(parts.objects)
    tool = find_tool(Steps.join(steps.of_objects(whole)), shown, no_tool, controlled, units, may_tie)
    if tool is None:
        return None
    objects = [tuple(dimensions[k] for k in tool.dimensions) for dimensions in whole]
    each = steps.of_objects(objects)
    touched = [len(find_onsets(one)) > 0 for one in each]
    if not any(touched):
        return None
    of_objects = [tuple(copies.complete[k] for k in dimensions) for dimensions in objects]
    nearest = measure_contact(each[touched.index(True)], tool.columns, of_objects[touched.index(True)])
    contacts = [
        measure_contact(one, tool.columns, columns) if is_touched else replace(nearest, object_columns=columns, n_onsets=0)
        for one, columns, is_touched in zip(each, of_objects, touched, strict=True)
    ]
    placed_last = sorted(set(range(steps.goal_size)).difference(*whole))
    others = tuple((k, copies.complete[k]) for k in placed_last)
    at_rest, has_poses = _goals_at_rest(steps, objects), len(tool.dimensions) < size
    return ObjectSequence(tuple(objects), tuple(contacts), others, at_rest, has_poses=has_poses)


def measure_sequence(steps: Steps, sequence: ObjectSequence, success_distances: tuple[float, ...] | None) -> ObjectSequence:
    """Measure the contacts of a sequence again. steps: all of them, in the units of the goal."""
    contacts = tuple(
        measure_contact(one, contact.tool, contact.object_columns)
        for one, contact in zip(steps.of_objects(sequence.dimensions), sequence.contacts, strict=True)
    )
    at_rest = _goals_at_rest(steps, sequence.dimensions)
    return replace(sequence, contacts=contacts, at_rest=at_rest, success_distances=success_distances, columns=())


def _has_same_scale(exchange: AffineMap, units: Units, column: int) -> bool:
    """Return whether a column and the one that takes its place have about the same scale, and the same sign."""
    other = exchange.source[column]
    has_same_factor = np.isclose(units.factor[column], units.factor[other], atol=0)
    has_same_units = bool(has_same_factor and np.isclose(units.offset[column], units.offset[other]))
    return has_same_units and MOSTLY <= float(exchange.factor[column]) <= 1 / MOSTLY


def count_moved(probing: Steps, objects: Sequence[Dimensions]) -> tuple[int, ...]:
    """Return in how many probing episodes each object begins to move."""
    return tuple(len(find_onsets(one)) for one in probing.of_objects(objects))


def _goals_at_rest(steps: Steps, objects: Sequence[Dimensions]) -> tuple[float, ...]:
    """Return the fraction of each object's goals in the range of positions where it rests."""
    fractions = []
    for one in steps.of_objects(objects):
        positions = one.achieved_goal[is_at_rest(one)]
        goals = one.desired_goal[one.starts_episode]
        low, high = np.quantile(positions, [HARDLY, 1 - HARDLY], axis=0) if len(positions) else (np.inf, -np.inf)
        margin = HARDLY * one.goal_std
        fractions.append(float(((goals >= low - margin) & (goals <= high + margin)).all(1).mean()))
    return tuple(fractions)
