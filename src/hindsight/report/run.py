"""Read the files of a training run: settings, metrics, evaluated and training episodes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from ..errors import FileError, RunFolderError
from ..records import Array
from ..storage import read_json, read_lines
from .statistics import finite_points

NOT_OURS = "The file is damaged, or `hindsight train` did not write it."
GROWING = ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "changes.jsonl")
T = TypeVar("T")


class _Parsed(BaseModel):
    model_config = ConfigDict(frozen=True)


class RunOptions(_Parsed, extra="allow"):
    """The options of a run. Those that the report computes with are fields."""

    seed: int = 0
    discount: float = Field(0.98, ge=0, lt=1)
    solved_at: float = Field(0.95, ge=0, le=1)
    solved_evaluations: int = Field(2, ge=0)
    random_steps: int = Field(0, ge=0)
    updates_per_step: float = 1.0
    env_options: tuple[str, ...] = ()
    extra_reward: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return all options of the run as plain data, those that the report does not compute with included."""
        return self.model_dump(mode="json", exclude_unset=True)


class TaskSpec(_Parsed):
    """The task of a run. reward_low, reward_high: range of the reward of a step, infinite if unknown."""

    env_id: str | None = None
    max_episode_steps: int | None = None
    reward_low: float = -np.inf
    reward_high: float = np.inf


class Machine(_Parsed, extra="allow"):
    """Where a run was made. versions: of Python packages."""

    versions: Mapping[str, Any] = {}

    def facts(self) -> dict[str, Any]:
        """Return the facts and the versions."""
        return {**(self.model_extra or {}), **self.versions}


class RunSettings(_Parsed):
    """The content of settings.json.

    explained: meaning, default, source and the recipe's value of each option.
    check: problems of the environment that `hindsight check` found.
    reasons: by option, why the program chose its value.
    """

    agent: str
    recipe: str = "default"
    variant: str = "none"
    options: RunOptions
    spec: TaskSpec
    machine: Machine = Machine()
    explained: Mapping[str, Mapping[str, Any]] = {}
    begun: str = ""
    check: tuple[str, ...] = ()
    reasons: Mapping[str, str] = {}


class EpisodeFacts(_Parsed):
    """A line of evaluations.jsonl or episodes.jsonl. env_steps: steps of the run at its evaluation, or at its end."""

    env_steps: FiniteFloat
    success: bool | None = None
    desired_goal: tuple[float | None, ...]
    final_goal: tuple[float | None, ...] | None = None
    final_distance: float | None = None


class ChangedOption(_Parsed):
    """An option with its values before and after a change, and why it changed."""

    option: str
    before: Any = None
    value: Any = None
    reason: str = ""


class ChangeFacts(_Parsed):
    """A line of changes.jsonl. new_agent: why a new agent replaced one that had learned; "" if none did."""

    env_steps: FiniteFloat
    seconds: FiniteFloat
    changes: tuple[ChangedOption, ...] = ()
    new_agent: str = ""


@dataclass(frozen=True)
class Run:
    """The content of a run folder.

    metrics: name -> (records,) float64, ordered by environment steps. NaN if a record lacks the name.
    evaluated, trained: episodes, oldest first.
    changes: of the options during the run, oldest first.
    ended: "solved", "steps" (all steps are done) or "stopped"; "" if the run has not ended or was killed.
    damaged_lines: file name -> number of lines that could not be read.
    """

    path: Path
    settings: RunSettings
    metrics: Mapping[str, Array]
    evaluated: Sequence[EpisodeFacts] = ()
    trained: Sequence[EpisodeFacts] = ()
    changes: Sequence[ChangeFacts] = ()
    ended: str = ""
    damaged_lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def options(self) -> RunOptions:
        """The options of the run."""
        return self.settings.options

    @property
    def environment(self) -> str:
        """The id of the environment, and the options that it is made with."""
        return environment_name(self.settings.spec.env_id, self.options.env_options)

    @property
    def title(self) -> str:
        """Environment, agent and seed."""
        return f"{self.environment} · {self.settings.agent} · seed {self.options.seed}"

    def column(self, name: str) -> Array:
        """Return a metric, (records,), NaN if a record lacks it."""
        return self.metrics.get(name, np.full(len(self.metrics.get("env_steps", ())), np.nan))

    def last(self, name: str) -> float:
        """Return the latest value of a metric, NaN if there is none."""
        values = self.column(name)
        known = values[~np.isnan(values)]
        return float(known[-1]) if len(known) else float("nan")

    def at(self, env_steps: float, name: str) -> float:
        """Return a metric at a number of environment steps, interpolated linearly; NaN if there is none."""
        steps, values = finite_points(self.column("env_steps"), self.column(name))
        return float(np.interp(env_steps, steps, values)) if len(steps) else float("nan")


