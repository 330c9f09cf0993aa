"""How good a policy is: success at the last step, noise off, on seeds that training never used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agents.policy import PolicyWeights
from ..errors import MissingKeyError
from ..records import Episode
from ..rollout.collect import EVALUATION, Job, environment_seed
from ..rollout.workers import Source

UNSEEN_SEED = 1_000_003  # seeds the evaluations that people ask for, so that none repeats those that chose the best policy


@dataclass(frozen=True)
class Outcome:
    """What became of one evaluated episode."""

    episode: int
    seed: int
    achieved_goal: tuple[float, ...]  # the first one
    desired_goal: tuple[float, ...]  # the last one
    success: bool
    episode_return: float
    final_distance: float  # Euclidean, between the last achieved and desired goal
    steps: int
    final_goal: tuple[float, ...] = ()  # the last achieved one

    def __str__(self) -> str:
        word = "success" if self.success else "failure"
        return f"{word}, return {self.episode_return:.2f}, final distance {self.final_distance:.4f}, {self.steps} steps"


@dataclass(frozen=True)
class Evaluation:
    """The outcomes of some episodes, and what they amount to. q_mean: what the critics expected, where they were asked."""

    outcomes: tuple[Outcome, ...]
    q_mean: float | None = None

    @property
    def success_rate(self) -> float:
        """The share of episodes whose last step succeeded."""
        return float(np.mean([o.success for o in self.outcomes]))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the success rate (Wilson 1927)."""
        return wilson_interval(sum(o.success for o in self.outcomes), len(self.outcomes))

    @property
    def return_mean(self) -> float:
        """The mean undiscounted return."""
        return float(np.mean([o.episode_return for o in self.outcomes]))

    @property
    def return_std(self) -> float:
        """The standard deviation of the return over episodes."""
        return float(np.std([o.episode_return for o in self.outcomes]))

    @property
    def final_distance(self) -> float:
        """The mean distance between achieved and desired goal at the end."""
        return float(np.mean([o.final_distance for o in self.outcomes]))

    def to_json(self) -> dict[str, Any]:
        """The statistics, as plain data."""
        return {
            "episodes": len(self.outcomes),
            "success_rate": self.success_rate,
            "interval": list(self.interval),
            "return_mean": self.return_mean,
            "return_std": self.return_std,
            "final_distance": self.final_distance,
        }

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"success {self.success_rate:.1%} of {len(self.outcomes)} episodes (95 % interval {low:.1%} to {high:.1%}), "
            f"return {self.return_mean:.2f} +- {self.return_std:.2f}, final distance {self.final_distance:.4f}"
        )


def wilson_interval(successes: int, episodes: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval that holds a success rate with 95 % confidence; sound at 0 and 1 too (Wilson 1927)."""
    share, spread = successes / episodes, z * z / episodes
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / episodes + spread / (4 * episodes)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


class EvaluationJobs:
    """The evaluation episodes of these numbers, without noise, given to a source: a job each, so that all workers share."""

    def __init__(self, source: Source, weights: PolicyWeights, run_seed: int, episodes: Sequence[int]) -> None:
        self._source = source
        self._tickets = [source.submit(Job(run_seed, EVALUATION, (number,), weights)) for number in episodes]
        self._told = 0

    @property
    def is_over(self) -> bool:
        """Whether there is no next one."""
        return self._told == len(self._tickets)

    @property
    def has_next(self) -> bool:
        """Whether the next one can be had without waiting."""
        return not self.is_over and self._source.has_result(self._tickets[self._told])

    def next(self) -> Episode:
        """The next episode, in the order of the numbers; waits for it."""
        [episode] = self._source.result(self._tickets[self._told])
        self._told += 1
        return episode

    def drop(self) -> None:
        """Forget what is left."""
        for ticket in self._tickets:
            self._source.drop(ticket)


def outcomes(source: Source, weights: PolicyWeights, run_seed: int, episodes: Sequence[int]) -> Iterator[Outcome]:
    """Play the evaluation episodes of these numbers and tell of each, in their order."""
    jobs = EvaluationJobs(source, weights, run_seed, episodes)
    try:
        while not jobs.is_over:
            episode = jobs.next()
            yield outcome_of(episode, environment_seed(run_seed, EVALUATION, episode.number))
    finally:
        jobs.drop()


def outcome_of(episode: Episode, seed: int) -> Outcome:
    """The outcome of an episode; raises MissingKeyError where the environment does not say whether it succeeded."""
    if episode.success is None:
        raise MissingKeyError(
            "the environment's info holds neither 'is_success' nor 'success', so no success rate can be told: "
            "wrap the environment so that step() puts a boolean info['is_success']"
        )
    first, final = (episode.achieved_goal[row].astype(np.float64) for row in (0, -1))
    last = episode.desired_goal[-1].astype(np.float64)
    return Outcome(
        episode=episode.number,
        seed=seed,
        achieved_goal=tuple(first.ravel().tolist()),
        desired_goal=tuple(last.ravel().tolist()),
        success=episode.success,
        episode_return=float(episode.reward.sum()),
        final_distance=float(np.linalg.norm(final - last)),
        steps=len(episode),
        final_goal=tuple(final.ravel().tolist()),
    )
