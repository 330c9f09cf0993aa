"""The ways to run jobs: in this process, or by workers of any engine. The episodes are the same, byte for byte."""

from __future__ import annotations

import time
import uuid
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import gymnasium

from ..errors import WorkerError
from ..records import Episode
from .collect import EVALUATION, TRAINING, Collector, Job, RolloutSetup
from .job_result import JobResult

DEATHS_PER_JOB = 3  # a job that takes this many workers down with it is at fault itself
FAULTS = ("lost_workers", "foreign_answers", "duplicate_answers", "truncated_answers")  # what a source makes up for
START_SECONDS = 300.0  # without any worker that is ready, before waiting for one is given up


class Source(Protocol):
    """Takes jobs and gives their episodes."""

    def submit(self, job: Job) -> int:
        """Accept a job; the ticket returned asks for its result."""

    def result(self, ticket: int) -> list[Episode]:
        """The episodes of a submitted job, once; waits for them."""

    def wait_any(self, tickets: Sequence[int]) -> int:
        """The ticket whose result can be had first; waits for one."""

    def has_result(self, ticket: int) -> bool:
        """Whether `result` would not wait for others."""

    def drop(self, ticket: int) -> None:
        """Forget a job, whose result nobody wants any more."""

    def take_fault_counts(self) -> Mapping[str, int]:
        """What went wrong since the last call, and was made up for, by the names in FAULTS."""

    def close(self) -> None:
        """Give back environments and processes; jobs without a result are dropped."""


class LocalSource:
    """Runs each job in this process, when its result is asked for.

    Training and evaluation have an environment each; one that is given as an object serves both in turn.
    """

    def __init__(self, setup: RolloutSetup, environment: gymnasium.Env[Any, Any] | None = None) -> None:
        self._owns = environment is None
        if environment is None:
            self._collectors = {stream: Collector(setup) for stream in (TRAINING, EVALUATION)}
        else:
            self._collectors = dict.fromkeys((TRAINING, EVALUATION), Collector(setup, environment))
        self._jobs: dict[int, Job] = {}
        self._tickets = 0

    def submit(self, job: Job) -> int:
        """Keep the job."""
        self._tickets += 1
        self._jobs[self._tickets] = job
        return self._tickets

    def result(self, ticket: int) -> list[Episode]:
        """Run the job now."""
        job = self._jobs[ticket]
        episodes = self._collectors[job.stream].collect(job)
        del self._jobs[ticket]  # only now: a job that was interrupted can be asked for again
        return episodes

    def wait_any(self, tickets: Sequence[int]) -> int:
        """The oldest, which is as good as any."""
        return min(tickets)

    def has_result(self, ticket: int) -> bool:
        """Yes: there are no others."""
        return True

    def drop(self, ticket: int) -> None:
        """Forget the job."""
        self._jobs.pop(ticket, None)

    def take_fault_counts(self) -> Mapping[str, int]:
        """Nothing: there is nobody to lose."""
        return {}

    def close(self) -> None:
        """Close the environments, but not one that was given."""
        if self._owns:
            for collector in self._collectors.values():
                collector.close()


class Worker(Protocol):
    """One worker of an engine. is_ready: whether it takes jobs; until then it is listened to as if it were busy."""

    is_ready: bool

    def start(self, source: str, ticket: int, job: Job) -> None:
        """Give it a job."""

    def receive(self) -> JobResult | None:
        """What it had to say, once `WorkerPool.wait` named it: an answer, or None for being ready. Raises LostError."""

    def kill(self) -> None:
        """End it now, whatever it is doing."""

    def restart(self) -> str:
        """A new one in its place; how the old one ended, as the end of a sentence."""


class WorkerPool(Protocol):
    """An engine: makes workers, and hears them. fix: what to do where none ever answers."""

    fix: str

    @property
    def process_ids(self) -> list[int]:
        """The operating system's numbers of the workers, each on its own machine."""

    def hire(self) -> Worker:
        """One more worker."""

    def wait(self, workers: Sequence[Worker], timeout: float) -> Sequence[Worker]:
        """Those of `workers` that have something to say, or died; waits `timeout` seconds at most for the first."""

    def close(self) -> None:
        """End all workers, and give back what they used."""


class LostError(Exception):
    """A worker died."""


