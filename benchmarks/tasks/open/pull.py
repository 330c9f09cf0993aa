"""Open things: a drawer, whose goal has one dimension, and a door that a disc pushes."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, unit

GRASP, SPEED = 0.06, 0.05
LENGTH, RADIUS = 0.4, 0.06  # of the door, and of the disc


class Drawer(GoalTask):
    """A gripper opens or closes a drawer to a given width. It must hold the handle while it pulls."""

    near = 0.03

    def __init__(self) -> None:
        super().__init__(6, 1, 3)

    def begin(self) -> None:
        """Place the chest and the gripper."""
        self.chest, self.opening = self.place(-0.2, 0.2), self.np_random.uniform(0, 0.3, 1)
        self.goal = self.np_random.uniform(0, 0.3, 1)
        while abs(self.goal[0] - self.opening[0]) < 2 * self.near:
            self.goal = self.np_random.uniform(0, 0.3, 1)
        self.gripper, self.is_holding = (
            self.handle() + self.np_random.uniform(0.1, 0.25) * unit(self.np_random.uniform(-1.2, 1.2)),
            False,
        )

    def handle(self) -> Array:
        """Return the position of the handle."""
        return self.chest + np.array([0.1 + self.opening[0], 0.0])

    def move(self, action: Array) -> None:
        """Move the gripper. If it is closed at the handle, the drawer follows."""
        self.is_holding = bool(action[2] > 0 and np.linalg.norm(self.gripper - self.handle()) < GRASP)
        step = SPEED * action[:2]
        if self.is_holding:
            opening = np.clip(self.opening + step[0], 0, 0.3)
            self.gripper = self.gripper + np.array([opening[0] - self.opening[0], 0.0])
            self.opening = opening
        else:
            self.gripper = self.gripper + step

    def observe(self) -> Array:
        """Return gripper, handle, opening and whether the gripper holds the handle."""
        return np.concatenate([self.gripper, self.handle(), self.opening, [float(self.is_holding)]])

    def achieved(self) -> Array:
        """Return how far the drawer is open."""
        return self.opening.copy()


def pull_drawer(observation: Observation) -> Array:
    """Go to the handle, close the gripper, and pull."""
    seen = observation["observation"]
    gap = seen[2:4] - seen[:2]
    if np.linalg.norm(gap) > 0.7 * GRASP:
        return np.append(np.clip(gap / SPEED, -1, 1), -1).astype(np.float32)
    wanted = float((observation["desired_goal"] - observation["achieved_goal"])[0])
    return np.array([np.clip(wanted / SPEED, -1, 1), 0, 1], np.float32)


class Door(GoalTask):
    """A disc pushes a door to an angle, from one side or the other. The door stays where it is left."""

    near = 0.08

    def __init__(self) -> None:
        super().__init__(7, 1, 2)

    def begin(self) -> None:
        """Draw the angles of the door now and at the end, and place the disc beside it."""
        self.angle, self.goal = self.np_random.uniform(-0.9, 0.9, 1), self.np_random.uniform(-1.2, 1.2, 1)
        while abs(self.goal[0] - self.angle[0]) < 2 * self.near:
            self.goal = self.np_random.uniform(-1.2, 1.2, 1)
        self.disc = 0.3 * unit(float(self.angle[0] + self.np_random.choice([-0.9, 0.9])))
        self.spin = 0.0

    def move(self, action: Array) -> None:
        """Move the disc, and turn the door out of its way. The door is a line from the origin."""
        before = self.disc - self.disc @ unit(float(self.angle[0])) * unit(float(self.angle[0]))
        side = np.sign(self._beside(self.disc)) or 1.0
        self.disc = np.clip(self.disc + SPEED * action, -0.6, 0.6)
        along, beside = float(self.disc @ unit(float(self.angle[0]))), self._beside(self.disc)
        self.spin = 0.0
        if 0.05 < along < LENGTH and side * beside < RADIUS and np.linalg.norm(before) > 0:
            self.spin = float(np.arctan2(side * beside - RADIUS, along)) * side
        self.angle = np.clip(self.angle + self.spin, -1.5, 1.5)

    def _beside(self, place: Array) -> float:
        ahead = unit(float(self.angle[0]))
        return float(ahead[0] * place[1] - ahead[1] * place[0])

    def observe(self) -> Array:
        """Return the disc, the end of the door, cosine and sine of its angle, and its last turn."""
        ahead = unit(float(self.angle[0]))
        return np.concatenate([self.disc, LENGTH * ahead, ahead, [self.spin]])

    def achieved(self) -> Array:
        """Return the angle."""
        return self.angle.copy()


def push_door(observation: Observation) -> Array:
    """Go around the end of the door to the side that it must leave, then push."""
    seen, angle = observation["observation"], float(observation["achieved_goal"][0])
    wanted = float(observation["desired_goal"][0]) - angle
    disc, ahead = seen[:2], unit(angle)
    left = np.array([-ahead[1], ahead[0]])
    if abs(wanted) < 0.3 * Door.near:
        return np.zeros(2, np.float32)
    side = -np.sign(wanted)  # the disc must be on this side of the door
    along, beside = float(disc @ ahead), float(disc @ left) * side
    if beside > 0.9 * RADIUS:
        touch = 0.8 * LENGTH * ahead + side * RADIUS * left
        aim = 0.8 * LENGTH * unit(angle + np.clip(wanted, -0.15, 0.15)) + side * RADIUS * left
        way = (aim if abs(along - 0.8 * LENGTH) < 0.05 and beside < 1.5 * RADIUS else touch) - disc
    elif along < LENGTH + 0.5 * RADIUS:
        way = (LENGTH + 1.5 * RADIUS) * ahead - side * 1.3 * RADIUS * left - disc
    else:
        way = (LENGTH + 1.5 * RADIUS) * ahead + side * 2 * RADIUS * left - disc
    return (way / max(SPEED, float(np.linalg.norm(way)))).astype(np.float32)


TASKS = (
    Task("Drawer-v0", "pull", "open", Drawer, 40, lambda: pull_drawer),
    Task("Door-v0", "pull", "open", Door, 60, lambda: push_door),
)
