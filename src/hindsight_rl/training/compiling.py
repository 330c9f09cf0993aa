"""Compile the loops of the buffer in a process of its own, while this one imports torch and makes the environment."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ..replay.kernels import sample
from .machine import PACKAGE, usable_cores

COMPILE = "from hindsight_rl.replay.buffer import compile_kernels; compile_kernels(symmetries=False)"


def loops_compiling() -> AbstractContextManager[object]:
    """Return a block during which the loops are compiled beside it. Its end waits for them.

    Nothing happens if they were compiled before, or if there is one core. If compiling fails, it is done at the first use.
    """
    folder = sample.stats.cache_path
    if usable_cores() == 1 or folder is None or is_compiled(Path(folder), PACKAGE / "replay" / "kernels.py"):
        return nullcontext()
    silent = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-P", "-c", COMPILE], stdin=silent, stdout=silent, stderr=silent)


def is_compiled(folder: Path, source: Path) -> bool:
    """Return whether Numba's cache has a loop of a module that is newer than its source.

    folder: of the cache. source: the file of the module.
    """
    changed = source.stat().st_mtime
    return any(file.stat().st_mtime > changed for file in folder.glob(f"{source.stem}.*.nbc"))
