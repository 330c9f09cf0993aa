"""Callbacks of `HER.learn`: evaluate now and then, keep policies, stop at a success rate; TensorBoard, Weights & Biases.

A callback is a function of a `View`. `HER.learn` calls it after each job of episodes, and stops if it returns False.
Trackers receive every record of the metrics of a run on the command line.
"""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .errors import MissingExtraError, install_line
from .records import Episode
from .replay.rows import fraction_of_one, whole_number
from .seeds import UNSEEN_SEED
from .storage import read_bytes, save_bytes
from .training.evaluate import Evaluation

LONGEST_ID = 1_000  # bytes


@dataclass(frozen=True)
class View:
    """What a callback knows of a run, and can do.

    num_timesteps: environment steps since `learn` last reset the count.
    episodes, updates: since training began.
    success_rate: mean over the episodes just collected, with exploration. None if the environment does not report success.
    episode_return: mean return of the same episodes.
    model: the HER that learns.
    new_steps, new_episodes: of the job just collected.
    """

    num_timesteps: int
    episodes: int
    updates: int
    success_rate: float | None
    episode_return: float
    model: Any
    new_steps: int = 0
    new_episodes: int = 0

    @classmethod
    def take(cls, model: Any, episodes: Sequence[Episode]) -> View:
        """Return the view of a model that has just learned from `episodes`."""
        counts = model.trainer.counts
        successes = [episode.success for episode in episodes if episode.success is not None]
        return cls(
            num_timesteps=model.num_timesteps,
            episodes=counts.episodes,
            updates=counts.updates,
            success_rate=float(np.mean(successes)) if successes else None,
            episode_return=float(np.mean([episode.reward.sum() for episode in episodes])),
            model=model,
            new_steps=sum(map(len, episodes)),
            new_episodes=len(episodes),
        )

    def record(self, name: str, value: float) -> None:
        """Add a number to the metrics. The next record holds the mean of what was added since the last one."""
        self.model.trainer.meter.add(name, float(value))

    def evaluate(self, episodes: int = 20, seed: int = UNSEEN_SEED) -> Evaluation:
        """Evaluate as `HER.evaluate` does."""
        evaluation: Evaluation = self.model.evaluate(episodes, seed)
        return evaluation

    def __str__(self) -> str:
        success = "" if self.success_rate is None else f", success {self.success_rate:.0%}"
        return (
            f"{self.num_timesteps:,} steps, {self.episodes:,} episodes, {self.updates:,} updates{success}, "
            f"return {self.episode_return:.2f}"
        )


Callback = Callable[[View], bool | None]


class EvaluateEvery:
    """Evaluates every `steps` environment steps. If `HER.learn` has a folder, the evaluations are in its files and report.

    history: the evaluations so far, each with its step count.
    """

    def __init__(self, steps: int, episodes: int = 20) -> None:
        self.steps, self.episodes = whole_number("steps", steps, 1), episodes
        self.history: list[tuple[int, Evaluation]] = []

    def __call__(self, view: View) -> None:
        """Evaluate if it is due."""
        if _is_due(self.steps, view.num_timesteps, view.new_steps):
            self.history.append((view.num_timesteps, view.evaluate(self.episodes)))


class KeepEvery:
    """Saves the model every `steps` environment steps, as `folder`/00001000.safetensors."""

    def __init__(self, steps: int, folder: str | Path) -> None:
        self.steps, self.folder = whole_number("steps", steps, 1), Path(folder)

    def __call__(self, view: View) -> None:
        """Save if it is due."""
        if _is_due(self.steps, view.num_timesteps, view.new_steps):
            view.model.save(self.folder / f"{view.num_timesteps:08d}.safetensors")


class PrintEvery:
    """Prints the view every `episodes` episodes."""

    def __init__(self, episodes: int) -> None:
        self.episodes = whole_number("episodes", episodes, 1)

    def __call__(self, view: View) -> None:
        """Print if it is due."""
        if _is_due(self.episodes, view.episodes, view.new_episodes):
            print(view)


class StopAtSuccess:
    """Stops when the last `window` jobs of training episodes, exploration included, reach a success rate of `rate`."""

    def __init__(self, rate: float = 0.95, window: int = 20) -> None:
        self.rate, self.window = fraction_of_one("rate", rate), whole_number("window", window, 1)
        self._rates: list[float] = []

    def __call__(self, view: View) -> bool:
        """Return False if the success rate is reached."""
        if view.success_rate is not None:
            self._rates.append(view.success_rate)
        return len(self._rates) < self.window or float(np.mean(self._rates[-self.window :])) < self.rate


def _is_due(period: int, count: int, new: int) -> bool:
    """Return whether a count passed a multiple of `period` when it last grew by `new`."""
    return count // period > (count - new) // period


class TensorBoard:
    """Event files in the run's folder `tensorboard`.

    step: environment steps of a run that goes on. TensorBoard hides what was written after it.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=step or None)
        if not step:
            self._writer.add_text("options", "\n".join(f"    {name} = {value}" for name, value in config.items()))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a record."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class WeightsAndBiases:
    """A run of the project `hindsight-rl`, or of WANDB_PROJECT. Other variables, such as WANDB_MODE=offline, hold too.

    The id is kept in the run's folder, so that a run that goes on keeps it.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        import wandb

        self._step = step
        path = folder / "wandb-id"
        if not (step and path.exists()):
            save_bytes(path, uuid.uuid4().hex[:12].encode())
        settings = wandb.Settings(silent=True, init_timeout=30)
        project, identity = settings.project or "hindsight-rl", read_bytes(path, LONGEST_ID).decode("utf-8")
        self._run: Any = wandb.init(
            project=project,
            id=identity,
            resume="allow",
            name=folder.name,
            dir=folder,
            config=dict(config),
            settings=settings,
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Pass a record on. It is sent in the background."""
        self._step = max(self._step, step)  # an older step would be dropped; a free schedule evaluates beside training
        self._run.log(dict(metrics), step=self._step)

    def close(self) -> None:
        """Wait until everything is sent."""
        self._run.finish()


def refuse_missing(names: Sequence[str]) -> None:
    """Raise MissingExtraError if the package of a tracker, of the same name, is not installed."""
    for name in names:
        if find_spec(name) is None:
            raise MissingExtraError(f"--{name} needs {name}: {install_line(name)}")


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any], int], Any]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


class Trackers:
    """Several trackers as one. One that fails is reported once, on the error output, and then left out.

    names: of TRACKERS.
    config: the run's options.
    step: environment steps of a run that goes on.
    """

    def __init__(self, names: Sequence[str], folder: Path, config: Mapping[str, Any], step: int = 0) -> None:
        self._trackers: dict[str, Any] = {}
        for name in names:
            try:
                self._trackers[name] = TRACKERS[name](folder, config, step)
            except Exception as problem:
                _report(name, problem)

    def log(self, record: Mapping[str, float]) -> None:
        """Pass a record of the metrics on, without numbers that are not finite."""
        finite = {name: value for name, value in record.items() if math.isfinite(value)}
        self._each(lambda tracker: tracker.log(int(record["env_steps"]), finite))

    def close(self) -> None:
        """Close all of them."""
        self._each(lambda tracker: tracker.close())

    def _each(self, act: Callable[[Any], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                act(tracker)
            except Exception as problem:  # code of others, which may need a network
                del self._trackers[name]
                _report(name, problem)


def _report(name: str, problem: Exception) -> None:
    print(
        f"hindsight-rl: {name} failed ({type(problem).__name__}: {problem}); training goes on without it", file=sys.stderr
    )
