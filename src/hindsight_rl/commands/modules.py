"""Where commands find the module of an environment or a function."""

from __future__ import annotations

import sys


def find_modules_here(name: str | None) -> None:
    """Let Python find the module of a name such as "dock:Dock-v0" in the current folder, as `python -m` does."""
    if name and ":" in name and "" not in sys.path:
        sys.path.insert(0, "")
