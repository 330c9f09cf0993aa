"""Names that other libraries and older pages use for our options, read from other_names.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def other_names() -> dict[str, str]:
    """Return, by the other name, the sentence that says what to write instead."""
    data = tomllib.loads((resources.files(__package__) / "other_names.toml").read_text(encoding="utf-8"))
    ours = {old: f"Use `{new}`." for new, names in data["names"].items() for old in names.split()}
    return ours | {old: hint for hint, names in data["hints"].items() for old in names.split()}
