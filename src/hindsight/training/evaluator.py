"""Evaluate the policy of a run when it is due, and keep the history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..agents import Agent
from ..options import TrainingOptions
from ..records import Array
from ..records.definitions import first_solved
from ..rollout.workers import Source
from .counts import Counts
from .evaluate import Evaluation, EvaluationJobs, Outcome
from .events import EvaluationFinished, Snapshot


class RunningEvaluation(NamedTuple):
    """An evaluation under way. values: what the critics expect in each episode, when it arrives."""

    jobs: EvaluationJobs
    snapshot: Snapshot
    values: list[Array]


class Evaluator:
    """The evaluations of a run: the one under way, and the history of those that are complete.

    history: one record per evaluation, with env_steps, success_rate and return_mean.
    running: the evaluation under way.
    """

    def __init__(self, agent: Agent, options: TrainingOptions) -> None:
        self.agent, self.options = agent, options
        self.history: list[dict[str, float]] = []
        self.running: RunningEvaluation | None = None

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
        last = self.running.snapshot.counts.env_steps if self.running else self.evaluated_at
        if not every or not counts.updates or steps == last:
            return False
        return steps // every > last // every or steps >= until

    def begin(self, source: Source, counts: Counts) -> None:
        """Submit the episodes of the next evaluation. The history changes only when all of them are in."""
        first = len(self.history) * self.options.eval_episodes
        snapshot, numbers = Snapshot.take(self.agent, counts), range(first, first + self.options.eval_episodes)
        jobs = EvaluationJobs(source, snapshot.weights, self.options.seed, numbers)
        self.running = RunningEvaluation(jobs, snapshot, [])

    def ready(self, counts: Counts) -> Iterator[Outcome | EvaluationFinished]:
        """Yield the outcomes that are there, and the evaluation if it is complete. Do not wait."""
        while self.running and self.running.jobs.has_next:
            yield from self._receive(self.running, counts)

    def rest(self, counts: Counts) -> Iterator[Outcome | EvaluationFinished]:
        """Wait for the outcomes that are missing and yield them, then the evaluation."""
        while self.running:
            yield from self._receive(self.running, counts)

    def drop(self) -> None:
        """Drop an evaluation that is under way. It is played again when it is due."""
        if self.running:
            self.running.jobs.drop()
            self.running = None

    def _receive(self, running: RunningEvaluation, counts: Counts) -> Iterator[Outcome | EvaluationFinished]:
        running.values.append(self.agent.values(running.jobs.next(counts)))
        yield running.jobs.outcomes[-1]
        if running.jobs.is_over:
            self.running = None
            q_mean = float(np.concatenate(running.values).mean())
            yield self._finish(Evaluation(tuple(running.jobs.outcomes), q_mean), running.snapshot)

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
