"""How columns change in a step."""

import numpy as np
import pytest

from hindsight_rl.structure.steps import at_equal_intervals, clear_mean, explained_variance, regress, without_jumps


def changes(values):
    """values: of one column, one after another."""
    column = np.array(values, float)[:, None]
    return without_jumps(np.diff(column, axis=0), column[:-1])[:, 0]


def test_an_angle_that_jumps_by_its_range_goes_on():
    degrees = np.arange(0, 1_000, 25) % 360
    assert np.diff(degrees).min() == -335
    assert changes(degrees) == pytest.approx(25, abs=15)  # what is left beside the range that was seen, 0 to 350
    assert np.abs(changes(np.append(degrees, degrees[-1] - 180)))[-1] == 180  # half a turn in one step is none of these


def test_a_flag_and_a_speed_that_turns_back_change_as_they_do():
    flag = np.repeat([0, 1, 0], [20, 5, 20])
    assert (changes(flag) == np.diff(flag)).all()
    noisy = flag + np.random.default_rng(0).normal(size=45) * 0.02
    assert changes(noisy) == pytest.approx(np.diff(noisy))
    speed = np.concatenate([np.linspace(0, 1, 20), np.linspace(0.2, -1, 20)])  # it loses most of it at once
    assert changes(speed) == pytest.approx(np.diff(speed))


def test_a_mean_that_may_well_be_0_is_0():
    """The means are 0.5, 3 and 1.2, with standard errors of 0.75, 0.18 and 0."""
    values = np.array([[-1.0, 3, 1.2], [2, 3, 1.2], [-1, 3.5, 1.2], [2, 2.5, 1.2]])
    assert clear_mean(values) == pytest.approx([0, 3, 1.2])


def test_numbers_at_equal_intervals():
    assert [at_equal_intervals(n, 3).tolist() for n in (0, 2, 3, 9)] == [[], [0, 1], [0, 1, 2], [0, 4, 8]]


def test_inputs_that_are_a_combination_of_others_up_to_rounding_get_no_large_weights():
    """A height and the gap to an object that always lies at 0.4, in float32: their sum is constant, up to rounding."""
    rng = np.random.default_rng(0)
    height = rng.uniform(0, 0.5, 200).astype(np.float32)
    action = rng.normal(size=200)
    inputs = np.column_stack([action, height, np.float32(0.4) - height]).astype(float)
    change = 0.1 * action + rng.normal(size=200) * 1e-3
    weights, _ = regress(inputs, change[:, None], np.zeros((200, 1)))
    assert weights[0, 0] == pytest.approx(0.1, abs=1e-3)
    assert np.abs(weights[1:]).max() < 0.01


def test_what_does_not_vary_is_not_explained():
    inputs, episode = 1e3 * np.random.default_rng(0).normal(size=(12, 28)), np.arange(12)
    assert explained_variance(inputs, np.ones((12, 1)), episode).tolist() == [0.0]
