"""A scaled permutation with offset of the columns of an observation, a goal or an action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..records import Array
from ..records.affine import scaled_text
from .units import Units


@dataclass(frozen=True, eq=False)
class Transform:
    """y = factor * x[source] + offset, of the columns of an observation, a goal or an action; `letter` says which."""

    letter: str
    source: Array
    factor: Array
    offset: Array

    @classmethod
    def identity(cls, letter: str, size: int) -> Transform:
        """Return the transform that changes nothing."""
        return cls(letter, np.arange(size), np.ones(size), np.zeros(size))

    def apply(self, values: Array) -> Array:
        """Transform places, (N, size)."""
        return np.asarray(values[:, self.source] * self.factor + self.offset)

    def apply_to_moves(self, values: Array) -> Array:
        """Transform differences of places, (N, size)."""
        return np.asarray(values[:, self.source] * self.factor)

    def from_units(self, units: Units) -> Transform:
        """Return the transform of columns as the observation holds them, of one of columns in the units of the goal."""
        factor = self.factor * units.factor[self.source] / units.factor
        offset = (self.factor * units.offset[self.source] + self.offset - units.offset) / units.factor
        return Transform(self.letter, self.source, factor, offset)

    def text(self) -> list[str]:
        """Return what changes, for instance ["o6=-o7", "o7=o6"]."""
        entries = []
        for i, (source, factor, offset) in enumerate(zip(self.source, self.factor, self.offset, strict=True)):
            if source != i or factor != 1 or offset:
                entries.append(f"{self.letter}{i}={_term(self.letter, source, factor, offset)}")
        return entries


def _term(letter: str, source: int, factor: float, offset: float) -> str:
    """Return offset + factor * source as `records.symmetries` reads it."""
    start = f"{offset:.12g}{'+' if factor > 0 else ''}" if offset else ""
    return f"{start}{scaled_text(letter, source, factor)}"
