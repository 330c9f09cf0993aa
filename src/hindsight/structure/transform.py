"""A signed permutation with offset of the columns of an observation, a goal or an action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..records import Array


@dataclass(frozen=True, eq=False)
class Transform:
    """y = sign * x[source] + offset, of the columns of an observation, a goal or an action; `letter` says which."""

    letter: str
    source: Array
    sign: Array
    offset: Array

    @classmethod
    def identity(cls, letter: str, size: int) -> Transform:
        """Return the transform that changes nothing."""
        return cls(letter, np.arange(size), np.ones(size), np.zeros(size))

    def apply(self, values: Array) -> Array:
        """Transform places, (N, size)."""
        return np.asarray(values[:, self.source] * self.sign + self.offset)

    def apply_to_moves(self, values: Array) -> Array:
        """Transform differences of places, (N, size)."""
        return np.asarray(values[:, self.source] * self.sign)

    def text(self) -> list[str]:
        """Return what changes, for instance ["o6=-o7", "o7=o6"]."""
        entries = []
        for i, (source, sign, offset) in enumerate(zip(self.source, self.sign, self.offset, strict=True)):
            if source != i or sign != 1 or offset:
                term = f"{'-' if sign < 0 else '+' if offset else ''}{self.letter}{source}"
                entries.append(f"{self.letter}{i}={f'{offset:.6g}' if offset else ''}{term}")
        return entries
