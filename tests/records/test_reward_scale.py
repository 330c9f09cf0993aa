"""Rewards in units of the task, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.records import ArraySpec, GoalSpec
from hindsight_rl.records.reward_scale import RewardScale, scale_as_array, scale_from_array

NUMBER = ArraySpec((1,), "float32", (-1.0,), (1.0,))
floats = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)


def test_a_task_with_two_rewards_has_their_scale():
    spec = GoalSpec(NUMBER, NUMBER, NUMBER, reward_low=0.0, reward_high=100.0)
    assert RewardScale.of_task(spec) == RewardScale(100.0, 0.0)
    assert RewardScale.of_task(GoalSpec(NUMBER, NUMBER, NUMBER)) is None


@given(floats, floats, st.sampled_from(["float32", "float64"]))
def test_failure_and_success_are_exactly_minus_one_and_zero(one, other, dtype):
    if one != other:
        scale = RewardScale(max(one, other), min(one, other))
        found = scale.to_units(np.array([scale.failure, scale.success], dtype))
        assert found.tolist() == [-1.0, 0.0]
        assert found.dtype == dtype


def test_rewards_that_the_array_rounds_are_exact_too():
    assert RewardScale(0.3, 0.1).to_units(np.array([0.1, 0.3], np.float32)).tolist() == [-1.0, 0.0]


def test_rewards_between_and_beyond_keep_their_proportion():
    assert RewardScale(100.0, 0.0).to_units(np.array([50, -100, 200])).tolist() == [-0.5, -2.0, 1.0]


def test_rewards_of_minus_one_and_zero_stay_the_array_that_they_are():
    rewards = np.array([-1.0, 0.0], np.float32)
    assert RewardScale(0.0, -1.0).to_units(rewards) is rewards


def test_rewards_that_are_the_same_in_the_dtype_are_refused():
    scale = RewardScale(1e9 + 1, 1e9)
    scale.require_distinct("float64")
    with pytest.raises(OptionError, match=r"are the same number in float32\. Subtract a constant"):
        scale.require_distinct("float32")


@pytest.mark.parametrize("rewards", [(0.0, 0.0), (-1.0, 0.0), (np.inf, 0.0), (0.0, np.nan)])
def test_a_scale_needs_two_rewards(rewards):
    with pytest.raises(OptionError, match="that of a success above that of a failure"):
        RewardScale(*rewards)


def test_the_scale_of_two_values_minus_a_cost_is_that_of_the_values():
    cost = np.array([0.5, 1.0, 3.0, 0.5])
    scale = RewardScale.measure(100.0 - cost, np.array([0.0, 0.0, 100.0, 0.0]) - cost)
    assert scale == RewardScale(99.25, -0.75)  # the median cost is 0.75


def test_a_dense_reward_has_the_scale_of_steps_that_are_far_from_the_goal():
    """From -20 to 0 in steps of 1: the 90 % quantile of what is missing is 18. A rare penalty changes little."""
    rewards = -np.arange(21.0)
    assert RewardScale.measure(np.zeros(21), rewards) == RewardScale(0.0, -18.0, is_sparse=False)
    rewards[20] = -1e6
    assert RewardScale.measure(np.zeros(21), rewards) == RewardScale(0.0, -18.0, is_sparse=False)


@pytest.mark.parametrize("factor", [1e-9, 0.01, 100.0, 1e9])
def test_a_dense_reward_of_any_scale_is_measured_alike(factor):
    at_goal, rewards = np.full(11, 5.0), 5.0 - np.arange(11.0)
    scale, other = RewardScale.measure(at_goal, rewards), RewardScale.measure(factor * at_goal, factor * rewards)
    np.testing.assert_allclose(other.to_units(factor * rewards), scale.to_units(rewards), rtol=1e-9, atol=1e-9)


def test_without_a_step_that_falls_short_the_rewards_themselves_are_the_scale():
    """The reward is highest far from the goal; and it is always the same."""
    assert RewardScale.measure(np.zeros(11), np.arange(11.0)) == RewardScale(0.0, -8.0, is_sparse=False)
    assert RewardScale.measure(np.full(3, 7.0), np.full(3, 7.0)) == RewardScale(7.0, 6.0, is_sparse=False)


def test_what_follows_an_end():
    """Success for ever. Otherwise failure for ever, or, of more than two values, the reward 0 of the task, converted."""
    is_success = np.array([True, False])
    assert RewardScale(100.0, 0.0).after_end(is_success).tolist() == [0.0, -1.0]
    assert RewardScale(10.0, 5.0, is_sparse=False).after_end(is_success).tolist() == [0.0, -2.0]


@pytest.mark.parametrize("scale", [None, RewardScale(100.0, 0.0), RewardScale(0.5, 0.25, is_sparse=False)])
def test_a_scale_is_read_as_it_was_written(scale):
    assert scale_from_array(scale_as_array(scale)) == scale


def test_a_damaged_scale_is_refused():
    with pytest.raises(FileError, match="The stored scale of the rewards is damaged"):
        scale_from_array(np.array([np.nan, 0.0, 1.0]))
