"""The check as a helper for tests."""

import pytest

from hindsight_rl import PointReach
from hindsight_rl.testing import check_goal_env


class OtherReward(PointReach):
    """The reward of a step is not that of compute_reward."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward - 1.0, *rest


class Lone(PointReach):
    """The reward takes one goal only, which is slow and a warning."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        if achieved_goal.ndim != 1:
            raise ValueError("one goal only")
        return super().compute_reward(achieved_goal, desired_goal, info)


def test_a_good_environment_passes_and_the_report_is_returned():
    report = check_goal_env("PointReach-v0", allow_warnings=False)
    assert report.ok
    assert report.n_steps > 0


def test_an_error_fails_the_test_with_the_table_of_the_check():
    with pytest.raises(AssertionError, match="is not ready for hindsight-rl: errors") as failure:
        check_goal_env(OtherReward)
    assert "\n  error    " in str(failure.value)


def test_warnings_fail_the_test_only_if_they_are_not_allowed():
    assert check_goal_env(Lone).warnings
    with pytest.raises(AssertionError, match="warnings 1"):
        check_goal_env(Lone, allow_warnings=False)