def environment_name(env_id: str | None, env_options: Sequence[str]) -> str:
    """Return a name such as "BitFlipping-v0 (n_bits=30)"."""
    options = f" ({', '.join(env_options)})" if env_options else ""
    return f"{env_id or 'environment without an id'}{options}"


def readable_path(path: str | Path) -> str:
    """Return a path as text that can be encoded as UTF-8, whatever the locale."""
    return os.fsencode(path).decode("utf-8", "replace")


def find_runs(path: Path) -> list[Path]:
    """Return the run folders in `path`, at any depth, sorted; or `path` itself if it is one.

    Raises RunFolderError if there is none.
    """
    if (path / "settings.json").is_file():
        return [path]
    found = sorted(place.parent for place in path.rglob("settings.json"))
    if not found:
        raise RunFolderError(f"There is no run in {path}. Name a folder that `hindsight train` wrote, or a folder of such.")
    return found


def read_run(path: Path) -> Run:
    """Read a run folder.

    Raises RunFolderError if it holds no run, and FileError if the content of a file has the wrong form.
    Lines that are no JSON object are skipped and counted.
    """
    place = path / "settings.json"
    if not place.is_file():
        raise RunFolderError(f"There is no run in {path}. Name a folder that `hindsight train` wrote.")
    settings = _validated(read_json(place), RunSettings, place)
    lines = {name: read_lines(path / name) for name in GROWING}
    ending = path / "ended.json"
    return Run(
        path,
        settings,
        _columns(path / "metrics.jsonl", lines["metrics.jsonl"][0]),
        _episodes(path / "evaluations.jsonl", lines["evaluations.jsonl"][0]),
        _episodes(path / "episodes.jsonl", lines["episodes.jsonl"][0]),
        _validated(lines["changes.jsonl"][0], list[ChangeFacts], path / "changes.jsonl"),
        str(_validated(read_json(ending), dict[str, Any], ending).get("why")) if ending.is_file() else "",
        {name: damaged for name, (_, damaged) in lines.items() if damaged},
    )


def _validated(data: Any, form: type[T], place: Path) -> T:
    """Return data in the given form. Raises FileError that names the file and the field."""
    try:
        return TypeAdapter(form).validate_python(data)
    except ValidationError as problem:
        error = problem.errors(include_url=False)[0]
        name = ".".join(map(str, error["loc"])) or "the content"
        raise FileError(f"{place}: `{name}` is malformed: {error['msg']}. {NOT_OURS}") from None


def _columns(place: Path, records: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Return every name that any record has as a column, by steps: an asynchronous evaluation is recorded late."""
    numbers = _validated(records, list[dict[str, float | None]], place)
    steps = np.array([record.get("env_steps") for record in numbers], np.float64)
    if not np.isfinite(steps).all():
        raise FileError(f"{place}: a record has no `env_steps`. {NOT_OURS}")
    numbers = [numbers[row] for row in np.argsort(steps, kind="stable")]
    names = dict.fromkeys(name for record in numbers for name in record)
    return {name: np.array([record.get(name) for record in numbers], np.float64) for name in names}


def _episodes(place: Path, records: Sequence[Mapping[str, Any]]) -> list[EpisodeFacts]:
    episodes = _validated(records, list[EpisodeFacts], place)
    sizes = {len(goal) for episode in episodes for goal in (episode.desired_goal, episode.final_goal) if goal is not None}
    if len(sizes) > 1:
        raise FileError(f"{place}: goals have different sizes, {sizes}. {NOT_OURS}")
    return sorted(episodes, key=lambda episode: episode.env_steps)
