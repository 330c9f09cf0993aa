"""The story told once: episodes arrive, the timeline and the normaliser take them, due updates run, a policy goes out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..agents import Agent
from ..agents.policy import Exploration, PolicyWeights
from ..errors import CollectError, HindsightError, InputError
from ..records import Array, Batch, Episode
from ..replay.buffer import HindsightBuffer
from ..rollout.collect import EVALUATION, TRAINING, Job, environment_seed
from ..rollout.source import Source
from .evaluate import Evaluation, Outcome, outcome_of, played
from .metrics import Meter
from .settings import Settings

REFUSED_IN_A_ROW = 10  # episodes with bad values, one after the other, that end a run
ATTEMPTS = 3  # at a job, before the environment's error ends the run
RECENT = 0.1  # what the newest episode counts in the mean success of those that are not led
UPDATES_PER_DRAW = 8  # batches drawn at once: the cost of a call is shared, and the batches still fit the cache


@dataclass(frozen=True)
class Learnt:
    """A job's episodes were taken in, and the updates that they made due are done. An evaluation may follow at once."""

    episodes: list[Episode]
    evaluation_follows: bool = False


@dataclass(frozen=True)
class Evaluated:
    """An evaluation is complete."""

    evaluation: Evaluation
    is_best: bool


Event = Learnt | Outcome | Evaluated


@dataclass(frozen=True)
class Counts:
    """How far a run has come. seconds: of collecting and of updating, as the learner waited for them.

    success_alone: the running mean success of the episodes that were not led to the stages.
    """

    env_steps: int = 0
    episodes: int = 0
    updates: int = 0
    refused_episodes: int = 0
    refused_in_a_row: int = 0
    failed_jobs: int = 0
    submitted_episodes: int = 0
    owed_updates: float = 0.0
    evaluated_at: int = 0
    evaluated_episodes: int = 0
    success_alone: float = 0.0
    collect_seconds: float = 0.0
    update_seconds: float = 0.0


