"""Checkpoints: the state of a trainer as arrays and plain data, and back, and the files that hold it."""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import FiniteFloat

from .. import storage
from ..agents.policy import PolicyWeights
from ..errors import FileError
from ..records import Array, Episode, Record, read_record
from ..records.exploration import Exploration
from ..replay.saved_buffer import saved_episodes
from ..rollout.collect import Job
from ..seeds import TRAINING
from .events import Snapshot
from .replacement import MOST_CATCHING_UP
from .run_state import Counts, Meter
from .trainer import Trainer
from .unguided_success import read_successes

CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"
CHECKPOINT_KIND = "checkpoint"
State = tuple[dict[str, Array], dict[str, Any]]


@dataclass(frozen=True)
class _Evaluated:
    """A record of `Evaluator.history`. return_mean: None if it is not finite."""

    env_steps: FiniteFloat
    episodes: FiniteFloat
    success_rate: FiniteFloat
    return_mean: FiniteFloat | None


def trainer_state(trainer: Trainer) -> State:
    """Return everything from which a trainer goes on to the same bytes, apart from its settings and its source.

    Arrays of the buffer are views: write or copy them before the trainer goes on.
    """
    buffer_arrays, buffer_data = trainer.buffer.state_dict()
    parts: dict[str, Mapping[str, Array]] = {"buffer": buffer_arrays, "agent": trainer.agent.state_dict()}
    demonstrations = evaluation = None
    if trainer.demonstrations:
        parts["demonstrations"], demonstrations = trainer.demonstrations.buffer.state_dict()
    jobs = [ticket.job for ticket in trainer.rollouts.in_flight]
    parts |= {f"job/{i}": asdict(job.weights) for i, job in enumerate(jobs)}
    if pending := trainer.evaluator.pending:
        parts |= {"evaluation/weights": asdict(pending.weights), "evaluation/agent": pending.agent_state}
        evaluation = {"counts": asdict(pending.counts), "means": dict(pending.means)}
    arrays = {f"{part}/{name}": array for part, contents in parts.items() for name, array in contents.items()}
    return arrays, {
        "counts": asdict(trainer.counts),
        "meter": asdict(trainer.meter),
        "history": trainer.evaluator.history,
        "evaluation": evaluation,
        "unguided": trainer.success.successes,
        "jobs": [
            {"episodes": list(job.episodes), "explorations": list(map(asdict, job.explorations)), "version": job.version}
            for job in jobs
        ],
        "buffer": buffer_data,
        "demonstrations": demonstrations,
        "search": None if trainer.search is None else asdict(trainer.search.state),
    }


