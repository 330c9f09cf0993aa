"""Push a puck: with a disc, and with an arm of three joints."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, push_out, toward_push, unit

RADIUS = 0.09  # distance of the centres at which disc and puck touch
LINKS = np.array([0.4, 0.35, 0.25])


class DiscPuck(GoalTask):
    """A disc pushes a puck, which slides on and slows down. The action is the velocity of the disc."""

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Place the disc near the puck."""
        self.puck, self.goal = self.place(-0.3, 0.3), self.place(-0.4, 0.4)
        self.disc = self.puck + 0.2 * unit(self.np_random.uniform(0, 2 * np.pi))
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Move the disc, and the puck out of its way."""
        self.velocity = 0.05 * action
        self.disc = self.disc + self.velocity
        push = push_out(self.puck, self.disc, RADIUS)
        self.slide = 0.5 * (push if push.any() else self.slide)
        self.puck = self.puck + (push if push.any() else 2 * self.slide)

    def observe(self) -> Array:
        """Return the positions and velocities of disc and puck."""
        return np.concatenate([self.disc, self.puck, self.velocity, self.slide])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def push_puck(observation: Observation) -> Array:
    """Push the puck from behind."""
    disc, puck = observation["observation"][:2], observation["achieved_goal"]
    way = toward_push(disc, puck, observation["desired_goal"], RADIUS, DiscPuck.near)
    distance = float(np.linalg.norm(observation["desired_goal"] - puck))
    limit = 0.05 if np.linalg.norm(disc - puck) > 1.3 * RADIUS else min(0.05, 0.6 * distance + 0.01)
    return (way / max(limit, float(np.linalg.norm(way))) * limit / 0.05).astype(np.float32)


class ArmPuck(GoalTask):
    """An arm with three joints in a plane pushes a puck with its tip. Columns come in no particular order."""

    near = 0.06

    def __init__(self) -> None:
        super().__init__(13, 2, 3)

    def begin(self) -> None:
        """Place the puck where the arm reaches it from all sides."""
        self.angles = np.array([0.6, 1.0, 0.6]) + self.np_random.uniform(-0.2, 0.2, 3)
        self.turn = np.zeros(3)
        self.goal, self.puck = self._reachable(), self._reachable()
        while np.linalg.norm(self.puck - self.tip()) < 1.2 * RADIUS:
            self.puck = self._reachable()

    def _reachable(self) -> Array:
        return self.np_random.uniform(0.42, 0.68) * unit(self.np_random.uniform(0.6, 2.2))

    def tip(self) -> Array:
        """Return the position of the tip."""
        absolute = np.cumsum(self.angles)
        return np.array([LINKS @ np.cos(absolute), LINKS @ np.sin(absolute)])

    def move(self, action: Array) -> None:
        """Turn the joints, and move the puck out of the tip's way, in two halves of a step."""
        self.turn = 0.12 * action
        for _ in range(2):
            self.angles = np.clip(self.angles + self.turn / 2, [-1.0, -2.6, -2.6], [3.2, 2.6, 2.6])
            self.puck = self.puck + push_out(self.puck, self.tip(), RADIUS)

    def observe(self) -> Array:
        """Return cosines, tip and puck, sines, speeds of the joints, and their order of motion."""
        cosine, sine = np.cos(self.angles), np.sin(self.angles)
        return np.concatenate([cosine, self.tip(), sine, self.puck, self.turn])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def push_with_arm(observation: Observation) -> Array:
    """Move the tip by the Jacobian of the arm, as `toward_push` asks."""
    seen = observation["observation"]
    tip, puck = seen[3:5], seen[8:10]
    absolute = np.cumsum(np.arctan2(seen[5:8], seen[:3]))
    lever = np.cumsum((LINKS * np.array([np.cos(absolute), np.sin(absolute)]))[:, ::-1], axis=1)[:, ::-1]
    jacobian = np.stack([-lever[1], lever[0]])
    way = toward_push(tip, puck, observation["desired_goal"], RADIUS, ArmPuck.near)
    way *= min(1.0, 0.04 / max(float(np.linalg.norm(way)), 1e-9))
    turn = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(2), way)
    return (turn / 0.12 / max(1.0, float(np.abs(turn / 0.12).max()))).astype(np.float32)


TASKS = (
    Task("DiscPuck-v0", "push", "open", DiscPuck, 50, lambda: push_puck),
    Task("ArmPuck-v0", "push", "open", ArmPuck, 60, lambda: push_with_arm),
)
