"""How a job's episodes travel from a worker: as flat arrays, with what tells whether they are whole and ours."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..records import OBSERVATION_KEYS, Array, Episode
from .collect import Collector, Job

_INFO = "info/"


@dataclass(frozen=True, eq=False)
class JobResult:
    """The answer to one job: its episodes, or why there are none.

    source: the source that asked. ticket: what for. failure: the worker's traceback. arrays: the rows of all episodes one
    after another, an array per field: steps + 1 rows of what was seen, `steps` of what was done. numbers, steps,
    terminated, success, is_guided: one value per episode; success is -1 where the environment did not say. checksum: CRC-32 of
    arrays and steps.
    """

    source: str
    ticket: int
    failure: str | None = None
    arrays: Mapping[str, Array] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    terminated: tuple[bool, ...] = ()
    success: tuple[int, ...] = ()
    is_guided: tuple[bool, ...] = ()
    checksum: int = 0

    def episodes(self) -> list[Episode]:
        """The episodes again, as views of the flat arrays."""
        made, row, step = [], 0, 0
        for i, steps in enumerate(self.steps):
            seen = {k: self.arrays[k][row : row + steps + 1] for k in OBSERVATION_KEYS}
            done = {k: a[step : step + steps] for k, a in self.arrays.items() if k not in OBSERVATION_KEYS}
            info = {k.removeprefix(_INFO): done.pop(k) for k in list(done) if k.startswith(_INFO)}
            told = None if self.success[i] < 0 else bool(self.success[i])
            made.append(
                Episode(
                    *(seen["observation"], seen["achieved_goal"], seen["desired_goal"], done["action"], done["reward"]),
                    info=info,
                    terminated=self.terminated[i],
                    success=told,
                    number=self.numbers[i],
                    is_guided=self.is_guided[i],
                )
            )
            row, step = row + steps + 1, step + steps
        return made

    def fault(self, source: str, ticket: int, job: Job) -> str | None:
        """What is wrong with it as the answer to `job`: "foreign", "duplicate", "truncated" or nothing."""
        if self.source != source:
            return "foreign"
        if self.ticket != ticket:  # the job was given to this worker before, and to another since
            return "duplicate"
        if self.failure is None and (self.numbers != job.episodes or self.checksum != checksum(self.arrays, self.steps)):
            return "truncated"
        return None


def deliver(collector: Collector, source: str, ticket: int, job: Job) -> JobResult:
    """Run a job in a worker; what goes wrong in it travels as text."""
    try:
        return pack(collector.collect(job), source, ticket)
    except Exception:
        return JobResult(source, ticket, failure=traceback.format_exc())


def pack(episodes: Sequence[Episode], source: str, ticket: int) -> JobResult:
    """Episodes, at least one, as they travel."""
    names = (*OBSERVATION_KEYS, "action", "reward")
    arrays = {name: np.concatenate([getattr(e, name) for e in episodes]) for name in names}
    arrays |= {_INFO + key: np.concatenate([e.info[key] for e in episodes]) for key in episodes[0].info}
    steps = tuple(map(len, episodes))
    return JobResult(
        source,
        ticket,
        arrays=arrays,
        numbers=tuple(e.number for e in episodes),
        steps=steps,
        terminated=tuple(e.terminated for e in episodes),
        success=tuple(-1 if e.success is None else int(e.success) for e in episodes),
        is_guided=tuple(e.is_guided for e in episodes),
        checksum=checksum(arrays, steps),
    )


def checksum(arrays: Mapping[str, Array], steps: Sequence[int]) -> int:
    """CRC-32 of the arrays' names, forms and bytes, and of the episodes' lengths."""
    value = zlib.crc32(repr(tuple(steps)).encode())
    for name, array in sorted(arrays.items()):
        value = zlib.crc32(f"{name} {array.shape} {array.dtype.str}".encode(), value)
        value = zlib.crc32(array.tobytes(), value)
    return value
