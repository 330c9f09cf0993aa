"""Columns in other units, as text and as arrays: "0,1" are two columns, "2.5*o0+1,-o1" are scaled and shifted ones.

"8-o2" is column 8 minus column 2: a place less the gap to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..records import Array

NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?"
_TERM = re.compile(rf"([+-]?)(?:({NUMBER})\*)?o?(\d+)([+-]{NUMBER})?(?:([+-])(?:({NUMBER})\*)?o(\d+))?")


@dataclass(frozen=True)
class AffineColumns:
    """factor * column + offset, for each of some columns of an observation.

    added: for each of them another column, which is added, times weight, or itself with the weight 0; empty: none.
    """

    columns: tuple[int, ...]
    factor: tuple[float, ...]
    offset: tuple[float, ...]
    added: tuple[int, ...] = ()
    weight: tuple[float, ...] = ()

    @classmethod
    def plain(cls, columns: Sequence[int]) -> AffineColumns:
        """Return columns as they are."""
        return cls(tuple(columns), (1.0,) * len(columns), (0.0,) * len(columns))

    @classmethod
    def parse(cls, text: str) -> AffineColumns:
        """Return the columns that a text lists, as the module shows. Raises ValueError."""
        found = [_TERM.fullmatch(term) for term in text.split(",")]
        terms = [term.groups() for term in found if term]
        if len(terms) < len(found):
            raise ValueError(f"Cannot read the columns {text!r}.")
        factors = tuple(float(f"{term[0]}{term[1] or 1}") for term in terms)
        columns, offsets = tuple(int(term[2]) for term in terms), tuple(float(term[3] or 0) for term in terms)
        if not any(term[6] for term in terms):
            return cls(columns, factors, offsets)
        added = tuple(int(term[6] or term[2]) for term in terms)
        return cls(columns, factors, offsets, added, tuple(float(f"{t[4]}{t[5] or 1}") if t[6] else 0.0 for t in terms))

    def text(self) -> str:
        """Return the text that `parse` reads."""
        texts = []
        for column, factor, offset, added, weight in zip(self.columns, self.factor, self.offset, *self._added, strict=True):
            sign, other = "+" if weight > 0 else "", scaled_text("o", added, weight) if weight else ""
            texts.append(f"{affine_text('o', column, factor, offset)}{sign}{other}")
        return ",".join(texts)

    @property
    def terms(self) -> list[tuple[Array, Array]]:
        """The columns that are added up, and their factors."""
        terms = [(self.columns, self.factor), (self.added, self.weight)]
        return [(np.array(columns, np.int64), np.array(factor)) for columns, factor in terms if columns]

    @property
    def all_columns(self) -> set[int]:
        """The columns on which the values depend."""
        return {*self.columns, *(added for added, weight in zip(*self._added, strict=True) if weight)}

    @property
    def _added(self) -> tuple[Sequence[int], Sequence[float]]:
        return (self.added, self.weight) if self.added else ((0,) * len(self.columns), (0.0,) * len(self.columns))

    def after(self, inner: AffineColumns) -> AffineColumns:
        """Return the same of columns that are affine functions themselves. inner: of the same columns, in their order."""
        pairs = list(zip(self.factor, self.offset, inner.factor, inner.offset, strict=True))
        factor, offset = tuple(f * g for f, _, g, _ in pairs), tuple(f * b + c for f, c, _, b in pairs)
        weight = tuple(f * w for f, w in zip(self.factor, inner.weight, strict=True)) if inner.added else ()
        return AffineColumns(inner.columns, factor, offset, inner.added, weight)

    @cached_property
    def index(self) -> Array:
        """Return the columns as an array, which selects them faster."""
        return np.array(self.columns, np.int64)

    @cached_property
    def _added_index(self) -> Array:
        return np.array(self.added, np.int64)

    def of(self, observation: Any, xp: Any = np) -> Any:
        """Return the values, (..., k), of observations (..., n). xp: the namespace of the array functions."""
        values = observation[..., self.index]
        if self._is_plain:
            return values
        values = values * xp.asarray(self.factor, xp.float32) + xp.asarray(self.offset, xp.float32)
        return values + observation[..., self._added_index] * xp.asarray(self.weight, xp.float32) if self.added else values

    @cached_property
    def _is_plain(self) -> bool:
        return set(self.factor) <= {1.0} and not any(self.offset) and not self.added


@dataclass(frozen=True)
class Posture(AffineColumns):
    """Columns on which the effect of actions depends, as a heading, with cosine and sine of those that are angles.

    angles: columns. radians: in a unit of each of them. means: of their cosines, and then of their sines.
    """

    angles: tuple[int, ...] = ()
    radians: tuple[float, ...] = ()
    means: tuple[float, ...] = ()

    def of(self, observation: Any, xp: Any = np) -> Any:
        """Return the values, (..., k + 2 * angles), of observations (..., n). xp: the namespace of the array functions."""
        values = super().of(observation, xp)
        if not self.angles:
            return values
        angles = observation[..., list(self.angles)] * xp.asarray(self.radians)
        turned = xp.concatenate((xp.cos(angles), xp.sin(angles)), -1) - xp.asarray(self.means)
        return xp.concatenate((values, turned), -1)

    def after(self, inner: AffineColumns) -> Posture:
        """Return the same of columns that are affine functions themselves; angles stay. inner: as for `AffineColumns`."""
        columns = super().after(inner)
        return replace(self, **{each.name: getattr(columns, each.name) for each in fields(AffineColumns)})


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x becomes factor * x[source] + offset. All arrays are (n,), or (G, n) for G maps of n columns."""

    source: Array
    factor: Array
    offset: Array

    @classmethod
    def identity(cls, size: int) -> AffineMap:
        """Return the map of `size` columns that changes nothing."""
        return cls(np.arange(size), np.ones(size), np.zeros(size))

    @classmethod
    def stack(cls, maps: Sequence[AffineMap]) -> AffineMap:
        """Return several maps as one object, (G, n)."""
        return cls(*(np.stack([getattr(each, name) for each in maps]) for name in ("source", "factor", "offset")))

    def apply(self, values: Array) -> Array:
        """Return rows (N, n) transformed by a single map, in float64."""
        return np.asarray(self.factor * values[:, self.source] + self.offset)

    def apply_to_displacements(self, values: Array) -> Array:
        """Return differences of rows, (N, n), transformed by a single map."""
        return np.asarray(self.factor * values[:, self.source])

    def after(self, first: AffineMap) -> AffineMap:
        """Return the composition: `first`, then this map. Both are single maps."""
        factor, offset = self.factor * first.factor[self.source], self.factor * first.offset[self.source] + self.offset
        return AffineMap(first.source[self.source], factor, offset)

    def from_units(self, factor: Array, offset: Array) -> AffineMap:
        """Return the map of columns x that does the same as this map does with factor * x + offset."""
        changed = (self.factor * offset[self.source] + self.offset - offset) / factor
        return AffineMap(self.source, self.factor * factor[self.source] / factor, changed)

    def entries(self, letter: str) -> list[str]:
        """Return what changes as text, for instance ["o6=-o7", "o7=1.5-o6"]."""
        columns = enumerate(zip(self.source.tolist(), self.factor.tolist(), self.offset.tolist(), strict=True))
        return [
            f"{letter}{i}={f'{offset:.12g}' if offset else ''}{'+' if offset and factor > 0 else ''}"
            f"{scaled_text(letter, source, factor)}"
            for i, (source, factor, offset) in columns
            if (source, factor, offset) != (i, 1.0, 0.0)
        ]


def affine_text(letter: str, column: int, factor: float, offset: float) -> str:
    """Return factor * column + offset as text: "3" for column o3 as it is, otherwise such as "-2.5*o3+1"."""
    if factor == 1 and not offset:
        return str(column)
    return f"{scaled_text(letter, column, factor)}{f'{offset:+.12g}' if offset else ''}"


def scaled_text(letter: str, column: int, factor: float) -> str:
    """Return factor * column as text, such as "-2.5*o3"."""
    scale = "" if abs(factor) == 1 else f"{abs(factor):.12g}*"
    return f"{'-' if factor < 0 else ''}{scale}{letter}{column}"
