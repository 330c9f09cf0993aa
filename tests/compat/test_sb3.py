"""The SB3 adapter: what agrees with SB3's own buffer, and what its documents show."""

import copy
import pickle

import numpy as np
import pytest
import torch
from gymnasium import spaces
from scipy.stats import chi2_contingency
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3 import HerReplayBuffer as SB3HerReplayBuffer
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy as SB3Strategy
from tiny_sb3 import (
    InfoReward,
    Line,
    Twice,
    arrays_of,
    box,
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

from hindsight_rl.compat.sb3 import (
    KEY_TO_GOAL_STRATEGY,
    GoalSelectionStrategy,
    HerReplayBuffer,
)
from hindsight_rl.errors import (
    GoalEnvError,
    InputError,
    NonFiniteError,
    OptionError,
    ShapeError,
    UnknownNameError,
)


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goals_are_drawn_as_often_and_as_far_ahead_as_in_sb3(strategy):
    """200 episodes of unequal lengths, 3 environments, a tiny ring; compared are the transitions that both still store."""
    np.random.seed(1)  # noqa: NPY002 - SB3 draws from the global state
    ours, theirs = (make(180, 3, kind, goal_selection_strategy=strategy) for kind in (HerReplayBuffer, SB3HerReplayBuffer))
    play_unequal([ours, theirs], 3, 200)
    found = []
    for buffer in (ours, theirs):
        samples = buffer.sample(40_000)
        check_rewards(samples)
        number, t, goal, is_relabelled = numbers_of(samples)
        assert abs(is_relabelled.mean() - 0.8) < 0.008
        assert (goal[is_relabelled] // 1000 == number[is_relabelled]).all()
        found.append((1000 * number + t, goal - 1000 * number - t, is_relabelled))
    both = np.intersect1d(found[0][0], found[1][0])
    assert len(both) > 100
    for relabelled_alone in (False, True):  # which transitions; how far ahead their goals lie
        columns = []
        for place, offset, is_relabelled in found:
            kept = np.isin(place, both) & (is_relabelled | (not relabelled_alone))
            columns.append(offset[kept] if relabelled_alone else place[kept])
        values = np.unique(np.concatenate(columns))
        table = np.array([[(column == value).sum() for value in values] for column in columns])
        assert chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > 1e-3


def test_actions_with_several_axes_are_flattened_as_in_sb3():
    class Grid(Line):
        action_space = spaces.Box(-1, 1, (2, 3), np.float32)

    ours, theirs = (make(20, 2, kind, Grid, n_sampled_goal=0) for kind in (HerReplayBuffer, SB3HerReplayBuffer))
    for t in range(4):
        action = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 2, 3) * (t + 1) / 4
        for buffer in (ours, theirs):
            infos = [{"TimeLimit.truncated": t == 3}] * 2
            buffer.add(
                observe([1, 2], [t, t]), observe([1, 2], [t + 1] * 2), action, np.zeros(2), np.full(2, t == 3), infos
            )
    assert (ours.actions[:4] == theirs.actions[:4]).all()
    assert ours.sample(8).actions.shape == theirs.sample(8).actions.shape == (8, 6)
    with pytest.raises(ShapeError):
        ours.add(observe([1, 2], [0, 0]), observe([1, 2], [1, 1]), action[:, :1], np.zeros(2), np.zeros(2, bool), [{}] * 2)


def test_dones_are_terminations_without_time_limits():
    buffer = make(n_sampled_goal=0)
    play_episode(buffer, 1, 2, terminated=True)
    play_episode(buffer, 2, 2)
    samples = buffer.sample(200)
    number, t, *_ = numbers_of(samples)
    assert (samples.dones.numpy()[:, 0] == ((number == 1) & (t == 1))).all()


def test_copies_have_no_environment_and_continue_with_the_same_samples():
    buffer = make(100, 2)
    play_unequal([buffer], 2, 20)
    copies = [copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))]
    expected = buffer.sample(64)
    for each in copies:
        assert each.env is None
        each.set_env(venv(2))
        assert same(each.sample(64), expected)
        assert all((array == arrays_of(buffer)[name]).all() for name, array in arrays_of(each).items())


def test_batches_drawn_ahead_differ_and_are_forgotten_when_an_episode_ends():
    buffer = make(10)
    play_episode(buffer, 1, 5)
    batches = [buffer.sample(32) for _ in range(6)]  # drawn as 1, 2 and 4: one is left
    assert len({tuple(numbers_of(batch)[1]) for batch in batches}) == 6
    assert set(map(len, (batch.rewards for batch in (buffer.sample(8), buffer.sample(32))))) == {8, 32}
    play_episode(buffer, 2, 10)  # it replaces the first
    assert set(numbers_of(buffer.sample(32))[0]) == {2}
    check_rewards(buffer.sample(32))


