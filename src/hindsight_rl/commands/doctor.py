"""What is installed, what is missing for which command, and how to install it. Nothing slow is imported."""

from __future__ import annotations

import os
import platform
import re
import shutil
from argparse import Namespace
from collections.abc import Mapping, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from .. import __version__
from ..envs.goal_env import APT_GL, has_display
from ..errors import DISTRIBUTION, install_line
from ..storage import usable_cores

REQUIRED = frozenset({"", "train"})  # extras without which hardly any command works
PURPOSES = {  # of the extras
    "": "HindsightBuffer, HER.load",
    "train": "train, play, evaluate",
    "robotics": "Fetch, Hand and Maze environments",
    "panda": "Panda environments",
    "parking": "parking-v0",
    "report": "report, compare",
    "ray": "train --engine ray",
    "video": "play --video FILE.mp4",
    "minari": "record, and train --demonstrations",
    "tensorboard": "train --tensorboard",
    "wandb": "train --wandb",
    "onnx": "export --onnx",
}
CheckLevel = Literal["good", "note", "missing"]
SIGNS: dict[CheckLevel, str] = {"good": "ok", "note": "note", "missing": "MISSING"}


@dataclass(frozen=True)
class DoctorLine:
    """One line of the answer. fix: a line to run, or "". level: "missing" if a required part does not work."""

    level: CheckLevel
    name: str
    text: str
    fix: str = ""

    def __str__(self) -> str:
        line = f"{SIGNS[self.level]:8}{self.name:34}{self.text}"
        return line + (f"\n{'':42}fix: {self.fix}" if self.fix else "")


def doctor(arguments: Namespace) -> int:
    """Print every finding, and return 1 if a required part does not work."""
    findings = examine()
    print(*findings, sep="\n")
    return int(any(finding.level == "missing" for finding in findings))


def examine() -> list[DoctorLine]:
    """Return every finding, in the order in which they are printed."""
    listed = metadata.requires(DISTRIBUTION) if installed_version(DISTRIBUTION) else None
    python = DoctorLine("good", "hindsight-rl", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    if listed is None:
        text = f"{DISTRIBUTION} was not installed by pip: its requirements are unknown"
        parts = [DoctorLine("note", "packages", text, install_line("train"))]
    else:
        requirements = [Requirement(line) for line in listed]
        parts = part_findings(requirements, {r.name: installed_version(r.name) for r in requirements})
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    text = f"{usable_cores()} of {os.cpu_count()} cores usable; OMP_NUM_THREADS is {threads}"
    return [python, *parts, _torch(), DoctorLine("good", "cores", text), _graphics()]


def part_findings(requirements: Sequence[Requirement], installed: Mapping[str, str | None]) -> list[DoctorLine]:
    """Return one finding per extra. installed: versions by package, None for those that are missing."""
    by_extra: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        extra = _extra_of(requirement)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": extra})  # to this Python and system
        if applies and requirement.name != DISTRIBUTION:  # an extra that includes another one: it has a line of its own
            by_extra.setdefault(extra, []).append(requirement)
    return [_part(extra, needed, installed) for extra, needed in by_extra.items() if extra != "dev"]


def _part(extra: str, needed: Sequence[Requirement], installed: Mapping[str, str | None]) -> DoctorLine:
    name = PURPOSES.get(extra, f"extra {extra}")
    problems = [problem for requirement in needed if (problem := _problem(requirement, installed[requirement.name]))]
    if not problems:
        return DoctorLine("good", name, ", ".join(f"{r.name} {installed[r.name]}" for r in needed))
    return DoctorLine("missing" if extra in REQUIRED else "note", name, "; ".join(problems), install_line(extra))


def _problem(requirement: Requirement, version: str | None) -> str | None:
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} must be {requirement.specifier}, got {version}"
    return None


def _extra_of(requirement: Requirement) -> str:
    """Return the extra that a requirement belongs to, or ""."""
    found = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(requirement.marker or ""))
    return found.group(1) if found else ""


def installed_version(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> DoctorLine:
    """Return the build of torch, read from its files: importing it takes longer than all the rest."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return DoctorLine("note", "torch", "not installed", install_line("train"))
    source = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b.*=\s*'([\d.]+)'", source, re.MULTILINE)
    build = f"{installed_version('torch')}, built for {f'CUDA {cuda.group(1)}' if cuda else 'CPU only'}"
    has_gpu = Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None
    if has_gpu and not cuda:
        return DoctorLine("note", "torch", f"{build}, but this machine has a GPU", "pip install --force-reinstall torch")
    return DoctorLine("good", "torch", f"{build}; {'this machine has a GPU' if has_gpu else 'no GPU'}")


def _graphics() -> DoctorLine:
    backend, has_egl = os.environ.get("MUJOCO_GL", "not set"), find_library("EGL") is not None
    display, egl = "a display" if has_display() else "no display", "EGL" if has_egl else "no EGL"
    text = f"{display}, {egl}, MUJOCO_GL is {backend}"
    if has_display() or has_egl:
        return DoctorLine("good", "play, graphics", text)
    return DoctorLine("note", "play, graphics", f"{text}: simulators cannot be rendered", APT_GL)
