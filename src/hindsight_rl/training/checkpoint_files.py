"""The checkpoint files of a run folder: the last one, and the one before in case that it is damaged."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .. import storage
from ..errors import FileError
from .checkpoint import restore_trainer, trainer_state
from .trainer import Trainer

CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"
KIND = "checkpoint"


class FileState(NamedTuple):
    """How far the other files of a run folder are.

    logged_at: environment steps of the last record of the metrics.
    sizes: of the files that grow, in bytes. unsaved_lines: what is still to be added to them. Both by their names.
    """

    logged_at: int
    sizes: Mapping[str, int]
    unsaved_lines: Mapping[str, str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileState:
        """Return what a checkpoint holds. Raises an exception of Python if it is malformed."""
        sizes = {str(name): max(0, int(size)) for name, size in data["sizes"].items()}
        lines = {str(name): str(text) for name, text in data.get("unsaved_lines", {}).items()}
        return cls(int(data["logged_at"]), sizes, lines)


class CheckpointFiles:
    """Writes and reads the checkpoints in the folder of a run.

    saved_at: environment steps of the last checkpoint that was written or read; None: there is none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.saved_at: int | None = None

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return any((self._folder / name).exists() for name in (CHECKPOINT, PREVIOUS))

    def save(self, trainer: Trainer, files: FileState) -> None:
        """Write everything from which the run goes on to the same bytes. Raises OSError if the disk fails."""
        arrays, state = trainer_state(trainer)
        data = {"trainer": state, **files._asdict()}
        storage.save_arrays(self._folder / CHECKPOINT, KIND, arrays, data, previous=self._folder / PREVIOUS)
        self.saved_at = trainer.counts.env_steps

    def load(self, trainer: Trainer) -> tuple[FileState, list[str]]:
        """Restore the trainer from the last checkpoint, or if it is damaged from the one before.

        Return how far the other files were, and a sentence for each checkpoint that was not used. Raises FileError.
        """
        problems: list[str] = []
        for name in (CHECKPOINT, PREVIOUS):
            try:
                arrays, data = storage.load_arrays(self._folder / name, KIND)
                restore_trainer(trainer, arrays, data.get("trainer", {}))
                files = FileState.from_json(data)
            except (FileError, KeyError, TypeError, ValueError, AttributeError) as problem:
                problems.append(str(problem))
                continue
            self.saved_at = trainer.counts.env_steps
            return files, [f"The run goes on from {name}, because {problem}." for problem in problems]
        raise FileError("; ".join(problems))

    def how_to_go_on(self) -> str:
        """Return two sentences: where the last good checkpoint is, and how to resume from it."""
        folder = shlex.quote(str(self._folder))
        again = f"`hindsight-rl train` with the same environment and options, --folder {folder} and --resume"
        if self.saved_at is None:
            return f"The run has no checkpoint yet. {again} begins it again."
        path = next((p for name in (CHECKPOINT, PREVIOUS) if (p := self._folder / name).exists()), self._folder)
        return f"The last good checkpoint is {path}, after {self.saved_at:,} steps. {again} goes on from it."