def test_batches_drawn_ahead_are_normalized_when_they_are_returned():
    env = VecNormalize(venv())
    buffer = make()
    play_episode(buffer, 1, 5)
    twin = copy.deepcopy(buffer)
    twin.set_env(venv())
    normalizers = [None, None, env, env, None]  # of batches drawn as 1, 2 and 4
    for normalizer in normalizers:
        plain, ours = twin.sample(50), buffer.sample(50, env=normalizer)
        goal, expected = ours.observations["desired_goal"], plain.observations
        expected = expected if normalizer is None else env.normalize_obs({key: x.numpy() for key, x in expected.items()})
        assert np.array_equal(goal, expected["desired_goal"])
        env.obs_rms["desired_goal"].mean += 1  # as steps between two batches change it


def test_a_loaded_buffer_continues_its_open_episode(tmp_path):
    env = venv(2)
    model = learner(SAC, env, seed=0, learning_starts=100)
    model.learn(6)
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    model.load_replay_buffer(tmp_path / "buffer.pkl", truncate_last_traj=False)
    model.learn(4, reset_num_timesteps=False)
    assert model.replay_buffer.ep_length[:5].tolist() == [[5, 5]] * 5
    model.learn(2, reset_num_timesteps=False)
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    with pytest.warns(UserWarning, match="truncated"):
        model.load_replay_buffer(tmp_path / "buffer.pkl")
    assert model.replay_buffer.ep_length[5].tolist() == [1, 1]


def all_algorithms():
    algorithms = [(SAC, True), (TD3, True), (DDPG, True), (DQN, False)]
    try:
        import sb3_contrib
    except ImportError:
        return algorithms
    return [*algorithms, (sb3_contrib.TQC, True), (sb3_contrib.QRDQN, False)]


@pytest.mark.parametrize(("algorithm", "continuous"), all_algorithms())
def test_every_algorithm_learns_saves_and_loads(algorithm, continuous, tmp_path):
    env = DummyVecEnv([lambda: BitFlippingEnv(4, continuous=continuous)] * 2)
    options = {"n_sampled_goal": 2, "goal_selection_strategy": "future"}
    model = learner(algorithm, env, replay_buffer_kwargs=options)
    model.learn(120)
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model", env=env)
    assert isinstance(loaded.replay_buffer, HerReplayBuffer)
    assert loaded.replay_buffer.n_sampled_goal == 2
    observation = env.reset()
    actions = [each.predict(observation, deterministic=True)[0].tolist() for each in (model, loaded)]
    assert actions[0] == actions[1]
    loaded.learn(120)


def test_a_seed_makes_a_run_reproducible():
    def run(seed):
        model = learner(SAC, venv(), seed=seed, learning_starts=10)
        return torch.cat([p.flatten() for p in model.learn(40).policy.parameters()])

    first = run(0)
    assert torch.equal(first, run(0))
    assert not torch.equal(first, run(1))


def test_normalized_samples():
    env = VecNormalize(venv(), clip_reward=3.0)
    for _ in range(3):
        env.reset()
        for _ in range(5):
            env.step([np.ones(1, np.float32)])
    buffer = make(n_sampled_goal=4)
    play_episode(buffer, 1, 5)
    twin = copy.deepcopy(buffer)
    twin.set_env(venv())
    plain, normalized = twin.sample(50), buffer.sample(50, env=env)
    for theirs, ours in (
        (plain.observations, normalized.observations),
        (plain.next_observations, normalized.next_observations),
    ):
        expected = env.normalize_obs({key: value.numpy() for key, value in theirs.items()})
        assert all((ours[key].numpy() == expected[key]).all() for key in expected)
    assert (normalized.rewards.numpy() == env.normalize_reward(plain.rewards.numpy())).all()
    assert normalized.rewards.dtype == torch.float32


@pytest.mark.parametrize("space", ["discrete_obs_space", "image_obs_space"])
def test_other_spaces(space):
    env = DummyVecEnv([lambda: BitFlippingEnv(4, **{space: True})] * 2)
    ours, theirs = (
        kind(100, env.observation_space, env.action_space, env, "cpu", 2) for kind in (HerReplayBuffer, SB3HerReplayBuffer)
    )
    observation = env.reset()
    for _ in range(12):
        action = np.array([env.action_space.sample() for _ in range(2)])
        following, reward, done, info = env.step(action)
        for buffer in (ours, theirs):
            buffer.add(dict(observation), dict(following), action, reward, done, info)
        observation = following
    mine, others = ours.sample(8), theirs.sample(8)
    assert (mine.actions.shape, mine.actions.dtype) == (others.actions.shape, others.actions.dtype)
    for key, value in others.observations.items():
        assert (mine.observations[key].shape, mine.observations[key].dtype) == (value.shape, value.dtype)
    assert (ours.observations["observation"] == theirs.observations["observation"]).all()


