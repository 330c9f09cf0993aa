"""Read recipes and suites: built-in TOML files by name, files of your own by path."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..errors import FileError, UnknownNameError, nearest
from ..options import Settings, run_options

RECIPES = resources.files(__package__)
SUITES = RECIPES / "suites"
_OF_ONE_RUN = ("seed", "workers", "engine", "ray_address", "env_module")


def names_in(folder: Traversable) -> list[str]:
    """Return the names of the built-in files in a folder."""
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_toml(kind: str, name_or_path: str, folder: Traversable) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of a built-in file of `folder`, or of a file whose path ends in .toml.

    kind: "recipe" or "suite", for errors. Raises UnknownNameError with the nearest names, and FileError.
    """
    if name_or_path.endswith(".toml"):
        place, text = Path(name_or_path), _read(kind, Path(name_or_path))
    elif name_or_path in names_in(folder):
        place = Path(f"{name_or_path}.toml")
        text = (folder / place.name).read_text(encoding="utf-8")
    else:
        raise UnknownNameError(
            f"There is no {kind} {name_or_path!r}.{nearest(name_or_path, names_in(folder))} The built-in ones: "
            f"{', '.join(names_in(folder))}. The path of an own file ends in .toml."
        )
    try:
        return place.stem, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise FileError(f"{place} is not valid TOML: {problem}") from None


def save_recipe(settings: Settings, path: Path) -> None:
    """Write settings as a recipe: every option that differs from its default. Raises FileError for another suffix."""
    if path.suffix != ".toml":
        raise FileError(f"The path of a recipe must end in .toml, got {path}.")
    options = run_options(settings.agent)
    changed = {name: value for name, value in settings.flat().items() if value not in (None, options[name].default)}
    lines = [
        f"# {settings.recipe}, as resolved for a run",
        f'agent = "{settings.agent}"',
        "automatic = false",
        "",
        "[options]",
    ]
    lines += [f"{name} = {_toml(value)}" for name, value in changed.items() if name not in _OF_ONE_RUN]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    """Return a value as TOML. Text, numbers and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _read(kind: str, path: Path) -> str:
    if not path.is_file():
        raise FileError(f"There is no {kind} file {path}.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text: {problem}") from None
