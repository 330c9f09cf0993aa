"""Making goal environments, reading their task, and whether their resets can be trusted."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from line_env import Line, Scalar

from hindsight.envs.goal_env import make_goal_env, read_spec, resets_exactly, reward_function, time_limit
from hindsight.envs.point_reach import PointReach
from hindsight.errors import GoalEnvError, MissingExtraError, OptionError


def test_an_id_a_class_a_function_and_an_object_all_make_an_environment():
    env = Line()
    assert make_goal_env(env) is env
    assert make_goal_env("PointReach-v0", env_options={"max_steps": 7}).unwrapped.max_steps == 7
    assert make_goal_env(PointReach, "rgb_array", {"max_steps": 7}).render_mode == "rgb_array"
    assert isinstance(make_goal_env(lambda: Line()), Line)
    assert make_goal_env(Line(render_mode="rgb_array"), "rgb_array").render().shape == (8, 8, 3)


@pytest.mark.parametrize(
    ("source", "render_mode", "options", "message"),
    [
        (Line(), None, {"shift": 1.0}, "cannot be given to an environment that exists"),
        (Line(), "rgb_array", None, "render_mode=None where 'rgb_array' is wanted"),
        (lambda: Line(), "rgb_array", None, "a parameter render_mode"),
        (7, None, None, "got 7"),
    ],
)
def test_what_cannot_be_had_is_refused(source, render_mode, options, message):
    with pytest.raises(OptionError, match=message):
        make_goal_env(source, render_mode, options)


def spaced(**parts):
    env = Line()
    env.observation_space = spaces.Dict({**env.observation_space.spaces, **parts})
    return env


def without_keys():
    env = Line()
    env.observation_space = spaces.Dict({"observation": env.observation_space["observation"]})
    return env


def without_reward():
    env = Line()
    env.compute_reward = None
    return env


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: gymnasium.make("CartPole-v1"), "CartPole-v1 is no goal environment.*Dict space"),
        (without_keys, "achieved_goal, desired_goal are missing"),
        (without_reward, "no compute_reward"),
        (
            lambda: spaced(desired_goal=spaces.Dict({"kettle": spaces.Discrete(2)})),
            "desired_goal of Line is itself a Dict.*spaces.flatten",
        ),
        (lambda: spaced(achieved_goal=spaces.Tuple([spaces.Discrete(2)])), "achieved_goal of Line is itself a Tuple"),
        (lambda: spaced(desired_goal=spaces.Box(-1, 1, (3,))), "they must be the same"),
        (lambda: "no environment", "made a str"),
    ],
)
def test_what_is_no_goal_environment_is_refused(source, message):
    with pytest.raises(GoalEnvError, match=message):
        make_goal_env(source)


def test_drawing_that_fails_says_so_at_the_door(monkeypatch):
    class Blind(Line):
        def render(self):
            raise RuntimeError("no OpenGL")

    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.delitem(sys.modules, "mujoco")
    with pytest.raises(GoalEnvError, match=r"Blind cannot draw .*no OpenGL"):
        make_goal_env(Blind, "rgb_array")
    with pytest.raises(GoalEnvError, match=r"cannot draw .*gives None"):
        make_goal_env(type("Empty", (Line,), {"render": lambda self: None}), "rgb_array")
    monkeypatch.setitem(sys.modules, "mujoco", sys)
    with pytest.raises(MissingExtraError, match="apt-get install -y libegl1 libgl1-mesa-dri"):
        make_goal_env(Blind, "rgb_array")


def test_drawing_once_leaves_the_random_numbers_alone():
    env, other = Line(render_mode="rgb_array"), Line()
    env.reset(seed=3)
    other.reset(seed=3)
    make_goal_env(env, "rgb_array")
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])


def test_the_task_is_read():
    spec = read_spec(gymnasium.make("PointReach-v0", max_steps=33))
    assert (spec.observation.shape, spec.goal.shape, spec.action.shape) == ((4,), (2,), (2,))
    assert (spec.goal.dtype, spec.goal.low, spec.action.high) == ("float32", (-1.0,), (1.0,))
    assert (spec.max_episode_steps, spec.reward_low, spec.reward_high, spec.env_id) == (33, -1, 0, "PointReach-v0")
    assert read_spec(Line()).env_id is None


def rewarding(compute):
    return type("Changed", (Line,), {"compute_reward": lambda self, a, d, info: compute(np.linalg.norm(a - d, axis=-1))})()


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda d: (d < 0.5) * 1.0, (0, 1)),
        (lambda d: np.where(d < 0.5, 10.0, -0.5), (-0.5, 10)),
        (lambda d: -d, (-np.inf, np.inf)),
        (lambda d: np.exp(-d), (-np.inf, np.inf)),
        (lambda d: 0 * d, (-np.inf, np.inf)),
        (lambda d: np.select([d < 0.5, d < 50], [0.0, -1.0], -5.0), (-np.inf, np.inf)),
        (lambda d: 1 / 0, (-np.inf, np.inf)),
    ],
    ids=["0/1", "-0.5/10", "dense", "exponential", "constant", "three values", "fails"],
)
def test_the_reward_range_is_known_where_two_values_are_all_there_is(compute, expected):
    spec = read_spec(rewarding(compute))
    assert (spec.reward_low, spec.reward_high) == expected


def test_a_reward_that_refuses_invented_goals_has_an_unknown_range():
    class Picky(Line):
        def compute_reward(self, achieved_goal, desired_goal, info):
            seen = [*Line.reset(Line(), seed=0)[0].values(), self.observe()["achieved_goal"]]
            assert all(any(np.array_equal(a, s) for s in seen) for a in np.atleast_2d(achieved_goal))
            return -np.linalg.norm(achieved_goal - desired_goal, axis=-1)

    assert reward_function(env := Picky()) == env.compute_reward
    assert read_spec(env).reward_low == -np.inf


def test_reading_the_task_warns_of_nothing_and_leaves_the_random_numbers_alone():
    env, other = Scalar(), Scalar()
    env.reset(seed=3)
    other.reset(seed=3)
    assert read_spec(env).reward_low == -1
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])


def test_whole_number_goals_are_probed_with_goals_that_can_occur():
    seen = []

    class Bits(Line):
        def __init__(self):
            super().__init__()
            bits = spaces.MultiBinary(6)
            self.observation_space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), bits))

        def observe(self):
            return {
                "observation": np.zeros(6, np.int8),
                "achieved_goal": np.zeros(6, np.int8),
                "desired_goal": np.ones(6, np.int8),
            }

        def info(self, observation):
            return {}

        def pay(self, observation, info):
            return -1.0

        def compute_reward(self, achieved_goal, desired_goal, info):
            seen.append(np.unique(achieved_goal).tolist())
            return (achieved_goal == desired_goal).all(-1) - 1.0

    spec = read_spec(Bits())
    assert (spec.reward_low, spec.reward_high) == (-1, 0)
    assert all(set(values) <= {0, 1} for values in seen)


class HighwayLike(Line):
    """Counts seconds of simulated time."""

    max_steps = None
    config = {"duration": 20, "policy_frequency": 5}  # noqa: RUF012


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (Line(), 10),
        (gymnasium.wrappers.TimeLimit(Line(), 7), 7),
        (gymnasium.wrappers.TimeLimit(Line(), 70), 10),
        (HighwayLike(), 100),
        (gymnasium.make("CartPole-v1"), 500),
        (type("Endless", (Line,), {"max_steps": None})(), None),
    ],
)
def test_the_time_limit_is_the_smallest_that_is_named(env, expected):
    assert time_limit(env) == expected


class Forgetful(Line):
    """A reset leaves a trace of the episode before, as panda-gym's contacts do."""

    used = 0.0

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.place += self.used
        return self.observe(), info

    def step(self, action):
        self.used = 1e-6
        return super().step(action)


def test_resets_are_exact_when_a_used_environment_equals_a_fresh_one_bit_by_bit():
    assert resets_exactly("PointReach-v0")
    assert resets_exactly(Line, {"shift": 1.0})
    assert not resets_exactly(Forgetful)
