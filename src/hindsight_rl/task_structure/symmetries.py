"""Symmetries of a task, such as a rotation or a mirror, and the finite group that they generate.

A symmetry is declared as text. "o0=-o1 o1=o0 g0=-g1 g1=g0 a0=-a1 a1=a0" is a rotation by 90 degrees: column 0 of the
observation becomes minus column 1, and so on. `o` is a column of the observation, `g` of the achieved and desired goals,
`a` of the action. "o1=1.5-o1" is a mirror at 0.75. "o6=-2.5*o7 o7=0.4*o6" exchanges columns of different units. Columns
that are not named stay as they are. Of Discrete actions `a` is a choice, counted from 0: "a0=a1 a1=a0" exchanges two. The
buffer transforms each sample by a random element of the group (data augmentation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import OptionError
from ..records import Array, Episode, GoalSpec
from .affine import NUMBER, AffineMap
from .subgoals import Subgoal

LARGEST_ORDER = 64  # elements of a group; generators that exceed it never return to the identity
ARRAY_NAMES = {"o": "observation", "g": "goal", "a": "action"}
_PART_OF_ARRAY = {"observation": "observation", "achieved_goal": "goal", "desired_goal": "goal", "action": "action"}
_ENTRY = re.compile(rf"([oga])(\d+)=(?:([+-]?{NUMBER})(?=[+-]))?([+-]?)(?:({NUMBER})\*)?\1(\d+)")
# largest difference between equal numbers, offsets relative to the largest one: texts have few digits
TEXT_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A map of the columns of a task: one each for observations, goals and actions."""

    observation: AffineMap
    goal: AffineMap
    action: AffineMap

    @classmethod
    def identity(cls, observation: int, goal: int, action: int) -> Symmetry:
        """Return the symmetry that changes nothing. The arguments are the numbers of columns."""
        return cls(AffineMap.identity(observation), AffineMap.identity(goal), AffineMap.identity(action))

    @classmethod
    def parse(cls, text: str, spec: GoalSpec) -> Symmetry:
        """Return the symmetry that a text declares, as the module shows.

        Raises OptionError if it cannot be read, names a column that the task lacks or is not one-to-one.
        """
        symmetry = cls.identity(*_sizes(spec))
        named = set()
        for entry in text.split():
            found = _ENTRY.fullmatch(entry)
            if found is None:
                raise OptionError(
                    f"The symmetry {text!r} has the entry {entry!r}. Write column=column, both of one array (o, g or a), "
                    f"as in o0=-o1 or g1=1.5-g1."
                )
            letter, constant, minus, scale = found.group(1, 3, 4, 5)
            to, taken = int(found[2]), int(found[6])
            part: AffineMap = getattr(symmetry, ARRAY_NAMES[letter])
            if max(to, taken) >= len(part.source):
                columns = f"the {ARRAY_NAMES[letter]} has {len(part.source)} columns, from 0"
                raise OptionError(f"The symmetry {text!r} has {entry!r}, but {columns}.")
            if (letter, to) in named:
                raise OptionError(f"The symmetry {text!r} maps {letter}{to} twice. Name each column once on the left.")
            named.add((letter, to))
            part.source[to], part.factor[to] = taken, float(f"{minus}{scale or 1}")
            part.offset[to] = float(constant or 0.0)
        if not symmetry.is_one_to_one:
            raise OptionError(f"The symmetry {text!r} uses a column twice on the right. Use each column once.")
        if spec.action.n_values and ((symmetry.action.factor != 1).any() or symmetry.action.offset.any()):
            raise OptionError(
                f"The symmetry {text!r} changes a Discrete action as a number. Exchange choices, as in a0=a1 a1=a0."
            )
        return symmetry

    @property
    def parts(self) -> tuple[AffineMap, AffineMap, AffineMap]:
        """Return the maps of observations, goals and actions."""
        return self.observation, self.goal, self.action

    @property
    def is_one_to_one(self) -> bool:
        """Whether no column is used twice."""
        return all(len(np.unique(part.source)) == len(part.source) for part in self.parts)

    @property
    def largest_offset(self) -> float:
        """Return the size of the largest offset."""
        return max(float(np.abs(part.offset).max(initial=0.0)) for part in self.parts)

    def text(self) -> str:
        """Return the text that `parse` reads."""
        return " ".join(
            entry for letter, part in zip(ARRAY_NAMES, self.parts, strict=True) for entry in part.entries(letter)
        )

    def after(self, first: Symmetry) -> Symmetry:
        """Return the composition: `first`, then this symmetry."""
        return Symmetry(*(part.after(other) for part, other in zip(self.parts, first.parts, strict=True)))

    def is_same(self, other: Symmetry, largest_offset: float) -> bool:
        """Return whether two symmetries are equal, up to rounding. largest_offset: of those that they are products of."""
        return all(
            np.array_equal(mine.source, theirs.source)
            and np.abs(mine.factor - theirs.factor).max(initial=0.0) <= TEXT_TOLERANCE
            and np.abs(mine.offset - theirs.offset).max(initial=0.0) <= TEXT_TOLERANCE * largest_offset
            for mine, theirs in zip(self.parts, other.parts, strict=True)
        )


