import numpy as np
import pytest

from hindsight.records import ArraySpec, Episode, GoalSpec
from hindsight.structure.rewards import Endings, RewardScale, measure_rewards

NUMBER = ArraySpec((1,), "float32", (-1.0,), (1.0,))


def spec(low, high):
    return GoalSpec(observation=NUMBER, goal=NUMBER, action=NUMBER, reward_low=low, reward_high=high)


def episode(rewards, terminated=False, success=False):
    places = np.zeros((len(rewards) + 1, 1))
    return Episode(places, places, places, places[1:], np.array(rewards, float), terminated, success)


@pytest.mark.parametrize(("low", "high", "options"), [(-1.0, 0.0, {}), (0.0, 20.0, {"action_l2": 2.0})])
def test_the_scale_of_two_rewards_is_their_difference(low, high, options):
    assert measure_rewards([episode([low, low])], spec(low, high)).options() == options


def test_the_scale_of_other_rewards_leaves_out_rare_ones():
    """From 0 to 20 in steps of 1: the 10 % quantile is 2, the 90 % quantile 18. A single penalty changes little."""
    scale = measure_rewards([episode(np.arange(21.0))], spec(-np.inf, np.inf))
    assert scale.difference == pytest.approx(16.0)
    assert scale.options(action_l2=0.5) == {"action_l2": 8.0}
    crash = measure_rewards([episode([*np.arange(21.0), -1e6])], spec(-np.inf, np.inf))
    assert crash.difference == pytest.approx(16.0, abs=2)


def test_rewards_that_are_all_the_same_change_nothing():
    assert RewardScale(0.0, is_dense=True).options() == {}


def endings_of(*episodes):
    endings = Endings()
    for rewards, terminated, success in episodes:
        endings.add(episode(rewards, terminated, success))
    return endings


BY_SUCCESS = ([-3, -0.1], True, True)


def test_a_success_that_ends_an_episode_has_a_reward_that_no_other_step_has():
    endings = endings_of(BY_SUCCESS, BY_SUCCESS, ([-0.2], True, True), ([-1, -5], True, False))
    assert endings.is_clear
    assert endings.options() == {"relabel_terminated": "success", "success_reward": -0.2}
    assert endings.evidence().startswith("3 of 3 successes ended their episode")


@pytest.mark.parametrize(
    "episodes",
    [
        [BY_SUCCESS] * 2,  # too few
        [*[BY_SUCCESS] * 3, ([-2, -0.1], False, True)],  # one ends with the time limit
        [*[BY_SUCCESS] * 3, ([-0.1, -2], True, False)],  # another step has as much reward
        [([-3, -0.1], False, False)] * 3,
    ],
)
def test_what_does_not_set_successes_apart_is_no_ending(episodes):
    assert not endings_of(*episodes).is_clear
