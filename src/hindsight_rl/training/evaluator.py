"""Evaluate the policy of a run when it is due, and keep the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..options import TrainingOptions
from ..records import Episode
from ..records.statistics import first_solved, rank_of_evaluation, wilson_interval
from .evaluate import Evaluation, EvaluationJobs, Outcome
from .events import EvaluationFinished, Snapshot
from .run_state import RunState

SCREEN_EPISODES = 20  # of an evaluation that is not promising
DELAY_FRACTION = 5  # an evaluation takes effect eval_every / DELAY_FRACTION steps after it began


class Evaluator:
    """The evaluations of a run: the one under way, and the history of those that took effect.

    An evaluation begins with `SCREEN_EPISODES` episodes. It goes on to `eval_episodes` if it is promising, and if it is the
    last one: that is what the run reaches. Training goes on meanwhile. The result takes effect at a fixed number of
    environment steps, so workers and clocks do not change a run.

    history: one record per evaluation, with env_steps, episodes, success_rate and return_mean.
    pending: the agent under evaluation, None between evaluations.
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self.history: list[dict[str, float]] = []
        self.pending: Snapshot | None = None
        self._jobs: EvaluationJobs | None = None
        self._episodes: list[Episode] = []  # of the pending evaluation

    @property
    def options(self) -> TrainingOptions:
        """The options of the run that say when and how it evaluates."""
        return self._run.settings.training

    @property
    def evaluated_at(self) -> int:
        """The environment steps of the last evaluation in the history, 0 before the first."""
        return int(self.history[-1]["env_steps"]) if self.history else 0

    @property
    def is_solved(self) -> bool:
        """Whether the last `solved_evaluations` evaluations all reached the success rate `solved_at`."""
        needed = self.options.solved_evaluations
        rates = [record["success_rate"] for record in self.history[-needed:]]
        return needed > 0 and first_solved(rates, self.options.solved_at, needed) is not None

    @property
    def best(self) -> dict[str, float] | None:
        """The best evaluation so far, see `rank_of_evaluation`."""
        return max(reversed(self.history), key=_rank, default=None)

    def is_due(self, until: int) -> bool:
        """Whether an evaluation should begin: every `eval_every` steps, at the end, and to confirm a success at once.

        What is missed during the random steps is left out.
        """
        counts, every = self._run.counts, self.options.eval_every
        steps = counts.env_steps
        last = self.pending.counts.env_steps if self.pending else max(self.evaluated_at, self.options.random_steps)
        if not every or not counts.updates or steps == last:
            return False
        return steps // every > last // every or steps >= until or (self._is_unconfirmed and self.pending is None)

    @property
    def _is_unconfirmed(self) -> bool:
        """Whether the last evaluation reached `solved_at`, and further ones decide whether the task is solved."""
        if not self.history or not self.options.solved_evaluations or self.is_solved:
            return False
        return self.history[-1]["success_rate"] >= self.options.solved_at

    def takes_effect(self, until: int) -> bool:
        """Whether the pending evaluation takes effect now: `eval_every` / `DELAY_FRACTION` steps after it began.

        With the free schedule it takes effect when it is complete. It always does when the next one is due, and at the end.
        One that confirms a success takes effect at once: further updates would be wasted if it does.
        """
        if self.pending is None:
            return False
        env_steps = self._run.counts.env_steps
        if self._is_unconfirmed or self.is_due(until) or env_steps >= until:
            return True
        if self._run.settings.rollout.schedule == "free":
            return self._jobs is not None and self._jobs.is_over
        return env_steps >= self.pending.counts.env_steps + self.options.eval_every // DELAY_FRACTION

    def begin(self) -> None:
        """Submit the first episodes of the next evaluation, and take the means of the metrics since the last record."""
        self.pending = Snapshot.take(self._run.agent, self._run.counts, self._run.meter.take_means())
        self._jobs = self._first_jobs(self.pending)

    def outcomes(self, waits: bool, is_last: bool = False) -> Iterator[Outcome]:
        """Yield the outcomes of the pending evaluation that have arrived; all of them if `waits`.

        is_last: whether it has all its episodes, promising or not.
        """
        if self.pending is None:
            return
        jobs = self._jobs = self._jobs or self._first_jobs(self.pending)
        while not jobs.is_over and (waits or jobs.has_next):
            self._episodes.append(jobs.next(self._run.counts))
            if jobs.is_over and (is_last or self._is_promising(jobs.outcomes)):
                jobs.submit(self._numbers[len(jobs.outcomes) :])
            yield jobs.outcomes[-1]

    def finish(self, until: int) -> Iterator[Outcome | EvaluationFinished]:
        """Yield the missing outcomes of the pending evaluation, add it to the history, and yield it."""
        pending = self.pending
        assert pending is not None, "it takes effect"
        yield from self.outcomes(waits=True, is_last=pending.counts.env_steps >= until)
        assert self._jobs is not None, "its outcomes are in"
        evaluation = Evaluation(tuple(self._jobs.outcomes), self._mean_value(pending))
        self.pending = self._jobs = None
        yield self._finish(evaluation, pending)

    def _mean_value(self, snapshot: Snapshot) -> float:
        """Return the mean value that the critics of the evaluated agent expected. The agent itself is as before then."""
        agent = self._run.agent
        state = agent.state_dict()
        agent.load_state_dict(snapshot.agent_state)
        values = [agent.values(episode) for episode in self._episodes]
        agent.load_state_dict(state)
        return float(np.concatenate(values).mean())

    def drop(self) -> None:
        """Drop the pending evaluation: its agent is replaced. The next one begins when it is due."""
        self.suspend()
        self.pending = None

    def suspend(self) -> None:
        """Drop the jobs of the pending evaluation. They are submitted again when the run goes on."""
        if self._jobs:
            self._jobs.drop()
            self._jobs = None

    @property
    def _numbers(self) -> range:
        """The numbers of the episodes of the pending evaluation. No other evaluation has them."""
        first = len(self.history) * self.options.eval_episodes
        return range(first, first + self.options.eval_episodes)

    def _first_jobs(self, pending: Snapshot) -> EvaluationJobs:
        self._episodes = []
        jobs = EvaluationJobs(self._run.source, pending.weights, self.options.seed)
        jobs.submit(self._numbers[:SCREEN_EPISODES])
        return jobs

    def _finish(self, evaluation: Evaluation, snapshot: Snapshot) -> EvaluationFinished:
        record = {
            "env_steps": float(snapshot.counts.env_steps),
            "episodes": float(len(evaluation.outcomes)),
            "success_rate": evaluation.success_rate,
            "return_mean": evaluation.return_mean,
        }
        is_best = self.best is None or _rank(record) >= _rank(self.best)
        self.history.append(record)
        return EvaluationFinished(evaluation, is_best, snapshot)

    def _is_promising(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether the missing episodes decide if the policy reaches `solved_at`, or if it is the best so far.

        It can reach `solved_at` if the failures so far leave room for it. Whether it is the best is open if the whole
        evaluation would rank at least as high with the success rate so far, but not if all missing episodes failed.
        """
        n, successes = self.options.eval_episodes, sum(outcome.success for outcome in outcomes)
        missing, best = n - len(outcomes), _rank(self.best)[0] if self.best else 0.0
        may_solve = (successes + missing) / n >= self.options.solved_at
        may_be_best = _lower_end(successes / n, n) < best <= _lower_end(successes / len(outcomes), n)
        return missing > 0 and (may_solve or may_be_best)


def _rank(record: Mapping[str, Any]) -> tuple[float, float]:
    return rank_of_evaluation(_lower_end(record["success_rate"], record["episodes"]), record["return_mean"])


def _lower_end(success_rate: float, episodes: float) -> float:
    """Return the lower end of the interval of a success rate."""
    return wilson_interval(round(success_rate * episodes), round(episodes))[0]
