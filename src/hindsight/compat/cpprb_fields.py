"""What a step is to cpprb: the fields of `env_dict`, any names, shapes and dtypes, one record per step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import CastError, InputError, MissingKeyError, OptionError, ShapeError
from ..records import Array

OURS = ("rew", "goal", "weights", "indexes")  # what comes back beside the fields of env_dict
NUMBERS = "biuf"


class MissingFieldError(MissingKeyError, KeyError):
    """A field that is needed is not there."""

    __str__ = Exception.__str__


def step_dtype(env_dict: Mapping[str, Mapping[str, Any]], default: np.dtype[Any], needed: Iterable[str]) -> np.dtype[Any]:
    """The record of one step. env_dict: {name: {"shape": 1, "dtype": default}}. Raises OptionError or MissingFieldError."""
    missing = [name for name in needed if name not in env_dict]
    if missing:
        raise MissingFieldError(f"env_dict has {', '.join(env_dict) or 'nothing'}, but {', '.join(missing)} is missing")
    fields = []
    for name, entry in env_dict.items():
        dtype = np.dtype(entry.get("dtype") or default)
        if name in OURS or dtype.hasobject:
            why = f"is of {dtype}" if dtype.hasobject else "has the name of something that the buffer makes itself"
            raise OptionError(f"the field {name!r} of env_dict {why}: leave it out, or change it")
        fields.append((name, dtype, as_shape(entry.get("shape", 1), f"shape of {name}")))
    return np.dtype(fields)


def as_shape(shape: Any, name: str) -> tuple[int, ...]:
    """A number or numbers, each at least 1, as a tuple; raises OptionError."""
    numbers = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return tuple(as_count(name, number, 1) for number in numbers)


def as_count(name: str, value: Any, lowest: int) -> int:
    """A whole number, such as 1e6, as an int; raises OptionError for another, or one below `lowest`."""
    try:
        is_whole = not isinstance(value, bool) and int(value) == value and value >= lowest
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise OptionError(f"{name} is {value!r}, but a whole number of at least {lowest} is needed")
    return int(value)


def as_steps(name: str, value: Any, field: np.dtype[Any]) -> Array:
    """The values of one step or several, (n, shape), in the dtype of the field. Raises ShapeError or CastError."""
    array = as_array(name, value)
    size = math.prod(field.shape)
    if not array.size or array.size % size:
        raise ShapeError(f"{name} has shape {array.shape}, but {field.shape}, or that of several steps, is needed")
    return cast(name, array.reshape(-1, *field.shape), field.base)


def as_array(name: str, value: Any) -> Array:
    """An array of whatever holds numbers; raises InputError."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(f"{name} cannot be read as an array ({problem}): give a NumPy array") from None


def cast(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`; raises CastError where that is no number, or an integer that cannot hold it."""
    if array.dtype == dtype:
        return array
    if dtype.kind in NUMBERS and array.dtype.kind not in NUMBERS:
        raise CastError(f"{name} has dtype {array.dtype}, which is not a number: {dtype} is needed")
    with np.errstate(invalid="ignore", over="ignore"):
        stored = array.astype(dtype)
        lost = stored != array if dtype.kind in "biu" else np.zeros(0, np.bool_)
    if lost.any():
        raise CastError(f"{name} holds {array[lost].flat[0]}, which is lost as {dtype}: scale it, or give it another dtype")
    return stored
