"""Rotations are found by their norm."""

import numpy as np

from hindsight_rl.structure.goal_rotations import find_rotations
from hindsight_rl.structure.steps import Steps


def steps_of(goals):
    """Steps whose achieved and desired goals are these, (N, g)."""
    n = len(goals)
    return Steps(*(np.zeros((n, 1)) for _ in range(3)), goals, goals[::-1], goals[::-1], np.repeat([0, 1], n // 2))


def normalized(values):
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32).astype(np.float64)


def test_a_quaternion_among_positions_and_headings_is_found():
    rng = np.random.default_rng(0)
    place, heading, attitude = (rng.normal(size=(20, n)) for n in (2, 2, 4))
    goals = np.column_stack([place, normalized(heading), normalized(attitude), place])
    assert find_rotations(steps_of(goals)) == ((4, 5, 6, 7),)


def test_a_turn_about_one_axis_is_a_quaternion():
    angle = np.random.default_rng(0).uniform(-1, 1, 20)
    goals = np.column_stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)])
    assert find_rotations(steps_of(goals)) == ((0, 1, 2, 3),)


def test_what_has_no_norm_of_1_or_hardly_varies_is_no_rotation():
    rng = np.random.default_rng(0)
    assert find_rotations(steps_of(rng.uniform(-1, 1, (20, 4)))) == ()
    assert find_rotations(steps_of(np.column_stack([np.ones(20), np.zeros(20), rng.uniform(2, 3, 20)]))) == ()
