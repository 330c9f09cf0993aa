"""Sources of episodes: the one that collects in this process, the one with workers, and the choice.

A source runs jobs and returns their episodes, which are the same, byte for byte, in every source. Submit jobs early and
take results in any order: workers run ahead.
"""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Self

from ..agents.policy import PolicySpec
from ..envs.random_play import Environment
from ..errors import CollectError, WorkerError
from ..options import RolloutOptions
from ..records import Episode
from ..seeds import EVALUATION, TRAINING
from ..storage import usable_cores
from .collect import Collector, Job, RolloutSetup
from .ray_workers import RayEngine
from .time_limit import DEFAULT_SECONDS, OutOfTimeError, TimeLimit
from .workers import Engine, ProcessEngine, Ticket, WorkerPool

MOST_EVALUATORS = 4  # processes of workers="auto": an evaluation of 20 episodes occupies no more
START_TIMEOUT = 300.0  # seconds without a ready worker, before this process does the work


class LocalSource:
    """Runs jobs in this process, each when `result` is called.

    policy: the shape of the policy network of the jobs that follow; None: that of the setup.
    setup: makes environments.
    training: the environment for training jobs.
    evaluation: the environment for evaluation jobs. None: the setup makes one when it is first needed. If the setup
        cannot make environments, `training` serves both.
    time_limit: of a step or reset of an environment.
    The source does not close environments that it is given.
    """

    policy: PolicySpec | None = None

    def __init__(
        self,
        setup: RolloutSetup,
        training: Environment,
        evaluation: Environment | None = None,
        time_limit: TimeLimit | None = None,
    ) -> None:
        self.time_limit = time_limit or TimeLimit(DEFAULT_SECONDS)
        if evaluation is None and setup.environment is None:
            evaluation = training
        environments = {TRAINING: training, EVALUATION: evaluation}
        self._collectors = {stream: Collector(setup, env, self.time_limit.renew) for stream, env in environments.items()}

    def submit(self, job: Job) -> Ticket:
        """Return a ticket."""
        return Ticket(replace(job, policy=self.policy))

    def result(self, ticket: Ticket) -> list[Episode]:
        """Run the job and return its episodes. A job that raises can be run again."""
        return self.run(ticket.job)

    def run(self, job: Job) -> list[Episode]:
        """Run a job that was not submitted. Raises CollectError if the environment fails, or does not return in time."""
        collector = self._collectors[job.stream]
        try:
            with self.time_limit.watch(job):
                return collector.collect(job)
        except OutOfTimeError:
            with contextlib.suppress(OutOfTimeError), self.time_limit.watch("closing an environment"):
                collector.replace_environment()
            raise CollectError(
                f"{job}: the environment did not return within job_timeout ({self.time_limit.seconds:g} s). If it is only "
                f"slow, increase job_timeout."
            ) from None

    def wait_any(self, tickets: Sequence[Ticket]) -> Ticket:
        """Return the first ticket."""
        return tickets[0]

    def has_result(self, ticket: Ticket) -> bool:
        """Return True: `result` runs the job in this process, so it never waits for a worker."""
        return True

    def drop(self, ticket: Ticket) -> None:
        """Do nothing, since nothing was begun."""

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return no faults, since no worker can be lost."""
        return {}

    def close(self) -> None:
        """Close the environments that the source made."""
        for collector in self._collectors.values():
            collector.close()


class WorkerSource:
    """Runs jobs in workers.

    A worker that ends, or that needs more than `job_timeout` seconds for an episode of a job, is replaced and its job is
    run again, which gives the same episodes. A job with a damaged result is run again too. An error of the environment is
    raised by `result`, with the worker's traceback. If no worker can be started, this process runs the jobs. A warning
    says so.

    policy: the shape of the policy network of the jobs that follow; None: that of the setup.
    engine: starts the workers.
    workers: how many.
    job_timeout: seconds for each episode of a job; starting a worker does not count.
    local: while `result` waits, it runs jobs in this process that no worker has begun. It is closed with this source.
    only_evaluate: the workers leave training jobs to `local`.
    make_local: makes `local` if no worker can be started; None: that is an error.
    """

    policy: PolicySpec | None = None

    def __init__(
        self,
        engine: Engine,
        workers: int,
        job_timeout: float = DEFAULT_SECONDS,
        local: LocalSource | None = None,
        only_evaluate: bool = False,
        make_local: Callable[[TimeLimit], LocalSource] | None = None,
    ) -> None:
        self.time_limit = local.time_limit if local else TimeLimit(job_timeout)
        self.local, self._make_local = local, make_local
        self.pool = WorkerPool(engine, workers, job_timeout, only_evaluate)
        weakref.finalize(self, self.pool.stop)  # of a source that nobody closes, and before the interpreter ends
        self._engine, self._is_alone = engine, False
        self._ready_at = time.monotonic()  # when a worker was last ready

    @property
    def process_ids(self) -> list[int]:
        """The processes of the workers that are ready, each on its own machine."""
        return [worker.process_id for worker in self.pool.workers if worker.process_id]

    def submit(self, job: Job) -> Ticket:
        """Queue the job and return its ticket."""
        ticket = Ticket(replace(job, policy=self.policy))
        self.pool.submit(ticket)
        return ticket

    def result(self, ticket: Ticket) -> list[Episode]:
        """Wait for the episodes of a job that is not dropped. Raises WorkerError if it failed: call it again."""
        self.wait_any([ticket])
        try:
            return ticket.future.result()
        except WorkerError:
            ticket.future, ticket.failed_attempts = Future(), 0
            self.pool.submit(ticket, is_next=True)
            raise

    def wait_any(self, tickets: Sequence[Ticket]) -> Ticket:
        """Wait until one of these jobs has a result, and return its ticket. None of them may be dropped.

        Jobs run in this process meanwhile if it may.
        """
        while True:
            if self.pool.is_closed:
                raise WorkerError("The source is closed. Make a new one.")
            for ticket in tickets:
                if ticket.future.done():
                    return ticket
            self._require_workers()
            if self.local is None or not self._run_one(self.local, tickets):
                wait([ticket.future for ticket in tickets], timeout=1.0, return_when=FIRST_COMPLETED)

    def has_result(self, ticket: Ticket) -> bool:
        """Return whether the job's result arrived, so that `result` returns without waiting."""
        return ticket.future.done()

    def drop(self, ticket: Ticket) -> None:
        """Forget a job. If it is running, its result will be ignored."""
        self.pool.drop(ticket)

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return the faults since the last call, by their names in `workers.FAULTS`. Each of them was repaired."""
        return self.pool.take_fault_counts()

    def close(self) -> None:
        """End the workers, and drop all jobs."""
        self.pool.close()
        if self.local is not None:
            self.local.close()

    def _run_one(self, local: LocalSource, tickets: Sequence[Ticket]) -> bool:
        """Run one of the jobs `tickets`, or else one for a worker, in this process. Return False if none is waiting."""
        ticket = self.pool.take(tickets)
        if ticket is None:
            return False
        try:
            ticket.future.set_result(local.run(ticket.job))
        except BaseException:  # also an interrupt: the job can be run again
            self.pool.submit(ticket, is_next=True)
            raise
        return True

    def _require_workers(self) -> None:
        """Go on in this process if no worker is left, or if none becomes ready. Those that are still starting may help."""
        now = time.monotonic()
        if self.process_ids:
            self._ready_at = now
        if self._is_alone or (self.pool.n_threads and now - self._ready_at <= START_TIMEOUT):
            return
        reason = f"No worker was ready within {START_TIMEOUT:.0f} s."
        if not self.pool.n_threads:
            reason = f"No worker could be started ({self.pool.last_end})."
        if self.local is None:
            if self._make_local is None:
                raise WorkerError(f"{reason} {self._engine.fix}")
            self.local = self._make_local(self.time_limit)
        self._is_alone = True
        warnings.warn(
            f"{reason} This process does their work, with the same result. {self._engine.fix}", RuntimeWarning, stacklevel=2
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


EpisodeSource = LocalSource | WorkerSource


def make_source(setup: RolloutSetup, rollout: RolloutOptions, environment: Callable[[], Environment]) -> EpisodeSource:
    """Return a new source of episodes: this process, workers, or both.

    setup: makes the environments of workers.
    environment: returns the environment of this process. It is called when this process needs it.
    """

    def make_local(time_limit: TimeLimit) -> LocalSource:
        env = environment()
        return LocalSource(setup, env, env, time_limit)

    spare = min(usable_cores() - 1, MOST_EVALUATORS) if isinstance(setup.environment, str) else 0
    workers = spare if rollout.workers == "auto" else rollout.workers
    if not workers:
        return LocalSource(setup, environment(), time_limit=TimeLimit(rollout.job_timeout))
    if rollout.workers != "auto":
        is_ray = rollout.engine == "ray"
        engine: Engine = RayEngine(setup, workers, rollout.ray_address) if is_ray else ProcessEngine(setup)
        return WorkerSource(engine, workers, rollout.job_timeout, make_local=make_local)
    # without policy lag the learner waits for each training job, and may as well run it
    source = WorkerSource(ProcessEngine(setup), workers, rollout.job_timeout, only_evaluate=rollout.policy_lag == 0)
    try:
        source.local = make_local(source.time_limit)  # while the workers start
    except BaseException:
        source.close()
        raise
    return source
