"""The policies in the folder of a run: the latest, the best, and those that are kept under their steps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .saved_model import SavedModel


class PolicyFiles:
    """Writes policies. One that the disk did not take is written with the next."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unsaved: dict[str, SavedModel] = {}  # by their names

    def write(self, names: Iterable[str], model: SavedModel) -> None:
        """Write a model under each of these names, and what is still to be written. Raises OSError if the disk fails."""
        self._unsaved |= dict.fromkeys(names, model)
        self.write_unsaved()

    def write_unsaved(self) -> None:
        """Write what is still to be written. Raises OSError if the disk fails."""
        for name in list(self._unsaved):
            self._unsaved[name].write(self._folder / "policies" / f"{name}.safetensors")
            del self._unsaved[name]
