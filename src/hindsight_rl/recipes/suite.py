"""Suites: lists of tasks for benchmarks, as TOML. An entry is a task with its options besides the recipe's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ..errors import FileError, OptionError
from ..options import OptionRecord
from .files import SUITES, read_toml

ENTRY_KEYS = ("environment", "agent", "recipe", "name")  # of an entry; all others are options


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
