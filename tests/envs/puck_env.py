"""A disc that pushes a puck to a goal in the plane, with any two rewards and any unit of length."""

import gymnasium
import numpy as np
from gymnasium import spaces

CONTACT, THRESHOLD, MAX_STEPS = 0.12, 0.08, 40
DRIVE, DISC_DAMPING, PUCK_DAMPING = 0.08, 0.4, 0.3  # metres per step; of the speed, what is left after a step


class Puck(gymnasium.Env):
    """An action drives the disc. Where it touches the puck, it moves it out of its way, and the puck glides on a little.

    failure, success: the rewards. unit: of all lengths and speeds, so many to the metre (0.001: kilometres).
    """

    max_steps = MAX_STEPS

    def __init__(self, failure=-1.0, success=0.0, unit=1.0):
        self.failure, self.success, self.unit = failure, success, unit
        goal, seen = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (2, 8))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.disc = self.np_random.normal(size=2) * 0.02
        angle = self.np_random.uniform(0, 2 * np.pi)
        self.puck = self.np_random.uniform(0.2, 0.35) * np.array([np.cos(angle), np.sin(angle)])
        self.goal = self.np_random.uniform(-0.5, 0.5, size=2)
        self.disc_speed, self.puck_speed, self.steps = np.zeros(2), np.zeros(2), 0
        return self.observe(), {"is_success": False}

    def step(self, action):
        self.steps += 1
        self.disc_speed = DISC_DAMPING * self.disc_speed + DRIVE * np.clip(np.asarray(action, np.float64), -1, 1)
        self.disc = self.disc + self.disc_speed
        self.puck_speed = PUCK_DAMPING * self.puck_speed
        gap = self.puck + self.puck_speed - self.disc
        distance = np.linalg.norm(gap)
        if distance < CONTACT:
            self.puck_speed = self.puck_speed + gap / max(distance, 1e-9) * (CONTACT - distance)
        self.puck = self.puck + self.puck_speed
        seen = self.observe()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, self.steps >= MAX_STEPS, {"is_success": reward == self.success}

    def observe(self):
        seen = np.concatenate([self.disc, self.disc_speed, self.puck, self.puck_speed]) * self.unit
        return {"observation": seen, "achieved_goal": self.puck * self.unit, "desired_goal": self.goal * self.unit}

    def compute_reward(self, achieved_goal, desired_goal, info):
        is_near = np.linalg.norm(achieved_goal - desired_goal, axis=-1) < THRESHOLD * self.unit
        return np.where(is_near, self.success, self.failure)
