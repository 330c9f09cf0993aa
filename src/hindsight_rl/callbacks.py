"""Callbacks of `HER.learn`: evaluate now and then, keep policies, stop at a success rate.

A callback is a function of a `View`. `HER.learn` calls it after each job of episodes, and stops if it returns False.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .records import Episode
from .replay.rows import fraction_of_one, whole_number
from .seeds import UNSEEN_SEED
from .training.evaluate import Evaluation


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
