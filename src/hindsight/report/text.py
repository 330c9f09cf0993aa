"""Values and durations as text, on pages and in the terminal."""

from __future__ import annotations

from typing import Any


def format_value(value: Any) -> str:
    """Return the value of an option as text. Entries with spaces are separated by commas, others by spaces."""
    if isinstance(value, list | tuple):
        texts = [format_value(entry) for entry in value]
        return (", " if any(" " in text for text in texts) else " ").join(texts) or "none"
    if value is None or value == "":
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return a duration such as "4.2 s", "12 min" or "3.4 h"."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
