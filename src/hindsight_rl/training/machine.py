"""The machine of a run: its facts, and compiling the loops of the buffer on a spare one."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

from ..storage import usable_cores

PACKAGE = Path(__file__).parents[1]
COMPILE = "from hindsight_rl.replay.buffer import compile_kernels; compile_kernels(symmetries=False)"


def machine_facts() -> dict[str, Any]:
    """Return versions, the commit if the package runs from its repository, processor and cores."""
    packages = ("hindsight-rl", "numpy", "numba", "torch", "gymnasium", "gymnasium-robotics", "mujoco")
    versions = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "versions": versions,
        "commit": source_commit(PACKAGE),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def source_commit(package: Path) -> str:
    """Return the commit that is checked out, if the package lies in src of a repository; "" if it is unknown."""
    repository = package.parents[1]
    if package.parent.name != "src" or not (repository / ".git").exists():
        return ""
    command = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def loops_compiling() -> AbstractContextManager[object]:
    """Return a block during which a process compiles the loops of the buffer. Its end waits for that process.

    Meanwhile this process imports torch and makes the environment.
    Nothing happens if they were compiled before, or if there is one core. If compiling fails, it is done at the first use.
    """
    from ..replay.kernels import sample  # it imports Numba

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
