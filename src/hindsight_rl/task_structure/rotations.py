"""Rotations in goals: unit vectors (cosine, sine) and unit quaternions (w, x, y, z).

The difference of two of them says little: how to turn depends on both, and a quaternion and its negative are one rotation.
The rotation that leads from one to the other, as seen from the first, says it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ROTATION_SIZES = (4, 2)  # columns of a rotation in space and in a plane


def rotation_between(first: Sequence[Any], second: Sequence[Any], xp: Any = np) -> list[Any]:
    """Return the rotation from one to another, its columns one by one, with any shape.

    first, second: the columns of each, 2 or 4. A quaternion gets the sign with which w is not negative.
    xp: the namespace of the array functions.
    """
    if len(first) == min(ROTATION_SIZES):
        (cosine, sine), (other_cosine, other_sine) = first, second
        return [cosine * other_cosine + sine * other_sine, cosine * other_sine - sine * other_cosine]
    (w, x, y, z), (other_w, other_x, other_y, other_z) = first, second
    turn = [
        w * other_w + x * other_x + y * other_y + z * other_z,
        w * other_x - x * other_w - y * other_z + z * other_y,
        w * other_y - y * other_w - z * other_x + x * other_z,
        w * other_z - z * other_w - x * other_y + y * other_x,
    ]
    sign = xp.where(turn[0] < 0, -1.0, 1.0)
    return [sign * each for each in turn]
