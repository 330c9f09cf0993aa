"""The ways to run jobs: in this process, or in worker processes. The episodes are the same, byte for byte."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import time
import traceback
from collections import deque
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Protocol, Self

import gymnasium

from ..errors import OptionError, WorkerError
from ..records import Episode
from .collect import EVALUATION, TRAINING, Collector, Job, Stage

DEATHS_PER_JOB = 3  # a job that takes this many workers down with it is at fault itself


NEVER_STARTED = (
    "none ever started: guard a script by if __name__ == '__main__', and define what makes the environment in a module, "
    "or run with workers = 0"
)


class Source(Protocol):
    """Takes jobs and gives their episodes."""

    def submit(self, job: Job) -> int:
        """Accept a job; the ticket returned asks for its result."""

    def result(self, ticket: int) -> list[Episode]:
        """The episodes of a submitted job, once; waits for them."""

    def drop(self, ticket: int) -> None:
        """Forget a job, whose result nobody wants any more."""

    def close(self) -> None:
        """Give back environments and processes; jobs without a result are dropped."""


class LocalSource:
    """Runs each job in this process, when its result is asked for.

    Training and evaluation have an environment each; one that is given as an object serves both in turn.
    """

    def __init__(self, stage: Stage, environment: gymnasium.Env[Any, Any] | None = None) -> None:
        self._owns = environment is None
        if environment is None:
            self._collectors = {stream: Collector(stage) for stream in (TRAINING, EVALUATION)}
        else:
            self._collectors = dict.fromkeys((TRAINING, EVALUATION), Collector(stage, environment))
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

    def drop(self, ticket: int) -> None:
        """Forget the job."""
        self._jobs.pop(ticket, None)

    def close(self) -> None:
        """Close the environments, but not one that was given."""
        if self._owns:
            for collector in self._collectors.values():
                collector.close()


class WorkerSource:
    """Runs jobs in processes of their own, in the order of submission, each as soon as a worker is free.

    A worker that dies, or that is busy with one job for more than `job_timeout` seconds, is replaced and its job run again,
    which gives the same episodes. An error of the environment comes out of `result` with the worker's traceback.
    """

    def __init__(self, stage: Stage, workers: int, job_timeout: float = 600.0) -> None:
        try:
            pickle.dumps(stage)
        except Exception as problem:
            raise OptionError(
                f"the environment cannot be sent to worker processes ({problem}): give an id, or a function defined at "
                f"the top of a module, in place of a lambda, a local function or an environment object"
            ) from None
        self.deaths = 0
        self._stage, self._job_timeout = stage, job_timeout
        self._waiting: deque[int] = deque()
        self._jobs: dict[int, Job] = {}
        self._deaths_of: dict[int, int] = {}
        self._results: dict[int, list[Episode] | str] = {}
        self._dropped: set[int] = set()
        self._has_answered = False
        self._tickets = 0
        self._workers = [_Worker(stage) for _ in range(workers)]

    @property
    def process_ids(self) -> list[int]:
        """The operating system's numbers of the workers."""
        return [worker.process.pid or 0 for worker in self._workers]

    def submit(self, job: Job) -> int:
        """Hand the job to a free worker, or keep it until there is one."""
        self._tickets += 1
        self._jobs[self._tickets] = job
        self._waiting.append(self._tickets)
        self._receive(block=False)
        self._hand_out()
        return self._tickets

    def result(self, ticket: int) -> list[Episode]:
        """Wait for the job's episodes. Raises WorkerError where it failed; it is run again when it is asked for again."""
        if not self._workers:
            raise WorkerError("the workers were ended: make a new source")
        while ticket not in self._results:
            self._hand_out()
            self._receive(block=True)
        self._hand_out()
        result = self._results.pop(ticket)
        if isinstance(result, str):
            self._deaths_of.pop(ticket, None)
            self._waiting.appendleft(ticket)
            raise WorkerError(f"collecting failed in a worker process:\n{result}")
        del self._jobs[ticket]
        return result

    def drop(self, ticket: int) -> None:
        """Forget a job: one that waits is not started, the result of another is thrown away."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            del self._jobs[ticket]
        elif self._results.pop(ticket, None) is not None:
            del self._jobs[ticket]
        elif ticket in self._jobs:
            self._dropped.add(ticket)

    def close(self) -> None:
        """End the workers, all at once."""
        for worker in self._workers:
            worker.connection.close()
        deadline = time.monotonic() + 2
        for worker in self._workers:
            worker.end(deadline)
        self._workers.clear()

    def _hand_out(self) -> None:
        for worker in self._workers:
            if worker.ticket is None and self._waiting:
                worker.start_job(ticket := self._waiting.popleft(), self._jobs[ticket])

    def _receive(self, block: bool) -> None:
        """Take in what the workers sent, and replace those that died or hang."""
        busy = [worker for worker in self._workers if worker.ticket is not None]
        ready = wait([worker.connection for worker in busy], timeout=1.0 if block else 0)
        for worker in busy:
            if worker.connection in ready:
                self._take_in(worker)
            elif time.monotonic() - worker.started > self._job_timeout:
                self._replace(worker)

    def _take_in(self, worker: _Worker) -> None:
        try:
            ticket, result = worker.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self._replace(worker)
        except BaseException:  # interrupted in the middle of a message: what is left of it makes no sense
            self._replace(worker)
            raise
        else:
            worker.ticket, self._has_answered = None, True
            if ticket in self._dropped:
                self._dropped.remove(ticket)
                del self._jobs[ticket]
            else:
                self._results[ticket] = result

    def _replace(self, worker: _Worker) -> None:
        ticket, ending = worker.ticket, worker.ending()
        assert ticket is not None, "only a busy worker is listened to"
        self.deaths += 1
        self._deaths_of[ticket] = self._deaths_of.get(ticket, 0) + 1
        self._workers[self._workers.index(worker)] = _Worker(self._stage)
        if self._deaths_of[ticket] < DEATHS_PER_JOB:
            self._waiting.appendleft(ticket)
            return
        cure = "run with workers = 0 to see the cause" if self._has_answered else NEVER_STARTED
        self._results[ticket] = (
            f"{DEATHS_PER_JOB} workers died one after the other at episodes {self._jobs[ticket].episodes}, the last one "
            f"{ending}: {cure}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """One process, the connection to it, and the ticket it is busy with."""

    def __init__(self, stage: Stage) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of torch in any state
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, stage), daemon=True, name="hindsight-worker")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is the parent's to answer
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.ticket: int | None = None
        self.started = 0.0

    def start_job(self, ticket: int, job: Job) -> None:
        self.ticket, self.started = ticket, time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: `_receive` finds out, and runs it again
            self.connection.send((ticket, job))

    def ending(self) -> str:
        """How it died, which it has at least now."""
        self.connection.close()
        self.process.join(timeout=1)
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        return f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"

    def end(self, deadline: float) -> None:
        self.process.join(timeout=max(0.0, deadline - time.monotonic()))
        self.process.kill()
        self.process.join()
        self.process.close()


def _work(connection: Connection, stage: Stage) -> None:
    """A worker's life: jobs in, episodes out, until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: stopping is the parent's decision
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    collector = Collector(stage)
    while True:
        try:
            ticket, job = connection.recv()
        except (EOFError, ConnectionResetError):
            break
        try:
            result: list[Episode] | str = collector.collect(job)
        except Exception:
            result = traceback.format_exc()
        try:
            connection.send((ticket, result))
        except BrokenPipeError:
            break
    collector.close()
