"""Goals with more than the position of an object."""

from types import SimpleNamespace

import numpy as np
import pytest

from hindsight_rl.structure.poses import Poses, find_headings
from hindsight_rl.task_structure.symmetries import Symmetry


def test_cosine_and_sine_are_a_heading():
    angle = np.linspace(-1, 2, 9)
    goals = np.float32(np.stack([0.1 * angle, np.cos(angle), 0.2 * angle, np.sin(angle)], 1))
    assert find_headings(SimpleNamespace(achieved_goal=goals), [1, 2, 3]) == [(1, 3)]


@pytest.mark.parametrize(
    ("signs", "source", "can"),
    [
        ((1, -1), (2, 3), True),
        ((-1, 1), (2, 3), True),
        ((1, 1), (2, 3), False),  # the object is mirrored, and its angle is not
        ((-1, -1), (2, 3), False),  # that is half a turn
        ((1, -1), (1, 3), False),  # a column that is no angle of the goal
    ],
)
def test_a_mirror_turns_an_angle_back(signs, source, can):
    symmetry = Symmetry.identity(4, 3, 1)
    symmetry.observation.factor[[2, 3]], symmetry.observation.source[[2, 3]] = signs, source
    assert Poses((0,), 3, {1: 2, 2: 3}, [(2, 3)]).can_complete(symmetry) is can
