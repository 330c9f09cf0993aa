"""Names that other libraries and older pages use for our options, read from other_names.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def new_names() -> dict[str, str]:
    """Return our name of an option by the other name."""
    return {old: new for new, names in _tables()["names"].items() for old in names.split()}


@cache
def other_names() -> dict[str, str]:
    """Return, by the other name, the sentence that says what to write instead."""
    hints = {old: hint for hint, names in _tables()["hints"].items() for old in names.split()}
    return {old: f"Use `{new}`." for old, new in new_names().items()} | hints


@cache
def _tables() -> dict[str, dict[str, str]]:
    return tomllib.loads((resources.files(__package__) / "other_names.toml").read_text(encoding="utf-8"))
