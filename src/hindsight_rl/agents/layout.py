"""The columns of a network's input. Learning, acting and the export assemble inputs here.

NumPy only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..errors import GoalEnvError, InputError, MissingKeyError, NonFiniteError, OptionError, ShapeError
from ..options.agent import InputOptions
from ..records import OBSERVATION_KEYS, Array, ArraySpec, GoalSpec
from ..task_structure.affine import AffineColumns
from ..task_structure.categories import LARGEST_DISCRETE, Categories, one_hot_inputs
from ..task_structure.rotations import QUATERNION, rotation_between
from .forward import ImageEncoding

Feature = Literal["number", "bit", "one_hot", "image", "difference", "agreement"]
Source = Literal["observation", "goal"]
ColumnTuple = tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """Neighbouring columns of a network's input.

    source: the array that the columns come from.
    size: number of columns.
    """

    feature: Feature
    source: Source
    size: int


def feature_of(array: ArraySpec) -> Feature:
    """Return how networks see an array.

    Discrete values are one-hot, MultiBinary values and integers from 0 to 1 are bits, uint8 boxes of three axes from 0 to
    255 are images, everything else is numbers.
    """
    if array.n_values is not None:
        return "one_hot"
    bounds = set(array.low), set(array.high)
    if array.dtype == "uint8" and len(array.shape) == 3 and bounds == ({0.0}, {255.0}):
        return "image"
    return "bit" if np.dtype(array.dtype).kind in "bui" and bounds == ({0.0}, {1.0}) else "number"


@dataclass(frozen=True)
class Layout:
    """The input of a network: observation, goal, achieved goal, goal features, column differences, subgoal.

    options: which columns there are. "relative" goals are differences from the achieved goal, in standard deviations of the
        goal. "agreement" is, for goals of two values, 1 where both agree and -1 where they differ; for Discrete goals, that
        of their binary digits. Hidden columns are left out, those of the goal (absolute positions) only if goals are
        "relative". A column difference "6-0" is column 6 minus column 0 of the observation, in standard deviations of
        column 6. "6+0.5-2*o0" is that of columns in different units. Rotations are in relative goals the rotation from the
        achieved to the desired one, in the place of their difference.
        Where the desired goal is unused, the achieved one takes its place: a relabelled goal would differ there. Subgoals
        use all dimensions.
    n_subgoals: each subgoal adds a column that is 1 while it is the goal.

    Raises GoalEnvError for Discrete spaces of more than LARGEST_DISCRETE values and images of different sizes. Raises
    OptionError for goal features that the goals cannot have and for columns that do not exist.
    """

    observation: ArraySpec
    goal: ArraySpec
    options: InputOptions
    n_subgoals: int = 0

    def __post_init__(self) -> None:
        _check_number_of_values("observation", self.observation)
        _check_number_of_values("goal", self.goal)
        _check_columns("hidden_observation", self.observation, self.options.hidden_observation)
        _check_columns("hidden_goal", self.goal, self.options.hidden_goal)
        _check_columns("unused_goal", self.goal, self.options.unused_goal)
        _check_image_sizes(self.observation, self.goal)
        if self.options.goal_features == "relative" and self.goal.n_values is not None:
            raise OptionError("Discrete goals have no difference: goal_features is 'relative'. Use 'agreement' or 'none'.")
        if self.options.goal_features == "agreement" and not self.goal.is_bounded:
            raise OptionError("goal_features is 'agreement', but the goals have no bounds. Use 'relative'.")
        _ = self.differences, self.categories, self.rotations  # raise if they are wrong

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of the input in their order; empty ones are left out. This allocates nothing of their size."""
        options, goal = self.options, self._visible_block("goal")
        agreement = (len(self._digit_values) or self.goal.size) if options.goal_features == "agreement" else 0
        n_categories = sum(len(columns) for columns, _ in self._one_hot) + len(self.categories.pairs)
        blocks = (
            self._visible_block("observation"),
            goal,
            *([goal] if options.observe_achieved_goal else []),
            Block("difference", "goal", self.goal.size if options.goal_features == "relative" else 0),
            Block("agreement", "goal", agreement),
            Block("difference", "observation", len(self.differences.columns)),
            Block("one_hot", "observation", n_categories + self.n_subgoals),
        )
        return tuple(block for block in blocks if block.size)

    def _visible_block(self, source: Source) -> Block:
        array: ArraySpec = getattr(self, source)
        return Block(feature_of(array), source, array.n_values or array.size - len(set(self._hidden[source])))

    @cached_property
    def differences(self) -> AffineColumns:
        """Return the `column_differences`: first columns less second ones, these in the units of the first ones."""
        texts, size = self.options.column_differences, self.observation.size
        if not texts:
            return AffineColumns.plain(())
        try:
            found = AffineColumns.parse(",".join(re.sub(r"^(\d+)-(\d+)$", r"\1-o\2", text) for text in texts))
            is_valid = all(found.weight) and len(found.added) == len(texts) and max(found.all_columns) < size
        except ValueError:
            is_valid = False
        if not (is_valid and feature_of(self.observation) == "number"):
            raise OptionError(
                f"column_differences is {texts}. Expected pairs such as 6-0 of numeric columns of the observation, below "
                f"{size}, or 6+0.5-2*o0 where column 0 has other units."
            )
        return found

    @cached_property
    def rotations(self) -> tuple[ColumnTuple, ...]:
        """Return the goal columns of each rotation."""
        texts, size = self.options.rotations, self.goal.size
        found = [tuple(map(int, text.split(","))) for text in texts if re.fullmatch(r"\d{1,9}(,\d{1,9})*", text)]
        columns = [column for each in found for column in each]
        is_valid = len(found) == len(texts) and all(len(each) == QUATERNION for each in found)
        if texts and not (is_valid and len(set(columns)) == len(columns) and max(columns) < size):
            raise OptionError(
                f"rotations is {texts}. Expected the columns of quaternions w, x, y, z, as in 3,4,5,6: each once, and "
                f"below {size}, the size of the goal."
            )
        if texts and self.options.goal_features != "relative":
            raise OptionError("rotations are parts of relative goals. Set goal_features='relative', or rotations=().")
        return tuple(found)

    @cached_property
    def categories(self) -> Categories:
        """Return the columns with categories that the networks see."""
        declared = Categories.parse(self.options.categories, self.observation, self.goal)
        return declared.without(self._hidden["observation"], self._hidden["goal"])

    @cached_property
    def _one_hot(self) -> tuple[tuple[ColumnTuple, Array], tuple[ColumnTuple, Array]]:
        """Return the column and the value of each input that is 1 where observation, or goal, has this value there."""
        return one_hot_inputs(self.categories.observation), one_hot_inputs(self.categories.goal)

    @cached_property
    def visible(self) -> dict[Source, Array | None]:
        """Return the columns of observation and goal that the networks see, None for all."""
        return {
            source: np.setdiff1d(np.arange(getattr(self, source).size), columns) if columns else None
            for source, columns in self._hidden.items()
        }

    def columns_in(self, other: Layout) -> Array:
        """Return where each column is in a layout that hides fewer columns of the observation, (size,)."""
        visible, more = (
            np.setdiff1d(np.arange(each.observation.size), each._hidden["observation"]) for each in (self, other)
        )
        return np.append(np.flatnonzero(np.isin(more, visible)), np.arange(len(more), other.size))

    @property
    def _hidden(self) -> dict[Source, ColumnTuple]:
        hidden_goal = self.options.hidden_goal if self.options.goal_features == "relative" else ()
        return {"observation": self.options.hidden_observation, "goal": hidden_goal}

    def encoding(self, channels: tuple[int, ...], n_others: int = 0) -> ImageEncoding | None:
        """Return the shapes of the convolutions, None if the input has no images.

        channels: output channels of each convolution.
        n_others: number of input columns after those of the layout.
        """
        images, start = [], 0
        for block in self.blocks:
            array: ArraySpec = getattr(self, block.source)
            if feature_of(array) == "image" and block.feature != "one_hot":
                image = np.arange(start, start + block.size).reshape(array.shape)
                images.append(np.moveaxis(image, -1, 0) if _is_channels_last(array) else image)
            start += block.size
        if not images:
            return None
        pixels = np.concatenate(images)
        return ImageEncoding(pixels, np.setdiff1d(np.arange(self.size + n_others), pixels), channels)

    @cached_property
    def size(self) -> int:
        """Return the number of columns."""
        return sum(block.size for block in self.blocks)

    def assemble(
        self,
        leading: ColumnTuple,
        observation: Any,
        achieved_goal: Any,
        goal: Any,
        *others: Any,
        subgoal: Any = 0,
        xp: Any = np,
    ) -> Any:
        """Return the input, (*leading, size) float32, with `others` after it.

        observation, achieved_goal, goal: (*leading, *shape), any dtype.
        others: (*leading, n), further columns.
        subgoal: (*leading,), or one number for all rows.
        xp: the namespace of the array functions, `numpy` by default.
        """
        observation = xp.asarray(observation).reshape((*leading, self.observation.size))
        achieved, desired = (xp.asarray(goals).reshape((*leading, self.goal.size)) for goals in (achieved_goal, goal))
        if self.options.unused_goal:
            is_goal = _is_goal(xp.asarray(subgoal), self.n_subgoals)[..., None]  # a subgoal uses all dimensions
            desired = xp.where(is_goal & xp.asarray(self._unused), achieved, desired)
        columns = [self._see("observation", observation, xp), self._see("goal", desired, xp)]
        if self.options.observe_achieved_goal:
            columns.append(self._see("goal", achieved, xp))
        if self.options.goal_features == "relative":
            # float32 first, as the buffer stores goals: learning and acting see the same
            columns.append(self._relative(xp.asarray(achieved, xp.float32), xp.asarray(desired, xp.float32), xp))
        if self.options.goal_features == "agreement":
            columns.append(self._agreement(achieved, desired, xp))
        if self.options.column_differences:
            columns.append(self.differences.of(xp.asarray(observation, xp.float32), xp))
        if self.options.categories:
            columns += self._category_inputs(observation, desired, xp)
        if self.n_subgoals:
            columns.append(self._is_subgoal(leading, subgoal, xp))
        return xp.concatenate((*columns, *others), -1, dtype=xp.float32, casting="unsafe")

    @cached_property
    def _unused(self) -> Array:
        """Return whether each dimension of the goal is unused, (g,) bool."""
        return np.isin(np.arange(self.goal.size), self.options.unused_goal)

    def _relative(self, achieved: Any, desired: Any, xp: Any) -> Any:
        """Return the difference of goals, with the rotation between them where they hold one."""
        difference = desired - achieved
        if not self.rotations:
            return difference
        parts = [difference[..., k : k + 1] for k in range(self.goal.size)]
        for columns in self.rotations:
            one, other = ([goals[..., k : k + 1] for k in columns] for goals in (achieved, desired))
            for k, part in zip(columns, rotation_between(one, other, xp), strict=True):
                parts[k] = part
        return xp.concatenate(tuple(parts), -1, dtype=xp.float32, casting="unsafe")

    def _see(self, source: Source, values: Any, xp: Any) -> Any:
        """Return the visible columns; Discrete values one-hot."""
        visible = self.visible[source]
        if visible is not None:
            return values[..., visible]
        array: ArraySpec = getattr(self, source)
        return values if array.n_values is None else values == xp.arange(array.low[0], array.low[0] + array.n_values)

    def _category_inputs(self, observation: Any, desired: Any, xp: Any) -> list[Any]:
        """Return the columns with categories one-hot, and which of them equal a dimension of the goal."""
        found = []
        for values, (columns, categories) in zip((observation, desired), self._one_hot, strict=True):
            if columns:
                found.append(xp.take(values, columns, -1) == xp.asarray(categories))
        if self.categories.pairs:
            seen, wanted = zip(*self.categories.pairs, strict=True)
            found.append(xp.take(observation, seen, -1) == xp.take(desired, wanted, -1))
        return found

    def _is_subgoal(self, leading: ColumnTuple, subgoal: Any, xp: Any) -> Any:
        """Return the subgoals one-hot, (*leading, n_subgoals); zeros for the task's goal."""
        if isinstance(subgoal, int) and not leading:  # for each step of an episode, where calls count
            return self._subgoal_rows[subgoal]
        is_subgoal = xp.asarray(subgoal)[..., None] == xp.arange(1, self.n_subgoals + 1)
        return xp.broadcast_to(is_subgoal, (*leading, self.n_subgoals)) if leading else is_subgoal

    @cached_property
    def _subgoal_rows(self) -> Array:
        """Return the one-hot row of each subgoal number, (n_subgoals + 1, n_subgoals)."""
        return np.eye(self.n_subgoals + 1, dtype=np.float32)[:, 1:]

    def _agreement(self, achieved: Any, desired: Any, xp: Any) -> Any:
        if self.goal.n_values is not None:
            places, start = xp.asarray(self._digit_values, xp.int64), int(self.goal.low[0])
            return 1 - 2 * ((achieved - start) // places % 2 != (desired - start) // places % 2)
        middle, slope = (xp.asarray(values, xp.float32) for values in self._unit_scaling)
        achieved, desired = (xp.asarray(goals, xp.float32) * slope - middle for goals in (achieved, desired))
        return achieved * desired

    @cached_property
    def _digit_values(self) -> Any:
        """Return the values of the binary digits that distinguish Discrete goals: 1, 2, 4, ..."""
        return 2 ** np.arange((self.goal.n_values - 1).bit_length() if self.goal.n_values else 0)

    @cached_property
    def _unit_scaling(self) -> tuple[Any, Any]:
        """Return (middle, slope) with which goals * slope - middle is -1 and 1 at the bounds."""
        low, high = (bound.ravel() for bound in self.goal.bounds())
        width = np.where(high > low, high - low, 1.0)
        return ((high + low) / width).astype(np.float32), (2.0 / width).astype(np.float32)


def _is_goal(subgoal: Any, n_subgoals: int) -> Any:
    """Return whether the goal is that of the task and not a subgoal, whose numbers are from 1 to n_subgoals."""
    return (subgoal < 1) | (subgoal > n_subgoals)


def _check_number_of_values(name: Source, array: ArraySpec) -> None:
    if array.n_values is not None and array.n_values > LARGEST_DISCRETE:
        raise GoalEnvError(
            f"The {name} is Discrete({array.n_values}), but one-hot inputs have at most {LARGEST_DISCRETE} values. Use "
            f"a wrapper that returns the binary digits."
        )


def _check_columns(name: str, array: ArraySpec, columns: ColumnTuple) -> None:
    """name: of the option that names columns of the array."""
    if columns and (feature_of(array) not in ("number", "bit") or max(columns) >= array.size):
        part = name.partition("_")[2]
        raise OptionError(f"{name} is {columns}. Expected numeric columns of the {part}, below {array.size}.")


def _check_image_sizes(observation: ArraySpec, goal: ArraySpec) -> None:
    sizes = {a.shape[:2] if _is_channels_last(a) else a.shape[1:] for a in (observation, goal) if feature_of(a) == "image"}
    if len(sizes) > 1:
        both = " and ".join(f"{height} x {width}" for height, width in sorted(sizes))
        raise GoalEnvError(f"Observation and goal must be images of the same size, got {both}. Resize them in a wrapper.")


def _is_channels_last(array: ArraySpec) -> bool:
    """Return whether the last axis of an image holds its channels: it is not longer than the first axis then."""
    return array.shape[-1] <= array.shape[0]


def check_observation(spec: GoalSpec, observation: Mapping[str, Any]) -> tuple[tuple[Array, Array, Array], bool]:
    """Return observation, achieved goal and desired goal as arrays, and whether they have a leading axis (N rows).

    observation: the dict that the environment returns; all three arrays have a leading axis or none has.

    Raises InputError if it is not a dict of numbers, MissingKeyError, ShapeError, and NonFiniteError for NaN and infinity.
    """
    if not isinstance(observation, Mapping):
        raise InputError(f"Expected a dict with the keys {', '.join(OBSERVATION_KEYS)}, got {type(observation).__name__}.")
    if missing := [key for key in OBSERVATION_KEYS if key not in observation]:
        raise MissingKeyError(
            f"The observation needs the key{'s' * (len(missing) > 1)} {', '.join(missing)}; "
            f"it has {', '.join(map(str, observation))}."
        )
    first, achieved, desired = (_numbers(key, observation[key]) for key in OBSERVATION_KEYS)
    leading = first.shape[: max(0, first.ndim - len(spec.observation.shape))]
    if len(leading) > 1:
        raise ShapeError(f"Expected shape {spec.observation.shape} or (N, ...) for `observation`, got {first.shape}.")
    expected = (leading + spec.observation.shape, leading + spec.goal.shape, leading + spec.goal.shape)
    for key, array, shape in zip(OBSERVATION_KEYS, (first, achieved, desired), expected, strict=True):
        if array.shape != shape:
            raise ShapeError(
                f"Expected shape {shape} for `{key}`, got {array.shape}. All three need the same leading axis."
            )
    return (first, achieved, desired), bool(leading)


def _numbers(key: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"Expected numbers for `{key}`, got rows of different lengths.") from None
    if array.dtype.kind not in "buif":
        raise InputError(f"Expected numbers for `{key}`, got dtype {array.dtype}.")
    if not np.isfinite(array).all():
        raise NonFiniteError(f"`{key}` holds NaN or infinity. Check the environment and its wrappers.")
    return array