def test_floats_are_float32_by_default():
    wide = spaces.Dict(observation=box(2, np.float64), achieved_goal=box(1, np.float64), desired_goal=box(1, np.float64))
    for options, dtype in (({}, torch.float32), ({"dtype": "float64"}, torch.float64)):
        buffer = HerReplayBuffer(100, wide, Line.action_space, venv(), **options)
        play_episode(buffer, 1, 3)
        samples = buffer.sample(4)
        assert {value.dtype for value in samples.observations.values()} == {dtype}
        assert (samples.rewards.dtype, samples.actions.dtype) == (torch.float32, torch.float32)


def test_names_in_documents():
    assert [strategy.value for strategy in GoalSelectionStrategy] == ["future", "final", "episode", "random"]
    assert KEY_TO_GOAL_STRATEGY["final"] is GoalSelectionStrategy.FINAL


@pytest.mark.parametrize("given", ["final", "FINAL", GoalSelectionStrategy.FINAL, SB3Strategy.FINAL])
def test_strategies_by_name_and_by_either_enum(given):
    buffer = make(goal_selection_strategy=given, n_sampled_goal=9)
    assert buffer.goal_selection_strategy is GoalSelectionStrategy.FINAL
    assert (buffer.n_sampled_goal, buffer.her_ratio) == (9, 0.9)
    play_episode(buffer, 1, 5)
    _, _, goal, is_relabelled = numbers_of(buffer.sample(50))
    assert set(goal[is_relabelled]) == {1005}


def test_random_goals_come_from_every_stored_episode():
    buffer = make(goal_selection_strategy="random")
    play_episode(buffer, 1, 2)
    play_episode(buffer, 2, 3)
    number, _, goal, is_relabelled = numbers_of(buffer.sample(500))
    for episode in (1, 2):
        assert set(goal[is_relabelled & (number == episode)]) == {1001, 1002, 2001, 2002, 2003}


def test_an_unknown_strategy_is_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'future'"):
        make(goal_selection_strategy="futur")


def test_the_older_constructor():
    spaces_of = Line.observation_space, Line.action_space
    with pytest.warns(UserWarning, match="`env_info` has no effect"):
        buffer = HerReplayBuffer(100, *spaces_of, {"reward": "sparse"}, "cpu", 1, wrapped_env=Twice(), max_episode_length=3)
    play_episode(buffer, 1, 7)
    assert buffer.ep_length[:7, 0].tolist() == [3, 3, 3, 3, 3, 3, 1]
    samples = buffer.sample(100)
    _, t, goal, is_relabelled = numbers_of(samples)
    expected = -2 * np.abs(1000 + t + 1 - goal)
    assert (samples.rewards.numpy()[is_relabelled, 0] == expected[is_relabelled]).all()


def test_the_wrapped_environment_computes_rewards_if_sample_is_called_without_one():
    buffer = make(wrapped_env=Twice())
    play_episode(buffer, 1, 3)
    factors = []
    for env in (None, VecNormalize(venv(), norm_obs=False, norm_reward=False)):
        samples = buffer.sample(200, env=env)
        _, t, goal, is_relabelled = numbers_of(samples)
        wrong = is_relabelled & (1000 + t + 1 != goal)
        factors.append(set(samples.rewards.numpy()[wrong, 0] / np.abs(1000 + t + 1 - goal)[wrong]))
    assert factors == [{-2.0}, {-1.0}]


@pytest.mark.parametrize("strategy", ["future", "final", "episode", "random"])
def test_goals_drawn_once_when_an_episode_ends(strategy):
    buffer = make(200, 3, online_sampling=False, goal_selection_strategy=strategy, n_sampled_goal=2)
    twins = [buffer, make(200, 3)]
    play_unequal(twins, 3, 60)
    assert all((array == arrays_of(twins[1])[name]).all() for name, array in arrays_of(buffer).items())
    samples = buffer.sample(3000)
    check_rewards(samples)
    number, t, goal, is_relabelled = numbers_of(samples)
    assert abs(is_relabelled.mean() - 2 / 3) < 0.05
    for step in set(zip(number, t, strict=True)):  # never more than two goals, however often it is sampled
        assert len(set(goal[(number == step[0]) & (t == step[1]) & is_relabelled])) <= (1 if strategy == "final" else 2)
    others = copy.deepcopy(buffer)
    others.set_env(venv(3))
    assert same(others.sample(50), buffer.sample(50))


