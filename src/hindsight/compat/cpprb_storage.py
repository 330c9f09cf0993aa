"""StepStorage: a ring buffer of steps, in which whole episodes replace the oldest ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import FileError
from ..records import Array
from ..replay.rows import take_records
from ..replay.timeline import zero_rows

MOST_STEPS = 2**48  # far more than a run stores; larger step numbers in a file could overflow int64


class StepStorage:
    """Ring buffer of records, one per step. Steps are numbered as they come; step i lies in row i % capacity.

    capacity: stored steps.
    dtype: record of a step.
    """

    def __init__(self, capacity: int, dtype: np.dtype[Any]) -> None:
        self._rows = zero_rows(capacity, dtype)
        self._lengths: deque[int] = deque()  # steps of each stored episode, the oldest first
        self.first_step, self.next_step = 0, 0

    def __len__(self) -> int:
        """The number of stored steps."""
        return self.next_step - self.first_step

    def take(self, step: Array) -> Array:
        """Return copies of some records. step: (B,) numbers of stored steps."""
        return take_records(self._rows, step % len(self._rows))

    def append(self, records: Array) -> None:
        """Store an episode of at most `capacity` steps; the oldest episodes make room."""
        while len(self) + len(records) > len(self._rows):
            self.first_step += self._lengths.popleft()
        self._lengths.append(len(records))
        self.next_step += len(records)
        self._write(self.next_step - len(records), records)

    def _write(self, step: int, records: Array) -> None:
        """Copy records as bytes, which NumPy does faster than field by field."""
        row = np.arange(step, step + len(records)) % len(self._rows)
        as_bytes = np.dtype((np.void, self._rows.itemsize))
        self._rows.view(as_bytes)[row] = records.view(as_bytes)

    def episodes(self) -> Iterator[Array]:
        """Yield the step numbers of each episode, the oldest first."""
        step = self.first_step
        for length in self._lengths:
            yield np.arange(step, step + length)
            step += length

    def clear(self) -> None:
        """Remove all episodes. Their step numbers are not used again."""
        self._lengths.clear()
        self.first_step = self.next_step

    def state(self) -> dict[str, Array]:
        """Return the stored steps as arrays, for `load`."""
        rows = self.take(np.arange(self.first_step, self.next_step))
        numbers = np.array([self.next_step, *self._lengths], np.int64)
        return {"rows": rows.view(np.uint8), "numbers": numbers}

    def load(self, state: Mapping[str, Array]) -> None:
        """Fill an empty storage with the steps of another one. Raises FileError or ValueError for malformed arrays."""
        next_step, *lengths = state["numbers"].tolist()
        records: Any = state["rows"].view(self._rows.dtype)
        is_sound = min(lengths, default=1) > 0 and sum(lengths) == len(records) <= min(next_step, len(self._rows))
        if not is_sound or next_step > MOST_STEPS:
            raise FileError(f"the episode lengths do not fit {len(records)} stored steps")
        if not all(np.isfinite(records[name]).all() for name in ("goal", "rew")):
            raise FileError("a goal or a reward is not finite")
        self._lengths.extend(lengths)
        self.first_step, self.next_step = next_step - len(records), next_step
        self._write(self.first_step, records)
