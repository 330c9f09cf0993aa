"""Evaluate the policy of a run when it is due, and keep the history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..agents import Agent
from ..options import TrainingOptions
from ..records import Array
from ..records.definitions import first_solved
from ..rollout.collect import EVALUATION, environment_seed
from ..rollout.workers import Source
from .evaluate import Evaluation, EvaluationJobs, Outcome, outcome_of
from .events import Counts, EvaluationFinished, Snapshot


@dataclass
class _Running:
    """An evaluation under way. values: what the critics expect in each episode, when it arrives."""

    jobs: EvaluationJobs
    snapshot: Snapshot
    outcomes: list[Outcome] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)


class Evaluator:
    """The evaluations of a run: the one under way, and the history of those that are complete.

    history: one record per evaluation, with env_steps, success_rate and return_mean.
    """

    def __init__(self, agent: Agent, options: TrainingOptions) -> None:
        self.agent, self.options = agent, options
        self.history: list[dict[str, float]] = []
        self._running: _Running | None = None

    @property
    def is_running(self) -> bool:
        """Whether an evaluation is under way."""
        return self._running is not None

    @property
    def evaluated_at(self) -> int:
        """The environment steps of the last complete evaluation, 0 before the first."""
        return int(self.history[-1]["env_steps"]) if self.history else 0

    @property
    def is_solved(self) -> bool:
        """Whether the last `solved_evaluations` evaluations all reached the success rate `solved_at`."""
        needed = self.options.solved_evaluations
        rates = [record["success_rate"] for record in self.history[-needed:]]
        return needed > 0 and first_solved(rates, self.options.solved_at, needed) is not None

    @property
    def best(self) -> dict[str, float] | None:
        """The best evaluation so far: the highest success rate, then the highest return, then the latest."""
        return max(reversed(self.history), key=_score, default=None)

    def is_due(self, counts: Counts, until: int) -> bool:
        """Whether an evaluation should begin: every `eval_every` steps, and at the end."""
        every, steps = self.options.eval_every, counts.env_steps
        last = self._running.snapshot.counts.env_steps if self._running else self.evaluated_at
        if not every or not counts.updates or steps == last:
            return False
        return steps // every > last // every or steps >= until

    def begin(self, source: Source, counts: Counts) -> None:
        """Submit the episodes of the next evaluation. The history changes only when all of them are in."""
        first = len(self.history) * self.options.eval_episodes
        snapshot = Snapshot.take(self.agent, counts)

        def count_failure() -> None:
            counts.failed_jobs += 1

        numbers = range(first, first + self.options.eval_episodes)
        jobs = EvaluationJobs(source, snapshot.weights, self.options.seed, numbers, count_failure)
        self._running = _Running(jobs, snapshot)

    def ready(self) -> Iterator[Outcome | EvaluationFinished]:
        """Yield the outcomes that are there, and the evaluation if it is complete. Do not wait."""
        while self._running and self._running.jobs.has_next:
            yield from self._receive(self._running)

    def rest(self) -> Iterator[Outcome | EvaluationFinished]:
        """Wait for the outcomes that are missing and yield them, then the evaluation."""
        while self._running:
            yield from self._receive(self._running)

    def drop(self) -> None:
        """Drop an evaluation that is under way. It is played again when it is due."""
        if self._running:
            self._running.jobs.drop()
            self._running = None

    def _receive(self, running: _Running) -> Iterator[Outcome | EvaluationFinished]:
        episode = running.jobs.next()
        outcome = outcome_of(episode, environment_seed(self.options.seed, EVALUATION, episode.number))
        running.outcomes.append(outcome)
        running.values.append(self.agent.values(episode))
        yield outcome
        if running.jobs.is_over:
            self._running = None
            q_mean = float(np.concatenate(running.values).mean())
            yield self._finish(Evaluation(tuple(running.outcomes), q_mean), running.snapshot)

    def _finish(self, evaluation: Evaluation, snapshot: Snapshot) -> EvaluationFinished:
        record = {
            "env_steps": float(snapshot.counts.env_steps),
            "success_rate": evaluation.success_rate,
            "return_mean": evaluation.return_mean,
        }
        is_best = self.best is None or _score(record) >= _score(self.best)
        self.history.append(record)
        return EvaluationFinished(evaluation, is_best, snapshot)


def _score(record: dict[str, Any]) -> tuple[float, float]:
    """A return that is not finite counts as the lowest; a file holds it as None."""
    mean = record["return_mean"]
    return record["success_rate"], mean if mean is not None and math.isfinite(mean) else -math.inf
