"""Facts about the machine and the versions of a run."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


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


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


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
