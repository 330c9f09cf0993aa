"""A small goal environment that keeps every rule; the tests break one at a time."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Line(gymnasium.Env):
    """A position on a line (two equal coordinates) moves by the action. Reward 0 within 0.5 of the goal, else -1."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    max_steps = 10

    def __init__(self, render_mode=None, shift=0.0):
        box = spaces.Box(-100, 100, (2,), np.float32)
        self.observation_space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), box))
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.render_mode, self.shift = render_mode, shift

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-3, 3)
        self.goal = np.full(2, self.np_random.uniform(-3, 3) + self.shift, np.float32)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.place += float(action[0])
        self.steps += 1
        observation = self.observe()
        info = self.info(observation)
        reward = self.reward(observation, info)
        terminated = self.terminates(observation)
        return observation, reward, terminated, self.steps >= self.max_steps, info

    def observe(self):
        here = np.full(2, self.place, np.float32)
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": self.goal.copy()}

    def info(self, observation):
        return {"is_success": bool(near(observation["achieved_goal"], self.goal))}

    def reward(self, observation, info):
        return float(near(observation["achieved_goal"], self.goal)) - 1

    def terminates(self, observation):
        return False

    def compute_reward(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal).astype(np.float32) - 1

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


def near(achieved_goal, desired_goal):
    return np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.5


class Costly(Line):
    """The reward is 0/-1, minus a cost of the action, which the info has."""

    def step(self, action):
        self.cost = 0.1 * float(abs(action[0]))
        return super().step(action)

    def info(self, observation):
        return {**super().info(observation), "cost": self.cost}

    def reward(self, observation, info):
        return float(self.compute_reward(observation["achieved_goal"], self.goal, info))

    def compute_reward(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal).astype(np.float32) - 1 - info["cost"]


class Distant(Line):
    """Goals are float64 numbers near 1e7, where float32 has a spacing of 1. Their space has no bounds."""

    def __init__(self):
        super().__init__()
        goal = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = spaces.Dict({**self.observation_space.spaces, "achieved_goal": goal, "desired_goal": goal})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = self.goal + np.float64(1e7)
        return self.observe(), {}

    def observe(self):
        return super().observe() | {"achieved_goal": np.full(2, self.place + 1e7), "desired_goal": self.goal.copy()}


class Scalar(Line):
    """Its reward accepts one goal only."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return 0.0 if float(np.abs(achieved_goal - desired_goal).max()) < 0.35 else -1.0


class Terminating(Line):
    """Success ends the episode, and compute_terminated returns it, for a batch too."""

    def terminates(self, observation):
        return bool(near(observation["achieved_goal"], self.goal))

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal)


class TerminatingOneByOne(Terminating):
    """The mistake of the mazes: a norm without an axis returns one value for a whole batch."""

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return bool(np.linalg.norm(achieved_goal - desired_goal) < 0.5)
