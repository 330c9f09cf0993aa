"""Processes that learn together: a shard of the replay buffer each, the same weights in all, by averaged gradients.

What passes between them is numbers: torch.distributed over gloo, or NCCL for gradients where every learner has a GPU.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors.numpy
import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import LearnerError
from ..records import Array

LEARN, GATHER, LOAD, STOP = range(4)  # what the first learner tells the others to do next
START_SECONDS = 180.0  # for all learners to come together
_PATIENCE = timedelta(days=1)  # of learners that wait while the first one evaluates or writes files


class Learners(Protocol):
    """Those who learn together, as one of them sees it. rank: which it is, counted from 0. count: how many there are."""

    rank: int
    count: int

    def average(self, gradient: Tensor) -> None:
        """Put the mean over all learners in the place of `gradient`, the same bits in all."""

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums over all learners."""

    def gather(self, values: Array) -> list[Array]:
        """The float64 vectors of all learners, in the order of their ranks."""

    def tell(self, command: int) -> None:
        """The first one says what all do next."""

    def hear(self) -> int:
        """The others listen."""

    def send(self, rank: int, arrays: dict[str, Array], data: Any) -> None:
        """Arrays and plain data to another learner."""

    def receive(self, rank: int) -> tuple[dict[str, Array], Any]:
        """What another learner sent."""

    def close(self) -> None:
        """End what was begun for it."""


class Alone:
    """One learner."""

    rank, count = 0, 1

    def average(self, gradient: Tensor) -> None:
        """It is its own mean."""

    def total(self, values: Sequence[float]) -> list[float]:
        """They are their own sums."""
        return list(values)

    def gather(self, values: Array) -> list[Array]:
        """Its own."""
        return [values]

    def tell(self, command: int) -> None:
        """There is nobody to tell."""

    def hear(self) -> int:
        """Nobody says anything: it is over."""
        return STOP

    def send(self, rank: int, arrays: dict[str, Array], data: Any) -> None:
        """There is nobody to send to."""

    def receive(self, rank: int) -> tuple[dict[str, Array], Any]:
        """Nothing comes."""
        return {}, {}

    def close(self) -> None:
        """Nothing was begun."""


class Group:
    """Several learners over torch.distributed. Raises LearnerError where one of them is lost."""

    def __init__(self, rank: int, count: int, device: str, rendezvous: Path | None) -> None:
        """rendezvous: a file that those on one machine meet at; None where torchrun says where they meet."""
        self.rank, self.count = rank, count
        self._is_open = True
        local = int(os.environ.get("LOCAL_RANK", rank))
        use_nccl = device == "cuda" and torch.cuda.device_count() > local and dist.is_nccl_available() and count > 1
        if use_nccl and (rendezvous is None or torch.cuda.device_count() >= count):
            torch.cuda.set_device(local)
            backend = "cpu:gloo,cuda:nccl"
        else:
            backend = "gloo"
        where: dict[str, Any] = {"init_method": "env://"}
        if rendezvous:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
            store = dist.FileStore(str(rendezvous), count)  # type: ignore[attr-defined]  # documented, not exported
            store.set_timeout(timedelta(seconds=START_SECONDS))
            where = {"store": store}
        self._together(lambda: dist.init_process_group(backend, rank=rank, world_size=count, timeout=_PATIENCE, **where))

    def average(self, gradient: Tensor) -> None:
        """All learners' gradients become their mean."""
        self._together(lambda: dist.all_reduce(gradient))
        gradient.div_(self.count)

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums in float64."""
        tensor = torch.tensor(values, dtype=torch.float64)
        self._together(lambda: dist.all_reduce(tensor))
        return list(map(float, tensor.tolist()))

    def gather(self, values: Array) -> list[Array]:
        """Vectors of one length."""
        mine = torch.from_numpy(np.ascontiguousarray(values, np.float64))
        parts = [torch.empty_like(mine) for _ in range(self.count)]
        self._together(lambda: dist.all_gather(parts, mine))
        return [part.numpy() for part in parts]

    def tell(self, command: int) -> None:
        """To all others."""
        tensor = torch.tensor([command])
        self._together(lambda: dist.broadcast(tensor, 0))

    def hear(self) -> int:
        """From the first."""
        tensor = torch.zeros(1, dtype=torch.int64)
        self._together(lambda: dist.broadcast(tensor, 0))
        return int(tensor)

    def send(self, rank: int, arrays: dict[str, Array], data: Any) -> None:
        """As the bytes of a safetensors file."""
        content = safetensors.numpy.save(arrays, metadata={"data": json.dumps(data)})
        tensor = torch.from_numpy(np.frombuffer(content, np.uint8).copy())
        self._together(lambda: dist.send(torch.tensor([len(tensor)]), rank))
        self._together(lambda: dist.send(tensor, rank))

    def receive(self, rank: int) -> tuple[dict[str, Array], Any]:
        """The inverse of `send`."""
        size = torch.zeros(1, dtype=torch.int64)
        self._together(lambda: dist.recv(size, rank))
        tensor = torch.empty(int(size), dtype=torch.uint8)
        self._together(lambda: dist.recv(tensor, rank))
        content = tensor.numpy().tobytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return safetensors.numpy.load(content), json.loads(header["__metadata__"]["data"])

    def close(self) -> None:
        """Leave; those that wait for this one are told by an error."""
        if self._is_open:
            self._is_open = False
            dist.destroy_process_group()

    def _together(self, step: Callable[[], Any]) -> None:
        if not self._is_open:
            raise LearnerError("the learners were ended: go on from a checkpoint, as hindsight train --resume does")
        try:
            step()
        except (RuntimeError, ValueError) as problem:  # of torch.distributed, whose own errors are these
            raise LearnerError(
                f"learner {self.rank} of {self.count} lost another one ({str(problem).splitlines()[0]}): see what that "
                f"said, and go on from the last checkpoint by --resume"
            ) from None


class LocalGroup(Group):
    """The first of several learners on this machine: it starts the others, and ends them."""

    def __init__(self, count: int, device: str, follow: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """follow(rank, rendezvous, *arguments): what the others run, in processes of their own."""
        self._folder = Path(tempfile.mkdtemp(prefix="hindsight-learners-"))
        rendezvous = self._folder / "rendezvous"
        context = multiprocessing.get_context("spawn")
        self._others = [
            context.Process(target=follow, args=(rank, rendezvous, *arguments), name=f"hindsight-learner-{rank}")
            for rank in range(1, count)
        ]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is the first one's to answer
        for process in self._others:
            process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        atexit.register(self.close)  # before multiprocessing waits for processes that wait for this one
        super().__init__(0, count, device, rendezvous)

    def close(self) -> None:
        """End the others too."""
        atexit.unregister(self.close)
        super().close()
        for process in self._others:
            process.join(timeout=10)
            process.kill()
            process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
