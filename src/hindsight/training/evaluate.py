"""Evaluate a policy: success at the last step, without exploration, on seeds that training never uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agents.policy import PolicyWeights
from ..errors import CollectError, MissingKeyError
from ..records import Episode
from ..records.definitions import wilson_interval
from ..rollout.collect import EVALUATION, Job, environment_seed
from ..rollout.workers import Source

UNSEEN_SEED = 1_000_003  # for `HER.evaluate`: none of its episodes is one of those that chose the best policy
ATTEMPTS = 3  # at a job, before the error of the environment is raised


@dataclass(frozen=True)
class Outcome:
    """The result of one evaluation episode.

    achieved_goal: the first one. final_goal: the last one. desired_goal: at the last step.
    final_distance: Euclidean distance between final_goal and desired_goal.
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

    def __str__(self) -> str:
        word = "success" if self.success else "failure"
        return f"{word}, return {self.episode_return:.2f}, final distance {self.final_distance:.4f}, {self.steps} steps"


@dataclass(frozen=True)
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
            f"return {self.return_mean:.2f} +- {self.return_std:.2f}, final distance {self.final_distance:.4f}"
        )


def result_with_retries(source: Source, ticket: int, count_failure: Callable[[], None]) -> list[Episode]:
    """Return the episodes of a job. If the environment fails, run the job again, up to ATTEMPTS times in all.

    count_failure: called after each failed attempt that is followed by another.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return source.result(ticket)
        except CollectError:
            count_failure()
    return source.result(ticket)


class EvaluationJobs:
    """Evaluation episodes without exploration, submitted to a source: one job each, so that all workers take part.

    episodes: their numbers. Results come in this order.
    count_failure: called when a job failed and is run again.
    """

    def __init__(
        self,
        source: Source,
        weights: PolicyWeights,
        run_seed: int,
        episodes: Sequence[int],
        count_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._count_failure = source, count_failure
        self._tickets = [source.submit(Job(run_seed, EVALUATION, (number,), weights)) for number in episodes]
        self._received = 0

    @property
    def is_over(self) -> bool:
        """Whether all episodes were returned."""
        return self._received == len(self._tickets)

    @property
    def has_next(self) -> bool:
        """Whether `next` would return without waiting."""
        return not self.is_over and self._source.has_result(self._tickets[self._received])

    def next(self) -> Episode:
        """Return the next episode. Wait for it if necessary."""
        [episode] = result_with_retries(self._source, self._tickets[self._received], self._count_failure)
        self._received += 1
        return episode

    def drop(self) -> None:
        """Drop the jobs that are left."""
        for ticket in self._tickets:
            self._source.drop(ticket)


def evaluate(source: Source, weights: PolicyWeights, run_seed: int, episodes: Sequence[int]) -> Iterator[Outcome]:
    """Play evaluation episodes and yield their outcomes, in the order of their numbers."""
    jobs = EvaluationJobs(source, weights, run_seed, episodes)
    try:
        while not jobs.is_over:
            episode = jobs.next()
            yield outcome_of(episode, environment_seed(run_seed, EVALUATION, episode.number))
    finally:
        jobs.drop()


def outcome_of(episode: Episode, seed: int) -> Outcome:
    """Return the outcome of an episode. Raises MissingKeyError if the environment does not report success."""
    if episode.success is None:
        raise MissingKeyError(
            "the success rate needs info['is_success'] or info['success'], but the environment's info has neither. Wrap "
            "the environment so that step() sets a boolean info['is_success']"
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
