"""What sets a goal, found by trying."""

import warnings

import gymnasium
import numpy as np
import pytest
from docking_env import Docking
from gymnasium import spaces
from line_env import Line

from hindsight_rl.envs.goal_setters import find_goal_setters
from hindsight_rl.envs.probe import SEEDS
from hindsight_rl.envs.small_tasks import BitFlipping, PointReach


class Task:
    """Holds the goal of an environment, in another dtype than its observation."""


class Nested(Line):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task = self.__dict__.get("task") or Task()
        self.task.target = self.goal.astype(np.float64)
        return self.observe(), {}

    def observe(self):
        target = self.task.target.astype(np.float32) if hasattr(self, "task") else self.goal
        return {**super().observe(), "desired_goal": target}


class Twice(Nested):
    """It shows one copy of its goal, and lets another one decide."""

    def observe(self):
        return {**super().observe(), "desired_goal": self.goal}

    def reward(self, observation, info):
        return float(self.compute_reward(observation["achieved_goal"], self.task.target, info))


class Rounded(Line):
    """It declares float64, and shows its goal rounded to float32."""

    def __init__(self):
        super().__init__()
        goal = spaces.Box(-100, 100, (2,), np.float64)
        self.observation_space = spaces.Dict({**self.observation_space.spaces, "achieved_goal": goal, "desired_goal": goal})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = np.full(2, self.np_random.uniform(-3, 3))
        return self.observe(), {}

    def observe(self):
        return {**super().observe(), "desired_goal": self.goal.astype(np.float32).astype(np.float64)}


class AsTuple(Line):
    """Its goal is a tuple."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = tuple(map(float, self.goal))
        return self.observe(), {}

    def observe(self):
        here = np.full(2, self.place, np.float32)
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": np.array(self.goal, np.float32)}


class OneRow(Line):
    """Its goal is the only row of a table."""

    @property
    def goal(self):
        return self.table[0]

    @goal.setter
    def goal(self, goal):
        self.table = goal[None]


class Adapter(gymnasium.Env):
    """An adapter around an environment that holds the goal."""

    def __init__(self, cls=Line):
        self.env = cls()
        self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
        self.step, self.compute_reward = self.env.step, self.env.compute_reward

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed)


class Counted(Line):
    """Its goal is one number."""

    def __init__(self):
        super().__init__()
        spot = spaces.Discrete(100, start=-50)
        self.observation_space = spaces.Dict({**self.observation_space, "achieved_goal": spot, "desired_goal": spot})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = np.int64(self.np_random.integers(100) - 50)
        return self.observe(), {}

    def observe(self):
        return {"observation": np.full(2, self.place), "achieved_goal": np.int64(self.place), "desired_goal": self.goal}

    def info(self, observation):
        return {"is_success": bool(observation["achieved_goal"] == self.goal)}

    def reward(self, observation, info):
        return info["is_success"] - 1.0

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (achieved_goal == desired_goal) - 1.0


class HasComplexNumbers(Line):
    """It also holds complex numbers, as many as its goal has dimensions: they are no goal, and not cast to one."""

    def reset(self, *, seed=None, options=None):
        self.phases = np.exp(1j * np.arange(2.0))
        return super().reset(seed=seed)


class AsFloat(Line):
    """Its goal has one dimension, and is held as a number."""

    def __init__(self):
        super().__init__()
        height = spaces.Box(-10, 10, (1,), np.float32)
        self.observation_space = spaces.Dict({**self.observation_space, "achieved_goal": height, "desired_goal": height})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = float(self.goal[0])
        return self.observe(), {}

    def observe(self):
        here, goal = np.full(2, self.place, np.float32), np.ravel(self.goal).astype(np.float32)
        return {"observation": here, "achieved_goal": here[:1].copy(), "desired_goal": goal[:1]}


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (PointReach(), "the reset option 'goal'"),
        (BitFlipping(6), "the reset option 'goal'"),
        (Line(), "the attribute goal"),
        (Docking(), "the attribute target"),
        (Nested(), "the attributes goal and task.target"),
        (Twice(), "the attributes goal and task.target"),
        (AsTuple(), "the attribute goal"),
        (AsFloat(), "the attribute goal"),
        (OneRow(), "the attribute table"),
        (Rounded(), "the attribute goal"),
        (Counted(), "the attribute goal"),
        (Adapter(), "the attribute env.goal"),
    ],
)
def test_a_goal_is_set(env, name):
    setter = next(find_goal_setters(env, SEEDS))
    assert setter.name == name
    goal = env.reset(seed=5)[0]["desired_goal"].copy()
    observation = setter.start(6, goal)
    assert np.array_equal(observation["desired_goal"], goal)
    env.action_space.seed(0)
    assert np.array_equal(env.step(env.action_space.sample())[0]["desired_goal"], goal)


def test_complex_numbers_are_no_goal(recwarn):
    warnings.simplefilter("always")
    assert [each.name for each in find_goal_setters(HasComplexNumbers(), SEEDS)] == ["the attribute goal"]
    assert not recwarn


class Fixed(Line):
    """Its goal is always the same, so setting it cannot be seen."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = np.ones(2, np.float32)
        return self.observe(), {}


class Copied(Line):
    """The attribute with the goal's value is a copy that nothing reads."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.copy, self.hidden = self.goal.copy(), [self.goal]
        del self.goal
        return self.observe(), {}

    def __getattr__(self, name):
        if name == "goal":
            return self.__dict__["hidden"][0]
        raise AttributeError(name)


@pytest.mark.parametrize("env", [Fixed(), Copied()])
def test_a_goal_that_cannot_be_set(env):
    assert not list(find_goal_setters(env, SEEDS))


def test_a_single_number_is_not_looked_for_in_the_objects_of_an_environment():
    """The inner environments' numbers, such as handles of a simulator, are often equal to it."""
    assert not list(find_goal_setters(Adapter(Counted), SEEDS))


def test_an_attribute_that_does_not_set_the_goal_is_restored():
    env = Copied()
    goals = [env.reset(seed=seed)[0]["desired_goal"] for seed in (2, 1)]
    env.bound = bound = goals[1].tolist()  # equal to the goal of the first seed by chance
    assert not list(find_goal_setters(env, SEEDS))
    assert env.bound is bound
