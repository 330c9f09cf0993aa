"""Hit: a puck slides to places that the disc does not reach."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

RADIUS, SPEED, KEPT = 0.08, 0.1, 0.85  # distance of contact, of a step; fraction of its speed that a sliding puck keeps


class SlidingPuck(GoalTask):
    """A disc stays on the left of a line and hits a puck, which slides to a goal on the right of it."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Place the disc behind the puck."""
        self.disc = np.array([-0.45, self.np_random.uniform(-0.1, 0.1)])
        self.puck = np.array([-0.15, 0.0]) + self.place(-0.1, 0.1)
        self.goal = np.array([self.np_random.uniform(0.15, 0.5), self.np_random.uniform(-0.25, 0.25)])
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Accelerate the disc. A hit gives the puck the disc's speed along the line of their centres."""
        self.velocity = 0.5 * self.velocity + 0.5 * SPEED * action
        target = np.clip(self.disc + self.velocity, [-0.7, -0.5], [0.0, 0.5])
        self.velocity, self.disc = target - self.disc, target
        gap = self.puck - self.disc
        distance = max(float(np.linalg.norm(gap)), 1e-9)
        if distance < RADIUS:
            ahead = gap / distance
            self.slide = self.slide + max(0.0, float((self.velocity - self.slide) @ ahead)) * ahead
            self.puck = self.disc + RADIUS * ahead
        self.puck, self.slide = self.puck + self.slide, KEPT * self.slide

    def observe(self) -> Array:
        """Return positions and velocities of disc and puck."""
        return np.concatenate([self.disc, self.velocity, self.puck, self.slide])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def hit(observation: Observation) -> Array:
    """Take position behind the puck, then move through it with the speed that brings it to the goal."""
    seen = observation["observation"]
    disc, velocity, puck, slide = seen[:2], seen[2:4], seen[4:6], seen[6:8]
    way = observation["desired_goal"] - puck
    rest = slide / (1 - KEPT)
    if np.linalg.norm(slide) > 1e-3 and np.linalg.norm(disc - puck) > RADIUS:
        missing = way - rest
        if np.linalg.norm(missing) < 0.05 or puck[0] > 0.05:
            return np.zeros(2, np.float32)
    distance = float(np.linalg.norm(way))
    ahead = way / distance
    along, across = float((disc - puck) @ ahead), (disc - puck) - ((disc - puck) @ ahead) * ahead
    speed = distance * (1 - KEPT)
    if -along < 2.6 * RADIUS and -along > 0 and np.linalg.norm(across) < 0.012:
        wanted = speed * ahead - across
        left = -along - RADIUS
        wanted = wanted if left < 2.5 * speed or left < 0.1 else 0.5 * speed * ahead - across
    else:
        wanted = 0.5 * (puck - 2.2 * RADIUS * ahead - disc)
    action = (wanted - 0.5 * velocity) / (0.5 * SPEED)
    return (action / max(1.0, float(np.abs(action).max()))).astype(np.float32)


TASKS = (Task("SlidingPuck-v0", "hit", "open", SlidingPuck, 40, lambda: hit),)
