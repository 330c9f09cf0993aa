"""Small tasks with an object, in which a column that means nothing to random actions matters later."""

import gymnasium
import numpy as np
from gymnasium import spaces

RADIUS, THRESHOLD, MAX_STEPS = 0.15, 0.1, 40


class Push(gymnasium.Env):
    """A tool pushes an object to a goal in the plane. It is seen, with the object, the gap between them, and `extra`."""

    n_extra, action_size, max_steps = 1, 2, MAX_STEPS

    def __init__(self):
        goal, seen = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (2, 6 + self.n_extra))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (self.action_size,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tool = self.np_random.normal(size=2) * 0.02
        direction = self.np_random.uniform(0, 2 * np.pi)
        self.puck = self.np_random.uniform(0.2, 0.4) * np.array([np.cos(direction), np.sin(direction)])
        self.goal = self.np_random.uniform(-0.6, 0.6, size=2)
        self.steps = 0
        self.begin()
        return self.see(), {"is_success": False}

    def step(self, action):
        action = np.clip(np.asarray(action, np.float64), -1, 1)
        self.steps += 1
        self.move(action)
        gap = self.puck - self.tool
        distance = np.linalg.norm(gap)
        if distance < RADIUS:
            self.puck = self.puck + self.push(gap / max(distance, 1e-9) * (RADIUS - distance))
        seen = self.see()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, self.steps >= MAX_STEPS, {"is_success": reward == 0}

    def see(self):
        seen = np.concatenate([self.tool, self.puck, self.puck - self.tool, self.extra()])
        return {"observation": seen, "achieved_goal": self.puck.copy(), "desired_goal": self.goal.copy()}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.linalg.norm(achieved_goal - desired_goal, axis=-1) < THRESHOLD).astype(np.float64) - 1

    def begin(self):
        """Draw what this task adds."""

    def move(self, action):
        """Move the tool."""
        self.tool = self.tool + 0.1 * action[:2]

    def push(self, way):
        """Return how the object moves if the tool pushes it by `way`."""
        return way

    def extra(self):
        """Return the columns that this task adds."""
        return self.np_random.normal(size=self.n_extra)


class Key(Push):
    """The object moves only once the tool was at the key. The last column says whether it was."""

    n_extra = 3

    def begin(self):
        direction = self.np_random.uniform(0, 2 * np.pi)
        self.key, self.has_key = 0.2 * np.array([np.cos(direction), np.sin(direction)]), False

    def move(self, action):
        super().move(action)
        self.has_key = self.has_key or bool(np.linalg.norm(self.tool - self.key) < RADIUS)

    def push(self, way):
        return way if self.has_key else 0 * way

    def extra(self):
        return np.array([*self.key, float(self.has_key)])


class Latch(Push):
    """The object moves only while the latch is open. The third action, above 0, opens it for good."""

    action_size = 3

    def begin(self):
        self.opening = 0.0

    def move(self, action):
        super().move(action)
        self.opening = min(1.0, self.opening + 0.2 * max(0.0, action[2]))

    def push(self, way):
        return way if self.opening == 1 else 0 * way

    def extra(self):
        return np.array([self.opening])


class Fuel(Push):
    """Every action uses fuel. Without fuel the tool stands still."""

    def begin(self):
        self.fuel = self.np_random.uniform(0.6, 1.0)

    def move(self, action):
        if self.fuel > 0:
            super().move(action)
        self.fuel = max(0.0, self.fuel - 0.015 * np.abs(action).sum())

    def extra(self):
        return np.array([self.fuel])


class Wind(Push):
    """A wind, another in every episode, moves the object while the tool touches it, and the tool always."""

    n_extra = 2

    def begin(self):
        self.wind = self.np_random.uniform(-1, 1, size=2) * 0.02

    def move(self, action):
        super().move(action)
        self.tool = self.tool + self.wind

    def push(self, way):
        return way + self.wind

    def extra(self):
        return self.wind.copy()


class Peg(Push):
    """The object slides along its own axis alone, whose angle is seen as cosine and sine, and is turned by each push."""

    n_extra = 2

    def begin(self):
        self.angle = self.np_random.uniform(0, 2 * np.pi)

    def push(self, way):
        axis = np.array([np.cos(self.angle), np.sin(self.angle)])
        across = way - axis * (axis @ way)
        self.angle += 3.0 * float(axis[0] * way[1] - axis[1] * way[0])
        return axis * (axis @ way) + 0.3 * across

    def extra(self):
        return np.array([np.cos(self.angle), np.sin(self.angle)])


class PushBoth(Push):
    """Two objects, each with a goal of its own: the first two numbers are those of the first object."""

    def __init__(self):
        goal, seen = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (4, 6))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def begin(self):
        angles = self.np_random.uniform(0, 2 * np.pi) + np.array([0, np.pi])
        self.objects = 0.3 * np.stack([np.cos(angles), np.sin(angles)], 1)
        self.puck, self.goal = np.full(2, 9.0), self.np_random.uniform(-0.6, 0.6, size=4)

    def move(self, action):
        super().move(action)
        gaps = self.objects - self.tool
        distances = np.linalg.norm(gaps, axis=1, keepdims=True)
        self.objects = self.objects + gaps / np.maximum(distances, 1e-9) * np.maximum(RADIUS - distances, 0)

    def see(self):
        positions = self.objects.ravel()
        return {
            "observation": np.concatenate([self.tool, positions]),
            "achieved_goal": positions.copy(),
            "desired_goal": self.goal.copy(),
        }