class WorkerSource:
    """Runs jobs in the workers of an engine, training first, in the order of submission, each as soon as a worker is free.

    A worker that dies, or that is busy with one job for more than `job_timeout` seconds, is replaced and its job run again,
    which gives the same episodes; so is a job whose answer is damaged or not to it. An error of the environment comes out
    of `result` with the worker's traceback.
    """

    def __init__(self, pool: WorkerPool, workers: int, job_timeout: float = 600.0) -> None:
        self.fault_counts: Counter[str] = Counter()
        self._crew, self._job_timeout = pool, job_timeout
        self._name = uuid.uuid4().hex
        self._waiting: deque[int] = deque()
        self._jobs: dict[int, Job] = {}
        self._failures_of: Counter[int] = Counter()
        self._results: dict[int, list[Episode] | str] = {}
        self._dropped: set[int] = set()
        self._has_answered = False
        self._failed_starts, self._last_end = 0, ""
        self._tickets = 0
        self.workers = [pool.hire() for _ in range(workers)]
        self._busy: dict[Worker, tuple[int, float]] = {}  # with which ticket, and since when
        self._ready_at = time.monotonic()  # when a worker was last known to be ready

    @property
    def process_ids(self) -> list[int]:
        """The operating system's numbers of the workers, each on its own machine."""
        return self._crew.process_ids

    def submit(self, job: Job) -> int:
        """Hand the job to a free worker, or keep it until there is one."""
        self._tickets += 1
        self._jobs[self._tickets] = job
        self._waiting.append(self._tickets)
        self._receive(timeout=0)
        self._hand_out()
        return self._tickets

    def result(self, ticket: int) -> list[Episode]:
        """Wait for the job's episodes. Raises WorkerError where it failed; it is run again when it is asked for again."""
        self.wait_any([ticket])
        result = self._results.pop(ticket)
        self._failures_of.pop(ticket, None)
        if isinstance(result, str):
            self._waiting.appendleft(ticket)
            raise WorkerError(f"collecting failed in a worker process:\n{result}")
        del self._jobs[ticket]
        return result

    def wait_any(self, tickets: Sequence[int]) -> int:
        """The ticket whose result came first; waits for one. Raises WorkerError where no worker can be had."""
        if not self.workers:
            raise WorkerError("the workers were ended: make a new source")
        while True:
            self._hand_out()
            for ticket in self._results:
                if ticket in tickets:
                    return ticket
            self._receive(timeout=1.0)
            self._refuse_to_wait_for_nobody()

    def has_result(self, ticket: int) -> bool:
        """Whether its worker has answered."""
        self._receive(timeout=0)
        self._hand_out()
        return ticket in self._results

    def drop(self, ticket: int) -> None:
        """Forget a job: one that waits is not started, the result of another is thrown away."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            del self._jobs[ticket]
        elif self._results.pop(ticket, None) is not None:
            del self._jobs[ticket]
        elif ticket in self._jobs:
            self._dropped.add(ticket)

    def take_fault_counts(self) -> Mapping[str, int]:
        """What went wrong since the last call."""
        taken, self.fault_counts = self.fault_counts, Counter()
        return taken

    def close(self) -> None:
        """End the workers, all at once."""
        self.workers.clear()
        self._crew.close()

    def _hand_out(self) -> None:
        for worker in self.workers:
            if worker.is_ready and worker not in self._busy and self._waiting:
                ticket = min(self._waiting, key=lambda ticket: self._jobs[ticket].stream)  # training before evaluation
                self._waiting.remove(ticket)
                self._busy[worker] = ticket, time.monotonic()
                worker.start(self._name, ticket, self._jobs[ticket])

    def _receive(self, timeout: float) -> None:
        """Take in what the workers say, and replace those that died or hang."""
        listened = [worker for worker in self.workers if worker in self._busy or not worker.is_ready]
        speaking = set(self._crew.wait(listened, timeout))
        now = time.monotonic()
        for worker in listened:
            if worker in speaking:
                self._hear(worker)
            elif worker in self._busy and now - self._busy[worker][1] > self._job_timeout:
                worker.kill()
                self._replace(worker)

    def _hear(self, worker: Worker) -> None:
        try:
            delivery = worker.receive()
        except LostError:
            self._replace(worker)
        except BaseException:  # interrupted in the middle of a message: what is left of it makes no sense
            worker.kill()
            self._replace(worker)
            raise
        else:
            self._failed_starts = 0
            if delivery is not None:
                self._has_answered = True
                self._take_in(self._busy.pop(worker)[0], delivery)

    def _take_in(self, ticket: int, delivery: JobResult) -> None:
        fault = delivery.fault(self._name, ticket, self._jobs[ticket])
        if fault:
            self.fault_counts[f"{fault}_answers"] += 1
            self._run_again(ticket, f"{DEATHS_PER_JOB} answers in a row were not to be used, the last one was {fault}")
        elif ticket in self._dropped:
            self._forget(ticket)
        else:
            self._results[ticket] = delivery.episodes() if delivery.failure is None else delivery.failure

    def _replace(self, worker: Worker) -> None:
        """A new worker for one that is lost, and its job back to the head of the queue."""
        ticket, _ = self._busy.pop(worker, (None, 0.0))
        self._last_end = worker.restart()
        self.fault_counts["lost_workers"] += 1
        if ticket is None:
            self._failed_starts += 1
            return
        fix = "run with workers = 0 to see the cause" if self._has_answered else self._crew.fix
        self._run_again(
            ticket,
            f"{DEATHS_PER_JOB} workers died one after the other at episodes {self._jobs[ticket].episodes}, the last one "
            f"{self._last_end}: {fix}",
        )

    def _run_again(self, ticket: int, otherwise: str) -> None:
        """Queue a job again, or where it failed too often let it end with the text `otherwise`."""
        self._failures_of[ticket] += 1
        if ticket in self._dropped:
            self._forget(ticket)
        elif self._failures_of[ticket] < DEATHS_PER_JOB:
            self._waiting.appendleft(ticket)
        else:
            self._results[ticket] = otherwise

    def _forget(self, ticket: int) -> None:
        self._dropped.remove(ticket)
        self._failures_of.pop(ticket, None)
        del self._jobs[ticket]

    def _refuse_to_wait_for_nobody(self) -> None:
        """Raise WorkerError where workers cannot be started."""
        now = time.monotonic()
        if any(worker.is_ready for worker in self.workers):
            self._ready_at = now
        if self._failed_starts >= DEATHS_PER_JOB:
            self._failed_starts = 0
            raise WorkerError(
                f"{DEATHS_PER_JOB} workers ended before they were ready, the last one {self._last_end}: {self._crew.fix}"
            )
        if now - self._ready_at > START_SECONDS:
            raise WorkerError(f"no worker was ready within {START_SECONDS:.0f} s: {self._crew.fix}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
