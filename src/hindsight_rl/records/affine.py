"""Columns of an observation in other units: "0,1" are two columns as they are, "2.5*o0+1,-o1" are scaled and moved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import Array

NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?"
_TERM = re.compile(rf"([+-]?)(?:({NUMBER})\*)?o?(\d+)([+-]{NUMBER})?")


@dataclass(frozen=True)
class AffineColumns:
    """factor * column + offset, for each of some columns."""

    columns: tuple[int, ...]
    factor: tuple[float, ...]
    offset: tuple[float, ...]

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
        factors = [float(f"{sign}{factor or 1}") for sign, factor, _, _ in terms]
        return cls(
            tuple(int(column) for _, _, column, _ in terms), tuple(factors), tuple(float(term[3] or 0) for term in terms)
        )

    def text(self) -> str:
        """Return the text that `parse` reads."""
        terms = zip(self.columns, self.factor, self.offset, strict=True)
        return ",".join(affine_text("o", column, factor, offset) for column, factor, offset in terms)

    @cached_property
    def index(self) -> Array:
        """Return the columns as an array, which selects them faster."""
        return np.array(self.columns, np.int64)

    def of(self, observation: Any, xp: Any = np) -> Any:
        """Return the values, (..., k), of observations (..., n). xp: the namespace of the array functions."""
        values = observation[..., self.index]
        if self._is_plain:
            return values
        return values * xp.asarray(self.factor, xp.float32) + xp.asarray(self.offset, xp.float32)

    @cached_property
    def _is_plain(self) -> bool:
        return set(self.factor) <= {1.0} and not any(self.offset)


def affine_text(letter: str, column: int, factor: float, offset: float) -> str:
    """Return factor * column + offset as text: "3" for column o3 as it is, otherwise such as "-2.5*o3+1"."""
    if factor == 1 and not offset:
        return str(column)
    return f"{scaled_text(letter, column, factor)}{f'{offset:+.12g}' if offset else ''}"


def scaled_text(letter: str, column: int, factor: float) -> str:
    """Return factor * column as text, such as "-2.5*o3"."""
    scale = "" if abs(factor) == 1 else f"{abs(factor):.12g}*"
    return f"{'-' if factor < 0 else ''}{scale}{letter}{column}"
