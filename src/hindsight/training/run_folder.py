"""The folder of a run: it receives the trainer's events and writes what others read. The trainer does not know it."""

from __future__ import annotations

import fcntl
import os
import socket
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ..errors import FileError, RunFolderError
from ..options import Settings
from ..records import GoalSpec
from ..storage import (
    append_lines,
    finite,
    json_text,
    load_arrays,
    parse_json,
    read_json,
    read_lines,
    save_arrays,
    save_bytes,
    truncate,
)
from .checkpoint import restore_trainer, trainer_state
from .events import EvaluationFinished, Event, JobFinished
from .explain import explain
from .machine import machine_facts
from .metrics import ProgressTable, count_metrics, episode_records, evaluation_metrics
from .saved_model import SavedModel, refuse_other_settings
from .trainer import Trainer

FREE_ON_RESUME = frozenset({"steps", "workers", "engine", "ray_address", "checkpoint_every"})  # may change on resume
SETTINGS, ENDING, TABLE = "settings.json", "ended.json", "progress.csv"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"
METRICS, EVALUATIONS, EPISODES = "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl"
GROWING = (METRICS, EVALUATIONS, EPISODES)
KIND = "checkpoint"


class Ending(NamedTuple):
    """Why a run ended ("solved", "steps": it made all of them, or "stopped"), and after how many steps."""

    why: str
    env_steps: int


