"""Names of the entries of info that a reward needs: "speed" is a number, "force[3]" an array of three."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import OptionError

_KEY = re.compile(r"(.+?)(?:\[([1-9]\d*(?:,[1-9]\d*)*)\])?", re.DOTALL)


def info_shapes(keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each entry by its name. Raises OptionError for a name that occurs twice."""
    found = [match.groups() for key in keys if (match := _KEY.fullmatch(key))]
    shapes = {name: tuple(map(int, shape.split(","))) if shape else () for name, shape in found}
    if len(shapes) < len(keys):
        raise OptionError(f"info_keys must differ from each other, got {', '.join(keys)}.")
    return shapes


def info_key(name: str, shape: tuple[int, ...]) -> str:
    """Return the text for an entry, from which `info_shapes` reads name and shape."""
    return f"{name}[{','.join(map(str, shape))}]" if shape else name
