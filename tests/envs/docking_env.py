"""A double integrator that must come to rest at a goal, which ends the episode."""

import gymnasium
import numpy as np
from gymnasium import spaces

TIME_STEP, THRESHOLD, MAX_STEPS = 0.1, 0.1, 60


class Docking(gymnasium.Env):
    """A point in the plane is accelerated until position and velocity are within 0.1 of a goal. There are 60 steps."""

    max_steps = MAX_STEPS

    def __init__(self):
        goal = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.observation_space = spaces.Dict(observation=goal, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.concatenate([self.drawn_within(1.0), self.drawn_within(0.5)])
        self.target = np.concatenate([self.drawn_within(1.0), self.drawn_within(0.3)])
        self.steps = 0
        return self.observe(), {"is_success": False}

    def drawn_within(self, radius):
        angle, distance = self.np_random.uniform(0, 2 * np.pi), radius * np.sqrt(self.np_random.uniform())
        return np.array([np.cos(angle), np.sin(angle)]) * distance

    def step(self, action):
        velocity = self.state[2:] + TIME_STEP * np.clip(action, -1, 1)
        self.state = np.concatenate([self.state[:2] + TIME_STEP * velocity, velocity])
        self.steps += 1
        observation = self.observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        success = bool(reward == 0)
        return observation, float(reward), success, self.steps >= MAX_STEPS, {"is_success": success}

    def observe(self):
        state = self.state.astype(np.float32)
        return {"observation": state, "achieved_goal": state.copy(), "desired_goal": self.target.astype(np.float32)}

    def compute_reward(self, achieved_goal, desired_goal, info):
        offset = np.abs(np.asarray(achieved_goal) - np.asarray(desired_goal))
        position, velocity = np.hypot(offset[..., 0], offset[..., 1]), np.hypot(offset[..., 2], offset[..., 3])
        return ((position < THRESHOLD) & (velocity < THRESHOLD)).astype(np.float32) - 1
