"""Categories: columns of observations and goals whose whole numbers stand for something, as a peg, a tile or a cell.

They are declared as texts. "o0-3=0..5" says that columns 0 to 3 of the observation have the values 0, 1, ..., 5, and
"g1=-1..1" that dimension 1 of achieved and desired goals has three. The networks see such a column one-hot besides its
number, and whether a column of the observation equals a dimension of the goal where both have the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from ..errors import OptionError
from ..records import Array, ArraySpec, GoalSpec

LARGEST_DISCRETE = 4096  # values of all columns of an observation or a goal: each one is an input
MOST_FOUND = 1_000  # values of an array whose columns nobody declared: with more, as a map of bytes, numbers are left
LARGEST_CATEGORY = 10**9  # texts have at most nine digits
CATEGORY_TEXT = re.compile(r"([og])(\d{1,9})(?:-(\d{1,9}))?=(-?\d{1,9})\.\.(-?\d{1,9})")
CATEGORY_PARTS = {"o": "observation", "g": "goal"}


@dataclass(frozen=True)
class Column:
    """A column with the values low, low + 1, ..., high."""

    index: int
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise OptionError(f"categories needs at least two values, got {self.low}..{self.high}.")

    @property
    def n_values(self) -> int:
        """Return the number of values."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class Categories:
    """The columns with categories of observations and of goals, ascending."""

    observation: tuple[Column, ...] = ()
    goal: tuple[Column, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str], observation: ArraySpec, goal: ArraySpec) -> Categories:
        """Return what texts declare, as the module shows.

        Raises OptionError for a text that cannot be read, a column that does not exist or is named twice, too many values.
        """
        found: dict[str, dict[int, Column]] = {"o": {}, "g": {}}
        sizes = {"o": observation.size, "g": goal.size}
        for text in texts:
            match = CATEGORY_TEXT.fullmatch(text)
            if match is None:
                raise OptionError(
                    f"categories has {text!r}. Expected columns and their values, as in o0-3=0..5 or g1=-1..1."
                )
            part, first, low, high = match[1], int(match[2]), int(match[4]), int(match[5])
            last = int(match[3] or first)
            if last >= sizes[part]:
                raise OptionError(f"categories has {text!r}, but {CATEGORY_PARTS[part]} has {sizes[part]} columns, from 0.")
            for index in range(first, last + 1):
                if index in found[part]:
                    raise OptionError(f"categories names {part}{index} twice. Name each column once.")
                found[part][index] = Column(index, low, high)
        for part, columns in found.items():
            if sum(column.n_values for column in columns.values()) > LARGEST_DISCRETE:
                raise OptionError(
                    f"categories of the {CATEGORY_PARTS[part]} must have at most {LARGEST_DISCRETE} values in all."
                )
        return cls(*(tuple(columns[index] for index in sorted(columns)) for columns in found.values()))

    @classmethod
    def of_spaces(cls, spec: GoalSpec) -> Categories:
        """Return the columns whose spaces are MultiDiscrete, or a Box of whole numbers of small range.

        Discrete values are one-hot without this, and bits are seen as bits.
        """
        return cls(_of_space(spec.observation), _of_space(spec.goal))

    @classmethod
    def of_steps(cls, spec: GoalSpec, observations: Array, goals: Array) -> Categories:
        """Return also the columns that spaces leave open, if they and all goals are whole numbers in all steps.

        observations, goals: (N, ...) and (M, ...), those of the steps.
        """
        found, goals = cls.of_spaces(spec), goals.reshape(len(goals), -1)
        if (goals != np.round(goals)).any():  # the goals of a robot are no whole numbers
            return found
        # but its only start and its only goal may be, as long as nothing moves
        by_accident = 2 if np.dtype(spec.goal.dtype).kind == "f" else 1
        if len(np.unique(goals, axis=0)) <= by_accident:
            return found
        observations = observations.reshape(len(observations), -1)
        return cls(
            _seen(spec.observation, observations) if _is_vague(spec.observation) else found.observation,
            _seen(spec.goal, goals) if _is_vague(spec.goal) else found.goal,
        )

    def without(self, observation: Sequence[int], goal: Sequence[int]) -> Categories:
        """Return the others than these columns of the observation and dimensions of the goal."""
        return Categories(
            tuple(column for column in self.observation if column.index not in observation),
            tuple(column for column in self.goal if column.index not in goal),
        )

    def texts(self) -> tuple[str, ...]:
        """Return the texts that `parse` reads."""
        return tuple(_texts("o", self.observation)) + tuple(_texts("g", self.goal))

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the columns of the observation and the dimensions of the goal that have the same values.

        None if they were more than the one-hot inputs: a map of many cells.
        """
        same = tuple(
            (seen.index, goal.index)
            for goal in self.goal
            for seen in self.observation
            if (seen.low, seen.high) == (goal.low, goal.high)
        )
        return same if len(same) <= sum(column.n_values for column in self.observation + self.goal) else ()


def one_hot_inputs(columns: Iterable[Column]) -> tuple[tuple[int, ...], Array]:
    """Return for each one-hot input its column, and its value."""
    inputs = [(column.index, value) for column in columns for value in range(column.low, column.high + 1)]
    return tuple(index for index, _ in inputs), np.array([value for _, value in inputs], np.float32)


def is_choice(array: ArraySpec) -> bool:
    """Return whether an array is an index or bits: the networks see their values as such, without categories."""
    return array.n_values is not None or _is_bits(array)


def _is_bits(array: ArraySpec) -> bool:
    low, high = array.bounds()
    return not _is_open(array) and float((high - low).max(initial=0)) == 1


def _is_open(array: ArraySpec) -> bool:
    """Return whether the space does not say if the columns hold whole numbers of small range."""
    return np.dtype(array.dtype).kind == "f" or not array.is_bounded


def _is_vague(array: ArraySpec) -> bool:
    """Return whether the steps must show the range of the columns: the space leaves it open, or is far too wide."""
    low, high = array.bounds()
    is_wide = len(array.shape) == 1 and not is_choice(array) and float((high - low + 1).sum()) > MOST_FOUND
    return _is_open(array) or is_wide


def _of_space(array: ArraySpec) -> tuple[Column, ...]:
    low, high = (bound.ravel() for bound in array.bounds())
    return () if _is_open(array) or is_choice(array) else _columns(low, high)


def _seen(array: ArraySpec, values: Array) -> tuple[Column, ...]:
    """Return the columns of values (N, n) that vary among whole numbers. Their bounds count if these are whole too."""
    is_whole = (values == np.round(values)).all(0) & (np.abs(values) < LARGEST_CATEGORY).all(0)
    low, high = values.min(0), values.max(0)
    lower, upper = (bound.ravel() for bound in array.bounds())
    is_known = np.isfinite(lower) & np.isfinite(upper) & (lower == np.round(lower)) & (upper == np.round(upper))
    is_known &= (upper - lower + 1)[is_known].sum() <= MOST_FOUND
    varies = np.flatnonzero(is_whole & (high > low))
    low, high = np.where(is_known, lower, low), np.where(is_known, upper, high)
    narrow = varies[np.argsort((high - low)[varies], kind="stable")]  # a count of the steps is left out first
    kept = np.sort(narrow[np.cumsum((high - low + 1)[narrow]) <= MOST_FOUND])
    return _columns(low[kept], high[kept], kept)


def _columns(low: Array, high: Array, indices: Array | None = None) -> tuple[Column, ...]:
    """Return columns with these ranges, none if they have more than MOST_FOUND values in all."""
    if (high - low + 1).sum() > MOST_FOUND:
        return ()
    indices = np.arange(len(low)) if indices is None else indices
    return tuple(Column(int(k), int(a), int(b)) for k, a, b in zip(indices, low, high, strict=True) if b > a)


def _texts(letter: str, columns: Sequence[Column]) -> Iterator[str]:
    """Yield a text for each run of neighbouring columns with the same values."""
    for (_, low, high), run in groupby(
        enumerate(columns), lambda each: (each[1].index - each[0], each[1].low, each[1].high)
    ):
        indices = [column.index for _, column in run]
        span = f"{indices[0]}-{indices[-1]}" if len(indices) > 1 else f"{indices[0]}"
        yield f"{letter}{span}={low}..{high}"
