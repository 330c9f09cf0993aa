"""Which entries of info the functions of an environment need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import numpy as np

from ..records import Array
from ..records.info_keys import info_key
from .goal_functions import GoalFunction


def find_entries(
    functions: Iterable[GoalFunction], achieved: Array, desired: Array, info: dict[str, Array]
) -> dict[str, bool]:
    """Return the entries of info that a function reads, and whether one fails or returns another value without the entry.

    Entries are written as the option info_keys does.

    Some entries change a value so rarely that it is not seen.
    achieved, desired, info: N goals, (N, ...) each.
    """
    first = achieved[:1], desired[:1], {key: values[:1] for key, values in info.items()}
    found: dict[str, bool] = {}
    for function in functions:
        read, values = function.entries_read(*first), function(achieved, desired, info)
        for key in info:
            is_needed = True
            with contextlib.suppress(Exception):
                others = {name: column for name, column in info.items() if name != key}
                is_needed = not np.array_equal(values, function(achieved, desired, others))
            if is_needed or key in read:
                found[key] = found.get(key, False) or is_needed
    return {info_key(key, values.shape[1:]): found[key] for key, values in info.items() if key in found}
