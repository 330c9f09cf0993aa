"""Symmetries of a task, such as a rotation or a mirror: a finite group of maps on the columns of a row.

A recipe declares generators of the group as text. "o0=-o1 o1=o0 g0=-g1 g1=g0 a0=-a1 a1=a0" is a rotation by 90 degrees:
column 0 of the observation becomes minus column 1, and so on. `o` is a column of the observation, `g` of the achieved and
desired goals, `a` of the action. "o1=1.5-o1" is a mirror at 0.75. "o6=-2.5*o7 o7=0.4*o6" exchanges columns of different
units. Columns that are not named stay as they are. The buffer
transforms each sample by a random element of the group (data augmentation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import OptionError
from . import Array, ArraySpec, Episode, GoalSpec
from .affine import NUMBER
from .subgoals import Subgoal

LARGEST_ORDER = 64  # elements of a group; generators that exceed it never return to the identity
PARTS = {"o": "observation", "g": "goal", "a": "action"}
_PART_OF_ARRAY = {"observation": "observation", "achieved_goal": "goal", "desired_goal": "goal", "action": "action"}
_ENTRY = re.compile(rf"([oga])(\d+)=(?:([+-]?{NUMBER})(?=[+-]))?([+-]?)(?:({NUMBER})\*)?\1(\d+)")
_TOLERANCE = 1e-6  # largest difference between equal numbers, offsets relative to the largest one: texts have few digits


@dataclass(frozen=True, eq=False)
class Maps:
    """G maps of rows of n columns: x becomes factor * x[source] + offset. All arrays are (G, n), or (n,) for one map."""

    source: Array
    factor: Array
    offset: Array

    def select(self, columns: slice) -> Maps:
        """Return the maps of some neighbouring columns. The maps must not mix them with other columns."""
        arrays = (self.source - columns.start, self.factor, self.offset)
        return Maps(*(np.ascontiguousarray(array[:, columns]) for array in arrays))

    def after(self, first: Maps) -> Maps:
        """Return the composition: `first`, then this map. Both are single maps."""
        factor, offset = self.factor * first.factor[self.source], self.factor * first.offset[self.source] + self.offset
        return Maps(first.source[self.source], factor, offset)

    def is_same(self, other: Maps, largest_offset: float) -> bool:
        """Return whether two maps are equal, up to rounding. largest_offset: of the maps that they are products of."""
        if not np.array_equal(self.source, other.source):
            return False
        factors, offsets = np.abs(self.factor - other.factor), np.abs(self.offset - other.offset)
        is_close = factors.max(initial=0.0) <= _TOLERANCE
        return bool(is_close and offsets.max(initial=0.0) <= _TOLERANCE * largest_offset)


class Symmetries:
    """The group that the generators make for a task. Element 0 is the identity, the only element without generators.

    generators: texts, as the module describes them.

    Raises OptionError if a text cannot be read, names a column that the task lacks or is not one-to-one, if the group has
    more than LARGEST_ORDER elements, or if the arrays of the task are not flat floats.
    """

    def __init__(self, generators: Sequence[str], spec: GoalSpec) -> None:
        arrays = {"observation": spec.observation, "goal": spec.goal, "action": spec.action}
        if len(generators) > LARGEST_ORDER:
            raise OptionError(
                f"Expected at most {LARGEST_ORDER} symmetries, got {len(generators)}. Leave out those that follow."
            )
        if generators:
            for name, array in arrays.items():
                _require_flat_floats(name, array)
        stops = np.cumsum([array.size for array in arrays.values()]).tolist()
        columns = {name: slice(stop - a.size, stop) for (name, a), stop in zip(arrays.items(), stops, strict=True)}
        maps = _generate_group([_parse(text, columns) for text in generators], stops[-1])
        self.generators = tuple(generators)
        self.maps = {name: maps.select(part) for name, part in columns.items()}

    def __len__(self) -> int:
        """Return the number of elements, the identity included."""
        return len(self.maps["goal"].source)

    def transformed(self, part: str, values: Array, element: int) -> Array:
        """Return `values` (N, n) transformed by an element, as a copy. part: "observation", "goal" or "action"."""
        maps = self.maps[part]
        return np.asarray(maps.factor[element] * values[:, maps.source[element]] + maps.offset[element]).astype(
            values.dtype
        )

    def augmented(self, episode: Episode) -> Iterator[Episode]:
        """Yield the episode as it is, then transformed by each other element."""
        yield episode
        for element in range(1, len(self)):
            arrays: dict[str, Any] = {
                name: self.transformed(part, getattr(episode, name), element) for name, part in _PART_OF_ARRAY.items()
            }
            yield replace(episode, **arrays)


def differing_columns(symmetries: Symmetries, subgoal: Subgoal) -> tuple[int, ...] | None:
    """Return columns of a subgoal that the symmetries do not transform as they transform goals; None if there are none."""
    observation, goal = symmetries.maps["observation"], symmetries.maps["goal"]
    numbers = np.array(subgoal.numbers or range(goal.source.shape[1]))
    source, factor, offset = (part[:, numbers] for part in (goal.source, goal.factor, goal.offset))
    place = (source[..., None] == numbers).argmax(-1)  # in `numbers`
    stays = np.array_equal(numbers[place], source)
    for part in (subgoal.achieved, subgoal.goal):
        at, scale, start = part.index, np.array(part.factor), np.array(part.offset)
        is_same = stays and np.array_equal(observation.source[:, at], at[place])
        is_same &= np.allclose(scale * observation.factor[:, at], factor * scale[place])
        transformed = scale * observation.offset[:, at] + start
        if not (is_same and np.allclose(transformed, factor * start[place] + offset)):
            return part.columns
    return None


def _require_flat_floats(name: str, array: ArraySpec) -> None:
    if len(array.shape) != 1 or np.dtype(array.dtype).kind != "f":
        given = f"shape {array.shape} and dtype {array.dtype} for the {name}"
        raise OptionError(f"Symmetries need flat arrays of floats, got {given}. Set symmetries=().")


def _parse(text: str, columns: dict[str, slice]) -> Maps:
    """Return the map of one generator over all columns of a row: observation, goal, action."""
    n = max(part.stop for part in columns.values())
    source, factor, offset, named = np.arange(n), np.ones(n), np.zeros(n), set()
    for entry in text.split():
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise OptionError(
                f"The symmetry {text!r} has the entry {entry!r}. Write column=column, both of one array (o, g or a), as in "
                f"o0=-o1 or g1=1.5-g1."
            )
        letter, to, constant, minus, scale, taken = found.groups()
        part = columns[PARTS[letter]]
        at, size = part.start + int(to), part.stop - part.start
        if max(int(to), int(taken)) >= size:
            raise OptionError(f"The symmetry {text!r} has {entry!r}, but the {PARTS[letter]} has {size} columns, from 0.")
        if at in named:
            raise OptionError(f"The symmetry {text!r} maps {letter}{to} twice. Name each column once on the left.")
        named.add(at)
        source[at], factor[at] = part.start + int(taken), float(f"{minus}{scale or 1}")
        offset[at] = float(constant or 0.0)
    if len(np.unique(source)) < n:
        raise OptionError(f"The symmetry {text!r} uses a column twice on the right, so another one is lost. Use each once.")
    return Maps(source, factor, offset)


def _generate_group(generators: list[Maps], n: int) -> Maps:
    """Return every product of the generators over n columns, the identity first."""
    found = [Maps(np.arange(n), np.ones(n), np.zeros(n))]
    largest_offset = max((float(np.abs(each.offset).max(initial=0.0)) for each in generators), default=0.0)
    for known in found:  # the list grows during the loop
        for generator in generators:
            new = generator.after(known)
            if not any(new.is_same(old, largest_offset) for old in found):
                found.append(new)
            if len(found) > LARGEST_ORDER:
                raise OptionError(f"The symmetries generate more than {LARGEST_ORDER} maps. Check their signs and offsets.")
    return Maps(*(np.stack(arrays) for arrays in zip(*((m.source, m.factor, m.offset) for m in found), strict=True)))
