"""Values and durations as text, on pages and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def format_value(value: Any) -> str:
    """Return the value of an option as text. Entries with spaces are separated by commas, others by spaces."""
    if isinstance(value, list | tuple):
        texts = [format_value(entry) for entry in value]
        return (", " if any(" " in text for text in texts) else " ").join(texts) or "none"
    if value is None or value == "":
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_reason(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of texts and their reason: those with the same reason are joined by commas."""
    groups: dict[str, list[str]] = {}
    for text, reason in texts:
        groups.setdefault(reason, []).append(text)
    return [(", ".join(texts), reason) for reason, texts in groups.items()]


def duration(seconds: float) -> str:
    """Return a duration such as "4.2 s", "12 min" or "3.4 h"."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def environment_steps(training: float, check: float) -> str:
    """Return environment steps such as "703 environment steps (400 of training, 303 of the check)".

    training: those of training. check: those that were played before, NaN if they were not recorded.
    """
    if math.isnan(check):
        return f"{training:,.0f} environment steps of training (those of the check are unknown)"
    return f"{training + check:,.0f} environment steps ({training:,.0f} of training, {check:,.0f} of the check)"
