"""How a symmetry changes columns that are no positions: by what they correlate with."""

import numpy as np
import pytest

from hindsight_rl.structure.axis_symmetries import pair_columns
from hindsight_rl.structure.steps import correlations


def pairs_in_a_mirror(profiles):
    """The last signal is constant; the mirror changes the sign of the first one."""
    profiles = np.array(profiles)
    return pair_columns(profiles, profiles * [-1.0, 1.0, 1.0])


def test_a_column_of_the_mirrored_axis_changes_its_sign_and_others_stay():
    assert pairs_in_a_mirror([[0.8, 0.0, 0.1], [0.0, 0.8, 0.1]]) == [(0, 0, -1.0, -1.0), (1, 1, 1.0, 1.0)]


def test_left_and_right_finger_take_each_others_places():
    """Their velocities have opposite signs along the mirrored axis, and both lie on one side of 0."""
    assert pairs_in_a_mirror([[-0.6, 0.0, 0.6], [0.6, 0.0, 0.6], [0.8, 0.0, 0.0]]) == [(0, 1, 1.0, 1.0), (2, 2, -1.0, -1.0)]


def test_a_column_that_correlates_with_nothing_stays():
    assert pairs_in_a_mirror([[-0.01, 0.02, 0.0], [0.02, 0.0, 0.01]]) == [(0, 0, 1.0, 1.0), (1, 1, 1.0, 1.0)]


def test_a_quarter_turn_takes_the_column_of_one_axis_for_that_of_the_other():
    """x -> -y, y -> x: the first column becomes minus the second one."""
    profiles = np.array([[0.9, 0.0], [0.0, 0.9]])
    turned = profiles[:, [1, 0]] * [-1.0, 1.0]
    assert pair_columns(profiles, turned) == [(0, 1, -1.0, 1.0)]


def test_correlations_are_those_of_numpy_and_0_for_a_constant():
    rng = np.random.default_rng(0)
    values, signals = rng.normal(size=(50, 2)), rng.normal(size=(3, 50))
    expected = np.corrcoef(values.T, signals)[:2, 2:]
    assert correlations(values, signals) == pytest.approx(expected)
    assert correlations(np.ones((50, 1)), signals) == pytest.approx(np.zeros((1, 3)))
