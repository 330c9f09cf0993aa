"""Facts about the machine and the versions of a run."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


def machine_facts() -> dict[str, Any]:
    """Return versions, the commit if the package runs from its repository, processor and cores."""
    packages = ("hindsight-rl", "numpy", "numba", "torch", "gymnasium", "gymnasium-robotics", "mujoco")
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
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
    git = package.parents[1] / ".git"
    if package.parent.name != "src" or not git.is_dir():
        return ""
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        branch = head.removeprefix("ref: ")
        if (git / branch).is_file():
            return (git / branch).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), "")
    except OSError:
        return ""
