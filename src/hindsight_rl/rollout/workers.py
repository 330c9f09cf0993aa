"""Workers: a thread for each gives it one job after another. Its process is on this machine, or Ray's.

The futures are those of concurrent.futures. Its ProcessPoolExecutor is not used, for three reasons. One worker that ends
breaks the whole pool, which does not say whose job ended it. The pool waits forever for a worker that is killed while it
sends, since its own process holds the writing end of that pipe. Workers outlive a parent that is killed.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import pickle
import signal
import threading
import time
import traceback
import zlib
from collections import Counter, deque
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Protocol

import numpy as np

from ..errors import JobLostError, OptionError, WorkerError, origin
from ..records import Episode
from ..seeds import EVALUATION
from .collect import Collector, Job, RolloutSetup

MAX_ATTEMPTS = 3  # a job fails after this many lost workers or damaged results; so does starting a worker
FAULTS = ("lost_workers", "damaged_results")  # each is counted under this name, and the job runs again
CLOSE_SECONDS = 2.0  # given to workers to end by themselves
LONGEST_WAIT = 1_000_000.0  # seconds, below what poll() accepts


@dataclass(frozen=True, eq=False)
class JobResult:
    """The episodes of one job, or why there are none.

    episodes: in the order of their numbers; empty if collecting failed.
    failure: the worker's traceback, and at its end where the error was raised; None if collecting succeeded.
    checksum: CRC-32 of the episodes, every field included.
    """

    episodes: Sequence[Episode] = ()
    failure: str | None = None
    checksum: int = 0

    def is_damaged(self, job: Job) -> bool:
        """Return whether the episodes are not those that the worker sent for this job."""
        numbers = tuple(episode.number for episode in self.episodes)
        return self.failure is None and (numbers != job.episodes or self.checksum != checksum(self.episodes))


def run_job(collector: Collector, job: Job) -> JobResult:
    """Run a job in a worker and return its result; an error is returned as its traceback."""
    try:
        episodes = collector.collect(job)
        return JobResult(episodes, checksum=checksum(episodes))
    except Exception as problem:
        return JobResult(failure=f"{traceback.format_exc().rstrip()}{origin(problem)}")


def checksum(episodes: Sequence[Episode]) -> int:
    """Return the CRC-32 of all fields of the episodes: names, shapes, dtypes and values."""
    value = 0
    for episode in episodes:
        for name, content in sorted({**vars(episode), **episode.info}.items()):
            if isinstance(content, np.ndarray):
                value = zlib.crc32(content.tobytes(), zlib.crc32(f"{name} {content.shape} {content.dtype}".encode(), value))
            elif name != "info":
                value = zlib.crc32(f"{name} {content}".encode(), value)
    return value


@dataclass(eq=False)
class Ticket:
    """A job that was submitted to a source.

    future: its episodes, if a worker runs it.
    failed_attempts: how often it was run in vain since it was submitted.
    """

    job: Job
    future: Future[list[Episode]] = field(default_factory=Future)
    failed_attempts: int = 0


class Worker(Protocol):
    """One worker. Its thread calls everything but `kill`. It is lost if `wait_until_ready` or `run` raises.

    process_id: on its own machine; 0 until it is ready.
    """

    process_id: int

    def wait_until_ready(self) -> None:
        """Wait until the worker accepts jobs."""

    def run(self, job: Job, seconds: float) -> JobResult:
        """Return the result of a job. Raises TimeoutError after `seconds`."""

    def kill(self) -> None:
        """End the worker at once: `run` raises an exception."""

    def end(self, seconds: float) -> str:
        """End the worker, and kill it after `seconds`. Return how it ended, as the end of a sentence."""


class Engine(Protocol):
    """Starts workers. fix: what to do if no worker starts, as a sentence."""

    fix: str

    def start_worker(self) -> Worker:
        """Return a new worker, without waiting until it is ready."""

    def close(self) -> None:
        """Release what all workers used. They have ended."""


class WorkerPool:
    """Gives jobs to workers, training before evaluation, then in the order of submission. Replaces workers that are lost.

    The threads do all of it, so that workers never wait for the learner.

    workers: those that are alive, ready or not.
    last_end: how the last lost worker ended, or why it could not be started.
    """

    def __init__(self, engine: Engine, workers: int, job_timeout: float, only_evaluate: bool) -> None:
        self.workers: list[Worker] = []
        self.last_end, self.is_closed = "", False
        self._engine, self._job_timeout, self._only_evaluate = engine, job_timeout, only_evaluate
        self._waiting: deque[Ticket] = deque()
        self._fault_counts: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        for _ in range(workers):
            thread = threading.Thread(target=self._keep_worker, name="hindsight-rl-worker", daemon=True)
            try:
                thread.start()
            except RuntimeError as problem:  # too many threads
                self.last_end = str(problem)
                break
            self._threads.append(thread)

    @property
    def n_threads(self) -> int:
        """How many threads have not given up: each starts a worker MAX_ATTEMPTS times in a row at most."""
        return sum(thread.is_alive() for thread in self._threads)

    def submit(self, ticket: Ticket, is_next: bool = False) -> None:
        """Queue a job for the first free worker. is_next: before all others."""
        with self._changed:
            self._waiting.insert(0 if is_next else len(self._waiting), ticket)
            self._changed.notify()

    def take(self, tickets: Container[Ticket] = ()) -> Ticket | None:
        """Remove a job that no worker has begun, and return it: one of `tickets`, or else the next one for a worker."""
        with self._changed:
            own = [ticket for ticket in self._waiting if ticket in tickets]
            others = [t for t in self._waiting if t.job.stream == EVALUATION or not self._only_evaluate]
            ticket = own[0] if own else min(others, key=lambda ticket: ticket.job.stream, default=None)  # training first
            if ticket is not None:
                self._waiting.remove(ticket)
            return ticket

    def drop(self, ticket: Ticket) -> None:
        """Forget a job. If it is running, its result will be ignored."""
        with self._changed:
            ticket.future.cancel()
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return the faults since the last call."""
        with self._changed:
            taken, self._fault_counts = self._fault_counts, Counter()
            return taken

    def stop(self) -> None:
        """Let each thread end its worker after its job, and start no other. Do not wait."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """End all workers. Those that are still starting, or do not end by themselves in time, are killed."""
        self.stop()
        self._kill(lambda worker: not worker.process_id)
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._kill(lambda worker: True)
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        self._engine.close()

    def _kill(self, is_chosen: Callable[[Worker], bool]) -> None:
        with self._changed:  # the thread of a worker that is still in the list has not ended it
            for worker in filter(is_chosen, self.workers):
                worker.kill()

    def _keep_worker(self) -> None:
        """Start a worker, give it jobs, and replace it when it is lost. The main function of a thread."""
        failed_starts = 0
        while failed_starts < MAX_ATTEMPTS and (worker := self._start_worker()) is not None:
            failed_starts = 0 if self._use(worker) else failed_starts + 1

    def _start_worker(self) -> Worker | None:
        """Return a new worker; None if the pool is closed, or if none can be started."""
        with self._changed:
            if self.is_closed:
                return None
            try:
                self.workers.append(self._engine.start_worker())
            except Exception as problem:  # too many processes or open files
                self.last_end = str(problem)
                return None
            return self.workers[-1]

    def _use(self, worker: Worker) -> bool:
        """Give jobs to a worker until it is lost or the pool is closed, and end it. Return whether it was ever ready."""
        ticket, is_late = None, False
        try:
            worker.wait_until_ready()
            while (ticket := self._wait_for_job()) is not None:
                seconds = min(self._job_timeout * len(ticket.job.episodes), LONGEST_WAIT)
                self._accept(ticket, worker.run(ticket.job, seconds))
        except Exception as problem:
            is_late = isinstance(problem, TimeoutError)
        with self._changed:
            self.workers.remove(worker)
        self.last_end = f"the last one ended {worker.end(0.0 if is_late else CLOSE_SECONDS)}"
        cause = f"Its worker was lost: {self.last_end}. Use workers=0 to see the cause."
        if is_late:
            cause = f"The last one took longer than job_timeout ({self._job_timeout:g} s) for an episode."
        if not self.is_closed:
            self._repair("lost_workers", ticket, cause)
        return worker.process_id != 0

    def _wait_for_job(self) -> Ticket | None:
        """Return the next job when there is one; None when the pool is closed."""
        with self._changed:
            while not self.is_closed:
                if (ticket := self.take()) is not None:
                    return ticket
                self._changed.wait()
        return None

    def _accept(self, ticket: Ticket, result: JobResult) -> None:
        with self._changed:
            if ticket.future.done():  # dropped
                return
            if result.failure is not None:
                ticket.future.set_exception(WorkerError(f"Collecting failed in a worker:\n{result.failure}"))
            elif result.is_damaged(ticket.job):
                self._repair("damaged_results", ticket, "The last result was damaged.")
            else:
                ticket.future.set_result(list(result.episodes))

    def _repair(self, fault: str, ticket: Ticket | None, cause: str) -> None:
        """Count a fault. If it lost a job, queue the job again, or let it fail if it failed too often."""
        with self._changed:
            self._fault_counts[fault] += 1
            if ticket is None or ticket.future.done():  # done: dropped
                return
            ticket.failed_attempts += 1
            if ticket.failed_attempts < MAX_ATTEMPTS:
                self.submit(ticket, is_next=True)
            else:
                ticket.future.set_exception(JobLostError(f"{ticket.job}: no result in {MAX_ATTEMPTS} attempts. {cause}"))


class ProcessEngine:
    """Workers that are processes of this machine. Raises OptionError if the environment cannot be sent to them."""

    fix = (
        "Put the script's code under `if __name__ == '__main__'`, define the function that makes the environment in a "
        "module, or use workers=0."
    )

    def __init__(self, setup: RolloutSetup) -> None:
        try:
            pickle.dumps(setup)
        except Exception as problem:
            raise OptionError(
                f"The environment cannot be sent to worker processes ({problem}). Pass an id, or a function defined at "
                f"the top of a module, not a lambda, a local function or an environment object."
            ) from None
        self._setup = setup

    def start_worker(self) -> Worker:
        """Start a process. Raises OSError if the machine has too many processes or open files."""
        return _Process(self._setup)

    def close(self) -> None:
        """Do nothing: each process has ended."""


class _Process:
    """One process and the connection to it. Its first message says that it is ready."""

    def __init__(self, setup: RolloutSetup) -> None:
        self.process_id = 0
        context = multiprocessing.get_context("spawn")  # a fork copies torch's thread locks in any state
        self._connection, other_end = context.Pipe()
        self._process = context.Process(target=_work, args=(other_end, setup), daemon=True, name="hindsight-rl-worker")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of this thread, inherited: the main thread handles it
        try:
            self._process.start()
        finally:
            other_end.close()

    def wait_until_ready(self) -> None:
        self.process_id = self._connection.recv()

    def run(self, job: Job, seconds: float) -> JobResult:
        self._connection.send(job)
        if not self._connection.poll(seconds):
            raise TimeoutError
        result: JobResult = self._connection.recv()
        return result

    def kill(self) -> None:
        self._process.kill()

    def end(self, seconds: float) -> str:
        self._connection.close()
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode or 0
        with contextlib.suppress(ValueError):  # the interpreter ends: multiprocessing has waited for the process itself
            self._process.close()
        return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _work(connection: Connection, setup: RolloutSetup) -> None:
    """Run jobs until the connection is closed. The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the parent handles it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    collector = Collector(setup)
    collector.prepare()
    with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):  # the parent closed the connection
        connection.send(multiprocessing.current_process().pid)
        while True:
            connection.send(run_job(collector, connection.recv()))
    collector.close()
    gc.freeze()  # Python ends sooner if it does not search all modules for garbage
