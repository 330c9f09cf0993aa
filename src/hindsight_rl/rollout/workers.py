"""Sources of episodes: this process, or a pool of workers. The episodes are the same, byte for byte."""

from __future__ import annotations

import time
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, Self

from ..agents.policy import PolicySpec
from ..errors import JobLostError, WorkerError
from ..records import Episode
from ..seeds import EVALUATION
from .collect import Job
from .job_result import JobResult
from .local_source import LocalSource
from .time_limit import DEFAULT_SECONDS, TimeLimit

MAX_ATTEMPTS = 3  # a job fails after this many lost workers or bad results; so does starting workers
# A worker can be lost. A result can be of another source (foreign), of an earlier job (duplicate), or incomplete or damaged
# (truncated). In each case the job runs again, and the fault is counted under one of these names.
FAULTS = ("lost_workers", "foreign_answers", "duplicate_answers", "truncated_answers")
START_TIMEOUT = 300.0  # seconds without a ready worker, before this process does the work


class Source(Protocol):
    """Runs jobs and returns their episodes.

    policy: the shape of the policy network of the jobs that follow; None: that of the setup.
    time_limit: of the jobs that run in this process.
    """

    policy: PolicySpec | None
    time_limit: TimeLimit

    def submit(self, job: Job) -> int:
        """Accept a job and return its ticket."""

    def result(self, ticket: int) -> list[Episode]:
        """Wait for the episodes of a job and return them, once. Raises KeyError for an unknown or dropped ticket."""

    def wait_any(self, tickets: Sequence[int]) -> int:
        """Wait until one of these jobs has a result, and return its ticket. None of them may be dropped."""

    def has_result(self, ticket: int) -> bool:
        """Return whether `result` returns without waiting for a worker."""

    def poll(self) -> None:
        """Receive what has arrived, and start jobs in free workers. Do not wait."""

    def drop(self, ticket: int) -> None:
        """Forget a job. Its result is not needed any more."""

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return the faults since the last call, by the names in FAULTS. Each of them was repaired."""

    def close(self) -> None:
        """Close the environments and end the processes that the source made. All jobs are dropped."""


class Worker(Protocol):
    """One worker of a pool.

    is_ready: whether it accepts jobs; set when its first message is received.
    process_id: on its own machine; 0 until it is ready.
    """

    is_ready: bool
    process_id: int

    def start(self, source: str, ticket: int, job: Job) -> None:
        """Start a job."""

    def receive(self) -> JobResult | None:
        """Return the message that `WorkerPool.wait` announced: a job result, or None for being ready.

        Raises WorkerLostError if the worker ended.
        """

    def restart(self) -> str:
        """Start a new worker in its place. Return how the old one ended, as the end of a sentence. It is killed if busy."""


class WorkerPool(Protocol):
    """Starts workers and waits for their messages. fix: what to do if no worker starts, as a sentence."""

    fix: str

    def start_worker(self) -> Worker:
        """Start one more worker."""

    def wait(self, workers: Sequence[Worker], timeout: float) -> Sequence[Worker]:
        """Return those of `workers` that sent a message or ended; wait up to `timeout` seconds for the first."""

    def close(self) -> None:
        """End all workers and release what they used."""


class WorkerLostError(Exception):
    """A worker ended unexpectedly."""


class WorkerSource:
    """Runs jobs in a pool of workers, training before evaluation, then in the order of submission.

    A worker that ends, or that needs more than `job_timeout` seconds for an episode of a job, is replaced and its job is
    run again, which gives the same episodes. A job with a damaged result is run again too. An error of the environment is
    raised by `result`, with the worker's traceback. If no worker can be started, this process runs the jobs. A warning
    says so.

    pool: starts the workers.
    workers: how many.
    job_timeout: seconds for each episode of a job; starting a worker does not count.
    local: while `result` waits, it runs jobs in this process that no worker has begun. It is closed with this source.
    only_evaluate: the workers leave training jobs to `local`.
    make_local: makes `local` if no worker can be started; None: that is an error.
    """

    def __init__(
        self,
        pool: WorkerPool,
        workers: int,
        job_timeout: float = DEFAULT_SECONDS,
        local: LocalSource | None = None,
        only_evaluate: bool = False,
        make_local: Callable[[TimeLimit], LocalSource] | None = None,
    ) -> None:
        self.policy: PolicySpec | None = None
        self.time_limit = local.time_limit if local else TimeLimit(job_timeout)
        self.fault_counts: Counter[str] = Counter()
        self.local, self._only_evaluate, self._make_local = local, only_evaluate, make_local
        self._pool, self._job_timeout = pool, job_timeout
        self._name = uuid.uuid4().hex
        self._last_ticket = 0
        self._jobs: dict[int, Job] = {}
        self._waiting: deque[int] = deque()
        self._failed_attempts: Counter[int] = Counter()
        self._results: dict[int, list[Episode] | WorkerError] = {}
        self._failed_starts, self._last_end, self._is_closed, self._is_alone = 0, "", False, False
        self.workers: list[Worker] = []
        self._busy: dict[Worker, tuple[int, float]] = {}  # the ticket, and when its job started
        self._ready_at = time.monotonic()  # when a worker was last ready, or was started again
        self._start_workers(workers)

    def submit(self, job: Job) -> int:
        """Start the job in a free worker, or keep it until there is one. Return its ticket."""
        self._last_ticket += 1
        self._jobs[self._last_ticket] = replace(job, policy=self.policy)
        self._waiting.append(self._last_ticket)
        self.poll()
        return self._last_ticket

    def result(self, ticket: int) -> list[Episode]:
        """Wait for the job's episodes. Raises WorkerError if it failed; a second call runs it again."""
        self.wait_any([ticket])
        result = self._results.pop(ticket)
        self._failed_attempts.pop(ticket, None)
        if isinstance(result, WorkerError):
            self._waiting.appendleft(ticket)
            raise result
        del self._jobs[ticket]
        return result

    def wait_any(self, tickets: Sequence[int]) -> int:
        """Wait for the first result.

        Raises KeyError for an unknown or dropped ticket.
        """
        if self._is_closed:
            raise WorkerError("The source is closed. Make a new one.")
        if unknown := set(tickets) - self._jobs.keys():
            raise KeyError(f"Expected tickets of jobs that are not dropped, got {sorted(unknown)}.")
        while True:
            self._start_jobs()
            for ticket in self._results:
                if ticket in tickets:
                    return ticket
            if self.local is None or not self._run_one(self.local, tickets):
                self._receive(timeout=1.0)
                self._require_workers()

    def has_result(self, ticket: int) -> bool:
        """Return whether the job's result arrived."""
        self.poll()
        return ticket in self._results

    def poll(self) -> None:
        """Receive what has arrived, and start jobs in free workers."""
        self._receive(timeout=0)
        self._require_workers()
        self._start_jobs()

    def drop(self, ticket: int) -> None:
        """Forget a job. If it is running, its result will be ignored."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        for memory in (self._jobs, self._results, self._failed_attempts):
            memory.pop(ticket, None)

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return the faults since the last call."""
        taken, self.fault_counts = self.fault_counts, Counter()
        return taken

    def close(self) -> None:
        """End the workers."""
        self._is_closed = True
        self.workers.clear()
        self._pool.close()
        if self.local is not None:
            self.local.close()

    def _run_one(self, local: LocalSource, tickets: Sequence[int]) -> bool:
        """Run one of the jobs `tickets`, or else one for a worker, in this process. Return False if none is waiting."""
        ticket = next((t for t in self._waiting if t in tickets), self._next_in_worker())
        if ticket is None:
            return False
        self._waiting.remove(ticket)
        try:
            self._results[ticket] = local.run(self._jobs[ticket])
        except BaseException:  # also an interrupt: the job can be run again
            self._waiting.appendleft(ticket)
            raise
        self._receive(timeout=0)
        return True

    def _next_in_worker(self) -> int | None:
        """Return the ticket of the next job for a worker, training first."""
        streams = {ticket: self._jobs[ticket].stream for ticket in self._waiting}
        if self._only_evaluate:
            streams = {ticket: stream for ticket, stream in streams.items() if stream == EVALUATION}
        return min(streams, key=lambda ticket: streams[ticket], default=None)

    def _start_jobs(self) -> None:
        """Start waiting jobs in free workers."""
        for worker in self.workers:
            if not worker.is_ready or worker in self._busy:
                continue
            if (ticket := self._next_in_worker()) is not None:
                self._waiting.remove(ticket)
                self._busy[worker] = ticket, time.monotonic()
                worker.start(self._name, ticket, self._jobs[ticket])

    def _receive(self, timeout: float) -> None:
        """Receive messages for up to `timeout` seconds, and replace workers that ended or need too long."""
        expected = [worker for worker in self.workers if worker in self._busy or not worker.is_ready]
        if not expected:
            return
        arrived = set(self._pool.wait(expected, timeout))
        now = time.monotonic()
        for worker in expected:
            if worker in arrived:
                self._receive_from(worker)
            elif worker in self._busy and now - self._busy[worker][1] > self._seconds_for(self._busy[worker][0]):
                self._replace(
                    worker, f"The last one took longer than job_timeout ({self._job_timeout:g} s) for an episode."
                )

    def _receive_from(self, worker: Worker) -> None:
        try:
            result = worker.receive()
        except WorkerLostError:
            self._replace(worker)
        except BaseException:  # interrupted within a message: the rest of it cannot be read
            self._replace(worker)
            raise
        else:
            self._failed_starts = 0
            if result is not None:
                self._accept(self._busy.pop(worker)[0], result)

    def _accept(self, ticket: int, result: JobResult) -> None:
        job = self._jobs.get(ticket)
        if job is None:  # dropped
            return
        fault = result.fault(self._name, ticket, job)
        if fault:
            self.fault_counts[f"{fault}_answers"] += 1
            self._run_again(ticket, f"The last result was rejected: {fault}.")
        else:
            failure = result.failure
            failed = WorkerError(f"Collecting failed in a worker:\n{failure}")
            self._results[ticket] = list(result.episodes) if failure is None else failed

    def _seconds_for(self, ticket: int) -> float:
        job = self._jobs.get(ticket)  # None: it was dropped
        return self._job_timeout * (len(job.episodes) if job else 1)

    def _replace(self, worker: Worker, why: str = "") -> None:
        """Replace a lost worker, and put its job at the head of the queue. why: it is replaced; "": it ended."""
        ticket, _ = self._busy.pop(worker, (None, 0.0))
        self.fault_counts["lost_workers"] += 1
        self._ready_at = time.monotonic()
        try:
            self._last_end = f"the last one ended {worker.restart()}"
            self._failed_starts += ticket is None
        except OSError as problem:
            self._last_end, self._failed_starts = str(problem), MAX_ATTEMPTS
        if self._failed_starts >= MAX_ATTEMPTS:
            self.workers.remove(worker)
        if ticket is not None and ticket in self._jobs:  # not dropped
            self._run_again(ticket, why or f"Its worker was lost: {self._last_end}. Use workers=0 to see the cause.")

    def _run_again(self, ticket: int, cause: str) -> None:
        """Queue a job again, or let it fail if it failed too often."""
        self._failed_attempts[ticket] += 1
        if self._failed_attempts[ticket] < MAX_ATTEMPTS:
            self._waiting.appendleft(ticket)
        else:
            text = f"{self._jobs[ticket]}: no result in {MAX_ATTEMPTS} attempts. {cause}"
            self._results[ticket] = JobLostError(text)

    def _start_workers(self, count: int) -> None:
        for _ in range(count):
            try:
                self.workers.append(self._pool.start_worker())
            except OSError as problem:  # too many processes or open files
                self._last_end = str(problem)
                return

    def _require_workers(self) -> None:
        """Go on in this process if no worker is left, or if none becomes ready. Those that are still starting may help."""
        now = time.monotonic()
        if any(worker.is_ready for worker in self.workers):
            self._ready_at = now
        if self._is_alone or (self.workers and now - self._ready_at <= START_TIMEOUT):
            return
        reason = f"No worker was ready within {START_TIMEOUT:.0f} s."
        if not self.workers:
            self._pool.close()
            reason = f"No worker could be started ({self._last_end})."
        if self.local is None:
            if self._make_local is None:
                raise WorkerError(f"{reason} {self._pool.fix}")
            self.local = self._make_local(self.time_limit)
            self.local.call_between_steps(self.poll)
        self._is_alone = True
        warnings.warn(
            f"{reason} This process does their work, with the same result. {self._pool.fix}", RuntimeWarning, stacklevel=2
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
