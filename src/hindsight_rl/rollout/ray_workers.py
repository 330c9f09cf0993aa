"""Workers that are Ray actors, on this machine or on a cluster. Ray places and connects them.

A job and its episodes are one message each.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, ClassVar

from ..errors import OptionError, WorkerError, needs_extra
from .collect import Collector, Job, RolloutSetup
from .workers import JobResult, Worker, run_job

CONNECT_SECONDS = 10.0
STORE_BYTES = 200 * 2**20  # object store of a local Ray: weights, and episodes that wait


class RayEngine:
    """Workers that are Ray actors.

    setup: makes environments.
    workers: how many, for the size of a local Ray.
    address: of a running Ray, "auto" for the one of this machine; None starts one on this machine.

    A process has one Ray. If it is connected already, that Ray is used and left running. A Ray that is started here has a
    slot for every worker whatever the number of cores, listens on this machine only, requires a token that only this
    process knows, shows no dashboard and reports no usage. For `address` the token is RAY_AUTH_TOKEN, or what
    `ray get-auth-token` shows. There each worker takes one core, and starts when one is free.
    Raises MissingExtraError, OptionError, WorkerError.
    """

    connected: ClassVar[int] = 0  # engines of this process that use a Ray connected here; the last one disconnects

    fix = (
        "Check that the cluster has a free core (ray status) and that hindsight-rl, the environment's packages and your "
        "modules are installed on its machines, or use workers=0 to see the cause."
    )

    def __init__(self, setup: RolloutSetup, workers: int, address: str | None = None) -> None:
        self._ray, is_new = connect(workers, address)
        self._is_counted = is_new or RayEngine.connected > 0
        RayEngine.connected += self._is_counted
        cores = 0 if self._is_counted and not address else 1
        self._actor_class = self._ray.remote(num_cpus=cores)(RayCollector)
        try:
            self._setup = self._ray.cloudpickle.dumps(setup)
        except Exception as problem:
            self.close()
            raise OptionError(
                f"The environment cannot be sent to workers ({_lines(problem)[0]}). Pass an id or a function."
            ) from None

    def start_worker(self) -> Worker:
        """Start an actor in the background."""
        return _Actor(self._ray, self._actor_class.remote([path or os.getcwd() for path in sys.path], self._setup))

    def close(self) -> None:
        """Disconnect from Ray if this is the last engine that uses a connection made here."""
        if self._is_counted:
            self._is_counted = False
            RayEngine.connected -= 1
            if not RayEngine.connected:
                self._ray.shutdown()


class RayCollector:
    """The actor: a Collector in a Ray process.

    paths: where the parent finds modules.
    setup: pickled by Ray, since unpickling may need these modules.
    """

    def __init__(self, paths: Sequence[str], setup: bytes) -> None:
        import ray

        sys.path += [path for path in paths if path not in sys.path]
        self._collector = Collector(ray.cloudpickle.loads(setup))
        self._collector.prepare()

    def process_id(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def collect(self, job: Job) -> JobResult:
        """Run a job."""
        return run_job(self._collector, job)


class _Actor:
    """One actor, as a worker."""

    def __init__(self, ray: ModuleType, actor: Any) -> None:
        self.process_id = 0
        self._ray, self._actor = ray, actor
        self._end = "after job_timeout seconds without an answer"  # unless `_get` knows more

    def wait_until_ready(self) -> None:
        self.process_id = self._get(self._actor.process_id.remote())

    def run(self, job: Job, seconds: float) -> JobResult:
        result: JobResult = self._get(self._actor.collect.remote(job), seconds)
        return result

    def kill(self) -> None:
        with contextlib.suppress(Exception):  # if Ray ended, so did the actor
            self._ray.kill(self._actor)

    def end(self, seconds: float) -> str:
        self.kill()
        return self._end

    def _get(self, answer: Any, seconds: float | None = None) -> Any:
        try:
            return self._ray.get(answer, timeout=seconds)
        except self._ray.exceptions.RayError as problem:
            self._end = f"with {type(problem).__name__} ({_lines(problem)[-1]})"
            raise


def connect(workers: int, address: str | None) -> tuple[ModuleType, bool]:
    """Connect to Ray. Return its module, and whether the connection is new, so that the caller has to end it.

    Raises MissingExtraError if Ray is not installed, WorkerError if none can be reached or started.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" not in sys.modules:  # Ray reads the variable when it is imported
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    with needs_extra("ray", "engine='ray' needs Ray"):
        import ray
    if ray.is_initialized():
        return ray, False
    try:
        with _signal_handler_kept():
            if address:
                _require_listener(address)
                ray.init(address, log_to_driver=False, logging_level="error")
            else:
                _start_local(ray, workers)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as problem:
        action = f"be reached at {address}" if address else "be started"
        raise WorkerError(
            f"Ray could not {action} ({_lines(problem)[0]}). Every machine needs the same version of Ray and the same "
            f"token in RAY_AUTH_TOKEN; see docs/cluster.md."
        ) from None
    return ray, True


@contextlib.contextmanager
def _signal_handler_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _require_listener(address: str) -> None:
    """Raise OSError if nothing listens at the address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def _start_local(ray: ModuleType, workers: int) -> None:
    """Start a Ray for this process that listens on 127.0.0.1 only.

    Ray does so if clusters are disabled by a variable. It reads the variable when it is imported, and its child processes
    read it again. Raises OptionError if Ray was imported too early to require a token.
    """
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    constants = ray._private.ray_constants
    name, before = constants.ENABLE_RAY_CLUSTERS_ENV_VAR, constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        ray.init(
            "local",  # never one that is already running
            num_cpus=workers,
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            log_to_driver=False,
            logging_level="error",
        )
    finally:
        del os.environ[name]
        constants.ENABLE_RAY_CLUSTER = before
    if "RAY_AUTH_MODE" not in os.environ:  # new versions of Ray set it themselves if they were imported before
        ray.shutdown()
        raise OptionError(
            "Ray was imported before a token could be required. Set RAY_AUTH_MODE=token before importing Ray."
        )


def _lines(problem: BaseException) -> list[str]:
    """Return the lines of an error's text, without spaces and full stops at their ends."""
    text = str(problem).strip() or type(problem).__name__
    return [line.strip(" .") for line in text.splitlines()]