def test_goals_drawn_at_the_end_get_rewards_with_the_infos():
    buffer = make(12, env=InfoReward, copy_info_dict=True, online_sampling=False, n_sampled_goal=99, max_episode_length=4)
    for t in range(4):
        play(buffer, [1], [t], t == 3, bonus=10 + t)
    for t in range(4):
        play(buffer, [2], [t], t == 3, bonus=20 + t)
    samples = buffer.sample(200)
    number, t, _, is_relabelled = numbers_of(samples)
    assert (samples.rewards.numpy()[is_relabelled, 0] == (10 * number + t)[is_relabelled]).all()


@pytest.mark.parametrize("online_sampling", [True, False])
def test_a_refused_step_leaves_the_buffer_usable(online_sampling):
    buffer = make(100, 2, online_sampling=online_sampling)
    for t in range(3):
        play(buffer, [1, 2], [t, t], [t == 1, False])
    bad = observe([5, 2], [0, 3]), {**observe([5, 2], [1, 4]), "observation": np.full((2, 2), np.nan)}
    with pytest.raises(NonFiniteError):
        buffer.add(*bad, np.zeros((2, 1)), np.zeros(2), np.zeros(2, bool), [{}, {}])
    play(buffer, [5, 2], [0, 3], [False, True])
    assert buffer.ep_length[:4].tolist() == [[2, 4], [2, 4], [1, 4], [0, 4]]
    buffer.set_env(None)
    with pytest.raises(GoalEnvError):
        buffer.sample(8)
    buffer.set_env(venv(2))
    check_rewards(buffer.sample(50))


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"action": np.zeros((2, 3))}, ShapeError, r"\(2, 1\) for action, got \(2, 3\)"),
        ({"action": np.zeros(3)}, ShapeError, r"\(2, 1\) for action, got \(3,\)"),
        ({"done": np.array([0.0, np.nan])}, InputError, "`done` must be true or false"),
        ({"done": np.zeros(3, bool)}, InputError, "`done` must be true or false for each of 2 environments"),
        ({"reward": np.array([0.0, np.inf])}, NonFiniteError, "reward"),
    ],
)
def test_invalid_steps_are_refused(changed, error, words):
    buffer = make(100, 2)
    obs, next_obs = observe([1, 2], [0, 0]), observe([1, 2], [1, 1])
    step = {"action": np.zeros((2, 1)), "reward": np.zeros(2), "done": np.zeros(2, bool), "infos": [{}, {}]}
    with pytest.raises(error, match=words):
        buffer.add(obs, next_obs, **step | changed)
    buffer.add(obs, next_obs, **step)
    assert (buffer.pos, buffer.rewards[0].tolist()) == (1, [0, 0])


def test_infos_are_kept_and_removed_with_their_steps():
    buffer = make(12, 1, env=InfoReward, copy_info_dict=True, n_sampled_goal=99, max_episode_length=4)
    for episode in range(1, 6):
        for t in range(4):
            info = {"bonus": 10 * episode + t}
            play(buffer, [episode], [t], t == 3, **info)
            info["bonus"] = -1
    samples = buffer.sample(300)
    number, t, _, is_relabelled = numbers_of(samples)
    assert set(number) == {3, 4, 5}
    assert (samples.rewards.numpy()[is_relabelled, 0] == (10 * number + t)[is_relabelled]).all()
    assert len(buffer._reward.infos) == 12
    loaded = pickle.loads(pickle.dumps(buffer))
    loaded.set_env(venv(1, InfoReward))
    assert same(loaded.sample(50), buffer.sample(50))
    with pytest.raises(InputError, match="save_replay_buffer"):
        buffer.save_transitions("nowhere")


def test_invalid_arguments_are_refused():
    more = spaces.Dict({**Line.observation_space.spaces, "camera": box(3)})
    with pytest.raises(GoalEnvError, match="camera"):
        HerReplayBuffer(100, more, Line.action_space, venv())
    with pytest.raises(OptionError, match="optimize_memory_usage"):
        make(optimize_memory_usage=True)
    with pytest.raises(OptionError, match="max_episode_length must be a whole number of at least 1, got 0"):
        make(max_episode_length=0)
    buffer = HerReplayBuffer(100, Line.observation_space, Line.action_space)
    play_episode(buffer, 1, 3)
    with pytest.raises(GoalEnvError, match="set_env"):
        buffer.sample(8)


@pytest.mark.parametrize(("rule", "ends"), [(None, {2}), ("keep", {2}), ("never", set()), ("success", {0, 1, 2})])
def test_termination_under_relabelled_goals(rule, ends):
    buffer = make(n_sampled_goal=10**6, goal_selection_strategy="future", relabel_terminated=rule)
    play_episode(buffer, 1, 3, terminated=True)
    samples = buffer.sample(300)
    _, t, goal, _ = numbers_of(samples)
    is_done = samples.dones.numpy()[:, 0] > 0
    assert set(t[is_done]) == ends
    if rule == "success":
        assert (is_done == (goal == 1000 + t + 1)).all()
