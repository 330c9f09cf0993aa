"""Memory layout: the record of one environment step, the memory of a batch, and the validation of input arrays.

The fields of a row are in the order in which a sample reads them: its own row, then the head (observation, achieved_goal)
of the next row. A sample is therefore one contiguous range of memory and one goal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..errors import CastError, FileError, InputError, MissingKeyError, NonFiniteError, OptionError, ShapeError
from ..records import BATCH_FIELDS, OBSERVATION_KEYS, Array, ArraySpec, Batch, GoalSpec
from ..records.info_keys import info_shapes

INFO_PREFIX = "info:"
SCALARS = {float: np.float64, bool: np.bool_}  # Python types with a cheap NumPy counterpart
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
DTYPES = ("float32", "float64")
Limits = Mapping[str, tuple[Array, Array]]  # lowest and highest value by field
NO_LIMITS: Limits = {}
NO_INFO: dict[str, Array] = {}
BOUNDS_ROUNDING = 1e-5  # relative, by which a float may exceed the bounds of its space
ALIGNMENT = 64  # bytes
MAX_BATCH_BYTES = 2**31  # limit of NumPy for a record
MOST_FRESH, FRESH_BYTES = 8, 2**20  # batches that are allocated at once, and bytes that they take at most
FIELD_SOURCES = {
    "goal": ("desired_goal", 0),
    "observation": ("observation", 0),
    "achieved_goal": ("achieved_goal", 0),
    "action": ("action", 0),
    "reward": ("reward", 0),
    "terminated": ("terminated", 0),
    "next_observation": ("observation", 1),
    "next_achieved_goal": ("achieved_goal", 1),
}  # field of a batch: the field of a row that it is gathered from, of the sample's own row (0) or of the next row (1)

_observation_of: Callable[[Any], tuple[Any, ...]] = itemgetter(*OBSERVATION_KEYS)
_arrays_of = itemgetter(*BATCH_FIELDS)


def row_dtype(
    spec: GoalSpec, info_keys: Sequence[str] = (), dtype: str = "float32", n_stored_goals: int = 0
) -> np.dtype[Any]:
    """Return the record that holds one step of a task.

    info_keys: entries of the info that the reward needs, as float64.
    dtype: the widest float that is stored: "float32" halves float64 observations, "float64" keeps them. Integers and bool
        keep their dtype. A Discrete value is stored in the smallest integer that holds it.
    n_stored_goals: goals that are drawn when the episode ends. They follow the desired goal.
    """
    if dtype not in DTYPES:
        raise OptionError(f"dtype must be {' or '.join(map(repr, DTYPES))}, got {dtype!r}.")
    goal = (_stored_dtype(spec.goal, dtype), spec.goal.shape)
    fields: list[tuple[Any, ...]] = [
        ("observation", _stored_dtype(spec.observation, dtype), spec.observation.shape),
        ("achieved_goal", *goal),
        ("desired_goal", *goal),
        *([("stored_goals", goal[0], (n_stored_goals, *spec.goal.shape))] if n_stored_goals else []),
        ("action", _stored_dtype(spec.action, dtype), spec.action.shape),
        ("reward", np.dtype(dtype)),
        *((INFO_PREFIX + name, np.dtype(np.float64), shape) for name, shape in info_shapes(info_keys).items()),
        ("steps_done", np.dtype(np.int32)),
        ("steps_left", np.dtype(np.int32)),
        ("terminated", np.dtype(np.bool_)),
    ]
    try:
        return np.dtype(fields, align=True)
    except ValueError as problem:
        raise OptionError(f"A row must take less than 2 GB ({problem}). Lower n_sampled_goal.") from None


def _stored_dtype(spec: ArraySpec, widest: str) -> np.dtype[Any]:
    dtype = np.dtype(spec.dtype)
    if spec.n_values is not None:
        return next((np.dtype(name) for name in INTEGERS if _holds(np.iinfo(name), spec)), dtype)
    if dtype.kind == "f":
        return np.dtype(widest if dtype.itemsize > 4 else np.float32)
    return dtype.newbyteorder("=")


def _holds(integer: np.iinfo[Any], spec: ArraySpec) -> bool:
    return integer.min <= spec.low[0] and spec.high[0] <= integer.max


def limits_of(spec: ArraySpec) -> tuple[Array, Array]:
    """Return the lowest and the highest value of a space, one number or one per element. Floats get a small margin."""
    low, high = (np.asarray(bound or (np.nan,), np.float64) for bound in (spec.low, spec.high))
    if np.dtype(spec.dtype).kind == "f":
        low, high = low - BOUNDS_ROUNDING * np.maximum(1, np.abs(low)), high + BOUNDS_ROUNDING * np.maximum(1, np.abs(high))
    return low, high


class Fields:
    """Fields of scratch rows, into which values are written in this order.

    arrays: the fields by their names in errors.
    limits: see `limits_of`, by name.
    """

    def __init__(self, arrays: Mapping[str, Array], limits: Limits = NO_LIMITS) -> None:
        self._fields = [(name, array, array.shape, array.dtype) for name, array in arrays.items()]
        self._limits = limits
        self._integers = [(name, arrays[name]) for name in limits if arrays[name].dtype.kind != "f"]

    @np.errstate(over="ignore")
    def write(self, values: Iterable[Any]) -> None:
        """Write each value into its field. Only scratch memory has changed if this raises.

        Raises ShapeError, CastError if a number does not survive the conversion, and InputError for what is no array or an
        integer outside its space. Floats are checked later, by a compiled loop and `refuse`.
        """
        for (name, array, shape, dtype), value in zip(self._fields, values, strict=True):
            if type(value) is not np.ndarray and not isinstance(value, np.generic):
                value = SCALARS[type(value)](value) if type(value) in SCALARS else as_array(value, name)
            if value.shape != shape:
                raise ShapeError(f"Expected shape {shape} for {name}, got {value.shape}. Check the spaces and n_envs.")
            if value.dtype is not dtype and not value.dtype.kind == dtype.kind == "f":
                _check_cast(value, dtype, name)
            array[...] = value
        for name, array in self._integers:
            _check_limits(array, self._limits[name], name)

    def refuse(self, values: Iterable[Any]) -> None:
        """Raise for the first field with a float that cannot be stored. `values` are those that were given.

        Raises NonFiniteError, CastError if the conversion made a number infinite, InputError for a value outside its space.
        """
        for (name, array, _, dtype), value in zip(self._fields, values, strict=True):
            if dtype.kind == "f":
                _check_finite(array, value, name)
                if name in self._limits:
                    _check_limits(array, self._limits[name], name)


def _check_limits(array: Array, limits: tuple[Array, Array], name: str) -> None:
    low, high = limits
    flat = array.reshape(-1, low.size)
    if ((flat < low) | (flat > high)).any():
        got = f"{array.min():g} to {array.max():g}"
        raise InputError(f"{name} must be within its space, {low.min():g} to {high.max():g}, got {got}. Clip it.")


def _check_finite(array: Array, value: Any, name: str) -> None:
    if np.isfinite(array).all():
        return
    index = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
    given = np.asarray(value)[index]
    if not np.isfinite(given):
        raise NonFiniteError(f"{name} must be finite, got {given} at index {index}.")
    raise CastError(f'{name} is infinite as {array.dtype}, got {given} at index {index}. Pass dtype="float64".')


def as_array(value: Any, name: str) -> Array:
    """Return an array of anything that holds numbers. Raises InputError."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} must not be masked, got a masked array. Fill its masked values first.")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(f"{name} cannot be converted to an array ({problem}). Pass a NumPy array.") from None


