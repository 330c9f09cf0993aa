"""Worker processes on this machine. Jobs and results travel through pipes."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import pickle
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from ..errors import OptionError
from .collect import Collector, Job, RolloutSetup
from .job_result import JobResult, run_job
from .workers import Worker, WorkerLostError

CLOSE_SECONDS = 2.0  # given to workers to end by themselves


class ProcessPool:
    """A worker pool of processes. Raises OptionError if the environment cannot be sent to other processes."""

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
        self._workers: list[_Process] = []

    def start_worker(self) -> Worker:
        """Start one more process. Raises OSError if the machine has too many processes or open files."""
        self._workers.append(_Process(self._setup))
        return self._workers[-1]

    def wait(self, workers: Sequence[Worker], timeout: float) -> Sequence[Worker]:
        """Return those of `workers` that sent a message or ended; wait up to `timeout` seconds for the first."""
        chosen = set(workers)
        candidates = [worker for worker in self._workers if worker in chosen]
        readable = set(wait([worker.connection for worker in candidates], timeout))
        return [worker for worker in candidates if worker.connection in readable]

    def close(self) -> None:
        """End all processes. Those that are still starting, or do not end by themselves in time, are killed."""
        for worker in self._workers:
            worker.connection.close()
        deadline = time.monotonic() + CLOSE_SECONDS
        for worker in self._workers:
            worker.end(deadline if worker.is_ready else 0.0)
        self._workers.clear()


class _Process:
    """One process and the connection to it. Its first message, None, says that it is ready."""

    def __init__(self, setup: RolloutSetup) -> None:
        self._setup = setup
        self._start_process()

    def _start_process(self) -> None:
        self.is_ready, self.process_id = False, 0
        self._process: SpawnProcess | None = None
        context = multiprocessing.get_context("spawn")  # a fork copies torch's thread locks in any state
        self.connection, other_end = context.Pipe()
        process = context.Process(target=_work, args=(other_end, self._setup), daemon=True, name="hindsight-rl-worker")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: the parent handles Ctrl-C
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            other_end.close()
        self._process = process

    def start(self, source: str, ticket: int, job: Job) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the process ended: `receive` raises
            self.connection.send((source, ticket, job))

    def receive(self) -> JobResult | None:
        try:
            result: JobResult | None = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            raise WorkerLostError from None
        self.is_ready, self.process_id = True, (self._process and self._process.pid) or 0
        return result

    def restart(self) -> str:
        code = self.end(time.monotonic() + 1)
        self._start_process()
        return f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"

    def end(self, deadline: float) -> int | None:
        """Wait until `deadline` for the process to end, then kill it. Return its exit code. Without a process, None."""
        self.connection.close()
        process, self._process = self._process, None
        if process is None:
            return None
        process.join(timeout=max(0.0, deadline - time.monotonic()))
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
        return code


def _work(connection: Connection, setup: RolloutSetup) -> None:
    """Run jobs until the connection is closed. The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the parent handles it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    collector = Collector(setup)
    collector.prepare()
    with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):  # the parent closed the connection
        connection.send(None)
        while True:
            source, ticket, job = connection.recv()
            connection.send(run_job(collector, source, ticket, job))
    collector.close()
    gc.freeze()  # Python ends sooner if it does not search all modules for garbage
