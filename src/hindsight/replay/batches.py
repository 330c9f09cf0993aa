"""Forms: how batches of one shape lie in memory, fresh or handed in, and what is copied where."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from ..errors import InputError
from ..records import BATCH_FIELDS, Array, Batch
from .rows import INFO_PREFIX

BYTE = np.dtype(np.uint8)
ALIGNMENT = 64  # bytes
LARGEST = 2**31  # bytes, which NumPy allows a record
SOURCES = {
    "goal": ("desired_goal", 0),
    "observation": ("observation", 0),
    "achieved_goal": ("achieved_goal", 0),
    "action": ("action", 0),
    "reward": ("reward", 0),
    "terminated": ("terminated", 0),
    "next_observation": ("observation", 1),
    "next_achieved_goal": ("achieved_goal", 1),
}  # a batch's field: the row's field that it is gathered from, of the sample's own row (0) or of the next (1)

_arrays_of = itemgetter(*BATCH_FIELDS)
_anchor = np.zeros(1, np.uint8)


# Memory that a batch is written into: the batch as it is handed out; the same arrays with one leading axis; what the
# reward reads besides; and for `gather` the block and the plan, whose places count from the first byte of the block, which
# need not hold them: so memory of anybody's can be reached.
Target = tuple[Batch, Batch, dict[str, Array], Array, Array]


class Form:
    """Batches with the leading axes `shape`: one block of memory, seen as a record that has a field per array.

    row: the dtype of the rows that are gathered from. size: samples in a batch. plan: what `gather` copies. extras: further
    fields of a batch that are there, a number per sample each: for "discount".
    """

    def __init__(self, row: np.dtype[Any], shape: tuple[int, ...], extras: tuple[str, ...] = ()) -> None:
        self.shape, self.size, self.extras = shape, math.prod(shape), extras
        places = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
        self.info_keys = [name.removeprefix(INFO_PREFIX) for name in places if name.startswith(INFO_PREFIX)]
        sources = {**SOURCES, **{INFO_PREFIX + key: (INFO_PREFIX + key, 0) for key in self.info_keys}}
        parts = {name: row[field] for name, (field, _) in sources.items()}
        parts |= {"row": np.dtype(np.int64), "is_relabelled": np.dtype(np.bool_), **dict.fromkeys(extras, row["reward"])}
        sizes = (-(-self.size * part.itemsize // ALIGNMENT) * ALIGNMENT for part in parts.values())
        *into, self.nbytes = accumulate(sizes, initial=0)
        if self.nbytes >= LARGEST:
            raise InputError(f"a batch of shape {shape} takes {self.nbytes / 1e9:.1f} GB, but 2 GB is the limit: lower it")
        self.record, self.flat = (_record(parts, axes, into) for axes in (shape, (self.size,)))
        starts = [places[field] + after * row.itemsize for field, after in sources.values()]
        self.plan = np.array(list(zip(starts, (p.itemsize for p in parts.values()), into, strict=False)), np.int64)
        self.goal_at = np.zeros(self.size, np.int64)
        self._known: Target | None = None

    def fresh(self) -> Target:
        """Fresh memory, by one allocation."""
        block = np.empty(self.nbytes, BYTE)
        record = np.ndarray((), self.record, block)
        batch = flat = Batch(*_arrays_of(record))
        for name in self.extras:
            setattr(batch, name, record[name])
        info = {}
        if self.info_keys or len(self.shape) > 1:
            record = np.ndarray((), self.flat, block)
            flat = Batch(*_arrays_of(record))
            for name in self.extras:
                setattr(flat, name, record[name])
            info = {key: record[INFO_PREFIX + key] for key in self.info_keys}
        return batch, flat, info, block, self.plan

    def reuse(self, out: Batch) -> Target:
        """The memory of `out`, looked at once: the same batch again costs nothing more. Raises InputError if unfit."""
        if self._known is None or self._known[0] is not out:
            for name in (*BATCH_FIELDS, *self.extras):
                _check(getattr(out, name), name, self.record[name])
            if out.discount is not None and "discount" not in self.extras:
                raise InputError("out.discount is there, but one-step samples have none: give a batch of the same call")
            flat = Batch(*(getattr(out, name).reshape(self.flat[name].shape) for name in BATCH_FIELDS))
            for name in self.extras:
                setattr(flat, name, getattr(out, name).reshape(self.flat[name].shape))
            info = {key: np.zeros(self.size) for key in self.info_keys}
            plan = self.plan.copy()
            for line, array in zip(plan, [*(getattr(flat, name) for name in SOURCES), *info.values()], strict=True):
                line[2] = array.ctypes.data - _anchor.ctypes.data
            self._known = out, flat, info, _anchor, plan
        return self._known


def _record(parts: dict[str, np.dtype[Any]], axes: tuple[int, ...], offsets: list[int]) -> np.dtype[Any]:
    formats = [(part.base, (*axes, *part.shape)) for part in parts.values()]
    return np.dtype({"names": list(parts), "formats": formats, "offsets": offsets})


def _check(array: Any, name: str, part: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray) or array.shape != part.shape or array.dtype != part.base:
        got = (getattr(array, "shape", type(array).__name__), getattr(array, "dtype", "no dtype"))
        raise InputError(
            f"out.{name} is {got[0]} of {got[1]}, but {part.shape} of {part.base} is needed: give a batch that the same "
            f"call returned before"
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(f"out.{name} is read-only or not contiguous: give a batch that the same call returned before")
