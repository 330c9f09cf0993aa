"""Read and write recipes, and read suites: built-in TOML files by name, files of your own by path.

A suite is a list of tasks for benchmarks. An entry is a task with its options besides the recipe's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import Field

from ..errors import FileError, OptionError, UnknownNameError, nearest
from ..options import FUNCTION, OptionRecord, Settings
from ..options.record import parse_toml
from ..storage import read_bytes, save_bytes

RECIPES = resources.files(__package__)
SUITES = RECIPES / "suites"
MOST_RECIPE_BYTES = 1 << 20  # bytes of a recipe or a suite; the built-in ones have at most 4,000
_OF_ONE_RUN = ("seed", "workers", "engine", "ray_address", "env_module")
ENTRY_KEYS = ("environment", "agent", "recipe", "name")  # of an entry; all others are options


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
        return place.stem, parse_toml(text)
    except ValueError as problem:
        raise FileError(f"{place} is not valid TOML: {problem}") from None


def save_recipe(settings: Settings, path: Path) -> None:
    """Write settings as a recipe with all options that are not None, which their default is otherwise.

    Raises FileError for another suffix than .toml, and OptionError for a function as strategy.
    """
    options = {name: value for name, value in settings.flat().items() if value is not None and name not in _OF_ONE_RUN}
    if str(options["strategy"]).startswith(FUNCTION):
        raise OptionError(f"A recipe cannot hold the {options['strategy']}, which is the strategy of this run.")
    head = {"agent": settings.agent, "automatic": False, "complete": True, "declared": sorted(settings.declared)}
    write_recipe(
        path, f"All options of a run, which began with the recipe {settings.recipe}", head, options, settings.reasons
    )


def write_recipe(
    path: Path,
    title: str,
    head: Mapping[str, Any],
    options: Mapping[str, Any],
    comments: Mapping[str, str],
) -> None:
    """Write a recipe. Text, numbers and lists are written as in JSON, which TOML reads.

    title: a comment. head: the entries above the options. comments: by option.
    Raises FileError for another suffix than .toml.
    """
    require_toml(path)
    lines = [f"# {title}", *(f"{name} = {json.dumps(value)}" for name, value in head.items()), "", "[options]"]
    for name, value in options.items():
        lines += [f"# {comments[name]}"] if name in comments else []
        lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    save_bytes(path, ("\n".join(lines) + "\n").encode())


def require_toml(path: Path) -> None:
    """Raise FileError for another suffix than .toml."""
    if path.suffix != ".toml":
        raise FileError(f"The path of a recipe must end in .toml, got {path}.")


def _read(kind: str, path: Path) -> str:
    if not path.is_file():
        raise FileError(f"There is no {kind} file {path}.")
    try:
        return read_bytes(path, MOST_RECIPE_BYTES).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text: {problem}") from None


class Entry(OptionRecord):
    """One task. agent, recipe: None: by the environment. name: of the variant, if a task occurs more than once."""

    environment: str
    agent: str | None = None
    recipe: str | None = None
    name: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Suite(OptionRecord):
    """The tasks of a benchmark. Each is run with every seed."""

    name: str
    entries: tuple[Entry, ...]


def load_suite(name_or_path: str) -> Suite:
    """Return a built-in suite by its name, or the suite in a .toml file by its path. Raises FileError."""
    name, data = read_toml("suite", name_or_path, SUITES)
    tables, included = data.pop("entry", []), data.pop("include", [])
    are_tables = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
    if data or not are_tables or not isinstance(included, list) or not tables + included:
        raise FileError(
            f"Suite {name!r} must hold a table [[entry]] per task, or `include`, a list of other suites. "
            f"Found {', '.join(data) or 'nothing to run'}."
        )
    entries = [_entry(name, number, table) for number, table in enumerate(tables, 1)]
    for other in included:
        entries += [entry for entry in _included(name, str(other)) if entry not in entries]
    return Suite(name=name, entries=tuple(entries))


def _included(name: str, other: str) -> tuple[Entry, ...]:
    _, data = read_toml("suite", other, SUITES)
    if "include" in data:  # it could lead back here
        raise FileError(f"Suite {name!r} includes {other!r}, which includes others itself. Name those.")
    return load_suite(other).entries


def _entry(suite: str, number: int, table: Mapping[str, Any]) -> Entry:
    known = {key: table[key] for key in ENTRY_KEYS if key in table}
    try:
        return Entry(**known, options={name: value for name, value in table.items() if name not in ENTRY_KEYS})
    except OptionError as problem:
        raise FileError(f"Entry {number} of suite {suite!r} is not valid. {problem}") from None
