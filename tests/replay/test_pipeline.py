"""A buffer with a scale of rewards: every sample is in units of the task, whatever the two rewards are."""

import copy

import numpy as np
import pytest
from tiny import ACTION_SPACE, OBSERVATION_SPACE, buffer_of, make_buffer, make_episode, place

from hindsight_rl import Episode, HindsightBuffer
from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.records.reward_scale import RewardScale

PERCENT = RewardScale(100.0, 0.0)


def rewarding(failure, success):
    return lambda achieved, goal, info: np.where(np.abs(achieved - goal)[:, 0] < 1.5, success, failure)


def filled(failure, success, **options):
    compute = rewarding(failure, success)
    buffer = buffer_of(60, OBSERVATION_SPACE, ACTION_SPACE, compute, seed=1, discount=0.9, **options)
    for number in range(1, 4):
        walked = make_episode(number, 6)
        goal = np.full_like(walked.desired_goal, place(number, 3))
        reward = compute(walked.achieved_goal[1:], goal[1:], {})
        ends = number == 2
        buffer.add_episode(Episode(walked.observation, walked.achieved_goal, goal, walked.action, reward, ends))
    return buffer


@pytest.mark.parametrize("options", [{}, {"n_steps": 3}, {"relabel_terminated": "success"}, {"tolerance_levels": 2}])
def test_samples_of_any_two_rewards_are_the_same_bytes(options):
    rewards, open_rewards = [], []
    for failure, success in ((-1.0, 0.0), (0.0, 100.0), (99.0, 100.0), (0.1, 0.3)):
        buffer = filled(failure, success, success_reward=success, **options)
        buffer.reward_scale = RewardScale(success, failure)
        rewards.append(buffer.sample_many(4, 32).reward.tobytes())
        for t in range(3):
            seen = {"observation": [9, t], "achieved_goal": [place(9, t)], "desired_goal": [place(9, 2)]}
            then = {"observation": [9, t + 1], "achieved_goal": [place(9, t + 1)], "desired_goal": [place(9, 2)]}
            reward = float(rewarding(failure, success)(np.array([[place(9, t + 1)]]), np.array([[place(9, 2)]]), {})[0])
            buffer.add(seen, [t], reward, then, False, False)
        open_rewards.append(buffer.sample_open(32).reward.tobytes())
    assert len(set(rewards)) == len(set(open_rewards)) == 1


def test_without_a_scale_samples_have_the_rewards_of_the_environment():
    buffer = filled(0.0, 100.0)
    assert buffer.reward_scale is None
    assert set(buffer.sample(200).reward.tolist()) == {0.0, 100.0}
    buffer.reward_scale = PERCENT
    assert set(buffer.sample(200).reward.tolist()) <= {-1.0, 0.0, -10.0}  # -10: the end of the second episode
    assert buffer.timeline.episodes()[0].reward.max() == 100.0  # what is stored stays
    buffer.reward_scale = None
    assert set(buffer.sample(200).reward.tolist()) == {0.0, 100.0}


def test_the_scale_is_saved_with_the_buffer(tmp_path):
    buffer = filled(0.0, 100.0, failure_reward=0.0, success_reward=100.0)
    buffer.reward_scale = PERCENT
    buffer.save(tmp_path / "b")
    loaded = HindsightBuffer.load(tmp_path / "b", rewarding(0.0, 100.0))
    assert loaded.reward_scale == copy.deepcopy(buffer).reward_scale == PERCENT
    assert loaded.sample(64).reward.tobytes() == buffer.sample(64).reward.tobytes()
    arrays, data = buffer.state_dict()
    for damaged in ({"success": 0.0, "failure": 1.0, "is_sparse": True}, {"success": 0.0}, "much"):
        with pytest.raises(FileError):
            buffer.load_state_dict(arrays, data | {"reward_scale": damaged})
    assert buffer.reward_scale == PERCENT


@pytest.mark.parametrize(
    ("options", "scale", "message"),
    [
        ({}, (0.0, -1.0), "reward_scale must be a RewardScale or None"),
        ({}, RewardScale(1e9 + 1, 1e9), "are the same number in float32"),
        ({"discount": 1.0}, PERCENT, "reward_scale needs a discount below 1"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(options, scale, message):
    buffer = make_buffer(**options)
    with pytest.raises(OptionError, match=message):
        buffer.reward_scale = scale
    assert buffer.reward_scale is None


@pytest.mark.parametrize("failure_reward", [np.inf, "0", True])
def test_the_reward_of_a_failure_must_be_a_number(failure_reward):
    with pytest.raises(OptionError, match="failure_reward must be a finite number"):
        make_buffer(failure_reward=failure_reward)
