"""What a row is, one NumPy structured record per environment step, and the door at which arrays become rows.

The fields stand in the order in which a sample reads them: all of its own row and the head (observation, achieved_goal)
of the next, so that a sample is one contiguous stretch of memory and one goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..errors import CastError, InputError, MissingKeyError, NonFiniteError, OptionError, ShapeError
from ..records import OBSERVATION_KEYS, Array, ArraySpec, GoalSpec

INFO_PREFIX = "info:"
SCALARS = {float: np.float64, bool: np.bool_}  # Python's own, made NumPy's
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
DTYPES = ("float32", "float64")
_look: Callable[[Any], tuple[Any, ...]] = itemgetter(*OBSERVATION_KEYS)


def row_dtype(spec: GoalSpec, info_keys: Iterable[str] = (), dtype: str = "float32") -> np.dtype[Any]:
    """The record that holds one step of a task.

    dtype: the widest float that is kept ("float32" halves float64 observations, "float64" keeps them). Integers, uint8
    and bool keep theirs; a Discrete value takes the smallest integer that holds it. Each info key is one float64, since
    the reward is computed from it.
    """
    if dtype not in DTYPES:
        raise OptionError(f"dtype is {dtype!r}, but {' or '.join(map(repr, DTYPES))} is needed")
    goal = (_stored(spec.goal, dtype), spec.goal.shape)
    fields: list[tuple[Any, ...]] = [
        ("observation", _stored(spec.observation, dtype), spec.observation.shape),
        ("achieved_goal", *goal),
        ("desired_goal", *goal),
        ("action", _stored(spec.action, dtype), spec.action.shape),
        ("reward", np.dtype(dtype)),
        *((INFO_PREFIX + key, np.dtype(np.float64)) for key in info_keys),
        ("steps_done", np.dtype(np.int32)),
        ("steps_left", np.dtype(np.int32)),
        ("terminated", np.dtype(np.bool_)),
    ]
    return np.dtype(fields, align=True)


def _holds(integer: np.iinfo[Any], spec: ArraySpec) -> bool:
    return integer.min <= spec.low[0] and spec.high[0] <= integer.max


def _stored(spec: ArraySpec, widest: str) -> np.dtype[Any]:
    """The dtype in which values of a space are kept."""
    dtype = np.dtype(spec.dtype)
    if spec.n_values is not None:
        return next((np.dtype(name) for name in INTEGERS if _holds(np.iinfo(name), spec)), dtype)
    if dtype.kind == "f":
        return np.dtype(widest if dtype.itemsize > 4 else np.float32)
    return dtype.newbyteorder("=")


class Place(NamedTuple):
    """Where a value is put: a field of scratch rows, and what is known of it; `name` is what a refusal calls it."""

    name: str
    array: Array
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, name: str, array: Array) -> Place:
        return cls(name, array, array.shape, array.dtype)


@np.errstate(over="ignore")
def put(places: Iterable[Place], values: Iterable[Any]) -> None:
    """Write each value into its place, or raise: nothing but scratch has been touched by then.

    Raises ShapeError, CastError where a number does not survive, InputError for what is no array. NaN, and floats that
    become infinite, are found afterwards, in the rows.
    """
    for (name, array, shape, dtype), value in zip(places, values, strict=True):
        if type(value) is not np.ndarray:
            value = SCALARS[type(value)](value) if type(value) in SCALARS else _as_array(value, name)
        if value.shape != shape:
            raise ShapeError(f"{name} has shape {value.shape}, but {shape} is needed")
        if value.dtype is not dtype and not value.dtype.kind == dtype.kind == "f":
            _check_cast(value, dtype, name)
        array[...] = value


def _as_array(value: Any, name: str) -> Array:
    """A plain array of numbers: of a list, a number, a subclass, a tensor in this machine's memory."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} is a masked array with masked values: fill them first")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(f"{name} cannot be read as an array ({problem}): give a NumPy array") from None


def _check_cast(value: Array, dtype: np.dtype[Any], name: str) -> None:
    """Refuse values that `dtype` cannot hold exactly, unless a whole number merely becomes a float."""
    if value.dtype.kind not in "biuf":
        raise CastError(f"{name} has dtype {value.dtype}, which is not a number: {dtype} is needed")
    if np.can_cast(value.dtype, dtype) or dtype.kind == "f":
        return
    with np.errstate(invalid="ignore"):
        lost = value.astype(dtype) != value
    if lost.any():
        raise CastError(
            f"{name} holds {value[lost].flat[0]}, which is lost as {dtype} (stored so because its space says so): "
            f"scale or convert it before it comes here"
        )


def refuse_non_finite(places: Iterable[Place], values: Iterable[Any]) -> None:
    """Raise for the first value that is not finite: NonFiniteError if it came so, CastError if it became so."""
    for place, value in zip(places, values, strict=True):
        if place.dtype.kind != "f" or np.isfinite(place.array).all():
            continue
        index = tuple(np.argwhere(~np.isfinite(place.array))[0].tolist())
        given = np.asarray(value)[index]
        if not np.isfinite(given):
            raise NonFiniteError(f"{place.name} holds {given} at index {index}, but finite numbers are needed")
        raise CastError(
            f"{place.name} holds {given} at index {index}, which becomes infinite as {place.dtype}: scale it, or keep "
            f'dtype="float64"'
        )


def pick(values: Mapping[str, Any], keys: Sequence[str], what: str) -> list[Any]:
    """The values of `keys`, in order; raises MissingKeyError, naming what is there and what is wanted."""
    try:
        return [values[key] for key in keys]
    except (KeyError, TypeError, IndexError):
        got = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise MissingKeyError(f"{what} has {got or 'nothing'}, but {', '.join(keys)} is needed") from None


def look(observation: Mapping[str, Any], name: str) -> Sequence[Any]:
    """What an observation shows: observation, achieved_goal, desired_goal. Raises MissingKeyError."""
    try:
        return _look(observation)
    except (KeyError, TypeError, IndexError):
        return pick(observation, OBSERVATION_KEYS, name)


def take_records(records: Array, row: Array) -> Array:
    """A copy of some records of a contiguous array, (B,): as bytes, since NumPy is ten times slower field by field."""
    taken: Array = records.view(np.dtype((np.void, records.itemsize)))[row].view(records.dtype)
    return taken


def whole_number(name: str, value: Any, lowest: int) -> int:
    """`value` as an int; raises OptionError unless it is a whole number of at least `lowest`."""
    if type(value) is int and value >= lowest:
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise OptionError(f"{name} is {value!r}, but a whole number of at least {lowest} is needed")
    return int(value)
