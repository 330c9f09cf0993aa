"""A run's folder on disk: it listens to the trainer and writes what others read. The trainer does not know of it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from ..errors import FileError, RunFolderError
from ..options import Settings
from ..records import Episode, GoalSpec
from ..rollout.workers import FAULTS
from ..storage import has_folder, load_folder, parse_json, save_bytes, save_folder
from .checkpoint import SavedModel, refuse_other_settings
from .evaluate import Evaluation
from .explain import explain
from .machine import machine_facts
from .metrics import Meter, MetricsFiles, append_line, cut
from .trainer import EvaluationFinished, Event, JobFinished, Trainer

FREE_ON_RESUME = frozenset(
    {"steps", "workers", "engine", "ray_address", "checkpoint_every"}
)  # may change when a run goes on
_WENT_WRONG = ("refused_episodes", "failed_jobs", "stale_episodes", *FAULTS)
_GROWING = ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl")
ENDING = "ended.json"
GOAL_NUMBERS = 3  # of a goal, so many are kept for each training episode: enough for a map
RECENT_EVALUATIONS = 10  # that eval/mean_success_rate is the mean of


class Ending(NamedTuple):
    """Why a run ended, "solved", "steps" (it has all of them) or "stopped", and after how many steps."""

    why: str
    env_steps: int


class RunFolder:
    """Writes settings, metrics, evaluations, policies and checkpoints of one run; held by one process at a time."""

    def __init__(self, path: Path, settings: Settings, spec: GoalSpec) -> None:
        self.path, self.settings, self.spec = path, settings, spec
        self._logged_at = 0
        self._checkpoint_at = 0
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(path)
        _remove_halves(path)
        self._metrics = MetricsFiles(path)
        self.listeners: list[Callable[[Mapping[str, float]], None]] = []  # are told of every record of the metrics

    @property
    def holds_a_run(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "settings.json").exists()

    def begin(self) -> None:
        """Write the settings of a new run. Raises RunFolderError where there is one already."""
        if self.holds_a_run:
            raise RunFolderError(f"{self.path} already holds a run: go on with it by --resume, or name another --folder")
        record = self.settings.to_json() | {"spec": self.spec.to_json(), "machine": machine_facts()}
        record["begun"] = datetime.now(UTC).isoformat(timespec="seconds")
        record["explained"] = explain(self.settings)
        save_bytes(self.path / "settings.json", json.dumps(record, indent=1, allow_nan=False).encode())

    def resume(self, trainer: Trainer) -> None:
        """Bring the trainer, and the files, to where the last good checkpoint was taken; to the start where none was."""
        place = self.path / "settings.json"
        found = parse_json(place.read_bytes(), str(place))
        if not (isinstance(found, dict) and isinstance(found.get("options"), dict) and isinstance(found.get("spec"), dict)):
            raise FileError(f"{place} does not hold the settings of a run: it is damaged, or not ours")
        refuse_other_settings(found, json.loads(json.dumps(self.settings.to_json())), FREE_ON_RESUME)
        if difference := GoalSpec.from_json(found["spec"]).difference(self.spec):
            raise FileError(f"{self.path} holds a run on another task: {difference}")
        sizes: Mapping[str, int] = {}
        if has_folder(self.path / "checkpoint"):
            arrays, data = load_folder(self.path / "checkpoint", "checkpoint")
            trainer.load_state(arrays, data["trainer"])
            self._logged_at, sizes = data["logged_at"], data["sizes"]
            self._checkpoint_at = trainer.counts.env_steps
        (self.path / ENDING).unlink(missing_ok=True)
        for name in _GROWING:
            cut(self.path / name, sizes.get(name, 0))
        self._metrics.rebuild()

    def listen(self, trainer: Trainer, event: Event) -> None:
        """Write what an event calls for; a disk that fails is told of, and training may go on: the next may be written."""
        try:
            self._write(trainer, event)
        except (OSError, FileError) as problem:
            warnings.warn(
                f"the run's files could not be written ({problem}); training goes on", RuntimeWarning, stacklevel=2
            )

    def _write(self, trainer: Trainer, event: Event) -> None:
        if isinstance(event, JobFinished):
            self._tell_episodes(trainer, event.episodes)
            every = self.settings.training.log_every
            if not event.evaluation_follows and trainer.counts.env_steps // every > self._logged_at // every:
                self._log(trainer)
            every = self.settings.training.checkpoint_every
            if every and trainer.counts.env_steps // every > self._checkpoint_at // every:
                self.save_checkpoint(trainer)
        elif isinstance(event, EvaluationFinished):
            self._log(trainer, event)
            for outcome in event.evaluation.outcomes:
                record = {"env_steps": event.snapshot.counts.env_steps} | asdict(outcome)
                append_line(self.path / "evaluations.jsonl", json.dumps(record))
            self._save_policies(trainer, event)

    def save_checkpoint(self, trainer: Trainer) -> None:
        """Everything needed to go on to the same bytes; and the policy as it is now, for those who want to look."""
        arrays, state = trainer.state()
        sizes = {name: (self.path / name).stat().st_size for name in _GROWING if (self.path / name).exists()}
        self._checkpoint_at = trainer.counts.env_steps
        save_folder(
            self.path / "checkpoint", "checkpoint", arrays, {"trainer": state, "logged_at": self._logged_at, "sizes": sizes}
        )
        if trainer.counts.evaluated_at != trainer.counts.env_steps:  # or else it was saved with its evaluation
            model = SavedModel.take(trainer.agent, self.settings, self.spec, trainer.counts.facts())
            self._save_policy(model, "latest")

    def finish(self, trainer: Trainer) -> None:
        """The last checkpoint, a record of what was not logged yet, and how it ended, until the run goes on."""
        self.save_checkpoint(trainer)
        if trainer.counts.env_steps > self._logged_at:
            self._log(trainer)
        steps = trainer.counts.env_steps
        why = "solved" if trainer.is_solved else "steps" if steps >= self.settings.training.steps else "stopped"
        save_bytes(self.path / ENDING, json.dumps(Ending(why, steps)._asdict()).encode())

    def close(self) -> None:
        """Let other processes have the folder."""
        os.close(self._lock)

    def _tell_episodes(self, trainer: Trainer, episodes: Sequence[Episode]) -> None:
        """One line per training episode: how it ended, and where its goals lie, by their first numbers."""
        env_steps = trainer.counts.env_steps - sum(map(len, episodes))
        for episode in episodes:
            env_steps += len(episode)
            record = {
                "env_steps": env_steps,
                "episode": episode.number,
                "steps": len(episode),
                "success": episode.success,
                "return": _short(episode.reward.sum()),
                "final_goal": [_short(x) for x in episode.achieved_goal[-1].ravel()[:GOAL_NUMBERS]],
                "desired_goal": [_short(x) for x in episode.desired_goal[-1].ravel()[:GOAL_NUMBERS]],
            }
            append_line(self.path / "episodes.jsonl", json.dumps(record))

    def _log(self, trainer: Trainer, evaluated: EvaluationFinished | None = None) -> None:
        """One record: counts, means since the last record, and the evaluation that was made just now."""
        counts = evaluated.snapshot.counts if evaluated else trainer.counts
        self._logged_at = max(self._logged_at, counts.env_steps)
        record: dict[str, float] = {
            "env_steps": counts.env_steps,
            "episodes": counts.episodes,
            "train/episode": counts.episodes,
            "updates": counts.updates,
            **{name: getattr(trainer.counts, name) for name in _WENT_WRONG},
            "seconds": counts.collect_seconds + counts.update_seconds,
            "collect_seconds": counts.collect_seconds,
            "update_seconds": counts.update_seconds,
        }
        test = {} if evaluated is None else _test_metrics(trainer, evaluated.evaluation)
        record |= trainer.meter.means() | trainer.agent.input_statistics() | test
        self._metrics.write(record)
        trainer.meter = Meter()
        for listener in self.listeners:
            listener(record)

    def _save_policies(self, trainer: Trainer, event: EvaluationFinished) -> None:
        keep, counts = self.settings.training.keep_every, event.snapshot.counts
        names = ["latest"] + ["best"] * event.is_best
        names += [f"{counts.env_steps:08d}"] if keep and len(trainer.history) % keep == 0 else []
        facts = counts.facts() | event.evaluation.to_json()
        weights, state = event.snapshot.weights, event.snapshot.agent_state
        self._save_policy(SavedModel(self.settings, self.spec, trainer.agent.policy_spec, weights, state, facts), *names)

    def _save_policy(self, model: SavedModel, *names: str) -> None:
        content = model.to_bytes()
        for name in names:
            save_bytes(self.path / "policies" / f"{name}.safetensors", content)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_ending(path: Path) -> Ending | None:
    """How the run in a folder ended; None where it goes on, was killed, or was never begun."""
    place = path / ENDING
    if not place.is_file():
        return None
    found = parse_json(place.read_bytes(), str(place))
    try:
        return Ending(str(found["why"]), int(found["env_steps"]))
    except (KeyError, TypeError, ValueError):
        raise FileError(f"{place} is damaged, or not ours: remove it, and the run goes on from its checkpoint") from None


def _test_metrics(trainer: Trainer, evaluation: Evaluation) -> dict[str, float]:
    """An evaluation under our names, and the success rate under those of Stable-Baselines3 too."""
    low, high = evaluation.interval
    test = {f"test/{name}": value for name, value in evaluation.to_json().items() if name != "interval"}
    test |= {"test/success_low": low, "test/success_high": high}
    if evaluation.q_mean is not None:
        test["test/mean_q"] = evaluation.q_mean
    recent = [past["success_rate"] for past in trainer.history[-RECENT_EVALUATIONS:]]
    return test | {"eval/success_rate": evaluation.success_rate, "eval/mean_success_rate": float(np.mean(recent))}


def _short(number: float) -> float:
    """To six digits."""
    return float(f"{number:.6g}")


def _remove_halves(path: Path) -> None:
    """What a killed process left half written; nobody else writes here while the folder is held."""
    for half in [*path.glob("checkpoint.tmp-*"), *path.glob("policies/*.tmp-*"), *path.glob("settings.json.tmp-*")]:
        shutil.rmtree(half) if half.is_dir() else half.unlink()


def _lock(path: Path) -> int:
    """Hold the folder's lock until the process ends, however it ends. Raises RunFolderError naming the holder."""
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, 200).decode(errors="replace").strip()
        os.close(handle)
        raise RunFolderError(
            f"{path} is in use by {holder or 'another process'}: wait for it, or name another --folder"
        ) from None
    os.truncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return handle
