"""TensorBoard and Weights & Biases: they receive every record of the metrics. One that fails does not stop the run."""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import MissingExtraError, install_line
from .storage import read_bytes, save_bytes

LONGEST_ID = 1_000  # bytes


class TensorBoard:
    """Event files in the run's folder `tensorboard`.

    step: environment steps of a run that goes on. TensorBoard hides what was written after it.
    """

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
    """A run of the project `hindsight-rl`, or of WANDB_PROJECT. Other variables, such as WANDB_MODE=offline, hold too.

    The id is kept in the run's folder, so that a run that goes on keeps it.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        import wandb

        self._step = step
        path = folder / "wandb-id"
        if not (step and path.exists()):
            save_bytes(path, uuid.uuid4().hex[:12].encode())
        settings = wandb.Settings(silent=True, init_timeout=30)
        project, identity = settings.project or "hindsight-rl", read_bytes(path, LONGEST_ID).decode("utf-8")
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
        """Pass a record on. It is sent in the background."""
        self._step = max(self._step, step)  # an older step would be dropped; a free schedule evaluates beside training
        self._run.log(dict(metrics), step=self._step)

    def close(self) -> None:
        """Wait until everything is sent."""
        self._run.finish()


def refuse_missing(names: Sequence[str]) -> None:
    """Raise MissingExtraError if the package of a tracker, of the same name, is not installed."""
    for name in names:
        if find_spec(name) is None:
            raise MissingExtraError(f"--{name} needs {name}: {install_line(name)}")


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any], int], Any]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


class Trackers:
    """Several trackers as one. One that fails is reported once, on the error output, and then left out.

    names: of TRACKERS.
    config: the run's options.
    step: environment steps of a run that goes on.
    """

    def __init__(self, names: Sequence[str], folder: Path, config: Mapping[str, Any], step: int = 0) -> None:
        self._trackers: dict[str, Any] = {}
        for name in names:
            try:
                self._trackers[name] = TRACKERS[name](folder, config, step)
            except Exception as problem:
                _report(name, problem)

    def log(self, record: Mapping[str, float]) -> None:
        """Pass a record of the metrics on, without numbers that are not finite."""
        finite = {name: value for name, value in record.items() if math.isfinite(value)}
        self._each(lambda tracker: tracker.log(int(record["env_steps"]), finite))

    def close(self) -> None:
        """Close all of them."""
        self._each(lambda tracker: tracker.close())

    def _each(self, act: Callable[[Any], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                act(tracker)
            except Exception as problem:  # code of others, which may need a network
                del self._trackers[name]
                _report(name, problem)


def _report(name: str, problem: Exception) -> None:
    print(
        f"hindsight-rl: {name} failed ({type(problem).__name__}: {problem}); training goes on without it", file=sys.stderr
    )
