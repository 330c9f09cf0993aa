"""The fields of a step in cpprb's `env_dict`: any names, shapes and dtypes; one NumPy record per step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import MissingKeyError, OptionError, ShapeError
from ..records import Array
from ..replay.rows import Fields, as_array, whole_number

RESERVED = ("rew", "goal", "weights", "indexes")  # keys of a sample that env_dict may not define
NUMERIC_KINDS = "biuf"


class MissingFieldError(MissingKeyError, KeyError):
    """A required field is missing."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class StepFields(NamedTuple):
    """The record dtype of a step, the dtype of rewards, and the names of the fields that relabelling reads."""

    dtype: np.dtype[Any]
    reward: np.dtype[Any]
    state: str
    action: str
    next_state: str


def step_fields(
    env_dict: Mapping[str, Mapping[str, Any]], default_dtype: Any, state: str, action: str, next_state: str
) -> StepFields:
    """Return the fields of a step.

    env_dict: {name: {"shape": 1, "dtype": default_dtype}}.
    default_dtype: also of the rewards; None is float32.
    state, action, next_state: names of fields that must be there.
    Raises MissingFieldError, or OptionError for a reserved name, an unusable dtype or a bad shape.
    """
    missing = [name for name in (state, action, next_state) if name not in env_dict]
    if missing:
        raise MissingFieldError(f"env_dict lacks {', '.join(missing)}. It has {', '.join(env_dict) or 'no fields'}.")
    default = np.dtype(default_dtype or np.float32)
    if default.kind not in NUMERIC_KINDS:
        raise OptionError(f"`default_dtype` must be numeric, since the rewards have it, got {default}.")
    fields = [_field(name, entry, default) for name, entry in env_dict.items()]
    return StepFields(np.dtype(fields), default, state, action, next_state)


def _field(name: str, entry: Mapping[str, Any], default: np.dtype[Any]) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Return name, dtype and shape of a field."""
    dtype = np.dtype(entry.get("dtype") or default)
    if name in RESERVED:
        raise OptionError(f"The field name {name!r} in env_dict is reserved for samples. Rename the field.")
    if dtype.hasobject:
        raise OptionError(f"The field {name!r} in env_dict has dtype {dtype}. Use a dtype of fixed size.")
    return name, dtype, as_shape(entry.get("shape", 1), f"shape of {name}")


def as_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Return a number or a sequence of numbers, each at least 1, as a tuple; raise OptionError for others."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return tuple(as_count(name, size, 1) for size in sizes)


def as_count(name: str, value: Any, lowest: int) -> int:
    """Return a whole number of at least `lowest`, such as 1e6, as an int; raise OptionError for others."""
    is_whole_float = isinstance(value, float) and value.is_integer()
    return whole_number(name, int(value) if is_whole_float else value, lowest)


def as_steps(name: str, value: Any, field: np.dtype[Any]) -> Array:
    """Return the values of one or several steps in the dtype of `field`, shape (n, *field.shape).

    Raises ShapeError, and what `as_array` and `cast` raise.
    """
    array = as_array(value, name)
    if not array.size or array.size % math.prod(field.shape):
        raise ShapeError(f"Expected shape {field.shape} for `{name}`, or (n, ...) for n steps, got {array.shape}.")
    return cast(name, array.reshape(-1, *field.shape), field.base)


def cast(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy of `array` in `dtype`.

    Raises NonFiniteError for NaN and infinity, and CastError for values that `dtype` cannot hold.
    """
    if dtype.kind not in NUMERIC_KINDS:
        return array.astype(dtype)
    converted = np.empty(array.shape, dtype)
    field = Fields({f"`{name}`": converted})
    field.write([array])
    field.refuse([array])
    return converted
