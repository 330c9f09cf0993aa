"""What can be done beside learning: evaluate now and then, keep policies, stop when it is good enough.

A callback is any function of a `View`; `HER.learn` calls it after each job of episodes, and stops when it returns False.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from .errors import OptionError
from .training.evaluate import UNSEEN_SEED, Evaluation


class Model(Protocol):
    """What callbacks ask of a `HER`."""

    @property
    def trainer(self) -> Any:
        """Its Trainer."""

    def evaluate(self, episodes: int = 100, seed: int = UNSEEN_SEED) -> Evaluation:
        """Success on unseen episodes."""

    def save(self, path_or_file: str | Path | BinaryIO) -> None:
        """Write it to a file."""


@dataclass(frozen=True)
class View:
    """What a callback sees of a run, and may do.

    num_timesteps: environment steps since `learn` last reset the count. episodes, updates: since training began.
    success_rate, episode_return: means over the episodes just collected, with exploration; success_rate is None where the
    environment does not say. model: the HER that learns.
    """

    num_timesteps: int
    episodes: int
    updates: int
    success_rate: float | None
    episode_return: float
    model: Model

    def record(self, name: str, value: float) -> None:
        """Put a number among the metrics: the mean of what came since the last record is written with the next."""
        self.model.trainer.meter.add(name, float(value))

    def evaluate(self, episodes: int = 20, seed: int = UNSEEN_SEED) -> Evaluation:
        """As `HER.evaluate`."""
        return self.model.evaluate(episodes, seed)

    def __str__(self) -> str:
        success = "" if self.success_rate is None else f", success {self.success_rate:.0%}"
        return (
            f"{self.num_timesteps:,} steps, {self.episodes:,} episodes, {self.updates:,} updates{success}, "
            f"return {self.episode_return:.2f}"
        )


Callback = Callable[[View], bool | None]


class EvaluateEvery:
    """Evaluates every `steps` environment steps; records eval/success_rate, and its mean over the last ten evaluations.

    history: the evaluations so far, with the step count of each.
    """

    def __init__(self, steps: int, episodes: int = 20) -> None:
        self.due, self.episodes = _Every(steps), episodes
        self.history: list[tuple[int, Evaluation]] = []

    def __call__(self, view: View) -> None:
        """Evaluate, if it is due."""
        if self.due(view):
            evaluation = view.evaluate(self.episodes)
            self.history.append((view.num_timesteps, evaluation))
            view.record("eval/success_rate", evaluation.success_rate)
            view.record("eval/mean_success_rate", float(np.mean([e.success_rate for _, e in self.history[-10:]])))


class KeepEvery:
    """Saves the model every `steps` environment steps, as `folder`/00001000.safetensors."""

    def __init__(self, steps: int, folder: str | Path) -> None:
        self.due, self.folder = _Every(steps), Path(folder)

    def __call__(self, view: View) -> None:
        """Save, if it is due."""
        if self.due(view):
            view.model.save(self.folder / f"{view.num_timesteps:08d}.safetensors")


class StopAtSuccess:
    """Stops when the last `window` jobs of training episodes, exploration included, reach a success rate of `rate`."""

    def __init__(self, rate: float = 0.95, window: int = 20) -> None:
        if not 0 < rate <= 1 or window < 1:
            raise OptionError(
                f"rate is {rate} and window {window}, but a rate from 0 to 1 and a window of at least 1 are needed"
            )
        self.rate, self._last = rate, deque[float](maxlen=window)

    def __call__(self, view: View) -> bool:
        """False where it is reached."""
        if view.success_rate is not None:
            self._last.append(view.success_rate)
        return len(self._last) < (self._last.maxlen or 0) or float(np.mean(self._last)) < self.rate


class _Every:
    """Tells when another multiple of `steps` was passed."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise OptionError(f"steps is {steps}, but at least 1 is needed")
        self.steps, self._passed = steps, 0

    def __call__(self, view: View) -> bool:
        passed = view.num_timesteps // self.steps
        is_due, self._passed = passed > self._passed, passed
        return is_due
