"""Attitudes and poses in space: a satellite, and an arm whose tool must arrive with a rotation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

CONJUGATE = np.array([1.0, -1, -1, -1])  # times a quaternion: the rotation back
FORWARD = np.array([0.0, 1, 0, 0])  # the x axis
SPIN_KEPT, SPIN_GAIN = 0.7, 0.09  # of a spin in a step; radians per step that the largest action adds


class Attitude(GoalTask):
    """A satellite turns to an attitude, a unit quaternion (w, x, y, z). Its negative is the same attitude."""

    near = 0.25  # radians

    def __init__(self) -> None:
        super().__init__(7, 4, 3)

    def begin(self) -> None:
        """Draw both attitudes."""
        self.attitude, self.goal = (self._drawn(), self._drawn())
        self.spin = np.zeros(3)

    def _drawn(self) -> Array:
        drawn = self.np_random.normal(size=4)
        return drawn / np.linalg.norm(drawn)

    def move(self, action: Array) -> None:
        """Wheels change the spin, about the axes of the satellite; a part of it is lost."""
        self.spin = SPIN_KEPT * self.spin + SPIN_GAIN * action
        turned = product(self.attitude, rotation(self.spin))
        self.attitude = turned / np.linalg.norm(turned)

    def observe(self) -> Array:
        """Return attitude and spin."""
        return np.concatenate([self.attitude, self.spin])

    def achieved(self) -> Array:
        """Return the attitude."""
        return self.attitude.copy()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the angle between the attitudes is small."""
        cosine = np.abs((achieved_goal * desired_goal).sum(-1))
        return cosine >= np.cos(self.near / 2)


def turn_in_space(observation: Observation) -> Array:
    """Turn the shorter way, slower near the goal."""
    spin = observation["observation"][4:]
    wanted = missing_turn(observation["achieved_goal"], observation["desired_goal"])
    return np.clip((0.4 * wanted - SPIN_KEPT * spin) / SPIN_GAIN, -1, 1).astype(np.float32)


class ToolPose(GoalTask):
    """An arm of five joints brings its tool to a pose: a position in metres and a unit quaternion (w, x, y, z)."""

    near, turned = 0.05, 0.25  # metres, radians
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], np.float64)  # yaw, three pitches, roll
    links = np.array([0.0, 0.4, 0.35, 0.1, 0.05])  # metres, along the x axis that each joint turns
    low, high = np.array([-1.2, -1.4, 0.4, -0.8, -1.5]), np.array([1.2, -0.2, 1.8, 0.8, 1.5])  # radians
    fastest = 0.12  # radians per step

    def __init__(self) -> None:
        super().__init__(12, 7, 5)

    def begin(self) -> None:
        """Draw the joints of the arm, and the pose of other joints."""
        self.joints = self.np_random.uniform(self.low, self.high)
        self.pose = self.pose_of(self.joints)
        self.goal = self.pose_of(self.np_random.uniform(self.low, self.high))

    @classmethod
    def pose_of(cls, joints: Array) -> Array:
        """Return the position and the quaternion of the tool, (7,)."""
        at, attitude = np.zeros(3), np.array([1.0, 0, 0, 0])
        for axis, angle, link in zip(cls.axes, joints, cls.links, strict=True):
            attitude = product(attitude, rotation(angle * axis))
            at = at + link * product(product(attitude, FORWARD), attitude * CONJUGATE)[1:]
        return np.concatenate([at, attitude])

    def move(self, action: Array) -> None:
        """Turn the joints, each to its limit."""
        self.joints = np.clip(self.joints + self.fastest * action, self.low, self.high)
        self.pose = self.pose_of(self.joints)

    def observe(self) -> Array:
        """Return pose and joints."""
        return np.concatenate([self.pose, self.joints])

    def achieved(self) -> Array:
        """Return the pose."""
        return self.pose.copy()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the position and the rotation are near."""
        cosine = np.abs((achieved_goal[..., 3:] * desired_goal[..., 3:]).sum(-1))
        return super().is_met(achieved_goal[..., :3], desired_goal[..., :3]) & (cosine >= np.cos(self.turned / 2))


def bring_tool(observation: Observation) -> Array:
    """Turn the joints by what brings the tool nearer, a damped step of Gauss and Newton."""
    joints, goal = observation["observation"][7:], observation["desired_goal"]
    missing = missing_motion(observation["achieved_goal"], goal)
    small = 1e-4
    columns = [missing_motion(ToolPose.pose_of(joints + small * one), goal) for one in np.eye(5)]
    jacobian = (missing - np.stack(columns)).T / small
    step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(6), missing)
    return np.clip(step / ToolPose.fastest, -1, 1).astype(np.float32)


def missing_motion(pose: Array, goal: Array) -> Array:
    """Return the way to a pose in metres, and the turn in radians, (6,)."""
    return np.concatenate([goal[:3] - pose[:3], missing_turn(pose[3:], goal[3:])])


def product(first: Array, second: Array) -> Array:
    """Return the product of two quaternions, (4,)."""
    (w, x, y, z), (v, i, j, k) = first.tolist(), second.tolist()
    return np.array(
        [
            w * v - x * i - y * j - z * k,
            w * i + x * v + y * k - z * j,
            w * j - x * k + y * v + z * i,
            w * k + x * j - y * i + z * v,
        ]
    )


def missing_turn(attitude: Array, goal: Array) -> Array:
    """Return the shorter turn from an attitude to another, in radians about the axes of the first, (3,)."""
    missing = product(attitude * CONJUGATE, goal)
    missing *= np.copysign(1.0, missing[0])
    size = float(np.linalg.norm(missing[1:]))
    return 2 * np.arctan2(size, missing[0]) * missing[1:] / max(size, 1e-9)


def rotation(turn: Array) -> Array:
    """Return the quaternion of a rotation about an axis by an angle: the direction and the length of `turn`, (3,)."""
    angle = float(np.linalg.norm(turn))
    return np.concatenate([[np.cos(angle / 2)], np.sinc(angle / 2 / np.pi) / 2 * turn])


TASKS = (
    Task("Attitude-v0", "angles", "open", Attitude, 40, lambda: turn_in_space),
    Task("ToolPose-v0", "angles", "open", ToolPose, 50, lambda: bring_tool),
)
