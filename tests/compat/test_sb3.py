"""The face for Stable-Baselines3: what agrees with SB3's own buffer, and what is right where SB3's is not."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import chi2_contingency

torch = pytest.importorskip("torch")
stable_baselines3 = pytest.importorskip("stable_baselines3")

from stable_baselines3 import DDPG, DQN, SAC, TD3  # noqa: E402
from stable_baselines3 import HerReplayBuffer as TheirHerReplayBuffer  # noqa: E402
from stable_baselines3.common.envs import BitFlippingEnv  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy as TheirStrategy  # noqa: E402

from hindsight.compat.sb3 import (  # noqa: E402
    HER_OBSERVATION_SPACE,
    KEY_TO_GOAL_STRATEGY,
    OPTIONAL_INFO_KEYS,
    REQUIRED_INFO_KEYS,
    GoalSelectionStrategy,
    GoalVecNormalize,
    HerReplayBuffer,
)
from hindsight.errors import (  # noqa: E402
    FileError,
    GoalEnvError,
    InputError,
    NonFiniteError,
    NothingToSampleError,
    OptionError,
    UnknownNameError,
)

ARRAYS = ("actions", "rewards", "dones", "timeouts", "ep_length", "ep_start")


def learner(algorithm, env, **options):
    """A model of next to no size."""
    tiny = {
        "policy_kwargs": {"net_arch": [16]},
        "batch_size": 16,
        "buffer_size": 1000,
        "replay_buffer_class": HerReplayBuffer,
    }
    return algorithm("MultiInputPolicy", env, **tiny, **options)


def box(size, dtype=np.float32):
    return spaces.Box(-np.inf, np.inf, (size,), dtype)


class Line(gymnasium.Env):
    """Walk on a line for `length` steps; rewards say which two goals they were computed from."""

    observation_space = spaces.Dict(observation=box(2), achieved_goal=box(1), desired_goal=box(1))
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    length = 5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.goal, self.step_number = np.float32(0), self.np_random.normal(size=1).astype(np.float32), 0
        return self.show(), {}

    def step(self, action):
        self.at, self.step_number = self.at + action[0], self.step_number + 1
        seen = self.show()
        reward = float(self.compute_reward(seen["achieved_goal"][None], self.goal[None], {})[0])
        return seen, reward, False, self.step_number == self.length, {"is_success": False}

    def show(self):
        seen = np.array([self.at, self.step_number], np.float32)
        return {"observation": seen, "achieved_goal": seen[:1].copy(), "desired_goal": self.goal}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(achieved_goal - desired_goal)[:, 0]


class Twice(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return 2 * super().compute_reward(achieved_goal, desired_goal, info)


def venv(n_envs=1, kind=Line):
    return DummyVecEnv([kind] * n_envs)


def make(size=100, n_envs=1, kind=HerReplayBuffer, env=Line, **options):
    return kind(size, env.observation_space, env.action_space, venv(n_envs, env), device="cpu", n_envs=n_envs, **options)


def seen(numbers, ts):
    """What environments show after t steps of episode `number`: (number, t); achieved 1000 number + t; asked -number."""
    number, t = np.asarray(numbers, np.float32), np.asarray(ts, np.float32)
    return {
        "observation": np.stack([number, t], axis=1),
        "achieved_goal": (1000 * number + t)[:, None],
        "desired_goal": -number[:, None],
    }


def play(buffers, numbers, ts, done, terminated=False, **info):
    """One step of every environment: step t acts t and is paid t / 8; an end is a time limit unless it terminates."""
    t = np.asarray(ts, np.float32)
    done = np.broadcast_to(done, t.shape)
    for buffer in buffers if isinstance(buffers, list) else [buffers]:
        infos = [{"TimeLimit.truncated": bool(end) and not terminated, **info} for end in done]
        buffer.add(seen(numbers, ts), seen(numbers, t + 1), t[:, None], t / 8, done.copy(), infos)


def play_episode(buffer, number, steps, terminated=False, is_ended=True):
    for t in range(steps):
        play(buffer, [number], [t], is_ended and t == steps - 1, terminated)


def play_unequal(buffers, n_envs, n_episodes, longest=20, seed=0):
    """Random episodes of 1 to `longest` steps side by side; every third ends by itself."""
    rng = np.random.default_rng(seed)
    number, t = np.arange(n_envs), np.zeros(n_envs, int)
    length, started = rng.integers(1, longest + 1, n_envs), n_envs
    while started < n_episodes:
        done = t + 1 == length
        infos = [{"TimeLimit.truncated": bool(d) and n % 3 > 0} for d, n in zip(done, number, strict=True)]
        step = np.float32(t)
        for buffer in buffers:
            buffer.add(seen(number, t), seen(number, t + 1), step[:, None], step / 8, done.copy(), infos)
        t = np.where(done, 0, t + 1)
        for i in np.flatnonzero(done):
            number[i], length[i], started = started, rng.integers(1, longest + 1), started + 1


def numbers_of(samples):
    """(number, t) of what each sample saw, its goal, and whether that was put in hindsight."""
    number, t = samples.observations["observation"].numpy().T
    goal = samples.observations["desired_goal"].numpy()[:, 0]
    return number.astype(int), t.astype(int), goal, goal >= 0


def check_rewards(samples):
    """A relabelled reward is that of the new goal; others, and the ends, stay as paid."""
    number, t, goal, is_relabelled = numbers_of(samples)
    achieved = samples.next_observations["achieved_goal"].numpy()[:, 0]
    expected = np.where(is_relabelled, -np.abs(achieved - goal), t / 8)
    assert samples.rewards.numpy()[:, 0].tolist() == expected.astype(np.float32).tolist()
    assert achieved.tolist() == (1000 * number + t + 1).tolist()
    assert samples.next_observations["desired_goal"].tolist() == samples.observations["desired_goal"].tolist()


def arrays_of(buffer):
    arrays = {name: getattr(buffer, name) for name in ARRAYS}
    arrays |= {f"observations {key}": value for key, value in buffer.observations.items()}
    return arrays | {f"next_observations {key}": value for key, value in buffer.next_observations.items()}


def same(samples, others):
    parts = [(samples.observations, others.observations), (samples.next_observations, others.next_observations)]
    pairs = [(a[key], b[key]) for a, b in parts for key in a]
    pairs += [(getattr(samples, name), getattr(others, name)) for name in ("actions", "rewards", "dones")]
    return all(torch.equal(a, b) for a, b in pairs)


# -- as SB3's ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_draws_goals_as_often_and_as_far_ahead_as_sb3_does(strategy):
    """200 episodes of unequal lengths, 3 environments, a tiny ring; over the transitions that both still hold."""
    np.random.seed(1)  # noqa: NPY002 - SB3 draws from the global state
    ours, theirs = (
        make(180, 3, kind, goal_selection_strategy=strategy) for kind in (HerReplayBuffer, TheirHerReplayBuffer)
    )
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


@pytest.mark.parametrize(("size", "handle_timeouts"), [(6000, True), (6000, False), (90, True)])
def test_the_arrays_are_those_of_sb3(size, handle_timeouts):
    for n_episodes in (4, 30, 60):
        kinds = (HerReplayBuffer, TheirHerReplayBuffer)
        ours, theirs = (make(size, 3, kind, handle_timeout_termination=handle_timeouts) for kind in kinds)
        play_unequal([ours, theirs], 3, n_episodes, seed=n_episodes)
        assert (ours.pos, ours.full, ours.size()) == (theirs.pos, theirs.full, theirs.size())
        assert ours._current_ep_start.tolist() == theirs._current_ep_start.tolist()
        mine, others = arrays_of(ours), arrays_of(theirs)
        kept = mine["next_observations observation"][..., 1] > 0  # the steps that are still held
        assert kept.sum() > min(size, 3 * n_episodes) / 2
        if ours.full:  # SB3 gives an episode up once its first step is overwritten, ours may still be whole
            mine["ep_length"] = np.where(others["ep_length"] > 0, mine["ep_length"], 0)
        for name, array in mine.items():
            assert array.shape == others[name].shape
            assert array.dtype == others[name].dtype
            assert (array[kept] == others[name][kept]).all(), name
            assert not array[~kept].any(), name


def test_the_arrays_are_read_only():
    buffer = make()
    play_episode(buffer, 1, 3)
    with pytest.raises(ValueError, match="read-only"):
        buffer.dones[0] = 1
    with pytest.raises(AttributeError):
        buffer.pos = 3


def test_truncating_closes_open_episodes_as_cut_off():
    buffer = make(100, 2)
    for t in range(3):
        play(buffer, [1, 2], [t, t], [t == 2, False])
    assert buffer.ep_length[:3].tolist() == [[3, 0]] * 3
    with pytest.warns(UserWarning, match="The last trajectory in the replay buffer will be truncated"):
        buffer.truncate_last_trajectory()
    assert buffer.ep_length[:3].tolist() == [[3, 3]] * 3
    assert (buffer.dones[2].tolist(), buffer.timeouts[2].tolist()) == ([1, 1], [1, 1])
    assert buffer._current_ep_start.tolist() == [3, 3]
    buffer.truncate_last_trajectory()  # nothing is open: no warning


def test_ends_and_time_limits():
    buffer = make(n_sampled_goal=0)
    play_episode(buffer, 1, 2, terminated=True)
    play_episode(buffer, 2, 2)
    samples = buffer.sample(200)
    number, t, *_ = numbers_of(samples)
    assert (samples.dones.numpy()[:, 0] == ((number == 1) & (t == 1))).all()


def test_copies_are_without_environment_and_go_on_to_the_same_samples():
    buffer = make(100, 2)
    play_unequal([buffer], 2, 20)
    copies = [copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))]
    expected = buffer.sample(64)
    for each in copies:
        assert each.env is None
        each.set_env(venv(2))
        assert same(each.sample(64), expected)
        assert all((array == arrays_of(buffer)[name]).all() for name, array in arrays_of(each).items())


def test_a_loaded_buffer_goes_on_with_its_open_episode(tmp_path):
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


def test_normalised_samples():
    env = VecNormalize(venv(), clip_reward=3.0)
    for _ in range(3):
        env.reset()
        for _ in range(5):
            env.step([np.ones(1, np.float32)])
    buffer = make(n_sampled_goal=4)
    play_episode(buffer, 1, 5)
    twin = copy.deepcopy(buffer)
    twin.set_env(venv())
    plain, normalised = twin.sample(50), buffer.sample(50, env=env)
    for theirs, ours in (
        (plain.observations, normalised.observations),
        (plain.next_observations, normalised.next_observations),
    ):
        expected = env.normalize_obs({key: value.numpy() for key, value in theirs.items()})
        assert all((ours[key].numpy() == expected[key]).all() for key in expected)
    assert (normalised.rewards.numpy() == env.normalize_reward(plain.rewards.numpy())).all()
    assert normalised.rewards.dtype == torch.float32


@pytest.mark.parametrize("space", ["discrete_obs_space", "image_obs_space"])
def test_other_spaces(space):
    env = DummyVecEnv([lambda: BitFlippingEnv(4, **{space: True})] * 2)
    ours, theirs = (
        kind(100, env.observation_space, env.action_space, env, "cpu", 2)
        for kind in (HerReplayBuffer, TheirHerReplayBuffer)
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


def test_floats_are_float32_unless_asked_for():
    wide = spaces.Dict(observation=box(2, np.float64), achieved_goal=box(1, np.float64), desired_goal=box(1, np.float64))
    for options, dtype in (({}, torch.float32), ({"dtype": "float64"}, torch.float64)):
        buffer = HerReplayBuffer(100, wide, Line.action_space, venv(), **options)
        play_episode(buffer, 1, 3)
        samples = buffer.sample(4)
        assert {value.dtype for value in samples.observations.values()} == {dtype}
        assert (samples.rewards.dtype, samples.actions.dtype) == (torch.float32, torch.float32)


# -- what documents show -------------------------------------------------------------------------------------------


def test_names_that_documents_show():
    assert [strategy.value for strategy in GoalSelectionStrategy] == ["future", "final", "episode", "random"]
    assert KEY_TO_GOAL_STRATEGY["final"] is GoalSelectionStrategy.FINAL
    assert set(HER_OBSERVATION_SPACE.spaces) == {"observation", "achieved_goal", "desired_goal"}
    assert (REQUIRED_INFO_KEYS, OPTIONAL_INFO_KEYS) == (["is_success"], ["TimeLimit.truncated"])


@pytest.mark.parametrize("given", ["final", "FINAL", GoalSelectionStrategy.FINAL, TheirStrategy.FINAL])
def test_strategies_by_name_and_by_either_enum(given):
    buffer = make(goal_selection_strategy=given, n_sampled_goal=9)
    assert buffer.goal_selection_strategy is GoalSelectionStrategy.FINAL
    assert (buffer.n_sampled_goal, buffer.her_ratio) == (9, 0.9)
    play_episode(buffer, 1, 5)
    _, _, goal, is_relabelled = numbers_of(buffer.sample(50))
    assert set(goal[is_relabelled]) == {1005}


def test_random_draws_from_everything():
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
    with pytest.warns(UserWarning, match="env_info never had a meaning"):
        buffer = HerReplayBuffer(100, *spaces_of, {"reward": "sparse"}, "cpu", 1, wrapped_env=Twice(), max_episode_length=3)
    play_episode(buffer, 1, 7)
    assert buffer.ep_length[:7, 0].tolist() == [3, 3, 3, 3, 3, 3, 1]
    samples = buffer.sample(100)
    _, t, goal, is_relabelled = numbers_of(samples)
    expected = -2 * np.abs(1000 + t + 1 - goal)
    assert (samples.rewards.numpy()[is_relabelled, 0] == expected[is_relabelled]).all()


def test_the_wrapped_environment_judges_where_sample_is_called_without_one():
    buffer = make(wrapped_env=Twice())
    play_episode(buffer, 1, 3)
    judged = []
    for env in (None, VecNormalize(venv(), norm_obs=False, norm_reward=False)):
        samples = buffer.sample(200, env=env)
        _, t, goal, is_relabelled = numbers_of(samples)
        wrong = is_relabelled & (1000 + t + 1 != goal)
        judged.append(set(samples.rewards.numpy()[wrong, 0] / np.abs(1000 + t + 1 - goal)[wrong]))
    assert judged == [{-2.0}, {-1.0}]


@pytest.mark.parametrize("strategy", ["future", "final", "episode", "random"])
def test_goals_that_are_drawn_once_when_an_episode_ends(strategy):
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


def test_goals_drawn_at_the_end_are_judged_with_the_infos():
    buffer = make(12, env=Tolled, copy_info_dict=True, online_sampling=False, n_sampled_goal=99, max_episode_length=4)
    for t in range(4):
        play(buffer, [1], [t], t == 3, toll=10 + t)
    buffer._store_episode([(*step, {"toll": 20 + t}) for t, step in enumerate(transitions(2, 4))], False)
    samples = buffer.sample(200)
    number, t, _, is_relabelled = numbers_of(samples)
    assert (samples.rewards.numpy()[is_relabelled, 0] == (10 * number + t)[is_relabelled]).all()


@pytest.mark.parametrize("online_sampling", [True, False])
def test_a_refused_step_leaves_the_buffer_in_order(online_sampling):
    buffer = make(100, 2, online_sampling=online_sampling)
    for t in range(3):
        play(buffer, [1, 2], [t, t], [t == 1, False])
    bad = seen([5, 2], [0, 3]), {**seen([5, 2], [1, 4]), "observation": np.full((2, 2), np.nan)}
    with pytest.raises(NonFiniteError):
        buffer.add(*bad, np.zeros((2, 1)), np.zeros(2), np.zeros(2, bool), [{}, {}])
    if not online_sampling:
        buffer.set_env(None)
        with pytest.raises(GoalEnvError):  # environment 0 was reset, and the end of 1 cannot be judged
            play(buffer, [5, 2], [0, 3], [False, True])
        buffer.set_env(venv(2))
    play(buffer, [5, 2], [0, 3], [False, True])
    assert buffer.ep_length[:4].tolist() == [[2, 4], [2, 4], [1, 4], [0, 4]]
    check_rewards(buffer.sample(50))


def transitions(number, steps):
    one = [{key: value[0] for key, value in seen([number], [t]).items()} for t in range(steps + 1)]
    return [(one[t], np.float32([t]), t / 8, one[t + 1], t == steps - 1) for t in range(steps)]


@pytest.mark.parametrize("n_envs", [1, 2])
def test_whole_episodes(n_envs):
    buffer = make(20 * n_envs, n_envs)
    play(buffer, range(1, n_envs + 1), [0] * n_envs, False)
    buffer._store_episode(transitions(7, 4), True)
    samples = buffer.sample(300)
    check_rewards(samples)
    number, t, *_ = numbers_of(samples)
    assert set(zip(number, t, strict=True)) - {(1, 0)} == {(7, 0), (7, 1), (7, 2), (7, 3)}
    assert (samples.dones.numpy()[:, 0] == ((number == 7) & (t == 3))).all()
    if n_envs == 1:  # the open episode was closed; the whole one stands behind it
        assert buffer.ep_length[:6, 0].tolist() == [1, 4, 4, 4, 4, 0]
    else:  # the arrays have no place for it
        assert buffer.ep_length.sum() == 0
    play(buffer, range(1, n_envs + 1), [1] * n_envs, True)
    assert buffer.pos == (6 if n_envs == 1 else 2)


def test_storing_an_episode_without_transitions_ends_the_open_one():
    buffer = make()
    play_episode(buffer, 1, 2, is_ended=False)
    buffer.store_episode()
    assert buffer.timeouts[:3, 0].tolist() == [0, 1, 0]


def test_goals_of_an_episode_by_hand():
    expected = {"future": {3003, 3004}, "final": {3004}, "episode": {3001, 3002, 3003, 3004}, "random": {1001, 1002}}
    for strategy, goals in expected.items():
        buffer = make(goal_selection_strategy=strategy)
        play_episode(buffer, 1, 2)
        found = buffer._sample_goals(transitions(3, 4), 2, 60)
        assert found.shape == (60, 1)
        assert set(found[:, 0]) == goals
    with pytest.raises(InputError, match="steps 0 to 3"):
        buffer.sample_goals(transitions(3, 4), 4, 1)


class Tolled(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        assert len(info) == len(desired_goal)
        return np.array([each["toll"] for each in info], np.float32)


def test_infos_go_with_their_steps_and_leave_with_them():
    buffer = make(12, 1, env=Tolled, copy_info_dict=True, n_sampled_goal=99, max_episode_length=4)
    for episode in range(1, 6):
        for t in range(4):
            info = {"toll": 10 * episode + t}
            play(buffer, [episode], [t], t == 3, **info)
            info["toll"] = -1
    samples = buffer.sample(300)
    number, t, _, is_relabelled = numbers_of(samples)
    assert set(number) == {3, 4, 5}
    assert (samples.rewards.numpy()[is_relabelled, 0] == (10 * number + t)[is_relabelled]).all()
    assert len(buffer._judge.infos) == 12
    loaded = pickle.loads(pickle.dumps(buffer))
    loaded.set_env(venv(1, Tolled))
    assert same(loaded.sample(50), buffer.sample(50))
    with pytest.raises(InputError, match="save_replay_buffer"):
        buffer.save_transitions("nowhere")


def test_what_cannot_be_is_refused():
    more = spaces.Dict({**Line.observation_space.spaces, "camera": box(3)})
    with pytest.raises(GoalEnvError, match="camera"):
        HerReplayBuffer(100, more, Line.action_space, venv())
    with pytest.raises(OptionError, match="optimize_memory_usage"):
        make(optimize_memory_usage=True)
    with pytest.raises(OptionError, match="online_sampling"):
        make(online_sampling=False, n_steps=2)
    with pytest.raises(OptionError, match="max_episode_length is 0"):
        make(max_episode_length=0)
    with pytest.raises(OptionError, match="copy_info_dict"):
        make(copy_info_dict=venv())
    buffer = HerReplayBuffer(100, Line.observation_space, Line.action_space)
    play_episode(buffer, 1, 3)
    with pytest.raises(GoalEnvError, match="set_env"):
        buffer.sample(8)


@pytest.mark.parametrize(("rule", "ends"), [(None, {2}), ("keep", {2}), ("never", set()), ("success", {0, 1, 2})])
def test_whether_new_goals_end_episodes(rule, ends):
    buffer = make(n_sampled_goal=10**6, goal_selection_strategy="future", relabel_terminated=rule)
    play_episode(buffer, 1, 3, terminated=True)
    samples = buffer.sample(300)
    _, t, goal, _ = numbers_of(samples)
    is_end = samples.dones.numpy()[:, 0] > 0
    assert set(t[is_end]) == ends
    if rule == "success":
        assert (is_end == (goal == 1000 + t + 1)).all()


# -- right where SB3 2.9.2 is wrong --------------------------------------------------------------------------------


def test_fault_1_an_episode_that_was_left_is_not_glued_to_the_next():
    buffer = make()
    play_episode(buffer, 1, 3, is_ended=False)
    play_episode(buffer, 2, 5)  # as the reset at the start of a second `learn` makes it
    assert buffer.ep_length[:9, 0].tolist() == [3, 3, 3, 5, 5, 5, 5, 5, 0]
    number, _, goal, is_relabelled = numbers_of(buffer.sample(300))
    assert (goal // 1000 == number)[is_relabelled].all()
    model = learner(SAC, venv(), learning_starts=100)
    model.learn(8).learn(8)
    assert model.replay_buffer.ep_length.max() == Line.length


def test_fault_2_the_environment_that_judges_can_be_changed():
    buffer = make(n_sampled_goal=10**6)
    play_episode(buffer, 1, 3)
    for kind, factor in ((Twice, 2), (Line, 1)):
        buffer.set_env(venv(1, kind))
        samples = buffer.sample(50)
        _, t, goal, _ = numbers_of(samples)
        assert (samples.rewards.numpy()[:, 0] == -factor * np.abs(1000 + t + 1 - goal)).all()


def test_fault_3_a_reset_forgets_everything():
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


def test_fault_5_before_an_episode_has_ended_open_ones_are_sampled():
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


def test_fault_6_a_reward_for_single_goals_is_asked_goal_by_goal():
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
    paid = [sum(0.5**i * (start + i) / 8 for i in range(min(3, 4 - start))) for start in range(4)]
    assert samples.rewards.numpy()[:, 0].tolist() == np.float32([paid[each] for each in t]).tolist()
    assert (samples.next_observations["observation"][:, 1].numpy() == np.minimum(t + 3, 4)).all()
    is_end = (number == 2) & (t >= 1)
    assert (samples.dones.numpy()[:, 0] == is_end).all()
    expected = np.where(is_end, 0, 0.5 ** np.minimum(3, 4 - t))
    assert samples.discounts.numpy()[:, 0].tolist() == expected.tolist()
    options = {"n_steps": 3, "gamma": 0.99}
    learner(SAC, venv(), replay_buffer_kwargs=options, learning_starts=6).learn(12)


def test_fault_7_normalised_n_step_rewards_are_clipped_step_by_step():
    env = VecNormalize(venv(), norm_obs=False, clip_reward=1.0)
    buffer = make(n_steps=4, gamma=1.0, n_sampled_goal=0)
    for t in range(4):
        buffer.add(seen([1], [t]), seen([1], [t + 1]), np.zeros((1, 1)), np.ones(1), np.array([t == 3]), [{}])
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
    with pytest.raises(OptionError, match="desired_goal alone"):
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
    with pytest.raises(FileError, match="no saved"):
        bare.load_transitions(tmp_path / "elsewhere")


def test_fault_9_a_policy_needs_no_environment(tmp_path):
    model = learner(SAC, venv(), seed=0)
    model.save(tmp_path / "model")
    alone = SAC.load(tmp_path / "model", replay_buffer_class=None, replay_buffer_kwargs={}, buffer_size=1)
    observation = seen([0], [0])
    actions = [each.predict(observation, deterministic=True)[0].tolist() for each in (model, alone)]
    assert actions[0] == actions[1]
