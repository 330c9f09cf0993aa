"""Workers that are actors of a Ray: one started on this machine, or a cluster. Ray places, restarts and connects them.

A job's weights go down once per version and node, through Ray's store; its episodes come back as one message.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from ..agents.policy import PolicyWeights
from ..errors import MissingExtraError, OptionError, WorkerError
from .collect import Collector, Job, RolloutSetup
from .job_result import JobResult, deliver
from .workers import LostError, Worker

KNOCK_SECONDS = 10.0
STORE_BYTES = 200 * 2**20  # of the local Ray's store: weights, and episodes that wait to be learnt from
_NO_WEIGHTS = PolicyWeights(*(np.zeros(0, np.float32) for _ in range(3)))


class RayPool:
    """Hires actors from a Ray: the one at `address` ("auto" for the one of this machine), or else one of its own.

    A process has one Ray: one that it is connected to already is used, and left running. One of its own has a place for
    every worker whatever the number of cores, listens on this machine alone, asks for a token that only this process knows,
    shows no dashboard and reports no usage. At an address the token is RAY_AUTH_TOKEN, or what `ray get-auth-token` shows;
    a worker takes one core there, and those for which there is none yet start when a node joins. Raises MissingExtraError,
    OptionError, WorkerError.
    """

    users: ClassVar[int] = 0  # crews of this process on a Ray that one of them connected, which the last one shuts down

    fix = (
        "look whether the cluster has a free core (ray status) and whether hindsight, the environment's packages and your "
        "own modules are installed on its machines; or run with workers = 0 to see the cause"
    )

    def __init__(self, setup: RolloutSetup, workers: int, address: str | None = None) -> None:
        self._hired: list[_Actor] = []
        self._weights: PolicyWeights | None = None
        self._put_weights: Any = None
        self.ray, is_new = connect(workers, address)
        self._shares = is_new or RayPool.users > 0
        RayPool.users += self._shares
        cores = 0 if self._shares and not address else 1
        self._actor_class = self.ray.remote(num_cpus=cores, max_restarts=-1, max_task_retries=0)(RayCollector)
        try:
            self._setup = self.ray.cloudpickle.dumps(setup)
        except Exception as problem:
            self.close()
            raise OptionError(
                f"the environment cannot be sent to workers ({str(problem).splitlines()[0]}): give an id, or a function"
            ) from None

    @property
    def process_ids(self) -> list[int]:
        """The operating system's numbers of the workers, each on its own machine; waits until all are there."""
        return [self.ray.get(worker.actor.process_id.remote()) for worker in self._hired]

    def hire(self) -> Worker:
        """One more actor."""
        self._hired.append(_Actor(self))
        return self._hired[-1]

    def new_actor(self) -> Any:
        """An actor, as Ray hands it out: perhaps not there yet."""
        return self._actor_class.remote([path or os.getcwd() for path in sys.path], self._setup)

    def put(self, weights: PolicyWeights) -> Any:
        """Where the weights are in Ray's store; those of one version are put there once."""
        if weights is not self._weights:
            self._weights, self._put_weights = weights, self.ray.put(weights)
        return self._put_weights

    def wait(self, workers: Sequence[Worker], timeout: float) -> Sequence[Worker]:
        """Those whose answer, or end, has come."""
        chosen = set(workers)
        answers = {worker.answer: worker for worker in self._hired if worker in chosen}
        if not answers:
            time.sleep(timeout)
            return []
        first, rest = self.ray.wait(list(answers), timeout=timeout)
        more = self.ray.wait(rest, num_returns=len(rest), timeout=0)[0] if first and rest else []
        return [answers[answer] for answer in (*first, *more)]

    def close(self) -> None:
        """End the actors, and the Ray where it is ours and nobody else's."""
        with contextlib.suppress(Exception):  # a Ray that is gone has ended them already
            for worker in self._hired:
                self.ray.kill(worker.actor)
        self._hired.clear()
        if self._shares:
            self._shares = False
            RayPool.users -= 1
            if not RayPool.users:
                self.ray.shutdown()


