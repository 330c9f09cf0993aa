"""Parse TOML that may come from somebody else."""

from __future__ import annotations

import tomllib
from typing import Any

MOST_DOTS = 2_000  # in a line: tomllib takes time quadratic in the parts of a key such as a.b.c


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML holds. Raises ValueError for anything else, and for what would take too long."""
    if max((line.count(".") for line in text.splitlines()), default=0) > MOST_DOTS:
        raise ValueError(f"a line has more than {MOST_DOTS:,} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
