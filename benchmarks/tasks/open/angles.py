"""Angles: a turntable, a cart that must arrive with a heading, and a snake whose joints move it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, unit


def wrapped(angle: Any) -> Any:
    """Return angles between -pi and pi."""
    return (np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi


class Turntable(GoalTask):
    """A motor turns a table, which keeps its speed, to an angle. Angles lie between -pi and pi and wrap around."""

    near = 0.15

    def __init__(self) -> None:
        super().__init__(2, 1, 1)

    def begin(self) -> None:
        """Draw both angles."""
        self.angle, self.goal, self.speed = self.place(-np.pi, np.pi, 1), self.place(-np.pi, np.pi, 1), np.zeros(1)

    def move(self, action: Array) -> None:
        """Accelerate."""
        self.speed = np.clip(self.speed + 0.08 * action, -0.4, 0.4)
        self.angle = wrapped(self.angle + self.speed)

    def observe(self) -> Array:
        """Return angle and speed."""
        return np.concatenate([self.angle, self.speed])

    def achieved(self) -> Array:
        """Return the angle."""
        return self.angle.copy()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the angles are near, on the shorter way."""
        return np.abs(wrapped(achieved_goal - desired_goal))[..., 0] <= self.near


def turn(observation: Observation) -> Array:
    """Turn the shorter way, and brake in time."""
    speed = observation["observation"][1:]
    gap = wrapped(observation["desired_goal"] - observation["achieved_goal"])
    return np.clip((np.clip(0.25 * gap, -0.4, 0.4) - speed) / 0.08, -1, 1).astype(np.float32)


class Docking(GoalTask):
    """A cart that can drive sideways must arrive at a place with a heading, given as cosine and sine."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(6, 4, 3)

    def begin(self) -> None:
        """Draw places and headings."""
        self.at, self.angle, self.motion = self.place(-0.5, 0.5), float(self.np_random.uniform(-np.pi, np.pi)), np.zeros(2)
        self.goal = np.concatenate([self.place(-0.5, 0.5), unit(self.np_random.uniform(-np.pi, np.pi))])

    def move(self, action: Array) -> None:
        """Drive forward and sideways, seen from the cart, and turn."""
        ahead = unit(self.angle)
        self.motion = 0.06 * (action[0] * ahead + 0.5 * action[1] * np.array([-ahead[1], ahead[0]]))
        self.at, self.angle = self.at + self.motion, float(wrapped(self.angle + 0.3 * action[2]))

    def observe(self) -> Array:
        """Return cosine and sine of the heading, the position, and the last motion."""
        return np.concatenate([unit(self.angle), self.at, self.motion])

    def achieved(self) -> Array:
        """Return position and heading."""
        return np.concatenate([self.at, unit(self.angle)])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the place is near and the heading right within 17 degrees."""
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., :2], axis=-1) <= self.near) & (np.linalg.norm(gap[..., 2:], axis=-1) <= 0.3)


def dock(observation: Observation) -> Array:
    """Turn to the heading and drive to the place at the same time."""
    ahead, at, goal = observation["observation"][:2], observation["observation"][2:4], observation["desired_goal"]
    angle, wanted = np.arctan2(ahead[1], ahead[0]), np.arctan2(goal[3], goal[2])
    way = goal[:2] - at
    own = np.array([way @ ahead, way @ np.array([-ahead[1], ahead[0]])]) / [0.06, 0.03]
    return np.clip([*own, wrapped(wanted - angle) / 0.3], -1, 1).astype(np.float32)


class Snake(GoalTask):
    """A snake of four links bends its joints to get to a place. It has no wheels: only a gait moves it.

    Each link is dragged along by the ground, sideways much more than lengthwise, so that all forces add up to 0 (as in
    Purcell's swimmer, 1977).
    """

    near = 0.15
    link, sideways = 0.25, 20.0  # length of a link; its drag sideways relative to that lengthwise
    bend, limit = 0.4, 1.2  # radians: of a joint in a step, and at most

    def __init__(self) -> None:
        super().__init__(7, 2, 3)

    def begin(self) -> None:
        """Draw the posture, and a place around the snake."""
        self.heading, direction = self.place(-np.pi, np.pi)
        self.joints, self.at = self.place(-0.3, 0.3, 3), np.zeros(2)
        self.goal = self.np_random.uniform(0.4, 1.2) * unit(direction)

    def move(self, action: Array) -> None:
        """Bend the joints. The ground moves and turns the whole snake so that its forces on it add up to 0."""
        bent = np.clip(self.joints + self.bend * action, -self.limit, self.limit) - self.joints
        ahead, middles = links_of(self.heading, self.joints, self.link)
        own = links_of(self.heading, self.joints + bent, self.link)[1] - middles  # as if the middle stayed
        turned = np.append(0.0, bent.cumsum())
        side = np.stack([-ahead[:, 1], ahead[:, 0]], 1)
        drag = ahead[:, :, None] * ahead[:, None] + self.sideways * side[:, :, None] * side[:, None]
        around = np.stack([-middles[:, 1], middles[:, 0]], 1)
        of_turn = self.sideways * self.link**2 / 12
        forces, force = np.zeros((3, 3)), np.zeros(3)  # per motion of the whole snake; of the bending
        forces[:2, :2] = drag.sum(0)
        forces[:2, 2] = forces[2, :2] = np.einsum("ijk,ik->j", drag, around)
        forces[2, 2] = np.einsum("ij,ijk,ik->", around, drag, around) + len(ahead) * of_turn
        force[:2] = np.einsum("ijk,ik->j", drag, own)
        force[2] = np.einsum("ij,ijk,ik->", around, drag, own) + of_turn * turned.sum()
        *moved, turn = np.linalg.solve(forces, -force)
        self.at, self.heading, self.joints = self.at + moved, float(wrapped(self.heading + turn)), self.joints + bent

    def observe(self) -> Array:
        """Return the middle, the heading of the first link as cosine and sine, and the joints."""
        return np.concatenate([self.at, unit(self.heading), self.joints])

    def achieved(self) -> Array:
        """Return the middle."""
        return self.at.copy()


def links_of(heading: float, joints: Array, link: float) -> tuple[Array, Array]:
    """Return the direction of each link, and its middle relative to that of the snake, both (links, 2)."""
    angles = heading + np.append(0.0, joints.cumsum())
    ahead = np.stack([np.cos(angles), np.sin(angles)], 1)
    middles = link * (ahead.cumsum(0) - ahead / 2)
    return ahead, middles - middles.mean(0)


def crawl() -> Callable[[Observation], Array]:
    """Return a policy that sends waves along the snake, bent towards the goal."""
    time = 0

    def act(observation: Observation) -> Array:
        nonlocal time
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        if np.linalg.norm(way) < 0.6 * Snake.near:
            return np.zeros(3, np.float32)
        joints = seen[4:]
        forward = -links_of(np.arctan2(seen[3], seen[2]), joints, Snake.link)[0].mean(0)
        to_side = wrapped(np.arctan2(way[1], way[0]) - np.arctan2(forward[1], forward[0]))
        wave = 0.6 * np.sin(0.55 * time - 1.3 * np.arange(3)) - np.clip(2 * to_side, -0.8, 0.8)
        time += 1
        return np.clip((wave - joints) / Snake.bend, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("Turntable-v0", "angles", "open", Turntable, 40, lambda: turn),
    Task("Docking-v0", "angles", "open", Docking, 50, lambda: dock),
    Task("Snake-v0", "angles", "open", Snake, 100, crawl, 50_000, "the snake must find a gait before anything succeeds"),
)