class RayCollector:
    """What an actor is: a Collector at the other end of Ray."""

    def __init__(self, paths: Sequence[str], setup: bytes) -> None:
        """paths: where the learner finds modules. setup: packed, since it may need them."""
        import ray

        sys.path += [path for path in paths if path not in sys.path]
        self._collector = Collector(ray.cloudpickle.loads(setup))

    def process_id(self) -> int:
        """The number of the process it lives in."""
        return os.getpid()

    def collect(self, source: str, ticket: int, job: Job, weights: PolicyWeights) -> JobResult:
        """Run a job with these weights."""
        return deliver(self._collector, source, ticket, replace(job, weights=weights))


class _Actor:
    """One actor. Its answer is to the question for its process until it is ready, and to a job after that."""

    def __init__(self, pool: RayPool) -> None:
        self._crew, self._end = pool, ""
        self.actor = pool.new_actor()
        self._ask()

    def _ask(self) -> None:
        self.is_ready = False
        self.answer = self.actor.process_id.options(max_task_retries=-1).remote()

    def start(self, source: str, ticket: int, job: Job) -> None:
        weights = self._crew.put(job.weights)
        self.answer = self.actor.collect.remote(source, ticket, replace(job, weights=_NO_WEIGHTS), weights)

    def receive(self) -> JobResult | None:
        errors = self._crew.ray.exceptions
        try:
            answer = self._crew.ray.get(self.answer)
        except errors.ActorDiedError as problem:  # for good: it never began
            self._end = f"before it began ({_last_sentence(problem)})"
            self.actor = self._crew.new_actor()
            raise LostError from None
        except errors.RayError as problem:  # Ray restarts it
            self._end = f"with {type(problem).__name__} ({_first_sentence(problem)})"
            raise LostError from None
        self.is_ready = True
        return answer if isinstance(answer, JobResult) else None

    def kill(self) -> None:
        self._end = "killed, for it did not answer"
        self._crew.ray.kill(self.actor, no_restart=False)

    def restart(self) -> str:
        self._ask()
        return self._end


def connect(workers: int, address: str | None) -> tuple[ModuleType, bool]:
    """Ray, connected; and whether it was connected here, so that it is to be shut down here too."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" not in sys.modules:  # which reads it when it is imported
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise MissingExtraError('the engine ray needs Ray: pip install "hindsight-rl[ray]"') from None
    if ray.is_initialized():
        return ray, False
    try:
        with _own_signals():
            if address:
                _knock(address)
                ray.init(address, log_to_driver=False, logging_level="error")
            else:
                _start(ray, workers)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as problem:
        raise WorkerError(
            f"no Ray could be {f'reached at {address}' if address else 'started'} ({_first_sentence(problem)}): see "
            f"docs/cluster.md; every machine needs the same Ray, and the same token in RAY_AUTH_TOKEN"
        ) from None
    return ray, True


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; whoever uses it here decides what that means."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _knock(address: str) -> None:
    """Raise OSError where nobody listens, which Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()


def _start(ray: ModuleType, workers: int) -> None:
    """A Ray of this process's own, which listens on 127.0.0.1 alone.

    Ray does that where it is told not to make clusters, by a variable that is read when Ray is imported, and again by the
    processes that it starts.
    """
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    constants = ray._private.ray_constants
    name, before = constants.ENABLE_RAY_CLUSTERS_ENV_VAR, constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        ray.init(
            "local",  # and no other that may be found running
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
    if "RAY_AUTH_MODE" not in os.environ:  # which new versions of Ray set themselves where it was imported before
        ray.shutdown()
        raise OptionError(
            "Ray was imported before it could be told to ask for a token: set RAY_AUTH_MODE=token before that"
        )


def _first_sentence(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0].strip(" .")


def _last_sentence(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[-1].strip(" .")
