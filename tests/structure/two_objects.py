"""A flat world in NumPy: a tool that the action moves, and two objects that it pushes one at a time."""

import numpy as np
from pusher import RADIUS, Pusher

from hindsight_rl.records import ArraySpec, GoalSpec

COLUMNS = {"tool": (0, 1), "objects": (2, 3, 4, 5), "gaps": (6, 7, 8, 9), "velocity": (10, 11)}
SPEC = GoalSpec(
    ArraySpec((12,), "float64"), ArraySpec((4,), "float64"), ArraySpec((2,), "float64", (-1.0, -1.0), (1.0, 1.0))
)
THRESHOLD = 0.2


class TwoObjects(Pusher):
    """The first two dimensions of a goal are the position of the first object.

    far: added to the goals of the first object, which then lie where it never rests by itself.
    """

    def __init__(self, seed, order=None, scale=1.0, far=0.0):
        super().__init__(seed, np.arange(12) if order is None else order, scale)
        self.far = far

    def reset(self):
        self.tool, self.velocity = self.rng.normal(size=2) * 0.02, np.zeros(2)
        first = self.rng.uniform(0, 2 * np.pi)
        angles = first + np.array([0, self.rng.uniform(0.5, 1.5) * np.pi])
        self.puck = (self.rng.uniform(0.3, 0.6, 2) * np.stack([np.cos(angles), np.sin(angles)])).T.ravel()
        self.goal = self.rng.uniform(-0.6, 0.6, size=4) + np.array([self.far, 0, 0, 0])

    def step(self, action):
        before = self.tool
        self.tool = self.tool + 0.1 * action + self.rng.normal(size=2) * 1e-3
        gaps = self.puck.reshape(2, 2) - self.tool
        distances = np.linalg.norm(gaps, axis=1, keepdims=True)
        self.puck = self.puck + (gaps / distances * np.maximum(RADIUS - distances, 0)).ravel()
        self.velocity = self.tool - before

    def see(self):
        gaps = (self.puck.reshape(2, 2) - self.tool).ravel()
        seen = np.concatenate([self.tool, self.puck, gaps, self.velocity])
        return (seen * self.scale)[self.order]


def compute_reward(achieved_goal, desired_goal, info):
    return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > THRESHOLD).astype(np.float64)
