"""Evaluate a policy: success at the last step, without exploration, on seeds that training never uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agents.policy import PolicyWeights
from ..errors import CollectError, JobLostError, MissingKeyError
from ..records import Array, Episode
from ..records.statistics import wilson_interval
from ..rollout.collect import Job
from ..rollout.episode_sources import EpisodeSource
from ..rollout.workers import Ticket
from ..seeds import EVALUATION, environment_seed
from .run_state import Counts

JOB_ATTEMPTS = 3  # at a job, before the error of the environment is raised


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of one evaluation episode.

    achieved_goal: the first one. final_goal: the last one. desired_goal: at the last step.
    final_distance: Euclidean distance between final_goal and desired_goal.
    is_finite: whether observations, goals and rewards hold neither NaN nor infinity. Otherwise the episode is a failure,
        whatever the environment says: `-(nan > tolerance)` is the reward of a success.
    """

    episode: int
    seed: int
    achieved_goal: tuple[float, ...]
    desired_goal: tuple[float, ...]
    success: bool
    episode_return: float
    final_distance: float
    steps: int
    final_goal: tuple[float, ...] = ()
    is_finite: bool = True

    def __str__(self) -> str:
        word = "success" if self.success else "failure" if self.is_finite else "failure (NaN or infinity in its steps)"
        return (
            f"{word}, return {self.episode_return:.2f}, final distance {_distance(self.final_distance)}, {self.steps} steps"
        )

    def __repr__(self) -> str:
        return f"Outcome(episode {self.episode}: {self})"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The outcomes of some episodes, and their statistics.

    q_mean: the mean value that the critics expected in these episodes. None if it was not measured.
    """

    outcomes: tuple[Outcome, ...]
    q_mean: float | None = None

    @property
    def success_rate(self) -> float:
        """The fraction of episodes that succeeded at their last step."""
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
        with np.errstate(invalid="ignore"):  # NaN if one is infinite
            return float(np.std([o.episode_return for o in self.outcomes]))

    @property
    def final_distance(self) -> float:
        """The mean distance between achieved and desired goal at the end."""
        return float(np.mean([o.final_distance for o in self.outcomes]))

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as plain data."""
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
            f"return {self.return_mean:.2f} +- {self.return_std:.2f}, final distance {_distance(self.final_distance)}"
            f"{self._about_not_finite()}"
        )

    def _about_not_finite(self) -> str:
        if not (count := sum(not outcome.is_finite for outcome in self.outcomes)):
            return ""
        return f", {count} failed with NaN or infinity in an observation, a goal or a reward"

    def __repr__(self) -> str:
        return f"Evaluation({self})"


def result_with_retries(source: EpisodeSource, ticket: Ticket, counts: Counts) -> list[Episode]:
    """Return the episodes of a job. If the environment fails, run the job again, JOB_ATTEMPTS times in all.

    Raises JobLostError at once: the source has run such a job several times.
    """
    for _ in range(JOB_ATTEMPTS - 1):
        try:
            return source.result(ticket)
        except JobLostError:
            raise
        except CollectError:
            counts.failed_jobs += 1
    return source.result(ticket)


class EvaluationJobs:
    """Evaluation episodes without exploration, submitted to a source: one job each, so that all workers take part.

    run_seed: with an episode's number it determines the seed of the environment.
    outcomes: of the episodes that `next` returned, in the order of submission.
    """

    def __init__(self, source: EpisodeSource, weights: PolicyWeights, run_seed: int) -> None:
        self.outcomes: list[Outcome] = []
        self._source, self._weights, self._run_seed = source, weights, run_seed
        self._tickets: list[Ticket] = []

    def submit(self, episodes: Sequence[int]) -> None:
        """Submit episodes by their numbers."""
        jobs = [Job(self._run_seed, EVALUATION, (number,), self._weights) for number in episodes]
        self._tickets += [self._source.submit(job) for job in jobs]

    @property
    def is_over(self) -> bool:
        """Whether all submitted episodes are in."""
        return len(self.outcomes) == len(self._tickets)

    @property
    def has_next(self) -> bool:
        """Whether `next` would return without waiting."""
        return not self.is_over and self._source.has_result(self._tickets[len(self.outcomes)])

    def next(self, counts: Counts) -> Episode:
        """Return the next episode, and add its outcome. Wait for it if necessary."""
        [episode] = result_with_retries(self._source, self._tickets[len(self.outcomes)], counts)
        self.outcomes.append(outcome_of(episode, environment_seed(self._run_seed, EVALUATION, episode.number)))
        return episode

    def drop(self) -> None:
        """Drop the jobs that are left."""
        for ticket in self._tickets:
            self._source.drop(ticket)


def evaluate(source: EpisodeSource, weights: PolicyWeights, run_seed: int, episodes: Sequence[int]) -> Iterator[Outcome]:
    """Run evaluation episodes and yield their outcomes, in the order of their numbers.

    run_seed: with an episode's number it determines the seed of the environment. Training episodes of the same `run_seed`
        have other seeds.
    """
    jobs = EvaluationJobs(source, weights, run_seed)
    try:
        jobs.submit(episodes)
        while not jobs.is_over:
            jobs.next(Counts())
            yield jobs.outcomes[-1]
    finally:
        jobs.drop()


def outcome_of(episode: Episode, seed: int) -> Outcome:
    """Return the outcome of an episode. Raises MissingKeyError if the environment does not report success."""
    if episode.success is None:
        raise MissingKeyError(
            "the success rate needs info['is_success'] or info['success'], but the environment's info has neither. Wrap "
            "the environment so that step() sets a boolean info['is_success']"
        )
    first, final, desired = episode.achieved_goal[0], episode.achieved_goal[-1], episode.desired_goal[-1]
    arrays = episode.observation, episode.achieved_goal, episode.desired_goal, episode.reward
    is_finite = all(np.isfinite(array).all() for array in arrays)
    return Outcome(
        episode=episode.number,
        seed=seed,
        achieved_goal=_flat(first),
        desired_goal=_flat(desired),
        success=episode.success and is_finite,
        episode_return=float(episode.reward.sum()),
        final_distance=float(np.linalg.norm(final.astype(np.float64) - desired.astype(np.float64))),
        steps=len(episode),
        final_goal=_flat(final),
        is_finite=is_finite,
    )


def _distance(value: float) -> str:
    """Return a distance with four decimals, or with two digits if it is so small that these would hide it."""
    return f"{value:.2g}" if 0 < value < 0.001 else f"{value:.4f}"


def _flat(goal: Array) -> tuple[float, ...]:
    return tuple(goal.astype(np.float64).ravel().tolist())
