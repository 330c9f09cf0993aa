"""Suites: lists of tasks to measure on, as TOML. An entry is a task with what a run of it is given besides its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FileError
from .files import SUITES, names_in, read_toml

WORDS = ("environment", "agent", "recipe", "name")  # of an entry; all others are options


@dataclass(frozen=True)
class Entry:
    """One task. agent, recipe: chosen by the environment where None. name: of the variant, where a task stands twice."""

    environment: str
    agent: str | None
    recipe: str | None
    name: str | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Suite:
    """What a benchmark runs, each entry with every seed."""

    name: str
    entries: tuple[Entry, ...]


def suite_names() -> list[str]:
    """The built-in suites."""
    return names_in(SUITES)


def load_suite(name_or_path: str) -> Suite:
    """A built-in suite by its name, or a TOML file of your own by its path."""
    name, data = read_toml("suite", name_or_path, SUITES)
    tables, included = data.pop("entry", []), data.pop("include", [])
    are_tables = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
    if data or not are_tables or not isinstance(included, list) or not tables + included:
        raise FileError(
            f"suite {name!r} holds {', '.join(data) or 'nothing to run'}, but a suite has a table [[entry]] for each task, "
            f"or `include`, a list of other suites"
        )
    entries = [_entry(name, number, table) for number, table in enumerate(tables, 1)]
    for other in included:
        entries += [entry for entry in _included(name, str(other)) if entry not in entries]
    return Suite(name, tuple(entries))


def _included(name: str, other: str) -> tuple[Entry, ...]:
    _, data = read_toml("suite", other, SUITES)
    if "include" in data:  # which may lead back here
        raise FileError(f"suite {name!r} includes {other!r}, which includes others itself: name those")
    return load_suite(other).entries


def _entry(suite: str, number: int, table: Mapping[str, Any]) -> Entry:
    words = {word: table.get(word) for word in WORDS}
    if not words["environment"] or not all(isinstance(value, str | None) for value in words.values()):
        found = ", ".join(f"{word} = {value!r}" for word, value in words.items() if value is not None) or "none of them"
        raise FileError(
            f"entry {number} of suite {suite!r} has {found}, but it needs an environment (its id), and perhaps agent, "
            f"recipe and name, all in quotes"
        )
    options = {name: value for name, value in table.items() if name not in WORDS}
    return Entry(str(words["environment"]), words["agent"], words["recipe"], words["name"], options)
