"""Attitudes and poses in space: a satellite, an arm whose tool must arrive with a rotation, and a robot under water."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

CONJUGATE = np.array([1.0, -1, -1, -1])  # times a quaternion: the rotation back
FORWARD = np.array([1.0, 0, 0])
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
            at = at + link * rotated(attitude, FORWARD)
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
        return is_pose(achieved_goal, desired_goal, self.near, self.turned)


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


def rotated(attitude: Array, vector: Array) -> Array:
    """Return a vector of (3,) in the frame in which the attitude is given."""
    return product(product(attitude, np.append(0.0, vector)), attitude * CONJUGATE)[1:]


def is_pose(achieved: Array, desired: Array, near: float, turned: float) -> Any:
    """Return whether poses (..., 7) have a position within `near` and a rotation within `turned` radians."""
    cosine = np.abs((achieved[..., 3:] * desired[..., 3:]).sum(-1))
    return (np.linalg.norm((achieved - desired)[..., :3], axis=-1) <= near) & (cosine >= np.cos(turned / 2))


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


class RovPose(GoalTask):
    """An underwater robot with thrusters along and about its own axes takes a pose in a current."""

    near, turned = 0.15, 0.3  # metres, radians
    keep, thrust = np.repeat([0.65, 0.5], 3), np.repeat([0.03, 0.08], 3)

    def __init__(self) -> None:
        super().__init__(16, 7, 6)

    def begin(self) -> None:
        """Draw a pose, the current, and a goal that lies apart from both position and attitude."""
        self.at, self.attitude, self.motion = (
            self.place([-0.8, -0.3, -1.6], [0.4, 0.3, -0.4], 3),
            self._drawn(0.6),
            np.zeros(6),
        )
        self.current = self.place([0.004, -0.002, 0], [0.01, 0.002, 0.002], 3)
        place, attitude = self.at, self.attitude
        while not 0.4 < np.linalg.norm(place - self.at) < 1.0:
            place = self.place([-0.8, -0.5, -1.6], [0.8, 0.5, -0.4], 3)
        while abs(attitude @ self.attitude) > np.cos(0.5 / 2):
            attitude = self._drawn(1.7)
        self.goal = np.concatenate([place, attitude])

    def _drawn(self, most: float) -> Array:
        axis = self.np_random.normal(size=3)
        return rotation(axis / np.linalg.norm(axis) * self.np_random.uniform(0, most))

    def move(self, action: Array) -> None:
        """Thrust. The current carries the robot along."""
        self.motion = self.keep * self.motion + self.thrust * action
        at = self.at + rotated(self.attitude, self.motion[:3]) + self.current
        self.at = np.clip(at, [-1.2, -0.8, -2], [1.2, 0.8, 0])
        attitude = product(self.attitude, rotation(self.motion[3:]))
        self.attitude = attitude / np.linalg.norm(attitude)

    def observe(self) -> Array:
        """Return attitude, spin, position, current and speed."""
        return np.concatenate([self.attitude, self.motion[3:], self.at, self.current, self.motion[:3]])

    def achieved(self) -> Array:
        """Return the pose."""
        return np.concatenate([self.at, self.attitude])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the position and the rotation are near."""
        return is_pose(achieved_goal, desired_goal, self.near, self.turned)


def take_pose(observation: Observation) -> Array:
    """Thrust towards the goal, against the current."""
    seen, goal = observation["observation"], observation["desired_goal"]
    attitude, at, current, motion = seen[:4], seen[7:10], seen[10:13], np.concatenate([seen[13:], seen[4:7]])
    way = rotated(attitude * CONJUGATE, 0.3 * (goal[:3] - at) - current)
    wish = np.concatenate([way, 0.3 * missing_turn(attitude, goal[3:])]) - RovPose.keep * motion
    return np.clip(wish / RovPose.thrust, -1, 1).astype(np.float32)


TASKS = (
    Task("Attitude-v0", "angles", "open", Attitude, 40, lambda: turn_in_space),
    Task("ToolPose-v0", "angles", "open", ToolPose, 50, lambda: bring_tool),
    Task("RovPose-v0", "angles", "open", RovPose, 50, lambda: take_pose),
)
