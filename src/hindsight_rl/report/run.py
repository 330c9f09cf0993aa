"""Read the files of a training run: settings, metrics, evaluated and training episodes."""

from __future__ import annotations

import math
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, FiniteFloat, TypeAdapter, ValidationError

from ..errors import FileError, RunFolderError
from ..records import GOAL_DIMENSIONS, Array, Finding
from ..records.statistics import Curve, finite_points
from ..storage import read_json, read_lines

NOT_OURS = "The file is damaged, or `hindsight-rl train` did not write it."
MOST_NAMES = 10_000  # in a line
MOST_EPISODES = 100_000  # that are kept of evaluation, and of training: the maps of goals have 4,000
MOST_CHANGES = 100_000  # of options
MOST_NUMBERS = 100_000_000  # of metrics, 8 bytes each; with 50 metrics, records of 2 * 10^9 steps
Line = TypeVar("Line")


class _Parsed(BaseModel):
    model_config = ConfigDict(frozen=True)


class ReportedOptions(_Parsed, extra="allow"):
    """The options of a run. Those that the report computes with are fields."""

    seed: int = 0
    discount: float = Field(0.98, ge=0, lt=1)
    solved_at: float = Field(0.95, ge=0, le=1)
    solved_evaluations: int = Field(2, ge=0)
    random_steps: int = Field(0, ge=0)
    updates_per_step: float = 1.0
    planned_updates: float = 1.0
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

    name: that the user gave the run: of the entry of a suite, for instance.
    explained: meaning, default, source and the recipe's value of each option.
    check: problems of the environment that `hindsight-rl check` found.
    reasons: by option, why the program chose its value.
    findings: what the steps show about the task, with figures.
    not_found, not_used: what the program did not find about the task, and what it found that contradicts other options.
    """

    agent: str
    name: str = ""
    recipe: str = "default"
    variant: str = "none"
    options: ReportedOptions
    spec: TaskSpec
    machine: Machine = Machine()
    explained: Mapping[str, Mapping[str, Any]] = {}
    begun: str = ""
    check: tuple[str, ...] = ()
    reasons: Mapping[str, str] = {}
    findings: tuple[Finding, ...] = ()
    not_found: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()


def _first_dimensions(goal: Any) -> Any:
    return goal[:GOAL_DIMENSIONS] if isinstance(goal, list) else goal


Goal = Annotated[tuple[float | None, ...], BeforeValidator(_first_dimensions)]


class EpisodeFacts(_Parsed):
    """A line of evaluations.jsonl or episodes.jsonl. Of the goals, the first dimensions.

    env_steps: steps of the run at its evaluation, or at its end.
    """

    env_steps: FiniteFloat
    success: bool | None = None
    desired_goal: Goal
    final_goal: Goal | None = None
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
    changes: Annotated[tuple[ChangedOption, ...], FailFast()] = ()
    new_agent: str = ""


@dataclass(frozen=True)
class Run:
    """The content of a run folder.

    metrics: name -> (records,) float64, ordered by environment steps. NaN if a record lacks the name.
    evaluated, trained: episodes, oldest first; of more than MOST_EPISODES some, evenly spaced.
    n_evaluated: number of all evaluation episodes.
    changes: of the options during the run, oldest first.
    ended: "solved", "steps" (all steps are done) or "stopped"; "" if the run has not ended or was killed.
    damaged_lines: file name -> number of lines that could not be read.
    """

    path: Path
    settings: RunSettings
    metrics: Mapping[str, Array]
    evaluated: Sequence[EpisodeFacts] = ()
    trained: Sequence[EpisodeFacts] = ()
    n_evaluated: int = 0
    changes: Sequence[ChangeFacts] = ()
    ended: str = ""
    damaged_lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def options(self) -> ReportedOptions:
        """The options of the run."""
        return self.settings.options

    @property
    def environment(self) -> str:
        """The id of the environment, and the options that it is made with."""
        return environment_name(self.settings.spec.env_id, self.options.env_options)

    @property
    def title(self) -> str:
        """Environment, name, agent and seed."""
        parts = (self.environment, self.settings.name, self.settings.agent, f"seed {self.options.seed}")
        return " · ".join(filter(None, parts))

    def column(self, name: str) -> Array:
        """Return a metric, (records,), NaN if a record lacks it."""
        return self.metrics.get(name, np.full(len(self.metrics.get("env_steps", ())), np.nan))

    def curve(self, name: str, x: str = "env_steps") -> Curve:
        """Return the points of a metric against another where both are finite."""
        return finite_points(self.column(x), self.column(name))

    def last(self, name: str) -> float:
        """Return the latest value of a metric, NaN if there is none."""
        values = self.column(name)
        known = values[~np.isnan(values)]
        return float(known[-1]) if len(known) else float("nan")

    @property
    def check_steps(self) -> float:
        """The environment steps before training, by the check above all. NaN: a version before this number was recorded."""
        return self.last("check_steps")

    def at(self, env_steps: float, name: str) -> float:
        """Return a metric at a number of environment steps, interpolated linearly; NaN if there is none."""
        steps, values = self.curve(name)
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
    runs = sorted(found.parent for found in path.rglob("settings.json"))
    if not runs:
        raise RunFolderError(
            f"There is no run in {path}. Name a folder that `hindsight-rl train` wrote, or a folder of such."
        )
    return runs


def read_run(path: Path) -> Run:
    """Read a run folder.

    Raises RunFolderError if it holds no run, and FileError if the content of a file has the wrong form.
    Lines that are no JSON object are skipped and counted.
    """
    file, ending, damaged = path / "settings.json", path / "ended.json", Counter[str]()
    if not file.is_file():
        raise RunFolderError(f"There is no run in {path}. Name a folder that `hindsight-rl train` wrote.")
    settings = _validated(read_json(file), TypeAdapter(RunSettings), file)
    metrics = _columns(path / "metrics.jsonl", damaged)
    evaluated, n_evaluated = _episodes(path / "evaluations.jsonl", damaged)
    trained, _ = _episodes(path / "episodes.jsonl", damaged)
    changes = list(islice(_records(path / "changes.jsonl", TypeAdapter(ChangeFacts), damaged), MOST_CHANGES + 1))
    if len(changes) > MOST_CHANGES:
        raise FileError(f"{path / 'changes.jsonl'} has more than {MOST_CHANGES:,} changes. {NOT_OURS}")
    ended = str(read_json(ending).get("why")) if ending.is_file() else ""
    return Run(path, settings, metrics, evaluated, trained, n_evaluated, changes, ended, damaged)


def _validated(data: Any, form: TypeAdapter[Line], file: Path | str) -> Line:
    """Return data in the given form. Raises FileError that names the file and the field."""
    try:
        return form.validate_python(data)
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        name = ".".join(map(str, error["loc"])) or "the content"
        raise FileError(f"{file}: `{name}` is malformed: {error['msg']}. {NOT_OURS}") from None


def _records(file: Path, form: TypeAdapter[Line], damaged: Counter[str]) -> Iterator[Line]:
    """Yield the records of a file of JSON lines in the given form. Lines that cannot be read are counted in `damaged`."""
    for number, (_, record) in enumerate(read_lines(file), 1):
        if record is None:
            damaged[file.name] += 1
        elif len(record) > MOST_NAMES:
            raise FileError(f"{file}, line {number} has more than {MOST_NAMES:,} names. {NOT_OURS}")
        else:
            yield _validated(record, form, f"{file}, line {number}")


def _columns(file: Path, damaged: Counter[str]) -> dict[str, Array]:
    """Return every name that any record has as a column, by steps: an asynchronous evaluation is recorded late.

    Raises FileError for more than MOST_NUMBERS.
    """
    columns: dict[str, array[float]] = {}
    n_records = 0
    for record in _records(file, TypeAdapter(dict[str, float | None]), damaged):
        if not math.isfinite(_number(record.get("env_steps"))):
            raise FileError(f"{file}: a record has no `env_steps`. {NOT_OURS}")
        for name, value in record.items():
            column = columns.setdefault(name, array("d"))
            column.extend([math.nan] * (n_records - len(column)))
            column.append(_number(value))
        n_records += 1
        if n_records * len(columns) > MOST_NUMBERS:
            raise FileError(f"{file} has {len(columns):,} metrics in {n_records:,} records: too many for a report.")
    order = np.argsort(columns.get("env_steps", ()), kind="stable")
    for column in columns.values():
        column.extend([math.nan] * (n_records - len(column)))
    return {name: np.asarray(column)[order] for name, column in columns.items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _episodes(file: Path, damaged: Counter[str]) -> tuple[list[EpisodeFacts], int]:
    """Return at most MOST_EPISODES episodes, evenly spaced, and the number of all."""
    kept: list[EpisodeFacts] = []
    sizes: set[int] = set()
    total, every = 0, 1  # each so many-th episode is kept
    for episode in _records(file, TypeAdapter(EpisodeFacts), damaged):
        sizes |= {len(goal) for goal in (episode.desired_goal, episode.final_goal) if goal is not None}
        if len(sizes) > 1:
            raise FileError(f"{file}: goals have different sizes, {sizes}. {NOT_OURS}")
        if total % every == 0:
            kept.append(episode)
        total += 1
        if len(kept) > MOST_EPISODES:
            kept, every = kept[::2], 2 * every
    return sorted(kept, key=lambda episode: episode.env_steps), total
