"""What a row is, one NumPy structured record per environment step, and the door at which arrays become rows.

The fields stand in the order in which a sample reads them: all of its own row and the head (observation, achieved_goal)
of the next, so that a sample is one contiguous stretch of memory and one goal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import CastError, InputError, MissingKeyError, NonFiniteError, OptionError, ShapeError
from ..records import Array, ArraySpec, GoalSpec

HEAD = ("observation", "achieved_goal")  # what the next row gives to a sample
INFO_PREFIX = "info:"
DTYPES = ("float32", "float64")


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


def _stored(spec: ArraySpec, widest: str) -> np.dtype[Any]:
    """The dtype in which values of a space are kept."""
    dtype = np.dtype(spec.dtype)
    if spec.n_values is not None:
        return np.result_type(np.min_scalar_type(int(spec.low[0])), np.min_scalar_type(int(spec.high[0])))
    if dtype.kind == "f":
        return np.dtype(widest if dtype.itemsize > 4 else np.float32)
    return dtype.newbyteorder("=")


def put(into: Array, value: Any, name: str) -> None:
    """Write `value` into a field of scratch rows, or raise: nothing but scratch has been touched by then.

    Raises ShapeError, CastError where a whole number does not survive, InputError for what is no array. A float that
    becomes infinite is found afterwards, by `check_finite`, together with NaN.
    """
    if type(value) is not np.ndarray:
        value = _as_array(value, name)
    if value.shape != into.shape:
        raise ShapeError(f"{name} has shape {value.shape}, but {into.shape} is needed")
    if value.dtype != into.dtype and not value.dtype.kind == into.dtype.kind == "f":
        _check_cast(value, into.dtype, name)
    into[...] = value


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


def all_finite(rows: Array, names: Iterable[str]) -> bool:
    """Whether the named fields of `rows` hold neither NaN nor infinity."""
    return all(rows.dtype[n].base.kind != "f" or bool(np.isfinite(rows[n]).all()) for n in names)


def refuse_non_finite(values: Mapping[str, Any], rows: Mapping[str, Array]) -> None:
    """Raise for the first value that is not finite: NonFiniteError as it came, CastError as it became.

    values: what was handed in, by name; rows: the arrays into which it was written. The first axis is named in the
    message: the environment, or the step.
    """
    for name, value in values.items():
        given, stored = np.asarray(value), rows[name]
        if stored.dtype.kind != "f" or np.isfinite(stored).all():
            continue
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(stored))[0])
        if not np.isfinite(given[place]):
            raise NonFiniteError(f"{name} holds {given[place]} at index {place}: nothing of it was stored")
        raise CastError(
            f"{name} holds {given[place]} at index {place}, which becomes infinite as {stored.dtype}: "
            f'scale it, or keep float64 with dtype="float64"'
        )


def pick(values: Mapping[str, Any], keys: Iterable[str], what: str) -> list[Any]:
    """The values of `keys`, in order; raises MissingKeyError, naming what is there and what is wanted."""
    keys = tuple(keys)
    try:
        return [values[key] for key in keys]
    except (KeyError, TypeError, IndexError):
        got = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise MissingKeyError(f"{what} has {got or 'nothing'}, but {', '.join(keys)} is needed") from None