def _check_cast(value: Array, dtype: np.dtype[Any], name: str) -> None:
    """Refuse values that `dtype` cannot hold exactly. Integers that become floats are allowed."""
    if value.dtype.kind not in "biuf":
        raise CastError(f"Expected numbers of {dtype} for {name}, got {value.dtype}.")
    if np.can_cast(value.dtype, dtype) or dtype.kind == "f":
        return
    with np.errstate(invalid="ignore"):
        lost = value.astype(dtype) != value
    if lost.any():
        raise CastError(f"{name} is stored as {dtype}, which cannot hold {value[lost].flat[0]}. Change one of them.")


def select(values: Mapping[str, Any], keys: Sequence[str], name: str) -> list[Any]:
    """Return the values of `keys`, in order. Raises MissingKeyError; `name` says what misses them."""
    try:
        return [values[key] for key in keys]
    except (KeyError, TypeError, IndexError):
        got = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise MissingKeyError(f"{name} must have {', '.join(keys)}, got {got or 'nothing'}.") from None


def select_observation(observation: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return observation, achieved_goal and desired_goal, as `select` in a quarter of its time."""
    try:
        return _observation_of(observation)
    except (KeyError, TypeError, IndexError):
        return select(observation, OBSERVATION_KEYS, name)


def read_only(array: Array) -> Array:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def as_bytes(array: Array) -> Array:
    """Return a contiguous array as flat bytes, a view."""
    return array.reshape(-1).view(np.uint8)


def whole_number(name: str, value: Any, lowest: int) -> int:
    """Return `value` as an int. Raises OptionError unless it is a whole number of at least `lowest`."""
    is_whole = type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool))
    if not is_whole or value < lowest:
        raise OptionError(f"{name} must be a whole number of at least {lowest}, got {value!r}.")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """Return `value` as a bool. Raises OptionError unless it is True or False: any text would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def fraction_of_one(name: str, value: Any) -> float:
    """Return `value` as a float. Raises OptionError unless it is a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 <= value <= 1:
        raise OptionError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return float(value)


def finite_number(name: str, value: Any) -> float:
    """Return `value` as a float. Raises OptionError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not math.isfinite(value):
        raise OptionError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def check_stored(name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise FileError unless a stored array has this shape and dtype."""
    if array.shape != shape or array.dtype != dtype:
        got = f"{array.shape} of {array.dtype}"
        raise FileError(f"The stored {name} must be {shape} of {np.dtype(dtype)}, got {got}. The file is damaged.")


class Draw(NamedTuple):
    """The memory of one draw: what the sampler fills, and what transforms read besides the batch.

    batch: what is returned, arrays (..., B).
    flat: the same arrays with a single leading axis.
    reward_arguments: next_achieved_goal, goal and the info values that the reward needs, of `flat`, read-only.
    goal_at: the first byte of each sample's goal in the ring, (B,) int64.
    plan: see `kernels.gather`.
    """

    batch: Batch
    flat: Batch
    reward_arguments: tuple[Array, Array, dict[str, Array]]
    goal_at: Array
    plan: Array


class BatchMemory:
    """Memory for batches with the leading axes `shape`: a record with one field per array.

    row: the dtype of the rows that are gathered.
    extras: further fields, one number per sample each, such as "discount".
    """

    def __init__(self, row: np.dtype[Any], shape: tuple[int, ...], extras: tuple[str, ...] = ()) -> None:
        self.shape, self.size, self.extras = shape, math.prod(shape), extras
        places = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
        self.info_keys = [name.removeprefix(INFO_PREFIX) for name in places if name.startswith(INFO_PREFIX)]
        sources = {**FIELD_SOURCES, **{INFO_PREFIX + key: (INFO_PREFIX + key, 0) for key in self.info_keys}}
        parts = {name: row[field] for name, (field, _) in sources.items()}
        parts |= {"row": np.dtype(np.int64), "is_relabelled": np.dtype(np.bool_), **dict.fromkeys(extras, row["reward"])}
        sizes = (-(-self.size * part.itemsize // ALIGNMENT) * ALIGNMENT for part in parts.values())
        *into, n_bytes = accumulate(sizes, initial=0)
        if n_bytes >= MAX_BATCH_BYTES:
            raise InputError(
                f"A batch must take less than 2 GB, but shape {shape} takes {n_bytes / 1e9:.1f} GB. Lower the batch size."
            )
        self.record, self.flat = (_record(parts, axes, into) for axes in (shape, (self.size,)))
        starts = [places[field] + after * row.itemsize for field, after in sources.values()]
        self.plan = np.array(list(zip(starts, (p.itemsize for p in parts.values()), into, strict=False)), np.int64)
        self.plan[:, 2] -= into[len(sources)]
        self._n_bytes = n_bytes
        self.goal_at = np.zeros(self.size, np.int64)
        self._reused: Draw | None = None
        self._fresh: list[Draw] = []
        self._n_fresh = 1

    def allocate(self) -> Draw:
        """Return fresh memory, one allocation for each batch.

        After the first call, several are allocated at once: right after an update of a network, the first of them takes
        longer than all others together.
        """
        if not self._fresh:
            self._fresh = [self._draw(np.empty(self._n_bytes, np.uint8)) for _ in range(self._n_fresh)]
            self._n_fresh = max(1, min(MOST_FRESH, FRESH_BYTES // self._n_bytes))
        return self._fresh.pop()

    def _draw(self, memory: Array) -> Draw:
        record = np.ndarray((), self.record, memory)  # half the time of np.empty((), self.record)
        batch = flat = self._view(record)
        if len(self.shape) > 1:
            record = record.view(self.flat)
            flat = self._view(record)
        record = read_only(record)
        info = {key: record[INFO_PREFIX + key] for key in self.info_keys} if self.info_keys else NO_INFO
        arguments = (record["next_achieved_goal"], record["goal"], info)
        return tuple.__new__(Draw, (batch, flat, arguments, self.goal_at, self.plan))  # half the time of Draw(...)

    def _view(self, record: Array) -> Batch:
        batch = Batch(*_arrays_of(record))
        for name in self.extras:
            setattr(batch, name, record[name])
        return batch

    def reuse(self, out: Batch) -> Draw:
        """Return the memory of `out`. It is checked once: passing the same batch again costs nothing more.

        Raises InputError unless `out` is a batch in memory of this size.
        """
        if self._reused is None or self._reused.batch is not out:
            memory = getattr(getattr(out, "row", None), "base", None)
            draw = self._draw(memory) if isinstance(memory, np.ndarray) and memory.nbytes == self._n_bytes else None
            names = (*BATCH_FIELDS, *self.extras)
            if draw is None or any(_place(out, name) != _place(draw.batch, name) for name in names):
                raise InputError("out must be a batch that the same call returned before, with its own arrays.")
            self._reused = draw._replace(batch=out)
        return self._reused


def _place(batch: Batch, name: str) -> Any:
    """Return address, shape, strides and dtype of an array of a batch, and whether it is read-only."""
    return getattr(getattr(batch, name), "__array_interface__", None)


def _record(parts: dict[str, np.dtype[Any]], axes: tuple[int, ...], offsets: list[int]) -> np.dtype[Any]:
    formats = [(part.base, (*axes, *part.shape)) for part in parts.values()]
    return np.dtype({"names": list(parts), "formats": formats, "offsets": offsets})
