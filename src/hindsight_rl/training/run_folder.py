"""The folder of a run: it receives the trainer's events and writes what others read. The trainer does not know it."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import socket
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from .. import storage
from ..errors import FileError, RunFolderError
from ..options import Settings
from ..records import Finding, GoalSpec
from .checkpoint import CHECKPOINT, PREVIOUS, CheckpointFiles, FileState
from .demonstrations import Demonstrations
from .evaluate import Evaluation
from .events import EpisodesStored, EvaluationFinished, Event, JobFinished, Snapshot
from .machine import machine_facts
from .run_files import (
    CHANGES,
    EPISODES,
    EVALUATIONS,
    GROWING,
    METRICS,
    LineFiles,
    PolicyFiles,
    change_record,
    count_metrics,
    episode_records,
    evaluation_metrics,
    write_table,
)
from .saved_model import SavedModel, refuse_other_settings
from .trainer import Trainer

# Options that may change on resume:
FREE_ON_RESUME = frozenset(
    {"steps", "solved_evaluations", "workers", "engine", "ray_address", "checkpoint_every", "env_module"}
)
SETTINGS, ENDING, TABLE = "settings.json", "ended.json", "progress.csv"
WRITTEN = (SETTINGS, ENDING, TABLE, CHECKPOINT, PREVIOUS, *GROWING, "lock", "policies")


class Ending(NamedTuple):
    """Why a run ended ("solved", "steps": it made all of them, or "stopped"), and after how many steps."""

    why: str
    env_steps: int


class RunFolder:
    """Writes settings, metrics, evaluations, policies and checkpoints of a run. One process holds it at a time.

    check: sentences of the check of the environment, for the report.
    demonstrations: what the run learns from as well; their facts are kept beside the settings.
    command_defaults: options whose value is the default of the command line.
    name: of the run, for legends and tables; "" without one.
    listeners: functions that are called with every record of the metrics.
    notices: what a user should know about the files, one sentence each.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        spec: GoalSpec,
        check: Sequence[str] = (),
        demonstrations: Demonstrations | None = None,
        command_defaults: Collection[str] = (),
        name: str = "",
    ) -> None:
        self.path, self.settings, self.spec, self.check = path, settings, spec, check
        self._command_defaults, self._name = command_defaults, name
        self._found: tuple[tuple[str, ...], tuple[Finding, ...]] = (), ()
        self.demonstrations = demonstrations.facts if demonstrations else None
        self.listeners: list[Callable[[Mapping[str, float]], None]] = []
        self.notices: list[str] = []
        self._logged_at = self._checkpoint_at = 0
        self._history: list[dict[str, float]] = []  # evaluations of `HER.evaluate`
        self.checkpoints = CheckpointFiles(path)
        self._policies = PolicyFiles(path)
        self._lines = LineFiles(path)
        path.mkdir(parents=True, exist_ok=True)
        if links := [name for name in WRITTEN if (path / name).is_symlink()]:
            raise RunFolderError(f"{path / links[0]} is a symbolic link, which is not followed. Give another folder")
        self._lock = _lock(path)
        try:
            for unfinished in [*path.glob("*.tmp-*"), *path.glob("policies/*.tmp-*")]:  # of a process that was killed
                unfinished.unlink()
        except OSError:
            self.close()
            raise

    @property
    def holds_a_run(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / SETTINGS).exists()

    def begin(self, advice: str = "Go on with it by --resume, or give another --folder") -> None:
        """Write the settings of a new run. Raises RunFolderError, which ends with `advice`, if there is a run already."""
        if self.holds_a_run:
            raise RunFolderError(f"{self.path} already holds a run. {advice}")
        self._write_settings(datetime.now(UTC).isoformat(timespec="seconds"), set())

    def _take_settings(self, trainer: Trainer) -> None:
        """Go on with other settings, or with other sentences about what was not found."""
        self.settings, self._found = trainer.settings, (trainer.not_found, trainer.findings)
        found = storage.read_json(self.path / SETTINGS)
        self._name = self._name or str(found.get("name", ""))
        now = json.loads(storage.json_text(self.settings.flat()))
        differing = {name for name, value in now.items() if value != found["options"].get(name)} - FREE_ON_RESUME
        self._write_settings(str(found["begun"]), differing.union(found.get("changed", [])))

    def _write_settings(self, begun: str, changed: set[str]) -> None:
        not_found, findings = self._found
        record = self.settings.to_json() | {
            "spec": self.spec.to_json(),
            "machine": machine_facts(),
            "name": self._name,
            "begun": begun,
            "explained": self.settings.explained(self._command_defaults),
            "check": self.check,
            "demonstrations": self.demonstrations,
            "reasons": dict(self.settings.reasons),
            "changed": sorted(changed),
            "findings": [asdict(finding) for finding in findings],
            "not_found": not_found,
            "not_used": self.settings.not_used,
        }
        storage.save_bytes(self.path / SETTINGS, storage.json_text(record, indent=1).encode())

    def resume(self, trainer: Trainer) -> None:
        """Bring the trainer and the files back to the last good checkpoint. If there is no run, begin one.

        Files of a run without a checkpoint are moved into a folder beside them.
        """
        if not self.holds_a_run:
            self.begin()
            return
        self._refuse_another_run(trainer)
        files = FileState(0, {}, {})
        if self.checkpoints.exist:
            files, notices = self.checkpoints.load(trainer)
            self.notices += notices
        else:
            self.notices.append(f"The run has no checkpoint and begins again. Its files are in {_set_aside(self.path)}.")
        self._logged_at, self._checkpoint_at = files.logged_at, trainer.counts.env_steps
        (self.path / ENDING).unlink(missing_ok=True)
        self._lines.truncate(files.sizes)
        self._lines.unsaved = {name: files.unsaved_lines[name] for name in GROWING if name in files.unsaved_lines}
        self._write_table()
        self._take_settings(trainer)  # those of the checkpoint: the process that was killed may have found others since

    def listen(self, trainer: Trainer, event: Event) -> None:
        """Write what an event needs. If the disk fails, warn and train on: the next write may succeed."""
        if self._is_outdated(trainer):
            self._attempt(lambda: self._take_settings(trainer))
        options, now = self.settings.training, trainer.counts.env_steps
        if isinstance(event, EpisodesStored):
            records = episode_records(event.episodes, now)
            self._attempt(lambda: self._lines.append(EPISODES, records))
        elif isinstance(event, JobFinished):
            self._attempt(lambda: self._lines.append(CHANGES, map(change_record, event.changes)))
            if not event.evaluation_follows and now // options.log_every > self._logged_at // options.log_every:
                self._attempt(lambda: self._log(trainer))
            every = options.checkpoint_every
            if every and now // every > self._checkpoint_at // every:
                self._attempt(lambda: self.save_checkpoint(trainer))
        elif isinstance(event, EvaluationFinished):
            self._attempt(lambda: self._save_policies(trainer, event))
            self._write_evaluation(trainer, event, trainer.history)

    def add_evaluation(self, trainer: Trainer, evaluation: Evaluation) -> None:
        """Write an evaluation of the policy as it is now, which `HER.evaluate` made. It does not choose the best policy."""
        self._history.append({"success_rate": evaluation.success_rate})
        snapshot = Snapshot.take(trainer.agent, trainer.counts, trainer.meter.take_means())
        self._write_evaluation(trainer, EvaluationFinished(evaluation, False, snapshot), self._history)

    def _write_evaluation(
        self, trainer: Trainer, event: EvaluationFinished, history: Sequence[Mapping[str, float]]
    ) -> None:
        """Write a record and the outcomes of an evaluation. history: the evaluations so far, this one included."""
        self._attempt(lambda: self._log(trainer, event, history))
        env_steps = {"env_steps": event.snapshot.counts.env_steps}
        outcomes = [env_steps | asdict(outcome) for outcome in event.evaluation.outcomes]
        self._attempt(lambda: self._lines.append(EVALUATIONS, outcomes))
        self._write_table()

    def save_checkpoint(self, trainer: Trainer) -> None:
        """Write everything from which the run goes on to the same bytes, and the policy as it is now."""
        self._attempt(self._lines.write)
        self._checkpoint_at = trainer.counts.env_steps
        self.checkpoints.save(trainer, FileState(self._logged_at, self._lines.sizes(), self._lines.unsaved))
        policies = {}
        if trainer.evaluator.evaluated_at != trainer.counts.env_steps:  # else the evaluation wrote this policy
            policies["latest"] = SavedModel.take(trainer.agent, self.settings, self.spec, trainer.counts.facts())
        self._policies.write(policies)

    def finish(self, trainer: Trainer) -> None:
        """Write the last checkpoint, a record of what is not logged yet, and why the run ended.

        If the run cannot be resumed from its state, write nothing: its last checkpoint stays.
        Raises RunFolderError if the disk fails.
        """
        if not trainer.is_resumable:
            return
        try:
            self._finish(trainer)
        except OSError as problem:
            raise RunFolderError(
                f"The last files of the run were not written ({problem}). If the disk is full, make room on it. "
                f"{self.checkpoints.how_to_go_on()}"
            ) from problem

    def _finish(self, trainer: Trainer) -> None:
        if self._is_outdated(trainer):  # they changed in the job that an error interrupted
            self._take_settings(trainer)
        self._attempt(lambda: self._lines.append(CHANGES, map(change_record, trainer.take_changes())))
        self.save_checkpoint(trainer)
        counts = trainer.counts
        if counts.env_steps > self._logged_at:
            self._log(trainer)
        self._lines.write()
        self._write_table()
        steps = counts.env_steps - counts.unfinished_steps
        why = "solved" if trainer.is_solved else "steps" if steps >= trainer.updates.last_step else "stopped"
        storage.save_bytes(self.path / ENDING, storage.json_text(Ending(why, steps)._asdict()).encode())

    def close(self) -> None:
        """Release the folder to other processes."""
        os.close(self._lock)

    def _is_outdated(self, trainer: Trainer) -> bool:
        return trainer.settings is not self.settings or self._found != (trainer.not_found, trainer.findings)

    def _refuse_another_run(self, trainer: Trainer) -> None:
        """Raise an error if the folder holds a run with other settings or on another task.

        Options that were found during the run do not count: the checkpoint holds them.
        """
        place = self.path / SETTINGS
        found = storage.read_json(place)
        if not (isinstance(found.get("options"), dict) and isinstance(found.get("spec"), dict) and found.get("begun")):
            raise FileError(f"{place} does not hold the settings of a run: it is damaged, or not ours")
        wanted = json.loads(storage.json_text(self.settings.to_json()))
        changed = set(map(str, found.get("changed", []))) if trainer.search else set()
        refuse_other_settings(found, wanted, FREE_ON_RESUME | (changed - self.settings.given))
        if (before := found.get("demonstrations")) != self.demonstrations:
            raise FileError(f"The demonstrations of {self.path} were {before} and are now {self.demonstrations}.")
        if difference := GoalSpec.from_json(found["spec"]).difference(self.spec):
            raise FileError(f"{self.path} holds a run on another task: {difference}")

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except (OSError, FileError) as problem:
            warnings.warn(f"a file of the run was not written ({problem}). Training goes on", RuntimeWarning, stacklevel=3)

    def _log(
        self, trainer: Trainer, event: EvaluationFinished | None = None, history: Sequence[Mapping[str, float]] = ()
    ) -> None:
        """Write one record: counts, means since the last record, and the evaluation that is complete now.

        history: the evaluations so far.
        """
        counts = event.snapshot.counts if event else trainer.counts
        self._logged_at = max(self._logged_at, counts.env_steps)
        means = dict(event.snapshot.means) if event else trainer.meter.take_means()
        record = count_metrics(counts, trainer.counts) | means | trainer.agent.input_statistics()
        if event:
            record |= evaluation_metrics(event.evaluation, history)
        for listener in self.listeners:
            listener(record)
        self._lines.append(METRICS, [record])

    def _write_table(self) -> None:
        self._attempt(lambda: write_table(self.path / METRICS, self.path / TABLE))

    def _save_policies(self, trainer: Trainer, event: EvaluationFinished) -> None:
        keep, snapshot = self.settings.training.keep_every, event.snapshot
        names = ["latest"] + ["best"] * event.is_best
        names += [f"{snapshot.counts.env_steps:08d}"] if keep and len(trainer.history) % keep == 0 else []
        facts = snapshot.counts.facts() | event.evaluation.to_json()
        model = SavedModel(self.settings, self.spec, snapshot.weights, snapshot.agent_state, facts)
        self._policies.write(dict.fromkeys(names, model))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _set_aside(path: Path) -> Path:
    """Move the files of a run without a checkpoint into a new folder, so that the run begins again, and return it."""
    place = next(p for n in itertools.count(1) if not (p := path / f"without-checkpoint-{n}").exists())
    place.mkdir()
    for name in (*GROWING, TABLE, "policies"):
        if (path / name).exists():
            (path / name).rename(place / name)
    return place


def read_ending(path: Path) -> Ending | None:
    """Return how the run in a folder ended. None if it was killed, goes on, or was never begun."""
    place = path / ENDING
    if not place.is_file():
        return None
    found: dict[str, Any] = storage.read_json(place)
    try:
        return Ending(str(found["why"]), int(found["env_steps"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError(f"{place} is damaged, or not ours. Remove it, and the run goes on from its checkpoint") from None


def _lock(path: Path) -> int:
    """Lock the folder until the process ends. Raises RunFolderError, naming the process that holds it."""
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
    except OSError as problem:
        why = f"cannot be written to ({problem}). Give another folder"
        if isinstance(problem, BlockingIOError):
            holder = os.read(handle, 200).decode(errors="replace").strip()
            why = f"is in use by {holder or 'another process'}. Wait until it ends, or give another folder"
        os.close(handle)
        raise RunFolderError(f"{path} {why}") from None
    return handle
