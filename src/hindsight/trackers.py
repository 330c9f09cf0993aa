"""TensorBoard and Weights & Biases: they are told of every record of the metrics. One that fails does not stop the run."""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from .errors import MissingExtraError


class Tracker(Protocol):
    """Somewhere else where metrics are kept."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take in a record, all finite numbers."""

    def close(self) -> None:
        """Send what is not sent yet."""


class TensorBoard:
    """Event files in the run's folder `tensorboard`. step: where the run goes on; what came after it is passed over."""

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=step or None)
        if not step:
            self._writer.add_text("options", "\n".join(f"    {name} = {value}" for name, value in config.items()))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a record."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class WeightsAndBiases:
    """A run of the project `hindsight`; the variables WANDB_MODE=offline, WANDB_PROJECT and so on are heeded.

    A run that goes on does so under the same id, kept in the run's folder.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        import wandb

        place = folder / "wandb-id"
        if not (step and place.exists()):
            place.write_text(uuid.uuid4().hex[:12], encoding="utf-8")
        settings = wandb.Settings(silent=True, init_timeout=30)
        project, identity = settings.project or "hindsight", place.read_text(encoding="utf-8")
        self._run: Any = wandb.init(
            project=project,
            id=identity,
            resume="allow",
            name=folder.name,
            dir=folder,
            config=dict(config),
            settings=settings,
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Hand a record over; it is sent in the background."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Wait until all is sent."""
        self._run.finish()


def refuse_missing(names: Sequence[str]) -> None:
    """Raise MissingExtraError for a tracker whose package, called as it is, is not installed."""
    for name in names:
        if find_spec(name) is None:
            raise MissingExtraError(f'--{name} needs {name}: pip install "hindsight-rl[{name}]"')


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any], int], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


class Trackers:
    """Some trackers as one; whichever fails is told of once, on the error output, and left out from then on.

    names: of TRACKERS. config: the run's options. step: how many environment steps a run that goes on has made.
    """

    def __init__(self, names: Sequence[str], folder: Path, config: Mapping[str, Any], step: int = 0) -> None:
        self._trackers: dict[str, Tracker] = {}
        for name in names:
            try:
                self._trackers[name] = TRACKERS[name](folder, config, step)
            except Exception as problem:
                _tell(name, problem)

    def log(self, record: Mapping[str, float]) -> None:
        """Hand a record of the metrics on; numbers that are not finite are left out."""
        finite = {name: value for name, value in record.items() if math.isfinite(value)}
        self._each(lambda tracker: tracker.log(int(record["env_steps"]), finite))

    def close(self) -> None:
        """Close them all."""
        self._each(lambda tracker: tracker.close())
        self._trackers.clear()

    def _each(self, act: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                act(tracker)
            except Exception as problem:  # somebody else's code, and perhaps a network
                del self._trackers[name]
                _tell(name, problem)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tell(name: str, problem: Exception) -> None:
    print(f"hindsight: {name} failed ({type(problem).__name__}: {problem}); training goes on without it", file=sys.stderr)
