"""The SB3 adapter is right where SB3 2.9.2 is wrong; the numbers are those of the list of faults."""

import pickle

import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecNormalize
from tiny_sb3 import (
    Line,
    Twice,
    arrays_of,
    check_rewards,
    learner,
    make,
    numbers_of,
    observe,
    play,
    play_episode,
    play_unequal,
    same,
    venv,
)

from hindsight_rl.compat.sb3 import GoalVecNormalize, HerReplayBuffer
from hindsight_rl.errors import FileError, NothingToSampleError, OptionError


def test_fault_1_an_unfinished_episode_is_not_joined_to_the_next():
    buffer = make()
    play_episode(buffer, 1, 3, is_ended=False)
    play_episode(buffer, 2, 5)  # as after the reset at the start of a second `learn`
    assert buffer.ep_length[:9, 0].tolist() == [3, 3, 3, 5, 5, 5, 5, 5, 0]
    number, _, goal, is_relabelled = numbers_of(buffer.sample(300))
    assert (goal // 1000 == number)[is_relabelled].all()
    model = learner(SAC, venv(), learning_starts=100)
    model.learn(8).learn(8)
    assert model.replay_buffer.ep_length.max() == Line.length


def test_fault_2_the_environment_that_computes_rewards_can_be_changed():
    buffer = make(n_sampled_goal=10**6)
    play_episode(buffer, 1, 3)
    for kind, factor in ((Twice, 2), (Line, 1)):
        buffer.set_env(venv(1, kind))
        samples = buffer.sample(50)
        _, t, goal, _ = numbers_of(samples)
        assert (samples.rewards.numpy()[:, 0] == -factor * np.abs(1000 + t + 1 - goal)).all()


def test_fault_3_a_reset_removes_everything():
    buffer = make()
    play_episode(buffer, 1, 3)
    play_episode(buffer, 2, 2, is_ended=False)
    buffer.reset()
    assert (buffer.pos, buffer.full, buffer.ep_length.sum()) == (0, False, 0)
    with pytest.raises(NothingToSampleError):
        buffer.sample(8)
    play_episode(buffer, 3, 2)
    assert set(numbers_of(buffer.sample(50))[0]) == {3}


@pytest.mark.parametrize("steps", [10, 13])
def test_fault_4_an_episode_as_long_as_the_ring_or_longer_is_sampled(steps):
    buffer = make(10)
    play_episode(buffer, 1, steps)
    samples = buffer.sample(400)
    check_rewards(samples)
    assert set(numbers_of(samples)[1]) == set(range(10) if steps == 10 else range(10, 13))


def test_fault_5_open_episodes_are_sampled_until_one_has_ended():
    buffer = make(100, 2)
    with pytest.raises(NothingToSampleError):
        buffer.sample(8)
    for t in range(3):
        play(buffer, [1, 2], [t, t], False)
        samples = buffer.sample(300)
        check_rewards(samples)
        number, step, goal, is_relabelled = numbers_of(samples)
        assert set(zip(number, step, strict=True)) == {(n, s) for n in (1, 2) for s in range(t + 1)}
        assert not samples.dones.any()
        assert ((goal > 1000 * number + step) & (goal <= 1000 * number + t + 1))[is_relabelled].all()
    play(buffer, [1, 2], [3, 3], [True, False])
    assert set(numbers_of(buffer.sample(100))[0]) == {1}
    learner(SAC, venv(), learning_starts=1).learn(8)


class Listed(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return super().compute_reward(achieved_goal, desired_goal, info).tolist()


class Column(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return super().compute_reward(achieved_goal, desired_goal, info)[:, None]


class Single(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -float(np.linalg.norm(achieved_goal - desired_goal))


@pytest.mark.parametrize("kind", [Listed, Column])
def test_fault_6_rewards_may_be_a_list_or_a_column(kind):
    buffer = make(env=kind)
    play_episode(buffer, 1, 3)
    check_rewards(buffer.sample(50))


def test_fault_6_a_reward_function_of_one_goal_is_called_for_each_goal():
    buffer = make(env=Single)
    play_episode(buffer, 1, 3)
    with pytest.warns(UserWarning, match="one number for 50 goals"):
        check_rewards(buffer.sample(50))
    check_rewards(buffer.sample(50))  # the warning comes once
    buffer.set_env(venv())
    assert buffer.sample(50).rewards.shape == (50, 1)


def test_fault_7_n_steps():
    buffer = make(n_steps=3, gamma=0.5, n_sampled_goal=0)
    play_episode(buffer, 1, 4)
    play_episode(buffer, 2, 4, terminated=True)
    samples = buffer.sample(200)
    number, t, *_ = numbers_of(samples)
    returns = [sum(0.5**i * (start + i) / 8 for i in range(min(3, 4 - start))) for start in range(4)]
    assert samples.rewards.numpy()[:, 0].tolist() == np.float32([returns[each] for each in t]).tolist()
    assert (samples.next_observations["observation"][:, 1].numpy() == np.minimum(t + 3, 4)).all()
    is_done = (number == 2) & (t >= 1)
    assert (samples.dones.numpy()[:, 0] == is_done).all()
    expected = np.where(is_done, 0, 0.5 ** np.minimum(3, 4 - t))
    assert samples.discounts.numpy()[:, 0].tolist() == expected.tolist()
    options = {"n_steps": 3, "gamma": 0.99}
    learner(SAC, venv(), replay_buffer_kwargs=options, learning_starts=6).learn(12)


def test_fault_7_normalized_n_step_rewards_are_clipped_step_by_step():
    env = VecNormalize(venv(), norm_obs=False, clip_reward=1.0)
    buffer = make(n_steps=4, gamma=1.0, n_sampled_goal=0)
    for t in range(4):
        buffer.add(observe([1], [t]), observe([1], [t + 1]), np.zeros((1, 1)), np.ones(1), np.array([t == 3]), [{}])
    samples = buffer.sample(50, env=env)
    assert (samples.rewards.numpy()[:, 0] == 4 - numbers_of(samples)[1]).all()


def test_fault_8_both_goals_share_their_statistics():
    env = GoalVecNormalize(venv())
    env.reset()
    for _ in range(4):
        env.step([np.ones(1, np.float32)])
    for each in (env, pickle.loads(pickle.dumps(env))):
        assert each.obs_rms["achieved_goal"] is each.obs_rms["desired_goal"]
    goal = np.array([[0.7]])
    both = env.normalize_obs({"observation": np.zeros((1, 2)), "achieved_goal": goal, "desired_goal": goal})
    assert both["achieved_goal"] == both["desired_goal"]
    assert env.obs_rms["achieved_goal"].count > 2 * 5  # of both
    with pytest.raises(OptionError, match="desired_goal only"):
        GoalVecNormalize(venv(), norm_obs_keys=["desired_goal"])
    GoalVecNormalize(venv(), norm_obs_keys=["observation"])
    GoalVecNormalize(venv(), norm_obs=False)


def test_fault_9_saved_and_loaded_without_pickle_and_without_environment(tmp_path, monkeypatch):
    buffer = make(60, 2)
    play_unequal([buffer], 2, 20)
    monkeypatch.setattr(pickle, "dumps", None)
    monkeypatch.setattr(pickle, "loads", None)
    buffer.save_transitions(tmp_path / "buffer")
    bare = HerReplayBuffer(60, Line.observation_space, Line.action_space, n_envs=2)
    assert bare.load_transitions(tmp_path / "buffer") is bare
    assert all((array == arrays_of(buffer)[name]).all() for name, array in arrays_of(bare).items())
    bare.set_env(venv(2))
    assert same(bare.sample(64), buffer.sample(64))
    play_unequal([bare, buffer], 2, 40, seed=1)
    assert same(bare.sample(64), buffer.sample(64))
    with pytest.raises(FileError, match="capacity"):
        make(80, 2).load_transitions(tmp_path / "buffer")
    with pytest.raises(FileError, match="elsewhere"):
        bare.load_transitions(tmp_path / "elsewhere")


def test_fault_9_a_policy_needs_no_environment(tmp_path):
    model = learner(SAC, venv(), seed=0)
    model.save(tmp_path / "model")
    alone = SAC.load(tmp_path / "model", replay_buffer_class=None, replay_buffer_kwargs={}, buffer_size=1)
    observation = observe([0], [0])
    actions = [each.predict(observation, deterministic=True)[0].tolist() for each in (model, alone)]
    assert actions[0] == actions[1]