def restore_trainer(trainer: Trainer, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
    """Bring a trainer to the state that `trainer_state` returned. Jobs that were in flight are submitted again.

    Raises FileError if the state is malformed or belongs to another agent or buffer.
    """
    try:
        counts, meter = _counts(data["counts"]), _meter(data["meter"])
        history = [asdict(_record(_Evaluated, record)) for record in data["history"]]
        success = read_successes(data["unguided"])
        pending = _snapshot(data["evaluation"], _part(arrays, "evaluation/"))
        seed = trainer.settings.training.seed
        jobs = [_job(seed, record, _part(arrays, f"job/{i}/")) for i, record in enumerate(data["jobs"])]
        agent = _part(arrays, "agent/")
        if trainer.search is not None:
            trainer.search.restore(trainer, data["search"], agent)
        trainer.agent.load_state_dict(agent)
        trainer.buffer.load_state_dict(_part(arrays, "buffer/"), data["buffer"])
        if trainer.demonstrations:
            trainer.demonstrations.buffer.load_state_dict(_part(arrays, "demonstrations/"), data["demonstrations"])
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as problem:
        raise FileError(f"the checkpoint is malformed ({problem!r}): it is damaged, or not ours") from None
    if counts.due_updates > _most_due(trainer, counts):
        raise FileError(f"the checkpoint has {counts.due_updates} due updates: it is damaged, or not ours")
    trainer.counts, trainer.meter = counts, meter
    trainer.success.successes = success.successes
    trainer.evaluator.history, trainer.evaluator.pending = history, pending
    trainer.take_changes()  # the run has reported them before the checkpoint
    trainer.rollouts.resubmit(jobs)


def read_replay(folder: Path) -> list[Episode]:
    """Return the episodes in the replay buffer of the last checkpoint of a run, the oldest first. Raises FileError."""
    arrays, data = storage.load_arrays(folder / CHECKPOINT, CHECKPOINT_KIND)
    try:
        return saved_episodes(_part(arrays, "buffer/"), data["trainer"]["buffer"])
    except (KeyError, TypeError) as problem:
        raise FileError(f"The checkpoint is malformed ({problem!r}): it is damaged, or not ours.") from None


def _most_due(trainer: Trainer, counts: Counts) -> float:
    """Return how many updates can be due after so many steps: all in the warm-up, else those of an unfinished job."""
    if not counts.unfinished_steps and not (trainer.search is not None and trainer.search.is_warm_up):
        return trainer.agent.batches_per_update
    per_step = trainer.settings.training.updates_per_step
    return trainer.agent.batches_per_update + per_step * counts.env_steps + max(MOST_CATCHING_UP, counts.offline_updates)


def _job(run_seed: int, record: Mapping[str, Any], weights: dict[str, Array]) -> Job:
    explorations = tuple(_record(Exploration, each) for each in record["explorations"])
    numbers = tuple(int(number) for number in record["episodes"])
    if len(explorations) != len(numbers):
        raise FileError("the checkpoint has jobs whose episodes do not all explore: it is damaged, or not ours")
    return Job(run_seed, TRAINING, numbers, PolicyWeights(**weights), explorations, int(record["version"]))


def _snapshot(record: Mapping[str, Any] | None, arrays: dict[str, Array]) -> Snapshot | None:
    if record is None:
        return None
    weights = PolicyWeights(**_part(arrays, "weights/"))
    return Snapshot(weights, _part(arrays, "agent/"), _counts(record["counts"]), _with_nan(record["means"]))


def _record(record_class: type[Record], data: Mapping[str, Any]) -> Record:
    """Return a dataclass of a checkpoint. Raises FileError for an unknown field, or one of another type."""
    if unknown := sorted(data.keys() - inspect.signature(record_class).parameters.keys()):
        raise FileError(f"the checkpoint has unknown fields {unknown}: it is damaged, or of another version")
    return read_record(record_class, data, "checkpoint")


def _meter(data: Mapping[str, Any]) -> Meter:
    meter = _record(Meter, dict(data) | {"sums": _with_nan(data["sums"])})
    if meter.sums.keys() != meter.counts.keys() or min(meter.counts.values(), default=1) < 1:
        raise FileError("the checkpoint has sums without counts: it is damaged, or not ours")
    return meter


def _counts(data: Mapping[str, Any]) -> Counts:
    counts = _record(Counts, data)
    if min(asdict(counts).values()) < 0 or counts.unfinished_steps > counts.env_steps:
        raise FileError("the checkpoint has impossible counts: it is damaged, or not ours")
    return counts


def _with_nan(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers of a file: it holds NaN as None."""
    return {name: math.nan if number is None else float(number) for name, number in numbers.items()}


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


class FileState(NamedTuple):
    """How far the other files of a run folder are.

    logged_at: environment steps of the last record of the metrics.
    sizes: of the files that grow, in bytes. unsaved_lines: what is still to be added to them. Both by their names.
    """

    logged_at: int
    sizes: Mapping[str, int]
    unsaved_lines: Mapping[str, str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileState:
        """Return what a checkpoint holds. Raises an exception of Python if it is malformed."""
        sizes = {str(name): max(0, int(size)) for name, size in data["sizes"].items()}
        lines = {str(name): str(text) for name, text in data.get("unsaved_lines", {}).items()}
        return cls(int(data["logged_at"]), sizes, lines)


class CheckpointFiles:
    """Writes and reads the checkpoints in the folder of a run.

    saved_at: environment steps of the last checkpoint that was written or read; None: there is none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.saved_at: int | None = None

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return any((self._folder / name).exists() for name in (CHECKPOINT, PREVIOUS))

    def save(self, trainer: Trainer, files: FileState) -> None:
        """Write everything from which the run goes on to the same bytes. Raises OSError if the disk fails."""
        arrays, state = trainer_state(trainer)
        data = {"trainer": state, **files._asdict()}
        storage.save_arrays(self._folder / CHECKPOINT, CHECKPOINT_KIND, arrays, data, previous=self._folder / PREVIOUS)
        self.saved_at = trainer.counts.env_steps

    def load(self, trainer: Trainer) -> tuple[FileState, list[str]]:
        """Restore the trainer from the last checkpoint, or if it is damaged from the one before.

        Return how far the other files were, and a sentence for each checkpoint that was not used. Raises FileError.
        """
        problems: list[str] = []
        for name in (CHECKPOINT, PREVIOUS):
            try:
                arrays, data = storage.load_arrays(self._folder / name, CHECKPOINT_KIND)
                restore_trainer(trainer, arrays, data.get("trainer", {}))
                files = FileState.from_json(data)
            except (FileError, KeyError, TypeError, ValueError, AttributeError) as problem:
                problems.append(str(problem))
                continue
            self.saved_at = trainer.counts.env_steps
            return files, [f"The run goes on from {name}, because {problem}." for problem in problems]
        raise FileError("; ".join(problems))

    def how_to_go_on(self) -> str:
        """Return two sentences: where the last good checkpoint is, and how to resume from it."""
        folder = shlex.quote(str(self._folder))
        again = f"`hindsight-rl train` with the same environment and options, --folder {folder} and --resume"
        if self.saved_at is None:
            return f"The run has no checkpoint yet. {again} begins it again."
        path = next((p for name in (CHECKPOINT, PREVIOUS) if (p := self._folder / name).exists()), self._folder)
        return f"The last good checkpoint is {path}, after {self.saved_at:,} steps. {again} goes on from it."
