"""A run as its folder tells it: settings, and columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, RunFolderError

Array = npt.NDArray[Any]
VIDEO_ENDINGS = (".mp4", ".webp", ".gif")  # the first that is there is shown


@dataclass(frozen=True)
class Goals:
    """Where episodes were asked to go and where they ended, oldest first.

    env_steps: (N,) when. success: (N,) bool. asked, reached: (N, d), the first numbers, at most three, of the desired and
    of the last achieved goal. distance: (N,) between them, NaN where it was not written.
    """

    env_steps: Array
    success: Array
    asked: Array
    reached: Array
    distance: Array

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.env_steps)

    def __getitem__(self, index: Any) -> Goals:
        """Some of the episodes."""
        return Goals(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Run:
    """What a run folder holds. metrics: columns of equal length, NaN where a record lacks the name."""

    path: Path
    settings: Mapping[str, Any]
    metrics: Mapping[str, Array]
    evaluated: Goals
    trained: Goals
    video: Path | None = None

    @property
    def environment(self) -> str:
        """What to call the environment: its id, and what it was made with."""
        return environment_name(self.settings["spec"].get("env_id"), self.options.get("env_options", ()))

    @property
    def agent(self) -> str:
        """The name of the agent."""
        return str(self.settings["agent"])

    @property
    def variant(self) -> str:
        """What was told of the world: "subgoals", "symmetric", "relative" or "plain"."""
        return str(self.settings.get("variant", "plain"))

    @property
    def seed(self) -> int:
        """The seed that the run followed from."""
        return int(self.options.get("seed", 0))

    @property
    def name(self) -> str:
        """What to call it among others."""
        return self.path.name

    @property
    def options(self) -> Mapping[str, Any]:
        """Every option by its name."""
        return dict(self.settings["options"])

    def column(self, name: str) -> Array:
        """A metric, (records,) of float64; NaN where a record lacks it."""
        found = self.metrics.get(name)
        return np.full(len(self), np.nan) if found is None else found

    def has(self, name: str) -> bool:
        """Whether any record has this metric."""
        return name in self.metrics

    def last(self, name: str) -> float:
        """The latest value of a metric; NaN where there is none."""
        values = self.column(name)
        known = values[~np.isnan(values)]
        return float(known[-1]) if len(known) else float("nan")

    def at(self, steps: float, name: str) -> float:
        """A metric at so many environment steps, by straight lines between records."""
        return float(np.interp(steps, self.column("env_steps"), self.column(name)))

    def __len__(self) -> int:
        """The number of records."""
        return len(self.metrics.get("env_steps", ()))


def environment_name(env_id: str | None, env_options: Sequence[str]) -> str:
    """As in "BitFlipping-v0 (n_bits=30)"."""
    made_with = f" ({', '.join(env_options)})" if env_options else ""
    return f"{env_id or 'an environment without an id'}{made_with}"


def find_runs(path: Path) -> list[Path]:
    """The run folder `path` itself, or those that lie in it at any depth, sorted. Raises RunFolderError where none does."""
    if (path / "settings.json").is_file():
        return [path]
    found = sorted(place.parent for place in path.rglob("settings.json"))
    if not found:
        raise RunFolderError(
            f"{path} holds no run: name a folder that `hindsight train` has written, or one of such folders"
        )
    return found


def read_run(path: Path) -> Run:
    """Read a run folder. Raises RunFolderError where it holds no run, FileError for a damaged file."""
    settings = _read_settings(path / "settings.json")
    evaluated = _read_lines(path / "evaluations.jsonl")
    trained = _read_lines(path / "episodes.jsonl")
    videos = [video for ending in VIDEO_ENDINGS for video in sorted(path.glob(f"*{ending}"))]
    try:
        columns = _columns(_read_lines(path / "metrics.jsonl"))
        return Run(path, settings, columns, _goals(evaluated), _goals(trained), videos[0] if videos else None)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        raise FileError(f"the records in {path} are malformed ({problem!r}): they are damaged, or not ours") from None


def _read_settings(place: Path) -> Mapping[str, Any]:
    if not place.is_file():
        raise RunFolderError(f"{place.parent} holds no run: name a folder that `hindsight train` has written")
    try:
        settings = json.loads(place.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise FileError(f"{place} is damaged: {problem}") from None
    parts = [settings.get(name) for name in ("options", "spec")] if isinstance(settings, dict) else [None]
    if not all(isinstance(part, dict) for part in parts) or "agent" not in settings:
        raise FileError(f"{place} does not hold the settings of a run: it is damaged, or not ours")
    return dict(settings)


def _read_lines(place: Path) -> list[dict[str, Any]]:
    """One record per line; the last may be half written while the run goes on. No file is no records."""
    lines = place.read_text(encoding="utf-8", errors="replace").splitlines() if place.is_file() else []
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except ValueError as problem:
            if number < len(lines):
                raise FileError(f"line {number} of {place} is damaged: {problem}") from None
    return records


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Every name that any record has, as float64, in the order of the records."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: np.array([record.get(name, np.nan) for record in records], np.float64) for name in names}


def _goals(records: Sequence[Mapping[str, Any]]) -> Goals:
    asked = [record["desired_goal"][:3] for record in records]
    reached = [(record.get("final_goal") or [np.nan] * len(a))[:3] for record, a in zip(records, asked, strict=True)]
    width = len(asked[0]) if asked else 0
    return Goals(
        env_steps=np.array([record["env_steps"] for record in records], np.float64),
        success=np.array([bool(record.get("success")) for record in records], np.bool_),
        asked=np.array(asked, np.float64).reshape(len(records), width),
        reached=np.array(reached, np.float64).reshape(len(records), width),
        distance=np.array([record.get("final_distance", np.nan) for record in records], np.float64),
    )
