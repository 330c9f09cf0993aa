"""Data in TOML: one that is built in, by its name, or a file of one's own, by its path."""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..errors import FileError, UnknownNameError, nearest

RECIPES = resources.files(__package__)
SUITES = RECIPES / "suites"
_LARGEST_FILE = 1_000_000  # bytes; a recipe has a few hundred


def names_in(folder: Traversable) -> list[str]:
    """What is built in."""
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_toml(kind: str, name_or_path: str, folder: Traversable) -> tuple[str, dict[str, Any]]:
    """The name and the content of a built-in file of `folder`, or of a file whose path ends in .toml.

    kind: what errors call it. Raises UnknownNameError with the nearest names, and FileError for what is no TOML.
    """
    if name_or_path.endswith(".toml"):
        place, text = Path(name_or_path), _read(kind, Path(name_or_path))
    elif name_or_path in names_in(folder):
        place = Path(f"{name_or_path}.toml")
        text = (folder / place.name).read_text(encoding="utf-8")
    else:
        raise UnknownNameError(
            f"there is no {kind} {name_or_path!r}.{nearest(name_or_path, names_in(folder))} The built-in ones are "
            f"{', '.join(names_in(folder))}; a file of your own ends in .toml"
        )
    try:
        return place.stem, tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"{place} is not valid TOML: {problem}") from None


def _read(kind: str, path: Path) -> str:
    if not path.is_file():
        raise FileError(f"there is no {kind} file {path}")
    if path.stat().st_size > _LARGEST_FILE:
        raise FileError(f"{path} has {path.stat().st_size} bytes, a {kind} at most {_LARGEST_FILE}: it is not a {kind}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text ({problem})") from None
