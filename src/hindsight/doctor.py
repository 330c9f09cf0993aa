"""What is installed, what is missing for which command, and the line that fixes it. Nothing heavy is imported."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from . import __version__
from .envs.ids import APT_GL, has_display

DISTRIBUTION = "hindsight-rl"
NEEDED = frozenset({"", "train"})  # the parts without which hardly any command works
PURPOSES = {  # of the extras that this module knows more of than their names
    "": "HindsightBuffer, HER.load",
    "train": "train, play, evaluate",
    "robotics": "Fetch, Hand and Maze environments",
    "panda": "Panda environments",
    "parking": "parking-v0",
    "report": "report, compare",
    "ray": "train --engine ray",
    "video": "play --video FILE.mp4",
    "tensorboard": "train --tensorboard",
    "wandb": "train --wandb",
    "onnx": "export --onnx",
}
MOST_DEVICES = 16  # for drawing, that are counted
SMALLEST_DISK = 2e9  # bytes: a full buffer's checkpoint, and the one before it
Level = Literal["good", "note", "missing"]
SIGNS: dict[Level, str] = {"good": "ok", "note": "note", "missing": "MISSING"}


@dataclass(frozen=True)
class Finding:
    """One line of the answer. fix: a line to run, or "" where nothing is wrong. level: "missing" breaks a needed part."""

    level: Level
    name: str
    told: str
    fix: str = ""

    def __str__(self) -> str:
        line = f"{SIGNS[self.level]:8}{self.name:34}{self.told}"
        return line + (f"\n{'':42}fix: {self.fix}" if self.fix else "")


@dataclass(frozen=True)
class Requirement:
    """A package that a part needs: the versions that will do, as in ">=3.3,<3.10", and the extra it belongs to, or ""."""

    package: str
    versions: str
    extra: str

    def problem(self, installed: str | None) -> str | None:
        """What is wrong with what is installed; None where it will do."""
        if installed is None:
            return f"{self.package} is not installed"
        if not fits(installed, self.versions):
            return f"{self.package} is {installed}, but {self.versions} is needed"
        return None


def examine() -> list[Finding]:
    """Everything, in the order in which it is told."""
    listed = metadata.requires(DISTRIBUTION) if _version_of(DISTRIBUTION) else None
    python = Finding("good", "hindsight", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    if listed is None:
        told = f"{DISTRIBUTION} was not installed by pip, so what it needs is not known"
        parts = [Finding("note", "packages", told, 'pip install "hindsight-rl[train]"')]
    else:
        parts = part_findings(list(map(parse, listed)))
    return [python, *parts, _torch(), _cores(os.environ), _graphics(), _disk(Path.cwd())]


def part_findings(requirements: Sequence[Requirement], installed: Mapping[str, str | None] | None = None) -> list[Finding]:
    """One finding for each extra. installed: versions by package; those of this Python unless given."""
    findings = []
    for extra in dict.fromkeys(r.extra for r in requirements if r.extra != "dev"):
        needed = _of_extra(extra, requirements)
        versions = {r.package: _version_of(r.package) if installed is None else installed.get(r.package) for r in needed}
        problems = [problem for r in needed if (problem := r.problem(versions[r.package]))]
        name = PURPOSES.get(extra, f"extra {extra}")
        if problems:
            level: Level = "missing" if extra in NEEDED else "note"
            fix = f'pip install "{DISTRIBUTION}[{extra}]"' if extra else f"pip install {DISTRIBUTION}"
            findings.append(Finding(level, name, "; ".join(problems), fix))
        else:
            findings.append(Finding("good", name, ", ".join(f"{p} {v}" for p, v in versions.items())))
    return findings


def parse(line: str) -> Requirement:
    """A requirement as a package's metadata has it: `mujoco<3.10,>=3.3; extra == "robotics"`."""
    need, _, marker = line.partition(";")
    name = re.match(r"\s*([\w.-]+)\s*(?:\[([\w,\s-]*)\])?\s*\(?([^)]*)\)?", need)
    extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if name is None:
        return Requirement(line, "", "")
    package = name.group(1) if not name.group(2) else f"{name.group(1)}[{name.group(2)}]"
    return Requirement(package, name.group(3).strip(), extra.group(1) if extra else "")


def fits(version: str, wanted: str) -> bool:
    """Whether a version lies in a range such as ">=3.3,<3.10"; by its leading numbers."""
    return all(_fits_one(version, part.strip()) for part in wanted.split(",") if part.strip())


def _fits_one(version: str, wanted: str) -> bool:
    sign = wanted[: len(wanted) - len(wanted.lstrip("<>=!~"))]
    number = wanted[len(sign) :].strip()
    have, want = _numbers(version), _numbers(number)
    width = max(len(have), len(want))
    have, want = (numbers + (0,) * (width - len(numbers)) for numbers in (have, want))
    return {">=": have >= want, "<": have < want, ">": have > want, "<=": have <= want, "==": have == want}.get(sign, True)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()


def _of_extra(extra: str, requirements: Iterable[Requirement]) -> list[Requirement]:
    """What an extra needs, without the other extras that it includes, which are told of by themselves."""
    return [r for r in requirements if r.extra == extra and not r.package.startswith(f"{DISTRIBUTION}[")]


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> Finding:
    """The build of torch, read from its files: importing it takes longer than all the rest."""
    place = find_spec("torch")
    if place is None or place.origin is None:
        return Finding("note", "torch", "not installed", 'pip install "hindsight-rl[train]"')
    source = (Path(place.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b.*=\s*'([\d.]+)'", source, re.MULTILINE)
    build = f"{_version_of('torch')}, built for {f'CUDA {cuda.group(1)}' if cuda else 'processors only'}"
    has_gpu = Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None
    if has_gpu and not cuda:
        return Finding("note", "torch", f"{build}, though there is a GPU here", "pip install --force-reinstall torch")
    return Finding("good", "torch", f"{build}; {'a GPU is here' if has_gpu else 'no GPU here'}")


def _cores(environment: Mapping[str, str]) -> Finding:
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    threads = environment.get("OMP_NUM_THREADS", "not set")
    told = f"{usable} of {os.cpu_count()} cores usable; OMP_NUM_THREADS is {threads}; updates use --threads, 1 by default"
    return Finding("good", "cores", told)


def _graphics() -> Finding:
    backend, devices = os.environ.get("MUJOCO_GL", "not set"), egl_devices()
    egl = f"EGL with {devices} to draw on" if devices else "EGL missing"
    told = f"{'a display' if has_display() else 'no display'}, {egl}, MUJOCO_GL is {backend}"
    if has_display() or devices:
        return Finding("good", "play, graphics", told)
    return Finding("note", "play, graphics", f"{told}: simulators cannot be drawn", APT_GL)


def egl_devices() -> int:
    """How many devices EGL can draw with, a processor among them; 0 where EGL itself is missing. MuJoCo asks the same."""
    try:
        library = ctypes.CDLL("libEGL.so.1")
    except OSError:
        return 0
    library.eglGetProcAddress.restype = ctypes.c_void_p
    address = library.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return 0
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(address)
    count = ctypes.c_int(0)
    devices = (ctypes.c_void_p * MOST_DEVICES)()
    return int(count.value) if query(MOST_DEVICES, devices, ctypes.byref(count)) else 0


def _disk(place: Path) -> Finding:
    free = shutil.disk_usage(place).free
    told = f"{free / 1e9:,.1f} GB free in {place}"
    if free < SMALLEST_DISK:
        return Finding("note", "disk", f"{told}: checkpoints may not fit", "hindsight train ... --folder /a/larger/disk")
    return Finding("good", "disk", told)
