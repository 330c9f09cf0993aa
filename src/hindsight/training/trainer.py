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
from ..options import Settings
from ..options.relabel import Relabel
from ..records import Array, Batch, Episode
from ..replay.buffer import HindsightBuffer
from ..rollout.collect import EVALUATION, TRAINING, Job, environment_seed
from ..rollout.workers import FAULTS, Source
from .evaluate import Evaluation, EvaluationJobs, Outcome, outcome_of
from .learners import GATHER, LEARN, LOAD, STOP, Alone, Learners
from .metrics import Meter

REFUSED_IN_A_ROW = 10  # episodes with bad values, one after the other, that end a run
ATTEMPTS = 3  # at a job, before the environment's error ends the run
SUMMED = ("env_steps", "episodes", "refused_episodes", "failed_jobs", "stale_episodes", *FAULTS, "owed_updates")
RECENT = 0.1  # what the newest episode counts in the mean success of those that are not led
UPDATES_PER_DRAW = 8  # batches drawn at once: the cost of a call is shared, and the batches still fit the cache


@dataclass(frozen=True)
class JobFinished:
    """A job's episodes were taken in, and the updates that they made due are done. An evaluation may follow at once."""

    episodes: list[Episode]
    evaluation_follows: bool = False


@dataclass(frozen=True)
class Counts:
    """How far a run has come, and what went wrong on the way.

    seconds: of collecting and of updating, as the learner waited for them. stale_episodes: dropped, for their weights were
    older than `policy_lag`. lost_workers: replaced. foreign, duplicate and truncated answers: dropped, and their jobs run again.
    success_alone: the running mean success of this learner's episodes that were not led to the subgoals.
    """

    env_steps: int = 0
    episodes: int = 0
    updates: int = 0
    refused_episodes: int = 0
    refused_in_a_row: int = 0
    failed_jobs: int = 0
    stale_episodes: int = 0
    lost_workers: int = 0
    foreign_answers: int = 0
    duplicate_answers: int = 0
    truncated_answers: int = 0
    learnt_jobs: int = 0
    submitted_episodes: int = 0
    owed_updates: float = 0.0
    evaluated_at: int = 0
    evaluated_episodes: int = 0
    success_alone: float = 0.0
    collect_seconds: float = 0.0
    update_seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """How far the run is, as a policy file tells it."""
        return {name: getattr(self, name) for name in ("env_steps", "episodes", "updates")}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An agent as it was at one moment of a run."""

    weights: PolicyWeights
    agent_state: dict[str, Array]
    counts: Counts

    @classmethod
    def take(cls, agent: Agent, counts: Counts) -> Snapshot:
        """Copies of what it is now."""
        return cls(agent.policy_weights(), agent.state_dict(), counts)


@dataclass(frozen=True, eq=False)
class EvaluationFinished:
    """An evaluation is complete; of the agent as it was when the evaluation began."""

    evaluation: Evaluation
    is_best: bool
    snapshot: Snapshot = field(repr=False)


Event = JobFinished | Outcome | EvaluationFinished


@dataclass
class _Evaluating:
    """An evaluation under way. values: what the critics, as they are when it is told, say of each episode."""

    jobs: EvaluationJobs
    snapshot: Snapshot
    outcomes: list[Outcome] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)


@dataclass
class Trainer:
    """Trains an agent on the episodes of a source. `run` tells the whole story; `learn_from_next_job` is one step of it.

    Where several learn together, the first one runs, evaluates and is saved; the others `follow` it, each with a buffer and
    a source of its own. Counts are those of all.
    """

    agent: Agent
    buffer: HindsightBuffer
    source: Source
    settings: Settings
    counts: Counts = field(default_factory=Counts)
    meter: Meter = field(default_factory=Meter)
    in_flight: deque[tuple[int, Job]] = field(default_factory=deque)  # tickets and jobs, oldest first
    history: list[dict[str, float]] = field(default_factory=list)  # env_steps, success_rate, return_mean of evaluations
    learners: Learners = field(default_factory=Alone)
    _batches: Batch | None = None
    _evaluation: _Evaluating | None = None
    _published: tuple[int, PolicyWeights] | None = None

    def __post_init__(self) -> None:
        if self.learners.count > 1:
            self.agent.share_gradients(self.learners.average)

    def run(self, until: int) -> Iterator[Event]:
        """Train and evaluate until `until` environment steps, or until solved. May be left and taken up after any event.

        An evaluation is waited for; with the free schedule it goes on beside the training, until the next one is due.
        """
        waits = self.settings.rollout.schedule == "deterministic"
        try:
            while not self.is_solved:
                if self._evaluation and (waits or self._evaluation_is_due(until)):
                    yield from self._tell_evaluation(to_the_end=True)
                elif self._evaluation_is_due(until):
                    self._begin_evaluation()
                elif self.counts.env_steps < until:
                    episodes = self.learn_from_next_job()
                    yield JobFinished(episodes, self._evaluation_is_due(until))
                    yield from self._tell_evaluation(to_the_end=False)
                elif self._evaluation:
                    yield from self._tell_evaluation(to_the_end=True)
                else:
                    return
        finally:
            self._drop_evaluation()

    def learn_from_next_job(self) -> list[Episode]:
        """Take in the episodes of the next job, the oldest or the first that ends, and make the updates they are worth."""
        self.learners.tell(LEARN)
        return self._learn()

    def follow(self) -> None:
        """Do what the first learner says, until it stops."""
        while (command := self.learners.hear()) != STOP:
            if command == LEARN:
                self._learn()
            elif command == GATHER:
                self.learners.send(0, *self._shard())
            elif command == LOAD:
                self._load(*self.learners.receive(0))

    def lead(self) -> None:
        """Bring the other learners to where this one is; their buffers stay as they are."""
        self._tell_to_load({}, {})

    def _learn(self) -> list[Episode]:
        started, before = time.perf_counter(), self.counts
        episodes = self._fresh_episodes()
        collected = time.perf_counter()
        self._observe([episode for episode in episodes if self._take(episode)])
        self._add_up(before)
        self._update()
        self.counts = replace(
            self.counts,
            learnt_jobs=self.counts.learnt_jobs + 1,
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

    def _fresh_episodes(self) -> list[Episode]:
        """The next job's episodes; those whose weights are too old, as may be with the free schedule, are dropped."""
        while True:
            self._submit_jobs()
            job, episodes = self._collect()
            if self.counts.learnt_jobs - job.version <= self.settings.rollout.policy_lag:
                return episodes
            self.counts = replace(self.counts, stale_episodes=self.counts.stale_episodes + len(episodes))

    def _submit_jobs(self) -> None:
        rollout, training = self.settings.rollout, self.settings.training
        while len(self.in_flight) <= rollout.policy_lag:
            first = self.counts.submitted_episodes + self.learners.rank * rollout.episodes_per_job
            job = Job(
                training.seed,
                TRAINING,
                tuple(range(first, first + rollout.episodes_per_job)),
                self._publish(),
                self._exploration(),
                self.counts.learnt_jobs,
            )
            self.in_flight.append((self.source.submit(job), job))
            submitted = self.counts.submitted_episodes + self.learners.count * rollout.episodes_per_job
            self.counts = replace(self.counts, submitted_episodes=submitted)

    def _publish(self) -> PolicyWeights:
        """The weights that collect, as they are now: one object for all jobs that have them."""
        if self._published is None or self._published[0] != self.counts.learnt_jobs:
            self._published = self.counts.learnt_jobs, self.agent.collecting_weights()
        return self._published[1]

    def _exploration(self) -> Exploration:
        """How the next job explores; the better the episodes that are not led succeed, the fewer are led."""
        counts, rollout = self.counts, self.settings.rollout
        is_random = counts.env_steps < self.settings.training.random_steps
        exploration = self.agent.exploration(is_random, counts.env_steps)
        if is_random or not self.agent.policy_spec.subgoals:
            return exploration
        guided_episodes = rollout.guided_episodes * (1.0 - counts.success_alone)
        return replace(exploration, guided_episodes=guided_episodes, guided_fraction=rollout.guided_fraction)

    def _collect(self) -> tuple[Job, list[Episode]]:
        """The next job and its episodes. One that fails is tried again, on a new environment, before the run ends."""
        place = 0
        if self.settings.rollout.schedule == "free":
            tickets = [ticket for ticket, _ in self.in_flight]
            place = tickets.index(self.source.wait_any(tickets))
        ticket, job = self.in_flight[place]
        for attempt in range(ATTEMPTS):
            try:
                episodes = self.source.result(ticket)
                break
            except CollectError:
                if attempt + 1 == ATTEMPTS:
                    raise
                self.counts = replace(self.counts, failed_jobs=self.counts.failed_jobs + 1)
        del self.in_flight[place]
        self._count_faults()
        return job, episodes

    def _count_faults(self) -> None:
        fault_counts = self.source.take_fault_counts()
        self.counts = replace(
            self.counts, **{name: getattr(self.counts, name) + count for name, count in fault_counts.items()}
        )

    def move_to(self, source: Source) -> None:
        """Go on with another source, to which the jobs under way are submitted again."""
        self.source = source
        self.in_flight = deque((source.submit(job), job) for _, job in self.in_flight)

    def _take(self, episode: Episode) -> bool:
        """Into the timeline, whole; an episode that the timeline refuses is counted and left out."""
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
            return False
        self.meter.add_episode(episode)
        if not episode.is_guided:
            rise = float(bool(episode.success)) - counts.success_alone
            counts = replace(counts, success_alone=counts.success_alone + RECENT * rise)
        options = self.settings.training
        owed = options.updates_per_step * len(episode) if counts.env_steps > options.random_steps else 0.0
        self.counts = replace(counts, refused_in_a_row=0, owed_updates=counts.owed_updates + owed)
        return True

    def _observe(self, episodes: list[Episode]) -> None:
        """Into the normaliser, from every side: what all learners saw, in the order of their ranks."""
        augmented = [side for episode in episodes for side in self.buffer.symmetries.augmented(episode)]
        if self.learners.count == 1:
            for side in augmented:
                self.agent.observe(side)
        else:
            for moments in self.learners.gather(self.agent.moments_of(augmented)):
                self.agent.observe_moments(moments)

    def _add_up(self, before: Counts) -> None:
        """Let the counts grow by what all learners did since `before`."""
        if self.learners.count > 1:
            grown = self.learners.total([getattr(self.counts, name) - getattr(before, name) for name in SUMMED])
            sums = {name: getattr(before, name) + more for name, more in zip(SUMMED, grown, strict=True)}
            whole = {name: value if name == "owed_updates" else int(value) for name, value in sums.items()}
            self.counts = replace(self.counts, **whole)

    def _update(self) -> None:
        """Make the updates that are owed; a fraction of one is carried over."""
        batches_each = self.agent.batches_per_update
        due = int(self.counts.owed_updates // batches_each)
        metrics = []
        self._set_shares()
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
        if (
            "train/goals_already_achieved" not in self.meter.sums
            and (share := self.buffer.already_achieved_fraction(batches)) is not None
        ):
            self.meter.add("train/goals_already_achieved", share)

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

    def _set_shares(self) -> None:
        """What changes on the way: beta rises in a line, to 1 at the end of the run, and later goals come otherwise."""
        replay, steps = self.settings.replay, self.counts.env_steps
        self.buffer.beta = min(1.0, replay.beta + (1.0 - replay.beta) * min(1.0, steps / self.settings.training.steps))
        if replay.relabel_later and steps >= replay.relabel_later_from:
            self.buffer.strategy = Relabel.parse(replay.relabel_later)

    def _draw(self, count: int) -> Batch:
        """`count` batches; the memory of full draws is used again."""
        size = self.settings.replay.batch_size
        if self._batches is None or len(self._batches) != count:
            self._batches = self.buffer.sample_many(count, size)
            return self._batches
        return self.buffer.sample_many(count, size, out=self._batches)

    def _evaluation_is_due(self, until: int) -> bool:
        every, steps, last = self.settings.training.eval_every, self.counts.env_steps, self.counts.evaluated_at
        if self._evaluation:
            last = self._evaluation.snapshot.counts.env_steps
        if not every or not self.counts.updates or steps == last:
            return False
        return steps // every > last // every or steps >= until

    def _begin_evaluation(self) -> None:
        """Nothing that is kept changes before the last episode is in: an evaluation cut short is made again."""
        options, first = self.settings.training, self.counts.evaluated_episodes
        numbers = range(first, first + options.eval_episodes)
        snapshot = Snapshot.take(self.agent, self.counts)
        jobs = EvaluationJobs(self.source, snapshot.weights, options.seed, numbers)
        self._evaluation = _Evaluating(jobs, snapshot)

    def _tell_evaluation(self, to_the_end: bool) -> Iterator[Outcome | EvaluationFinished]:
        """The outcomes that are there; or `to_the_end`, waiting for them."""
        if (under_way := self._evaluation) is None:
            return
        jobs, seed = under_way.jobs, self.settings.training.seed
        while jobs.has_next or (to_the_end and not jobs.is_over):
            episode = jobs.next()
            under_way.outcomes.append(outcome_of(episode, environment_seed(seed, EVALUATION, episode.number)))
            under_way.values.append(self.agent.values(episode))
            yield under_way.outcomes[-1]
        if jobs.is_over:
            self._evaluation = None
            value = float(np.concatenate(under_way.values).mean())
            yield self._conclude(Evaluation(tuple(under_way.outcomes), value), under_way.snapshot)

    def _conclude(self, evaluation: Evaluation, snapshot: Snapshot) -> EvaluationFinished:
        """Take an evaluation up into what is kept."""
        record = {
            "env_steps": float(snapshot.counts.env_steps),
            "success_rate": evaluation.success_rate,
            "return_mean": evaluation.return_mean,
        }
        is_best = self.best is None or _score(record) >= _score(self.best)
        self.history.append(record)
        self._count_faults()
        self.counts = replace(
            self.counts,
            evaluated_at=snapshot.counts.env_steps,
            evaluated_episodes=self.counts.evaluated_episodes + len(evaluation.outcomes),
        )
        return EvaluationFinished(evaluation, is_best, snapshot)

    def _drop_evaluation(self) -> None:
        if self._evaluation:
            self._evaluation.jobs.drop()
            self._evaluation = None

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that decides how the run goes on: arrays, and plain data. Source and settings apart."""
        arrays, data = self._shard()
        arrays |= {f"agent/{k}": v for k, v in self.agent.state_dict().items()}
        data |= {"counts": asdict(self.counts), "meter": self.meter.state(), "history": self.history, "learners": []}
        self.learners.tell(GATHER)
        for rank in range(1, self.learners.count):
            theirs, their_data = self.learners.receive(rank)
            arrays |= {f"learner/{rank}/{k}": v for k, v in theirs.items()}
            data["learners"].append(their_data)
        return arrays, data

    def load_state(self, arrays: dict[str, Array], data: dict[str, Any]) -> None:
        """Go on where `state` was taken; jobs that were under way are submitted again."""
        self._load(arrays, data)
        self.meter = Meter.from_state(data["meter"])
        self.history = list(data["history"])
        self._tell_to_load(arrays, data)

    def _tell_to_load(self, arrays: dict[str, Array], data: dict[str, Any]) -> None:
        """Give the other learners the agent as it is, and their parts of a state."""
        self.learners.tell(LOAD)
        for rank in range(1, self.learners.count):
            common = {f"agent/{k}": v for k, v in self.agent.state_dict().items()}
            mine = data["learners"][rank - 1] if data else {}
            part = _part(arrays, f"learner/{rank}/") | common
            self.learners.send(rank, part, mine | {"counts": asdict(self.counts)})

    def _shard(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """What one of several learners has for itself: its buffer, and the jobs under way."""
        buffer_arrays, buffer_data = self.buffer.state_dict()
        arrays = {f"buffer/{k}": v for k, v in buffer_arrays.items()}
        jobs = []
        for i, (_, job) in enumerate(self.in_flight):
            arrays |= {f"job/{i}/{k}": v for k, v in asdict(job.weights).items()}
            exploration = asdict(job.exploration) if job.exploration else None
            jobs.append({"episodes": list(job.episodes), "exploration": exploration, "version": job.version})
        return arrays, {"jobs": jobs, "buffer": buffer_data}

    def _load(self, arrays: dict[str, Array], data: dict[str, Any]) -> None:
        """Take the agent, the counts and, where they are there, the parts of a `_shard`."""
        self.agent.load_state_dict(_part(arrays, "agent/"))
        self.counts = Counts(**data["counts"])
        self._published = None
        if "buffer" not in data:
            return
        self.buffer.load_state_dict(_part(arrays, "buffer/"), data["buffer"])
        jobs = []
        for i, record in enumerate(data["jobs"]):
            job = Job(
                self.settings.training.seed,
                TRAINING,
                tuple(record["episodes"]),
                PolicyWeights(**_part(arrays, f"job/{i}/")),
                Exploration(**record["exploration"]) if record["exploration"] else None,
                int(record["version"]),
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
