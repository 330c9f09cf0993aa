"""The files of a run that grow line by line, and its policies. What the disk does not take is written with the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import storage
from .saved_model import SavedModel

METRICS, EVALUATIONS, EPISODES, CHANGES = "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "changes.jsonl"
GROWING = (METRICS, EVALUATIONS, EPISODES, CHANGES)


class LineFiles:
    """Appends lines of JSON to the files of a folder. Lines that a full disk refuses are written later.

    unsaved: the lines that are still to be written, by the names of their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.unsaved: dict[str, str] = {}

    def append(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records to a file. Raises OSError if that fails."""
        if lines := storage.json_lines(records):
            self.unsaved[name] = self.unsaved.get(name, "") + lines
            self.write(name)

    def write(self, *names: str) -> None:
        """Write the lines that are still to be written, of all files without `names`."""
        for name in names or list(self.unsaved):
            storage.append_text(self._folder / name, self.unsaved[name])
            del self.unsaved[name]

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files that exist, in bytes."""
        places = {name: self._folder / name for name in GROWING}
        return {name: place.stat().st_size for name, place in places.items() if place.exists()}

    def truncate(self, sizes: Mapping[str, int]) -> None:
        """Shorten the files to these sizes, and those without a size to nothing."""
        for name in GROWING:
            storage.truncate(self._folder / name, sizes.get(name, 0))


class PolicyFiles:
    """Writes policies: the latest, the best, and those that are kept under their steps."""

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