class SymmetryGroup:
    """The group that symmetries generate. Element 0 is the identity, the only element without generators.

    generators: texts, as the module describes them.
    elements: the symmetries of the group. maps: the same as arrays, one AffineMap of shape (G, n) for each of ARRAY_NAMES.
    has_choices: whether actions are Discrete.

    Raises OptionError if a text is wrong (see `Symmetry.parse`), if the group has more than LARGEST_ORDER elements, or if
    the arrays of the task are not flat floats, and actions not Discrete.
    """

    def __init__(self, generators: Sequence[str], spec: GoalSpec) -> None:
        if len(generators) > LARGEST_ORDER:
            raise OptionError(
                f"Expected at most {LARGEST_ORDER} symmetries, got {len(generators)}. Leave out those that follow."
            )
        if generators:
            _require_flat_floats(spec)
        identity = Symmetry.identity(*_sizes(spec))
        self.elements = generate_group([Symmetry.parse(text, spec) for text in generators], identity)
        self.maps = {
            name: AffineMap.stack([getattr(each, name) for each in self.elements]) for name in ARRAY_NAMES.values()
        }
        self.has_choices = bool(spec.action.n_values)
        self._first_choice = int(spec.action.low[0]) if self.has_choices else 0
        self._becomes = np.argsort(self.maps["action"].source) + self._first_choice  # each choice, (G, choices)

    def __len__(self) -> int:
        """Return the number of elements, the identity included."""
        return len(self.elements)

    def transformed(self, part: str, values: Array, element: int) -> Array:
        """Return `values` (N, n) transformed by an element, as a copy. part: "observation", "goal" or "action".

        Discrete actions are (N,).
        """
        if part == "action" and self.has_choices:
            return self.exchanged(values, element)
        affine: AffineMap = getattr(self.elements[element], part)
        return affine.apply(values).astype(values.dtype)

    def exchanged(self, action: Array, element: Array | int) -> Array:
        """Return Discrete actions (N,) transformed by an element, or by one for each of them, (N,)."""
        return np.asarray(self._becomes[element, action - self._first_choice], action.dtype)

    def augmented(self, episode: Episode) -> Iterator[Episode]:
        """Yield the episode as it is, then transformed by each other element."""
        yield episode
        for element in range(1, len(self)):
            arrays: dict[str, Any] = {
                name: self.transformed(part, getattr(episode, name), element) for name, part in _PART_OF_ARRAY.items()
            }
            yield replace(episode, **arrays)

    def differing_columns(self, subgoal: Subgoal) -> tuple[int, ...] | None:
        """Return columns of a subgoal that are not transformed as goals are; None if there are none."""
        observation, goal = self.maps["observation"], self.maps["goal"]
        dimensions = np.array(subgoal.dimensions or range(goal.source.shape[1]))
        source, factor, offset = (part[:, dimensions] for part in (goal.source, goal.factor, goal.offset))
        at = (source[..., None] == dimensions).argmax(-1)  # index into `dimensions`
        stays = np.array_equal(dimensions[at], source)
        for part in (subgoal.achieved, subgoal.goal):
            start, is_same = np.array(part.offset), stays
            transformed = start
            for columns, scale in part.terms:
                is_same = is_same and np.array_equal(observation.source[:, columns], columns[at])
                is_same = is_same and np.allclose(scale * observation.factor[:, columns], factor * scale[at])
                transformed = scale * observation.offset[:, columns] + transformed
            if not (is_same and np.allclose(transformed, factor * start[at] + offset)):
                return part.columns
        return None


def _sizes(spec: GoalSpec) -> tuple[int, int, int]:
    """Return the numbers of columns of observations and goals, and those of actions, or of choices if they are Discrete."""
    return spec.observation.size, spec.goal.size, spec.action.n_values or spec.action.size


def _require_flat_floats(spec: GoalSpec) -> None:
    for name in ARRAY_NAMES.values():
        array = getattr(spec, name)
        if name == "action" and array.n_values:
            continue
        if len(array.shape) != 1 or np.dtype(array.dtype).kind != "f":
            given = f"shape {array.shape} and dtype {array.dtype} for the {name}"
            raise OptionError(f"Symmetries need flat arrays of floats or Discrete actions, got {given}. Set symmetries=().")


def generate_group(generators: list[Symmetry], identity: Symmetry) -> tuple[Symmetry, ...]:
    """Return every product of the generators, the identity first."""
    found, largest_offset = [identity], max((each.largest_offset for each in generators), default=0.0)
    for known in found:  # the list grows during the loop
        for generator in generators:
            new = generator.after(known)
            if not any(new.is_same(old, largest_offset) for old in found):
                found.append(new)
            if len(found) > LARGEST_ORDER:
                raise OptionError(f"The symmetries generate more than {LARGEST_ORDER} maps. Check their signs and offsets.")
    return tuple(found)
