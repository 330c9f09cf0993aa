"""A point that must reach a goal in the plane, in any unit of length and with rewards of three kinds."""

import gymnasium
import numpy as np
from gymnasium import spaces

THRESHOLD, MAX_STEPS, COST = 0.1, 50, 0.1


class Reach(gymnasium.Env):
    """An action accelerates the point. It starts anywhere within 1 of the origin, and so do goals.

    kind: "sparse" (failure or success), "costly" (the same minus COST times the squared action, which the info holds) or
    "dense" (minus the distance). scale: of these rewards. unit: of all lengths and speeds, so many to the metre.
    """

    max_steps = MAX_STEPS

    def __init__(self, kind="sparse", scale=1.0, unit=1.0):
        self.kind, self.scale, self.unit = kind, scale, unit
        goal, seen = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (2, 4))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.uniform(-1, 1, size=(2, 2))
        self.speed, self.steps = np.zeros(2), 0
        return self.observe(), {"is_success": False, "effort": 0.0}

    def step(self, action):
        action = np.clip(np.asarray(action, np.float64), -1, 1)
        self.steps += 1
        self.speed = 0.5 * self.speed + 0.1 * action
        self.place = self.place + self.speed
        seen, info = self.observe(), {"effort": float(np.square(action).mean())}
        info["is_success"] = bool(np.linalg.norm(self.place - self.goal) < THRESHOLD)
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info))
        return seen, reward, False, self.steps >= MAX_STEPS, info

    def observe(self):
        seen = np.concatenate([self.place, self.speed]) * self.unit
        return {"observation": seen, "achieved_goal": self.place * self.unit, "desired_goal": self.goal * self.unit}

    def compute_reward(self, achieved_goal, desired_goal, info):
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1) / self.unit
        if self.kind == "dense":
            return -self.scale * distance
        cost = COST * info["effort"] if self.kind == "costly" else 0.0
        return self.scale * ((distance < THRESHOLD) - 1.0 - cost)
