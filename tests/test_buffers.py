"""make_buffer: what it reads from an environment, and that the stored episodes are those that were played."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from hindsight_rl import ReplayOptions, make_buffer
from hindsight_rl.errors import GoalEnvError, OptionError, UnknownNameError

MODES = list(AutoresetMode)


class Line(gym.Env):
    """Walk along a line by steps of 1. The goal is 2. Rewards are 0 at the goal, else -1. There is no termination."""

    observation_space = spaces.Dict(
        {key: spaces.Box(-99, 99, (1,)) for key in ("observation", "achieved_goal", "desired_goal")}
    )
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self):
        self.position = 0.0

    def seen(self):
        here, goal = np.float32([self.position]), np.float32([2])
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": goal}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.abs(achieved_goal - desired_goal)[..., 0] > 0.5).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = 0.0
        return self.seen(), {}

    def step(self, action):
        self.position += int(action)
        return self.seen(), float(self.compute_reward(np.float32([self.position]), np.float32([2]), {})), False, False, {}


class EndingLine(Line):
    """The same, and an episode terminates at the goal."""

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return np.abs(achieved_goal - desired_goal)[..., 0] <= 0.5

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, reward == 0, truncated, info


class EndingSilently(Line):
    """The same without a function that says so. Its goal can be set."""

    goal = np.float32([2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = np.float32([self.np_random.integers(1, 4)])
        return self.seen(), {}

    def seen(self):
        return super().seen() | {"desired_goal": self.goal.copy()}

    def step(self, action):
        self.position += int(action)
        reward = float(self.compute_reward(np.float32([self.position]), self.goal, {}))
        return self.seen(), reward, reward == 0, False, {}


def limited(steps=4, make=Line):
    """A time limit below another wrapper."""
    return gym.wrappers.TransformAction(gym.wrappers.TimeLimit(make(), steps), lambda action: action, None)


def play_vector(env, buffer, calls, mode):
    observation, _ = env.reset(seed=0)
    for _ in range(calls):
        action = np.ones(env.num_envs, np.int64)
        after, reward, terminated, truncated, info = env.step(action)
        buffer.add(observation, action, reward, after, terminated, truncated, info)
        observation, ends = after, terminated | truncated
        if mode is AutoresetMode.DISABLED and ends.any():
            observation, _ = env.reset(options={"reset_mask": ends})


def positions(buffer):
    """The positions of each finished episode."""
    timeline = buffer.timeline
    starts = np.flatnonzero((timeline.steps_done == 0) & (timeline.steps_left > 0))
    return [timeline.rows["observation"][row : row + timeline.steps_left[row] + 1, 0].tolist() for row in starts]


def test_a_single_environment():
    env = limited()
    buffer = make_buffer(env, 100, ReplayOptions(n_sampled_goal=1), seed=3)
    assert (buffer.open_episodes.n_envs, buffer.open_episodes.autoreset) == (1, "disabled")
    assert (buffer.timeline.capacity, buffer.timeline.episode_length, buffer.her_probability) == (100, 4, 0.5)
    for _ in range(2):
        observation, _ = env.reset()
        is_over = False
        while not is_over:
            after, reward, terminated, truncated, info = env.step(1)
            buffer.add(observation, 1, reward, after, terminated, truncated, info)
            observation, is_over = after, terminated or truncated
    assert positions(buffer) == [[0, 1, 2, 3, 4]] * 2
    batch = buffer.sample(200)
    assert (batch.reward == np.where(batch.next_achieved_goal == batch.goal, 0, -1)[:, 0]).all()
    assert not batch.terminated.any()


def test_options_and_arguments_are_passed_on():
    buffer = make_buffer(
        Line(), 50, ReplayOptions(n_steps=2, dtype="float64"), discount=0.5, episode_length=7, success_reward=3.0
    )
    data = buffer.state_dict()[1]
    expected = {"discount": 0.5, "episode_length": 7, "dtype": "float64", "success_reward": 3.0, "capacity": 50}
    assert {name: data[name] for name in expected} == expected
    assert buffer.options.n_steps == 2
    data = make_buffer(Line(), 50).state_dict()[1]
    assert (data["failure_reward"], data["success_reward"], data["reward_scale"]) == (-1.0, 0.0, None)
    assert make_buffer(Line(), 50).timeline.episode_length is None


def test_the_two_rewards_are_read_from_the_environment():
    class Percent(Line):
        def compute_reward(self, achieved_goal, desired_goal, info):
            return 100 * (1 + super().compute_reward(achieved_goal, desired_goal, info))

    data = make_buffer(limited(make=Percent), 50).state_dict()[1]
    assert (data["failure_reward"], data["success_reward"]) == (0.0, 100.0)


def test_relabelled_successes_end_an_episode_if_real_ones_do():
    assert make_buffer(limited(make=EndingSilently), 50).options.relabel_terminated == "success"
    assert make_buffer(limited(make=EndingLine), 50).options.relabel_terminated is None  # compute_terminated says it
    assert make_buffer(limited(), 50).options.relabel_terminated is None
    given = ReplayOptions(relabel_terminated="never")
    assert make_buffer(limited(make=EndingSilently), 50, given).options.relabel_terminated == "never"


@pytest.mark.parametrize("mode", MODES)
def test_a_sync_vector_environment_in_every_autoreset_mode(mode):
    env = SyncVectorEnv([limited, lambda: limited(3)], autoreset_mode=mode)
    buffer = make_buffer(env, 100)
    play_vector(env, buffer, 11, mode)
    env.close()
    assert {tuple(path) for path in positions(buffer)} == {(0, 1, 2, 3, 4), (0, 1, 2, 3)}
    assert buffer.num_episodes >= 4


@pytest.mark.parametrize("mode", MODES)
def test_an_async_vector_environment_in_every_autoreset_mode(mode):
    env = AsyncVectorEnv([limited, limited], autoreset_mode=mode)
    buffer = make_buffer(env, 100)
    play_vector(env, buffer, 9, mode)
    env.close()
    assert set(map(tuple, positions(buffer))) == {(0, 1, 2, 3, 4)}


def test_a_vector_environment_inside_a_wrapper():
    env = gym.wrappers.vector.RecordEpisodeStatistics(SyncVectorEnv([limited] * 2, autoreset_mode=AutoresetMode.SAME_STEP))
    buffer = make_buffer(env, 100)
    assert (buffer.open_episodes.n_envs, buffer.open_episodes.autoreset) == (2, "same_step")
    assert buffer.timeline.episode_length == 4


def test_the_autoreset_wrapper_of_a_single_environment():
    env = gym.wrappers.Autoreset(limited())
    assert make_buffer(env, 100).open_episodes.autoreset == "next_step"


def test_compute_terminated_of_the_environment_is_used():
    env = limited(make=EndingLine)
    buffer = make_buffer(env, 100)
    observation, _ = env.reset()
    for _ in range(2):
        after, reward, terminated, truncated, info = env.step(1)
        buffer.add(observation, 1, reward, after, terminated, truncated, info)
        observation = after
    assert positions(buffer) == [[0, 1, 2]]
    batch = buffer.sample(100)
    assert (batch.terminated == (batch.next_achieved_goal == batch.goal)[:, 0]).all()


def test_errors_of_the_check_are_warnings():
    class Moved(Line):
        """The reward of a step is another one than that of compute_reward."""

        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, reward - 5, *rest

    with pytest.warns(UserWarning, match="check of Moved: reward values: .* Let step return what compute_reward returns"):
        make_buffer(limited(make=Moved), 50, ReplayOptions(relabel_terminated="keep"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the difference is the extra reward
        make_buffer(limited(make=Moved), 50, ReplayOptions(relabel_terminated="keep", extra_reward=True))


def test_an_unseen_success_is_a_warning_unless_the_option_is_given():
    class Far(Line):
        """The goal is out of reach."""

        def seen(self):
            return super().seen() | {"desired_goal": np.float32([50])}

        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, -1.0, *rest

    with pytest.warns(UserWarning, match="does not show whether a success ends an episode.*relabel_terminated="):
        make_buffer(limited(make=Far), 50)
    make_buffer(limited(make=Far), 50, ReplayOptions(relabel_terminated="keep"))


def test_an_environment_that_was_reset_is_warned_about():
    env = gym.make("PointReach-v0")
    make_buffer(env, 50)
    with pytest.warns(UserWarning, match="PointReach-v0, which was reset before. Reset it again before the next step"):
        make_buffer(env, 50)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"gamma": 0.9}, UnknownNameError, "no option `gamma` .make_buffer.*docs/migrating.md"),
        ({"n_steps": 3}, UnknownNameError, r"Pass options=ReplayOptions\(n_steps=3\)"),
        ({"discont": 0.9}, UnknownNameError, "Did you mean 'discount'"),
        ({"options": {"n_steps": 3}}, OptionError, "`options` must be a ReplayOptions, .* got {'n_steps': 3}"),
        ({"env": "PointReach-v0"}, OptionError, "`env` must be an environment, for example gymnasium.make"),
        ({"env": Line}, OptionError, "`env` must be an environment, .* got <class"),
    ],
)
def test_other_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make_buffer(**({"env": Line(), "capacity": 100} | arguments))


def test_what_cannot_serve_is_refused():
    class Unknown(gym.vector.VectorEnv):
        num_envs = 2
        single_observation_space, single_action_space = Line.observation_space, Line.action_space

    with pytest.raises(GoalEnvError, match="finds none"):
        make_buffer(Unknown(), 100)
    env = SyncVectorEnv([limited] * 2)
    env.metadata = {}
    with pytest.raises(GoalEnvError, match="must have 'autoreset_mode'"):
        make_buffer(env, 100)
    with pytest.raises(GoalEnvError, match="Dict observation space"):
        make_buffer(gym.make("CartPole-v1"), 100)
    with pytest.raises(OptionError, match="capacity"):
        make_buffer(Line(), 0)
