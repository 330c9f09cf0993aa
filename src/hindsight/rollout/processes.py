"""Workers that are processes of this machine, each at the end of a pipe."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait

from ..errors import OptionError
from .collect import Collector, Job, RolloutSetup
from .job_result import JobResult, deliver
from .workers import LostError, Worker


class ProcessPool:
    """Starts workers as processes. Raises OptionError for an environment that cannot be sent to them."""

    fix = (
        "none ever started: guard a script by if __name__ == '__main__', and define what makes the environment in a "
        "module, or run with workers = 0"
    )

    def __init__(self, setup: RolloutSetup) -> None:
        try:
            pickle.dumps(setup)
        except Exception as problem:
            raise OptionError(
                f"the environment cannot be sent to worker processes ({problem}): give an id, or a function defined at "
                f"the top of a module, in place of a lambda, a local function or an environment object"
            ) from None
        self._setup = setup
        self._hired: list[_Process] = []

    @property
    def process_ids(self) -> list[int]:
        """The operating system's numbers of the workers."""
        return [worker.process.pid or 0 for worker in self._hired]

    def hire(self) -> Worker:
        """One more process."""
        self._hired.append(_Process(self._setup))
        return self._hired[-1]

    def wait(self, workers: Sequence[Worker], timeout: float) -> Sequence[Worker]:
        """Those that sent something, or whose pipe is broken."""
        chosen = set(workers)
        listened = [worker for worker in self._hired if worker in chosen]
        speaking = set(wait([worker.connection for worker in listened], timeout))
        return [worker for worker in listened if worker.connection in speaking]

    def close(self) -> None:
        """Let all of them end, all at once; kill those that do not."""
        for worker in self._hired:
            worker.connection.close()
        deadline = time.monotonic() + 2
        for worker in self._hired:
            worker.end(deadline)
        self._hired.clear()


class _Process:
    """One process, and the connection to it. It takes a job at once: the pipe keeps it while the process starts."""

    def __init__(self, setup: RolloutSetup) -> None:
        self.is_ready = True
        self._setup = setup
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of torch in any state
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self._setup), daemon=True, name="hindsight-worker")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is the parent's to answer
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def start(self, source: str, ticket: int, job: Job) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died: `receive` finds out
            self.connection.send((source, ticket, job))

    def receive(self) -> JobResult | None:
        try:
            delivery = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            raise LostError from None
        assert isinstance(delivery, JobResult)
        return delivery

    def kill(self) -> None:
        self.process.kill()

    def restart(self) -> str:
        self.connection.close()
        self.process.join(timeout=1)
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self._begin()
        return f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"

    def end(self, deadline: float) -> None:
        self.process.join(timeout=max(0.0, deadline - time.monotonic()))
        self.process.kill()
        self.process.join()
        self.process.close()


def _work(connection: Connection, setup: RolloutSetup) -> None:
    """A worker's life: jobs in, episodes out, until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: stopping is the parent's decision
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    collector = Collector(setup)
    while True:
        try:
            source, ticket, job = connection.recv()
        except (EOFError, ConnectionResetError):
            break
        try:
            connection.send(deliver(collector, source, ticket, job))
        except BrokenPipeError:
            break
    collector.close()
