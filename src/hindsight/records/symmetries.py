"""What a world does not care about, such as a turn or a mirror: a finite group of maps on the columns of a row.

A family of tasks declares a few of them, its generators, as text. "o0=-o1 o1=o0 g0=-g1 g1=g0 a0=-a1 a1=a0" is a quarter
turn: column 0 of the observation becomes minus its column 1, and so on; `g` is a column of the goals, achieved and desired,
`a` one of the action. "o1=1.5-o1" is a mirror that stands at 0.75. Columns that are not named stay as they are. A buffer
shows each sample from a side drawn at random, so that one step teaches as much as one from every side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import OptionError
from . import Array, ArraySpec, Episode, GoalSpec

LARGEST_ORDER = 64  # maps in a group; more are made by generators that never lead back
PARTS = {"o": "observation", "g": "goal", "a": "action"}
_ENTRY = re.compile(r"([oga])(\d+)=(?:([+-]?\d+(?:\.\d*)?)(?=[+-]))?([+-]?)\1(\d+)")
_SAME = 1e-6  # by which the offsets of two maps may differ, for numbers are written with few digits


@dataclass(frozen=True, eq=False)
class Maps:
    """G maps of rows of n columns: x becomes sign * x[source] + offset. All (G, n), but for one map alone (n,)."""

    source: Array
    sign: Array
    offset: Array

    def __len__(self) -> int:
        return len(self.source)

    def of(self, columns: slice) -> Maps:
        """What the maps do to some neighbouring columns, which they keep among themselves."""
        return Maps(*(np.ascontiguousarray(a[:, columns]) for a in (self.source - columns.start, self.sign, self.offset)))

    def after(self, first: Maps) -> Maps:
        """The map that does `first`, then this one; of one map each."""
        sign, offset = self.sign * first.sign[self.source], self.sign * first.offset[self.source] + self.offset
        return Maps(first.source[self.source], sign, offset)

    def is_same(self, other: Maps) -> bool:
        """Whether two maps do the same."""
        same = np.array_equal(self.source, other.source) and np.array_equal(self.sign, other.sign)
        return same and bool(np.abs(self.offset - other.offset).max(initial=0.0) < _SAME)


class Symmetries:
    """The group that the generators make for a task. Element 0 changes nothing; without generators it is the only one.

    generators: as the module says. Raises OptionError for what is no such text, names a column that the task does not have,
    is no one-to-one map, or leads to more than LARGEST_ORDER maps; and for arrays that are not flat and of floats.
    """

    def __init__(self, generators: Sequence[str], spec: GoalSpec) -> None:
        parts = {"observation": spec.observation, "goal": spec.goal, "action": spec.action}
        if generators:
            for name, part in parts.items():
                _require_numbers(name, part)
        stops = np.cumsum([part.size for part in parts.values()]).tolist()
        columns = {n: slice(stop - p.size, stop) for (n, p), stop in zip(parts.items(), stops, strict=True)}
        maps = _close([_parse(text, columns) for text in generators], stops[-1])
        self.generators = tuple(generators)
        self.maps = {name: maps.of(part) for name, part in columns.items()}

    def __len__(self) -> int:
        """How many maps there are, the one that changes nothing too."""
        return len(self.maps["goal"])

    def transformed(self, name: str, values: Array, element: int) -> Array:
        """`values` (N, n) as seen from another side, fresh memory. name: "observation", "goal" or "action"."""
        maps = self.maps[name]
        return np.asarray(maps.sign[element] * values[:, maps.source[element]] + maps.offset[element]).astype(values.dtype)

    def augmented(self, episode: Episode) -> Iterator[Episode]:
        """The episode as it was, then as it would have been on each other side."""
        yield episode
        for element in range(1, len(self)):
            yield replace(
                episode,
                observation=self.transformed("observation", episode.observation, element),
                achieved_goal=self.transformed("goal", episode.achieved_goal, element),
                desired_goal=self.transformed("goal", episode.desired_goal, element),
                action=self.transformed("action", episode.action, element),
            )


def _require_numbers(name: str, part: ArraySpec) -> None:
    if len(part.shape) != 1 or np.dtype(part.dtype).kind != "f":
        raise OptionError(
            f"symmetries need flat arrays of floats, but the {name} is {part.shape} of {part.dtype}: set symmetries=()"
        )


def _parse(text: str, columns: dict[str, slice]) -> Maps:
    """One generator over all columns of a row: observation, goal, action."""
    n = max(part.stop for part in columns.values())
    source, sign, offset, named = np.arange(n), np.ones(n), np.zeros(n), set()
    for entry in text.split():
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise OptionError(
                f"the symmetry {text!r} holds {entry!r}: write column=column, as in o0=-o1 or g1=1.5-g1, of the same array "
                f"on both augmented (o: observation, g: goals, a: action)"
            )
        letter, to, constant, minus, taken = found.groups()
        part = columns[PARTS[letter]]
        at, size = part.start + int(to), part.stop - part.start
        if max(int(to), int(taken)) >= size:
            raise OptionError(f"the symmetry {text!r} holds {entry!r}, but the {PARTS[letter]} has {size} columns, from 0")
        if at in named:
            raise OptionError(f"the symmetry {text!r} says twice what {letter}{to} becomes: say it once")
        named.add(at)
        source[at], sign[at] = part.start + int(taken), -1.0 if minus == "-" else 1.0
        offset[at] = float(constant or 0.0)
    if len(np.unique(source)) < n:
        raise OptionError(f"the symmetry {text!r} takes a column twice and so loses another: each must be taken once")
    return Maps(source, sign, offset)


def _close(generators: list[Maps], n: int) -> Maps:
    """All that generators lead to, one after the other, the map that changes nothing first."""
    found = [Maps(np.arange(n), np.ones(n), np.zeros(n))]
    for known in found:  # which grows meanwhile
        for generator in generators:
            new = generator.after(known)
            if not any(new.is_same(old) for old in found):
                found.append(new)
            if len(found) > LARGEST_ORDER:
                raise OptionError(
                    f"the symmetries lead to more than {LARGEST_ORDER} maps and never back: check their signs and offsets"
                )
    return Maps(*(np.stack(arrays) for arrays in zip(*((m.source, m.sign, m.offset) for m in found), strict=True)))