class RunFolder:
    """Writes settings, metrics, evaluations, policies and checkpoints of a run. One process holds it at a time.

    listeners: functions that are called with every record of the metrics.
    """

    def __init__(self, path: Path, settings: Settings, spec: GoalSpec) -> None:
        self.path, self.settings, self.spec = path, settings, spec
        self.listeners: list[Callable[[Mapping[str, float]], None]] = []
        self._logged_at = self._checkpoint_at = 0
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(path)
        _remove_unfinished(path)
        self._table = ProgressTable(path / TABLE)

    @property
    def holds_a_run(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / SETTINGS).exists()

    def begin(self) -> None:
        """Write the settings of a new run. Raises RunFolderError if there is a run already."""
        if self.holds_a_run:
            raise RunFolderError(f"{self.path} already holds a run. Go on with it by --resume, or give another --folder")
        record = self.settings.to_json() | {"spec": self.spec.to_json(), "machine": machine_facts()}
        record["begun"] = datetime.now(UTC).isoformat(timespec="seconds")
        record["explained"] = explain(self.settings)
        save_bytes(self.path / SETTINGS, json_text(record, indent=1).encode())

    def resume(self, trainer: Trainer) -> None:
        """Bring the trainer and the files back to the last checkpoint, or to the start if there is none."""
        self._refuse_another_run()
        sizes: Mapping[str, int] = {}
        if (self.path / CHECKPOINT).exists():
            arrays, data = load_arrays(self.path / CHECKPOINT, KIND)
            restore_trainer(trainer, arrays, data["trainer"])
            self._logged_at, sizes = data["logged_at"], data["sizes"]
            self._checkpoint_at = trainer.counts.env_steps
        (self.path / ENDING).unlink(missing_ok=True)
        for name in GROWING:
            truncate(self.path / name, sizes.get(name, 0))
        self._table.rebuild(read_lines(self.path / METRICS)[0])

    def listen(self, trainer: Trainer, event: Event) -> None:
        """Write what an event needs. If the disk fails, warn and train on: the next write may succeed."""
        try:
            if isinstance(event, JobFinished):
                self._write_job(trainer, event)
            elif isinstance(event, EvaluationFinished):
                self._write_evaluation(trainer, event)
        except (OSError, FileError) as problem:
            warnings.warn(f"a file of the run was not written ({problem}). Training goes on", RuntimeWarning, stacklevel=2)

    def save_checkpoint(self, trainer: Trainer) -> None:
        """Write everything from which the run goes on to the same bytes, and the policy as it is now."""
        arrays, state = trainer_state(trainer)
        sizes = {name: (self.path / name).stat().st_size for name in GROWING if (self.path / name).exists()}
        self._checkpoint_at = trainer.counts.env_steps
        data = {"trainer": state, "logged_at": self._logged_at, "sizes": sizes}
        save_arrays(self.path / CHECKPOINT, KIND, arrays, data, previous=self.path / PREVIOUS)
        if trainer.evaluator.evaluated_at != trainer.counts.env_steps:  # else the evaluation wrote this policy
            model = SavedModel.take(trainer.agent, self.settings, self.spec, trainer.counts.facts())
            model.write(self._policy("latest"))

    def finish(self, trainer: Trainer) -> None:
        """Write the last checkpoint, a record of what is not logged yet, and why the run ended."""
        self.save_checkpoint(trainer)
        if trainer.counts.env_steps > self._logged_at:
            self._log(trainer)
        steps = trainer.counts.env_steps
        why = "solved" if trainer.is_solved else "steps" if steps >= self.settings.training.steps else "stopped"
        save_bytes(self.path / ENDING, json_text(Ending(why, steps)._asdict()).encode())

    def close(self) -> None:
        """Release the folder to other processes."""
        os.close(self._lock)

    def _refuse_another_run(self) -> None:
        """Raise an error if the folder holds a run with other settings or on another task."""
        place = self.path / SETTINGS
        found = read_json(place)
        if not (isinstance(found.get("options"), dict) and isinstance(found.get("spec"), dict)):
            raise FileError(f"{place} does not hold the settings of a run: it is damaged, or not ours")
        refuse_other_settings(found, parse_json(json_text(self.settings.to_json()), "the settings"), FREE_ON_RESUME)
        if difference := GoalSpec.from_json(found["spec"]).difference(self.spec):
            raise FileError(f"{self.path} holds a run on another task: {difference}")

    def _write_job(self, trainer: Trainer, event: JobFinished) -> None:
        options, now = self.settings.training, trainer.counts.env_steps
        append_lines(self.path / EPISODES, episode_records(event.episodes, now))
        if not event.evaluation_follows and now // options.log_every > self._logged_at // options.log_every:
            self._log(trainer)
        every = options.checkpoint_every
        if every and now // every > self._checkpoint_at // every:
            self.save_checkpoint(trainer)

    def _write_evaluation(self, trainer: Trainer, event: EvaluationFinished) -> None:
        self._log(trainer, event)
        env_steps = event.snapshot.counts.env_steps
        append_lines(self.path / EVALUATIONS, ({"env_steps": env_steps} | asdict(o) for o in event.evaluation.outcomes))
        self._save_policies(trainer, event)

    def _log(self, trainer: Trainer, event: EvaluationFinished | None = None) -> None:
        """Write one record: counts, means since the last record, and the evaluation that is complete now."""
        counts = event.snapshot.counts if event else trainer.counts
        self._logged_at = max(self._logged_at, counts.env_steps)
        record = count_metrics(counts, trainer.counts) | trainer.meter.take_means() | trainer.agent.input_statistics()
        if event:
            record |= evaluation_metrics(event.evaluation, trainer.history)
        append_lines(self.path / METRICS, [record])
        self._table.append(finite(record), lambda: read_lines(self.path / METRICS)[0])
        for listener in self.listeners:
            listener(record)

    def _save_policies(self, trainer: Trainer, event: EvaluationFinished) -> None:
        keep, snapshot = self.settings.training.keep_every, event.snapshot
        names = ["latest"] + ["best"] * event.is_best
        names += [f"{snapshot.counts.env_steps:08d}"] if keep and len(trainer.history) % keep == 0 else []
        facts = snapshot.counts.facts() | event.evaluation.to_json()
        policy = trainer.agent.policy_spec
        model = SavedModel(self.settings, self.spec, policy, snapshot.weights, snapshot.agent_state, facts)
        for name in names:
            model.write(self._policy(name))

    def _policy(self, name: str) -> Path:
        return self.path / "policies" / f"{name}.safetensors"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_ending(path: Path) -> Ending | None:
    """Return how the run in a folder ended. None if it was killed, goes on, or was never begun."""
    place = path / ENDING
    if not place.is_file():
        return None
    found: dict[str, Any] = read_json(place)
    try:
        return Ending(str(found["why"]), int(found["env_steps"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError(f"{place} is damaged, or not ours. Remove it, and the run goes on from its checkpoint") from None


def _remove_unfinished(path: Path) -> None:
    """Remove the files that a killed process left unfinished. Nobody else writes here while the lock is held."""
    for unfinished in [*path.glob("*.tmp-*"), *path.glob("policies/*.tmp-*")]:
        unfinished.unlink()


def _lock(path: Path) -> int:
    """Lock the folder until the process ends. Raises RunFolderError, naming the process that holds it."""
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, 200).decode(errors="replace").strip()
        os.close(handle)
        raise RunFolderError(
            f"{path} is in use by {holder or 'another process'}. Wait until it ends, or give another --folder"
        ) from None
    os.truncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return handle
