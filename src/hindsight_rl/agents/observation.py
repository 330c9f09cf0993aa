"""Check an observation that a user passes to a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError, MissingKeyError, NonFiniteError, ShapeError
from ..records import OBSERVATION_KEYS, Array, GoalSpec


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
