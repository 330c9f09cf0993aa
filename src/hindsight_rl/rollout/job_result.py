"""The message with which a worker answers a job."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import origin
from ..records import Episode
from .collect import Collector, Job


@dataclass(frozen=True, eq=False)
class JobResult:
    """The episodes of one job, or why there are none.

    source: name of the source that submitted the job.
    ticket: of the job.
    episodes: in the order of their numbers; empty if collecting failed.
    failure: the worker's traceback, and at its end where the error was raised; None if collecting succeeded.
    checksum: CRC-32 of the episodes, every field included.
    """

    source: str
    ticket: int
    episodes: Sequence[Episode] = ()
    failure: str | None = None
    checksum: int = 0

    def fault(self, source: str, ticket: int, job: Job) -> str | None:
        """Return what is wrong with this message as the answer to a job, or None.

        "foreign": for another source. "duplicate": for another job of this source. "truncated": damaged episodes.
        """
        if self.source != source:
            return "foreign"
        if self.ticket != ticket:
            return "duplicate"
        if self.failure is not None:
            return None
        is_whole = tuple(e.number for e in self.episodes) == job.episodes and self.checksum == checksum(self.episodes)
        return None if is_whole else "truncated"


def run_job(collector: Collector, source: str, ticket: int, job: Job) -> JobResult:
    """Run a job in a worker and return its result; an error is returned as its traceback."""
    try:
        episodes = collector.collect(job)
        return JobResult(source, ticket, episodes, checksum=checksum(episodes))
    except Exception as problem:
        return JobResult(source, ticket, failure=f"{traceback.format_exc().rstrip()}{origin(problem)}")


def checksum(episodes: Sequence[Episode]) -> int:
    """Return the CRC-32 of all fields of the episodes: names, shapes, dtypes and values."""
    value = 0
    for episode in episodes:
        for name, content in sorted({**vars(episode), **episode.info}.items()):
            if isinstance(content, np.ndarray):
                value = zlib.crc32(content.tobytes(), zlib.crc32(f"{name} {content.shape} {content.dtype}".encode(), value))
            elif name != "info":
                value = zlib.crc32(f"{name} {content}".encode(), value)
    return value
