"""Rotations in goals: unit quaternions w, x, y, z.

The difference of two of them says little: how to turn depends on both, and a quaternion and its negative are one rotation.
The rotation that leads from one to the other, as seen from the first, says it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

QUATERNION = 4  # columns


def rotation_between(first: Sequence[Any], second: Sequence[Any], xp: Any = np) -> list[Any]:
    """Return the quaternion that leads from one to another, its columns one by one, with any shape; w is not negative.

    first, second: the columns of each. xp: the namespace of the array functions.
    """
    (w, x, y, z), (other_w, other_x, other_y, other_z) = first, second
    turn = [
        w * other_w + x * other_x + y * other_y + z * other_z,
        w * other_x - x * other_w - y * other_z + z * other_y,
        w * other_y - y * other_w - z * other_x + x * other_z,
        w * other_z - z * other_w - x * other_y + y * other_x,
    ]
    sign = xp.where(turn[0] < 0, -1.0, 1.0)
    return [sign * each for each in turn]
