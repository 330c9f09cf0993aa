"""How much memory this process may still use."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

MEMORY = "/proc/meminfo"
CGROUPS = (  # versions 2 and 1: files of the limit and of the statistics, and the name of what cannot be given back there
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon "),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_rss "),
)


def free_memory() -> int:
    """Return the bytes that this process may still use: of the machine, and of its cgroup, as far as they are known."""
    free = [sys.maxsize]
    if (available := _read_number(MEMORY, "MemAvailable:")) is not None:
        free.append(available * 1024)
    for limit, statistics, used in CGROUPS:
        most = _read_number(limit, "")
        if most is not None:
            free.append(most - (_read_number(statistics, used) or 0))
    return max(0, min(free))


def _read_number(path: str, name: str) -> int | None:
    """Return the number after a name at the start of a line, None if there is none. Limits may be the word "max"."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(path).read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).removeprefix(name).split()[0])
    return None