@dataclass
class Trainer:
    """Trains an agent on the episodes of a source. `run` tells the whole story; `learn_from_next_job` is one step of it."""

    agent: Agent
    buffer: HindsightBuffer
    source: Source
    settings: Settings
    counts: Counts = field(default_factory=Counts)
    meter: Meter = field(default_factory=Meter)
    in_flight: deque[tuple[int, Job]] = field(default_factory=deque)  # tickets and jobs, oldest first
    history: list[dict[str, float]] = field(default_factory=list)  # env_steps, success_rate, return_mean of evaluations
    _batches: Batch | None = None

    def run(self, until: int) -> Iterator[Event]:
        """Train and evaluate until `until` environment steps, or until solved. May be left and taken up after any event."""
        while not self.is_solved:
            if self._evaluation_is_due(until):
                yield from self._evaluate()
            elif self.counts.env_steps < until:
                episodes = self.learn_from_next_job()
                yield Learnt(episodes, self._evaluation_is_due(until))
            else:
                return

    def learn_from_next_job(self) -> list[Episode]:
        """Take in the oldest job's episodes and make the updates they are worth."""
        started = time.perf_counter()
        self._submit_jobs()
        episodes = self._collect()
        self.in_flight.popleft()
        collected = time.perf_counter()
        for episode in episodes:
            self._take(episode)
        self._update()
        self.counts = replace(
            self.counts,
            collect_seconds=self.counts.collect_seconds + collected - started,
            update_seconds=self.counts.update_seconds + time.perf_counter() - collected,
        )
        return episodes

    @property
    def is_solved(self) -> bool:
        """Whether the last evaluations in a row all reached the rate that counts as solved."""
        options = self.settings.training
        last = self.history[-options.solved_evaluations :] if options.solved_evaluations else []
        enough = len(last) == options.solved_evaluations > 0
        return enough and all(evaluation["success_rate"] >= options.solved_at for evaluation in last)

    @property
    def best(self) -> dict[str, float] | None:
        """The best evaluation so far: the highest success rate, then the highest return, then the latest."""
        return max(reversed(self.history), key=_score, default=None)

    def _submit_jobs(self) -> None:
        rollout, training = self.settings.rollout, self.settings.training
        while len(self.in_flight) <= rollout.lag:
            first = self.counts.submitted_episodes
            job = Job(
                training.seed,
                TRAINING,
                tuple(range(first, first + rollout.episodes_per_job)),
                self.agent.collecting_weights(),
                self._exploration(),
            )
            self.in_flight.append((self.source.submit(job), job))
            self.counts = replace(self.counts, submitted_episodes=first + rollout.episodes_per_job)

    def _exploration(self) -> Exploration:
        """How the next job explores; the better the episodes that are not led succeed, the fewer are led."""
        counts, rollout = self.counts, self.settings.rollout
        is_random = counts.env_steps < self.settings.training.random_steps
        exploration = self.agent.exploration(is_random, counts.env_steps)
        if is_random or not self.agent.policy_spec.stages:
            return exploration
        led_episodes = rollout.led_episodes * (1.0 - counts.success_alone)
        return replace(exploration, led_episodes=led_episodes, led_steps=rollout.led_steps)

    def _collect(self) -> list[Episode]:
        """The oldest job's episodes. A job that fails is tried again, on a new environment, before the run is given up."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self.source.result(self.in_flight[0][0])
            except CollectError:
                self.counts = replace(self.counts, failed_jobs=self.counts.failed_jobs + 1)
        return self.source.result(self.in_flight[0][0])

    def move_to(self, source: Source) -> None:
        """Go on with another source, to which the jobs under way are submitted again."""
        self.source = source
        self.in_flight = deque((source.submit(job), job) for _, job in self.in_flight)

    def _take(self, episode: Episode) -> None:
        """Into the timeline and the normaliser, whole; an episode that the timeline refuses is counted and left out."""
        counts = replace(self.counts, env_steps=self.counts.env_steps + len(episode), episodes=self.counts.episodes + 1)
        try:
            self.buffer.add_episode(episode)
        except InputError as problem:
            if counts.refused_in_a_row + 1 == REFUSED_IN_A_ROW:
                raise HindsightError(
                    f"{REFUSED_IN_A_ROW} episodes in a row were refused, the last one because {problem}"
                ) from problem
            self.counts = replace(
                counts, refused_episodes=counts.refused_episodes + 1, refused_in_a_row=counts.refused_in_a_row + 1
            )
            return
        for side in self.buffer.symmetries.sides(episode):
            self.agent.observe(side)
        self.meter.add_episode(episode)
        if not episode.is_led:
            rise = float(bool(episode.success)) - counts.success_alone
            counts = replace(counts, success_alone=counts.success_alone + RECENT * rise)
        options = self.settings.training
        owed = options.updates_per_step * len(episode) if counts.env_steps > options.random_steps else 0.0
        self.counts = replace(counts, refused_in_a_row=0, owed_updates=counts.owed_updates + owed)

    def _update(self) -> None:
        """Make the updates that are owed; a fraction of one is carried over."""
        batches_each = self.agent.batches_per_update
        due = int(self.counts.owed_updates // batches_each)
        metrics = []
        with _fast_arithmetic(self.settings.training.threads):
            for first in range(0, due, UPDATES_PER_DRAW):
                count = min(UPDATES_PER_DRAW, due - first)
                batches = self._draw(count * batches_each)
                self._measure_goals(batches)
                learnt = [self.agent.update(batches[i * batches_each : (i + 1) * batches_each]) for i in range(count)]
                self._set_priorities(batches.row, [m.pop("priority") for m in learnt if "priority" in m])
                metrics += learnt
        self.meter.add_updates(metrics)
        self._refuse_broken_weights()
        updates = self.counts.updates + due * batches_each
        self.counts = replace(self.counts, updates=updates, owed_updates=self.counts.owed_updates - due * batches_each)

    def _measure_goals(self, batches: Batch) -> None:
        """Once between two records: how many of the goals put in hindsight were achieved already."""
        if "train/trivial_goals" not in self.meter.sums and (share := self.buffer.trivial_share(batches)) is not None:
            self.meter.add("train/trivial_goals", share)

    def _set_priorities(self, row: Array, priorities: list[torch.Tensor]) -> None:
        """Tell the buffer how wrong the samples of a draw were, where it asks for that: once for all of its batches."""
        if priorities:
            self._refuse_broken_weights()  # which explain themselves better than errors that are no numbers
            self.buffer.update_priorities(row, torch.cat(priorities).cpu().numpy())

    def _refuse_broken_weights(self) -> None:
        if not self.agent.is_finite():
            raise HindsightError(
                f"the weights are no longer finite after {self.agent.n_updates} updates: lower learning_rate, or set "
                f"gradient_clip"
            )

    def _draw(self, count: int) -> Batch:
        """`count` batches; the memory of full draws is used again. Beta rises in a line, to 1 at the end of the run."""
        size, beta = self.settings.replay.batch_size, self.settings.replay.beta
        share = min(1.0, self.counts.env_steps / self.settings.training.steps)
        self.buffer.beta = min(1.0, beta + (1.0 - beta) * share)
        if self._batches is None or len(self._batches) != count:
            self._batches = self.buffer.sample_many(count, size)
            return self._batches
        return self.buffer.sample_many(count, size, out=self._batches)

    def _evaluation_is_due(self, until: int) -> bool:
        every, steps, last = self.settings.training.eval_every, self.counts.env_steps, self.counts.evaluated_at
        if not every or not self.counts.updates or steps == last:
            return False
        return steps // every > last // every or steps >= until

    def _evaluate(self) -> Iterator[Outcome | Evaluated]:
        """Nothing of the trainer changes before the last episode is in: an evaluation cut short is made again."""
        options, first = self.settings.training, self.counts.evaluated_episodes
        numbers = range(first, first + options.eval_episodes)
        results: list[Outcome] = []
        values: list[Array] = []
        for episode in played(self.source, self.agent.policy_weights(), options.seed, numbers):
            results.append(outcome_of(episode, environment_seed(options.seed, EVALUATION, episode.number)))
            values.append(self.agent.values(episode))
            yield results[-1]
        evaluation = Evaluation(tuple(results), float(np.concatenate(values).mean()))
        record = {
            "env_steps": float(self.counts.env_steps),
            "success_rate": evaluation.success_rate,
            "return_mean": evaluation.return_mean,
        }
        is_best = self.best is None or _score(record) >= _score(self.best)
        self.history.append(record)
        self.counts = replace(
            self.counts, evaluated_at=self.counts.env_steps, evaluated_episodes=first + options.eval_episodes
        )
        yield Evaluated(evaluation, is_best)

    def facts(self) -> dict[str, int]:
        """How far the run is, as a policy file tells it."""
        return {name: getattr(self.counts, name) for name in ("env_steps", "episodes", "updates")}

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that decides how the run goes on: arrays, and plain data. Source and settings apart."""
        buffer_arrays, buffer_data = self.buffer.state_dict()
        arrays = {f"agent/{k}": v for k, v in self.agent.state_dict().items()}
        arrays |= {f"buffer/{k}": v for k, v in buffer_arrays.items()}
        jobs = []
        for i, (_, job) in enumerate(self.in_flight):
            arrays |= {f"job/{i}/{k}": v for k, v in asdict(job.weights).items()}
            jobs.append(
                {"episodes": list(job.episodes), "exploration": asdict(job.exploration) if job.exploration else None}
            )
        data = {
            "counts": asdict(self.counts),
            "meter": self.meter.state(),
            "history": self.history,
            "jobs": jobs,
            "buffer": buffer_data,
        }
        return arrays, data

    def load_state(self, arrays: dict[str, Array], data: dict[str, Any]) -> None:
        """Go on where `state` was taken; jobs that were under way are submitted again."""
        self.agent.load_state_dict(_part(arrays, "agent/"))
        self.buffer.load_state_dict(_part(arrays, "buffer/"), data["buffer"])
        self.counts = Counts(**data["counts"])
        self.meter = Meter.from_state(data["meter"])
        self.history = list(data["history"])
        jobs = []
        for i, record in enumerate(data["jobs"]):
            job = Job(
                self.settings.training.seed,
                TRAINING,
                tuple(record["episodes"]),
                PolicyWeights(**_part(arrays, f"job/{i}/")),
                Exploration(**record["exploration"]) if record["exploration"] else None,
            )
            jobs.append((0, job))
        self.in_flight = deque(jobs)
        self.move_to(self.source)


@contextmanager
def _fast_arithmetic(threads: int) -> Iterator[None]:
    """So many threads of torch, and numbers below 1e-38 taken as 0: where hardly anything is left to learn, gradients and
    moments come down to such numbers, with which processors work at half the speed. Acting goes on without, as workers do.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)


def _score(record: dict[str, float]) -> tuple[float, float]:
    return record["success_rate"], record["return_mean"]


def _part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name[len(prefix) :]: np.asarray(array) for name, array in arrays.items() if name.startswith(prefix)}
