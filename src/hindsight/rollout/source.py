"""The ways to run jobs: in this process, or in worker processes. The episodes are the same, byte for byte."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
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


class Source(Protocol):
    """Takes jobs and gives their episodes."""

    def submit(self, job: Job) -> int:
        """Accept a job; the ticket returned asks for its result."""

    def result(self, ticket: int) -> list[Episode]:
        """The episodes of a submitted job, once; waits for them."""

    def close(self) -> None:
        """Give back environments and processes; jobs without a result are dropped."""


class LocalSource:
    """Runs each job in this process, when its result is asked for.

    Training and evaluation have an environment each; one that is given as an object serves both in turn.
    """

    def __init__(self, stage: Stage, environment: gymnasium.Env[Any, Any] | None = None) -> None:
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

    def close(self) -> None:
        """Close the environments."""
        for collector in set(self._collectors.values()):
            collector.close()


class WorkerSource:
    """Runs jobs in processes of their own, in the order of submission, each as soon as a worker is free.

    A worker that dies is replaced and its job run again, which gives the same episodes. An error that the environment
    raises comes out of `result` with the worker's traceback.
    """

    def __init__(self, stage: Stage, workers: int) -> None:
        try:
            pickle.dumps(stage)
        except Exception as problem:
            raise OptionError(
                f"the environment cannot be sent to worker processes ({problem}): give an id, or a function defined at "
                f"the top of a module, in place of a lambda, a local function or an environment object"
            ) from None
        self.deaths = 0
        self._stage = stage
        self._waiting: deque[int] = deque()
        self._jobs: dict[int, Job] = {}
        self._deaths_of: dict[int, int] = {}
        self._results: dict[int, list[Episode] | str] = {}
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
        """Wait for the job's episodes. Raises WorkerError where it failed for good."""
        while ticket not in self._results:
            self._hand_out()
            self._receive(block=True)
        self._hand_out()
        del self._jobs[ticket]
        result = self._results.pop(ticket)
        if isinstance(result, str):
            raise WorkerError(f"collecting failed in a worker process:\n{result}")
        return result

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _hand_out(self) -> None:
        for worker in self._workers:
            if worker.ticket is None and self._waiting:
                worker.start_job(ticket := self._waiting.popleft(), self._jobs[ticket])

    def _receive(self, block: bool) -> None:
        """Take in what the workers sent, and replace those that died."""
        busy = {worker.connection: worker for worker in self._workers if worker.ticket is not None}
        for connection in wait(list(busy), timeout=None if block else 0):
            worker = busy[connection]  # type: ignore[index]
            try:
                ticket, result = worker.connection.recv()
            except (EOFError, ConnectionResetError, pickle.UnpicklingError):
                self._replace(worker)
            else:
                self._results[ticket] = result
                worker.ticket = None

    def _replace(self, worker: _Worker) -> None:
        ticket, ending = worker.ticket, worker.ending()
        assert ticket is not None, "only a busy worker is listened to"
        self.deaths += 1
        self._deaths_of[ticket] = self._deaths_of.get(ticket, 0) + 1
        self._workers[self._workers.index(worker)] = _Worker(self._stage)
        if self._deaths_of[ticket] < DEATHS_PER_JOB:
            self._waiting.appendleft(ticket)
            return
        self._results[ticket] = (
            f"{DEATHS_PER_JOB} workers died one after the other at episodes {self._jobs[ticket].episodes}, the last one "
            f"{ending}: run with workers = 0 to see the cause"
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
        self.process.start()
        theirs.close()
        self.ticket: int | None = None

    def start_job(self, ticket: int, job: Job) -> None:
        self.ticket = ticket
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: `_receive` finds out, and runs it again
            self.connection.send((ticket, job))

    def ending(self) -> str:
        self.process.join(timeout=10)
        code = self.process.exitcode
        return f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"

    def end(self) -> None:
        self.connection.close()
        self.process.join(timeout=2)
        if self.process.is_alive():
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
