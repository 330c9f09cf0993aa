"""Which columns of a network's input hold what: the one place that says so, for learning and for acting. NumPy only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import GoalEnvError, OptionError
from ..options import GoalFeatures
from ..records import ArraySpec
from .images import Encoding

Array = npt.NDArray[Any]
Coding = Literal["numbers", "bits", "one_hot", "image", "difference", "agreement"]
Source = Literal["observation", "goal"]
_Kind = tuple[Coding, Source, int, tuple[int, ...] | None]  # of a part: coding, source, the source's columns, those kept

MOST_VALUES = 4096  # of a Discrete space: each takes a column
FIXED_MEAN_AND_SCALE: dict[Coding, tuple[float, float]] = {  # what is no plain number is not normalised by statistics
    "bits": (0.5, 2.0),  # 0 and 1 become -1 and 1
    "one_hot": (0.0, 1.0),
    "image": (0.0, 1.0 / 255.0),
    "agreement": (0.0, 1.0),
}


@dataclass(frozen=True)
class Part:
    """Neighbouring columns of a network's input.

    source: the array whose kind of numbers they hold. kept: which of its columns are seen; None for all.
    """

    coding: Coding
    source: Source
    columns: slice
    kept: tuple[int, ...] | None = None


def coding_of(array: ArraySpec) -> Coding:
    """How networks see an array: Discrete values one-hot, MultiBinary and 0-1 integers as bits, all else as numbers.

    But for images: uint8 boxes of three axes and values from 0 to 255.
    """
    if array.n_values is not None:
        return "one_hot"
    bounds = set(array.low), set(array.high)
    if array.dtype == "uint8" and len(array.shape) == 3 and bounds == ({0.0}, {255.0}):
        return "image"
    return "bits" if np.dtype(array.dtype).kind in "bui" and bounds == ({0.0}, {1.0}) else "numbers"


@dataclass(frozen=True)
class Layout:
    """The input of a network: observation, goal, the achieved goal where it is seen, the goal features, the subgoal.

    Raises GoalEnvError for a Discrete space of more values than one-hot inputs are sensible for, and OptionError for goal
    features that the goals cannot have and columns that are not there.

    goal_features "relative" adds goal - achieved_goal: in deviations of the goal, zero at the goal. "agreement" adds the
    product of both where the lower bound of each number is coded as -1 and the upper as 1: for goals of two values 1 where
    they agree and -1 where they differ; for Discrete goals that of their binary digits.
    hidden_observation, hidden_goal: columns that say where in the world things are, left out where goals are
    "relative": what is learnt in one place is then known in all. n_subgoals: each has a column that says it is its turn.
    column_differences: "6-0" adds column 6 of the observation less column 0, in deviations of column 6: where things are
    from each other, in a world that tells only where each is.
    """

    observation: ArraySpec
    goal: ArraySpec
    observe_achieved_goal: bool = False
    goal_features: GoalFeatures = "none"
    hidden_observation: tuple[int, ...] = ()
    hidden_goal: tuple[int, ...] = ()
    n_subgoals: int = 0
    column_differences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, array in (("observation", self.observation), ("goal", self.goal)):
            if array.n_values is not None and array.n_values > MOST_VALUES:
                raise GoalEnvError(
                    f"the {name} is Discrete({array.n_values}), but networks take at most {MOST_VALUES} values one-hot: "
                    f"wrap the environment so that it gives a Box or MultiBinary array, such as the number's binary digits"
                )
        augmented = {_sides(array) for array in (self.observation, self.goal) if coding_of(array) == "image"}
        if len(augmented) > 1:
            both = " and ".join(f"{height} x {width}" for height, width in sorted(augmented))
            raise GoalEnvError(
                f"observation and goal are images of different sizes, {both}: "
                f"wrap the environment so that they have one size, for they are compared pixel by pixel"
            )
        if self.goal_features == "relative" and self.goal.n_values is not None:
            raise OptionError("goal_features is 'relative', but Discrete goals have no distance: use 'agreement' or 'none'")
        if self.goal_features == "agreement" and not self.goal.is_bounded:
            raise OptionError(
                "goal_features is 'agreement', but the goals have no bounds to code as -1 and 1: use 'relative'"
            )
        for name, array in (("observation", self.observation), ("goal", self.goal)):
            absolute = getattr(self, f"hidden_{name}")
            if absolute and (coding_of(array) != "numbers" or max(absolute) >= array.size or min(absolute) < 0):
                raise OptionError(
                    f"hidden_{name} is {absolute}, but these must be columns of numbers, and the {name} is "
                    f"{array.shape} of {array.dtype}: name those below {array.size}, or none"
                )
        _ = self.differences  # which says what is wrong with them

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What lies where, from the first column to the last."""
        observation, goal = coding_of(self.observation), coding_of(self.goal)
        kinds: list[_Kind] = [(observation, "observation", _n_columns(self.observation), self.kept["observation"])]
        kinds += [(goal, "goal", _n_columns(self.goal), self.kept["goal"])] * (2 if self.observe_achieved_goal else 1)
        if self.goal_features == "relative":
            kinds.append(("difference", "goal", self.goal.size, None))
        if self.goal_features == "agreement":
            kinds.append(("agreement", "goal", len(self._digits) or self.goal.size, None))
        kinds.append(("difference", "observation", 0, self.differences[0]))
        kinds.append(("one_hot", "observation", self.n_subgoals, None))
        sizes = [n if kept is None else len(kept) for _, _, n, kept in kinds]
        columns = [slice(stop - size, stop) for size, stop in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
        parts = [Part(k, s, where, kept) for (k, s, _, kept), where in zip(kinds, columns, strict=True)]
        return tuple(part for part, size in zip(parts, sizes, strict=True) if size)

    @cached_property
    def differences(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of `column_differences`: the columns, and those that are taken off them."""
        found = [re.fullmatch(r"(\d+)-(\d+)", text) for text in self.column_differences]
        pairs = [(int(each[1]), int(each[2])) for each in found if each]
        is_good = len(pairs) == len(found) and all(max(pair) < self.observation.size for pair in pairs)
        if found and not (is_good and coding_of(self.observation) == "numbers"):
            raise OptionError(
                f"column_differences is {self.column_differences}, but each must name two columns of numbers, as in 6-0, "
                f"and the observation is {self.observation.shape} of {self.observation.dtype}: name those below "
                f"{self.observation.size}, or none"
            )
        return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)

    @cached_property
    def kept(self) -> dict[str, tuple[int, ...] | None]:
        """Which columns of observation and goals are seen; None for all."""
        absolute = {"observation": self.hidden_observation, "goal": self.hidden_goal}
        sizes = {"observation": self.observation.size, "goal": self.goal.size}
        is_relative = self.goal_features == "relative"
        return {
            name: tuple(i for i in range(sizes[name]) if i not in columns) if columns and is_relative else None
            for name, columns in absolute.items()
        }

    def encoding(self, channels: tuple[int, ...], n_others: int = 0) -> Encoding | None:
        """How the images of an input become numbers, None where it has none; `n_others` columns come after the layout's."""
        images = [
            _channels_first(np.arange(part.columns.start, part.columns.stop).reshape(array.shape))
            for part in self.parts
            if coding_of(array := getattr(self, part.source)) == "image"
        ]
        if not images:
            return None
        pixels = np.concatenate(images)
        return Encoding(pixels, np.setdiff1d(np.arange(self.size + n_others), pixels), channels)

    @cached_property
    def size(self) -> int:
        """How many numbers a network sees."""
        return int(self.parts[-1].columns.stop)

    def assemble(
        self,
        leading: tuple[int, ...],
        observation: Array,
        achieved_goal: Array,
        goal: Array,
        *others: Array,
        subgoal: Array | int = 0,
    ) -> Array:
        """The input, (*leading, size) float32, from arrays (*leading, *shape) of any dtype; `others`, flat, come after.

        subgoal: (*leading,), or one for all.
        """
        seen, achieved, asked = (
            np.asarray(values).reshape((*leading, size))
            for values, size in zip((observation, achieved_goal, goal), self._sizes, strict=True)
        )
        columns = [_coded(self.observation, seen, self.kept["observation"]), _coded(self.goal, asked, self.kept["goal"])]
        if self.observe_achieved_goal:
            columns.append(_coded(self.goal, achieved, self.kept["goal"]))
        if self.goal_features == "relative":
            columns.append(self._difference(achieved, asked))
        if self.goal_features == "agreement":
            columns.append(self._agreement(achieved, asked))
        if self.column_differences:
            columns.append(self._column_difference(seen))
        if self.n_subgoals:
            is_turn = np.asarray(subgoal)[..., None] == np.arange(1, self.n_subgoals + 1)
            columns.append(np.broadcast_to(is_turn, (*leading, self.n_subgoals)))
        return np.concatenate((*columns, *others), -1, dtype=np.float32, casting="unsafe")

    def _difference(self, achieved_goal: Array, goal: Array) -> Array:
        """Of the values as the store keeps them, so that learning and acting see the same bits."""
        return np.subtract(goal, achieved_goal, dtype=np.float32, casting="same_kind")

    def _column_difference(self, observation: Array) -> Array:
        """In single precision from the start, as the store keeps the columns."""
        first, second = (np.take(observation, at, -1).astype(np.float32) for at in self.differences)
        return first - second

    def _agreement(self, achieved_goal: Array, goal: Array) -> Array:
        if self.goal.n_values is not None:
            return np.asarray(1 - 2 * (((achieved_goal - self._start) ^ (goal - self._start)) >> self._digits & 1))
        middle, slope = self._unit_coding
        achieved_goal, goal = (values.astype(np.float32) * slope - middle for values in (achieved_goal, goal))
        return achieved_goal * goal

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        return self.observation.size, self.goal.size, self.goal.size

    @cached_property
    def _digits(self) -> Array:
        """The places of the binary digits that tell a Discrete goal's values apart."""
        return np.arange((self.goal.n_values - 1).bit_length() if self.goal.n_values else 0)

    @cached_property
    def _start(self) -> int:
        return int(self.goal.low[0])

    @cached_property
    def _unit_coding(self) -> tuple[Array, Array]:
        """What bounds are coded as -1 and 1 by: x * slope - middle."""
        low, high = (bound.ravel() for bound in self.goal.bounds())
        width = np.where(high > low, high - low, 1.0)
        return ((high + low) / width).astype(np.float32), (2.0 / width).astype(np.float32)


def _channels_first(image: Array) -> Array:
    """The shorter of the first and the last axis is the one of channels."""
    return np.moveaxis(image, -1, 0) if image.shape[-1] <= image.shape[0] else image


def _sides(array: ArraySpec) -> tuple[int, int]:
    """Height and width of an image."""
    height, width = array.shape[:2] if array.shape[-1] <= array.shape[0] else array.shape[1:]
    return height, width


def _n_columns(array: ArraySpec) -> int:
    return array.n_values or array.size


def _coded(array: ArraySpec, values: Array, kept: tuple[int, ...] | None) -> Array:
    if kept is not None:
        return np.take(values, kept, -1)
    return values if array.n_values is None else values == np.arange(array.low[0], array.low[0] + array.n_values)
