"""Eight more tasks, of eight families."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..task import Task
from .spaces import around, goal_space, real


class _GoalEnv(gymnasium.Env[Any, Any]):
    """A step has the reward `at_goal` if the goal is met, else one less."""

    near, at_goal = 0.05, 0.0
    action_space: spaces.Box
    goal: Any

    def __init__(self, n_observed: int, n_goal: int, n_action: int, dtype: Any = np.float64) -> None:
        self.observation_space = goal_space(real(n_observed, dtype=dtype), real(n_goal, dtype=dtype))
        self.action_space, self.dtype = real(n_action, -1, 1), dtype

    def _observe(self) -> dict[str, Any]:
        columns = {"observation": self.sensors(), "achieved_goal": self.reached(), "desired_goal": self.goal}
        return {key: np.array(values, self.dtype) for key, values in columns.items()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.begin(self.np_random.uniform)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.move(np.clip(np.asarray(action, np.float64), -1, 1))
        observation = self._observe()
        achieved, goal = observation["achieved_goal"], observation["desired_goal"]
        info = {"is_success": bool(self.is_met(achieved, goal))}
        return observation, float(self.compute_reward(achieved, goal, info)), self.is_over(), False, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return self.is_met(achieved_goal, desired_goal).astype(np.float64) - 1 + self.at_goal

    def begin(self, draw: Any) -> None:
        raise NotImplementedError

    def move(self, action: Any) -> None:
        raise NotImplementedError

    def sensors(self) -> Any:
        raise NotImplementedError

    def reached(self) -> Any:
        raise NotImplementedError

    def is_met(self, achieved: Any, goal: Any) -> Any:
        return np.linalg.norm(achieved - goal, axis=-1) <= self.near

    def is_over(self) -> bool:
        return False


def _unit(angle: Any) -> Any:
    return np.array([np.cos(angle), np.sin(angle)])


class SpringBroom(_GoalEnv):
    """A brush on a spring, ahead of a carriage, pushes a puck over a tilted table. An action is its target."""

    near, contact, pace = 20.0, 40.0, 32.0  # millimetres; of the carriage in a step
    middle, half, offset = np.array([260.0, 140.0]), np.array([320.0, 220.0]), np.array([0.0, 45.0])
    stiffness, damping = 0.3, 0.55
    friction, slope = 1.5, np.array([0.5, 0.0])  # millimetres for each part of a step, squared

    def __init__(self) -> None:
        super().__init__(11, 2, 2, np.float32)

    def begin(self, draw: Any) -> None:
        self.puck = self.goal = draw([60, 30], [400, 240])
        while not 70 < np.linalg.norm(self.goal - self.puck) < 220:
            self.goal = draw([150, 40], [480, 270])
        self.brush = self.puck
        while not 60 < np.linalg.norm(self.brush - self.puck) < 130:
            self.brush = draw([0, -20], [520, 330])
        self.carriage = self.brush - self.offset
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Any) -> None:
        way = self.middle + self.half * action - self.carriage
        self.carriage = self.carriage + way * min(1.0, self.pace / max(float(np.sqrt(way @ way)), 1e-9))
        for _ in range(3):
            self.velocity = (1 - self.damping) * self.velocity - self.stiffness * self._stretch()
            self.brush = self.brush + self.velocity
            self._slide()

    def _stretch(self) -> Any:
        return self.brush - self.carriage - self.offset

    def _slide(self) -> None:
        before, speed = self.puck, float(np.sqrt(self.slide @ self.slide))
        if speed > 0:
            self.slide = self.slide * max(0.0, 1 - self.friction / speed) + self.slope * (speed > self.friction)
        self.puck = self.puck + self.slide
        gap = self.puck - self.brush
        distance = float(np.sqrt(gap @ gap))
        if distance < self.contact:
            self.puck = self.brush + gap / max(distance, 1e-9) * self.contact
            self.slide = 0.5 * (self.puck - before)
        self.puck = np.clip(self.puck, [-20, -20], [540, 330])

    def sensors(self) -> Any:
        gap = self.puck - self.brush + self.np_random.normal(0, 0.5, 2)
        stretch = self._stretch()
        (x, y), (vx, vy), slide = self.carriage, self.velocity, self.slide
        return [gap[1], x, stretch[0], self.puck[0], vy, gap[0], y, stretch[1], self.puck[1], vx, slide[0] + slide[1]]

    def reached(self) -> Any:
        return self.puck


def broom_script() -> Any:
    def act(observation: Any) -> Any:
        seen, puck, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        brush, carriage = puck - seen[[5, 0]], seen[[1, 6]]
        to, gap = goal - puck, puck - brush
        if np.linalg.norm(to) < 12:
            target = carriage - 10 * gap / np.linalg.norm(gap)
        else:
            step = float(np.clip(0.3 * np.linalg.norm(to), 8, 25))
            target = brush + around(brush, puck, goal, SpringBroom.contact, step) - SpringBroom.offset
        return np.clip((target - SpringBroom.middle) / SpringBroom.half, -1, 1).astype(np.float32)

    return act


class TurretPick(_GoalEnv):
    """An arm that swings, reaches out and lifts takes a standing peg with its jaw, and brings it to a position.

    Its own columns are in degrees and millimetres, the goal is in millimetres along x, y and z.
    """

    near, capture, widest = 25.0, 28.0, 60.0
    most = np.array([7.0, 25.0, 25.0, 20.0])  # degrees and millimetres in a step
    low, high = np.array([-40.0, 110, 0, 5]), np.array([120.0, 440, 260, widest])

    def __init__(self) -> None:
        super().__init__(13, 3, 4)

    def begin(self, draw: Any) -> None:
        self.thickness, self.fall, self.is_held = draw(20, 40), 0.0, False
        swing, reach = draw(-10, 90), draw(170, 380)
        self.peg = self.goal = np.array([*reach * _unit(np.radians(swing)), 0.0])
        while not 60 < np.linalg.norm(self.goal - self.peg) < 220:
            height = draw(60, 180) if draw(0, 1) < 0.5 else 0.0
            self.goal = np.array([*draw(160, 400) * _unit(np.radians(draw(-20, 105))), height])
        self.arm = np.array([swing + draw(-6, 6), reach + draw(-30, 30), draw(0, 40), draw(15, self.widest)])

    def _tool(self) -> Any:
        return np.array([*self.arm[1] * _unit(np.radians(self.arm[0])), self.arm[2]])

    def move(self, action: Any) -> None:
        was_wide = self.arm[3] >= self.thickness
        self.arm = np.clip(self.arm + self.most * action, self.low, self.high)
        gap, width = self.peg - self._tool(), self.arm[3]
        distance = float(np.sqrt(gap[:2] @ gap[:2]))
        is_around = distance < self.capture and abs(gap[2]) < 28
        if self.is_held or (is_around and was_wide and width < self.thickness):
            self.is_held = width < self.thickness + 6
        if self.is_held:
            self.arm[3], self.fall = max(width, self.thickness), 0.0
            self.peg = self._tool()
            return
        if is_around and width < self.thickness:  # a closed jaw pushes the peg
            self.peg[:2] += gap[:2] / max(distance, 1e-9) * (self.capture - distance)
        self.fall = self.fall + 8 if self.peg[2] > 0 else 0.0
        self.peg[2] = max(0.0, self.peg[2] - self.fall)

    def sensors(self) -> Any:
        gap, (cosine, sine) = self.peg - self._tool(), _unit(np.radians(self.arm[0]))
        ahead, aside = cosine * gap[0] + sine * gap[1], cosine * gap[1] - sine * gap[0]
        current = float(self.is_held) + 0.03 * self.np_random.normal()
        (swing, reach, height, width), (x, y, z) = self.arm, self.peg
        first = [self.thickness, swing, ahead, height, x, width, aside]
        return [*first, reach, gap[2], y, current, z, self.fall]

    def reached(self) -> Any:
        return self.peg


def turret_script() -> Any:
    def act(observation: Any) -> Any:
        seen, goal = observation["observation"], observation["desired_goal"]
        (thickness, width, aside, reach), (ahead, down, current) = seen[[0, 5, 6, 7]], seen[[2, 8, 10]]
        if current > 0.5:
            swing = np.degrees(np.arctan2(goal[1], goal[0])) - seen[1]
            way = [swing, np.hypot(goal[0], goal[1]) - reach, goal[2] - seen[3], -1]
        else:
            is_over, is_open = np.hypot(ahead, aside) < 15, width > thickness
            is_around = is_over and is_open and abs(down) < 18
            lower = down if is_over and is_open else max(down + 50, 0)
            way = [np.degrees(aside / reach), ahead, lower, -20 if is_around else 20]
        return np.clip(np.array(way) / TurretPick.most, -1, 1).astype(np.float32)

    return act


class VelcroPong(_GoalEnv):
    """A ball rolls to a paddle on a slanted table. It sticks to the far wall, which it shall meet at a position."""

    near, wall, width, bounce, slope = 0.1, 1.2, 0.11, 0.7, 0.0004
    pace, tilt_most, tilt_pace = 0.05, 0.5, 0.12

    def __init__(self) -> None:
        super().__init__(9, 2, 3, np.float32)

    def begin(self, draw: Any) -> None:
        self.ball, steps = draw([0.7, -0.1], [0.95, 0.4]), draw(16, 24)
        entry = draw([0.0, -0.15], [0.0, 0.3])
        self.velocity = (entry - self.ball) / steps + [0, self.slope * steps / 2]
        self.paddle, self.tilt, self.is_stuck = draw([-0.1, entry[1] - 0.15], [0.05, entry[1] + 0.15]), 0.0, False
        self.shift = np.zeros(2)
        self.goal = np.array([self.wall, draw(-0.25, 0.55)])

    def move(self, action: Any) -> None:
        before = self.paddle
        self.tilt += float(np.clip(self.tilt_most * action[0] - self.tilt, -self.tilt_pace, self.tilt_pace))
        self.paddle = np.clip(before + self.pace * action[1:], [-0.2, -0.5], [0.3, 0.7])
        self.shift, normal = self.paddle - before, _unit(self.tilt)
        for part in (0.5, 1.0):
            if not self.is_stuck:
                self._roll(before + part * self.shift, normal)

    def _roll(self, paddle: Any, normal: Any) -> None:
        self.ball = self.ball + 0.5 * self.velocity
        self.velocity = self.velocity - [0, 0.5 * self.slope]
        gap = self.ball - paddle
        depth, along = gap @ normal, gap[1] * normal[0] - gap[0] * normal[1]
        closing = (self.velocity - self.shift) @ normal
        if -0.1 < depth < 0.02 and abs(along) < self.width and closing < 0:
            self.velocity = self.velocity - (1 + self.bounce) * closing * normal
        if not -0.5 < self.ball[1] < 0.7:  # the cushions
            self.velocity = self.velocity * [1, -0.8 if self.velocity[1] * (self.ball[1] - 0.1) > 0 else 1]
        if not -0.3 < self.ball[0] < self.wall:  # the net, or the felt
            self.ball = np.array([np.clip(self.ball[0], -0.3, self.wall), self.ball[1]])
            self.velocity, self.is_stuck = np.zeros(2), True

    def sensors(self) -> Any:
        (x, y), (px, py), (vx, vy), (mx, my) = self.ball, self.paddle, 10 * self.velocity, 10 * self.shift
        return [vx, px, y - py, np.degrees(self.tilt), vy, x - px, my, py, mx]

    def reached(self) -> Any:
        return self.ball


def pong_script() -> Any:
    task, tilts = VelcroPong, np.linspace(-0.5, 0.5, 201)

    def landing(ball: Any, velocity: Any) -> Any:
        """Return where the ball meets the wall for each tilt, if the paddle strikes ahead."""
        normals = _unit(tilts).T
        closing = normals @ (velocity - [task.pace, 0])
        after = velocity - (1 + task.bounce) * closing[:, None] * normals
        steps = (task.wall - ball[0]) / np.maximum(after[:, 0], 1e-3)
        return ball[1] + after[:, 1] * steps - task.slope * steps**2 / 2

    def act(observation: Any) -> Any:
        seen, ball, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        velocity, paddle = seen[[0, 4]] / 10, seen[[1, 7]]
        if velocity[0] >= 0 or ball[0] < paddle[0]:
            return np.zeros(3, np.float32)
        steps = max(0.0, (ball[0] - paddle[0]) / (task.pace - velocity[0]))  # until they meet, if the paddle strikes now
        is_strike = steps < 3
        if not is_strike:
            steps = (ball[0] - paddle[0]) / -velocity[0]
        meeting = ball + steps * velocity - [0, task.slope * steps**2 / 2]
        tilt = tilts[np.argmin(np.abs(landing(meeting, velocity - [0, task.slope * steps]) - goal[1]))]
        aside = 0.0 if steps < 1 else (meeting[1] - paddle[1]) / task.pace
        ahead = 1.0 if is_strike else (-0.1 - paddle[0]) / task.pace
        return np.clip([tilt / task.tilt_most, ahead, aside], -1, 1).astype(np.float32)

    return act


class WindSegway(_GoalEnv):
    """A two-wheeled balancer drives along a platform in the wind to a position. If it falls or drives off, it is broken."""

    near, at_goal, tick, length, push = 0.15, 1.0, 0.05, 1.4, 4.0  # metres, seconds, metres for each second squared
    falls, ends = 0.5, (-2.0, 4.0)  # radians; metres

    def __init__(self) -> None:
        super().__init__(5, 1, 1, np.float32)

    def begin(self, draw: Any) -> None:
        self.at, self.speed, self.lean, self.swing = draw(-0.6, 0.8), 0.0, draw(-0.06, 0.06), draw(-0.05, 0.05)
        self.wind, self.goal = draw(0.1, 0.5), draw(-1.2, 3.2, 1)
        while abs(self.goal[0] - self.at) < 0.5:
            self.goal = draw(-1.2, 3.2, 1)

    def move(self, action: Any) -> None:
        drive = self.push * float(action[0]) - 0.2 * self.speed
        gust = self.wind + 0.1 * self.np_random.normal()
        turn = (9.8 * np.sin(self.lean) + (gust - drive) * np.cos(self.lean)) / self.length
        self.swing += self.tick * turn
        self.lean += self.tick * self.swing
        self.speed += self.tick * drive
        self.at += self.tick * self.speed

    def sensors(self) -> Any:
        return [np.degrees(self.lean), self.at, np.degrees(self.swing), self.wind, self.speed]

    def reached(self) -> Any:
        return [self.at]

    def is_over(self) -> bool:
        return bool(abs(self.lean) > self.falls or not self.ends[0] < self.at < self.ends[1])


def segway_script() -> Any:
    task = WindSegway

    def act(observation: Any) -> Any:
        lean, at, swing, wind, speed = observation["observation"]
        gap = float(np.clip(at - observation["desired_goal"][0], -1, 1))
        drive = 3.6 * gap + 5.6 * speed + 51 * (np.radians(lean) + wind / 9.8) + 18 * np.radians(swing)  # linear-quadratic
        return np.clip([(drive + 0.2 * speed) / task.push], -1, 1).astype(np.float32)

    return act


def _times(left: Any, right: Any) -> Any:
    """Return the product of two quaternions (w, x, y, z)."""
    (a, b, c, d), (w, x, y, z) = left.tolist(), right.tolist()
    first = [a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y]
    return np.array([*first, a * y - b * z + c * w + d * x, a * z + b * y - c * x + d * w])


def _rotated(attitude: Any, vector: Any) -> Any:
    return _times(_times(attitude, np.array([0.0, *vector])), attitude * [1, -1, -1, -1])[1:]


def _rotation(vector: Any) -> Any:
    """Return the quaternion of a rotation about a vector, by its length."""
    half = 0.5 * np.sqrt(vector @ vector)
    return np.array([np.cos(half), *(0.5 * np.sinc(half / np.pi) * vector)])


class RovPose(_GoalEnv):
    """An underwater robot with thrusters along and about its own axes takes a pose in a current."""

    near, slack = 0.15, np.cos(0.3 / 2)  # metres; of half the angle, 0.3 radians
    keep, thrust = np.repeat([0.65, 0.5], 3), np.repeat([0.03, 0.08], 3)

    def __init__(self) -> None:
        super().__init__(16, 7, 6)

    def _attitude(self, most: float) -> Any:
        axis = self.np_random.normal(size=3)
        return _rotation(axis / np.linalg.norm(axis) * self.np_random.uniform(0, most))

    def begin(self, draw: Any) -> None:
        self.at, self.attitude, self.motion = draw([-0.8, -0.3, -1.6], [0.4, 0.3, -0.4]), self._attitude(0.6), np.zeros(6)
        self.current = draw([0.004, -0.002, 0], [0.01, 0.002, 0.002])
        place, attitude = self.at, self.attitude
        while not 0.4 < np.linalg.norm(place - self.at) < 1.0:
            place = draw([-0.8, -0.5, -1.6], [0.8, 0.5, -0.4])
        while abs(attitude @ self.attitude) > np.cos(0.5 / 2):
            attitude = self._attitude(1.7)
        self.goal = np.array([*place, *attitude])

    def move(self, action: Any) -> None:
        self.motion = self.keep * self.motion + self.thrust * action
        at = self.at + _rotated(self.attitude, self.motion[:3]) + self.current
        self.at = np.clip(at, [-1.2, -0.8, -2], [1.2, 0.8, 0])
        attitude = _times(self.attitude, _rotation(self.motion[3:]))
        self.attitude = attitude / np.sqrt(attitude @ attitude)

    def sensors(self) -> Any:
        return [*self.attitude, *self.motion[3:], *self.at, *self.current, *self.motion[:3]]

    def reached(self) -> Any:
        return [*self.at, *self.attitude]

    def is_met(self, achieved: Any, goal: Any) -> Any:
        is_placed = np.linalg.norm((achieved - goal)[..., :3], axis=-1) <= self.near
        return is_placed & (np.abs((achieved * goal)[..., 3:].sum(-1)) >= self.slack)


def rov_script() -> Any:
    def act(observation: Any) -> Any:
        seen, goal = observation["observation"], observation["desired_goal"]
        attitude, at, current = seen[:4], seen[7:10], seen[10:13]
        back = attitude * [1, -1, -1, -1]
        error = _times(back, goal[3:])
        turn = 2 * error[1:] * (1 if error[0] >= 0 else -1)
        way = _rotated(back, 0.3 * (goal[:3] - at) - current)
        motion = np.array([*seen[13:], *seen[4:7]])
        wish = (np.array([*way, *(0.3 * turn)]) - RovPose.keep * motion) / RovPose.thrust
        return np.clip(wish, -1, 1).astype(np.float32)

    return act


class ShelfCrawler(_GoalEnv):
    """A crawler leaves the rail of a shelf and swims to a position in the deep; there its ballast lifts or sinks it."""

    near, drive, pump, lift = 0.08, 0.02, 0.1, 0.03
    low, high = np.array([-0.9, -0.9]), np.array([1.3, 0.25])

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self, draw: Any) -> None:
        self.at, self.velocity = np.array([draw(-0.8, -0.2), 0.0]), np.zeros(2)
        self.ballast, self.salt, self.volts = draw(0, 1), draw(30, 38), draw(23, 25)
        self.goal = self.at
        while np.linalg.norm(self.goal - self.at) < 0.25:
            is_deep = draw(0, 1) < 0.85
            self.goal = draw([0.2, -0.75], [1.1, 0.15]) if is_deep else np.array([draw(-0.8, -0.1), 0.0])

    def move(self, action: Any) -> None:
        self.ballast = float(np.clip(self.ballast + self.pump * action[0], 0, 1))
        neutral = 0.5 + 0.04 * (self.salt - 34)
        lift = self.lift * (neutral - self.ballast) if self.at[0] >= 0 else 0.0
        velocity = np.array([0.7, 0.75]) * self.velocity + [self.drive * action[1], lift]
        at = np.clip(self.at + velocity, self.low, self.high)
        if at[0] < 0 <= self.at[0] and abs(at[1]) > 0.06:  # the face of the shelf, above or below the rail
            at[0] = 0.0
        if at[0] < 0:
            at[1] = 0.0
        self.velocity, self.at = at - self.at, at
        self.volts -= 0.003

    def sensors(self) -> Any:
        pressure = 101.3 - 10 * self.at[1] + 0.05 * self.np_random.normal()  # kilopascals
        return [pressure, self.ballast, self.at[0], self.velocity[1], self.volts, self.at[1], self.salt, self.velocity[0]]

    def reached(self) -> Any:
        return self.at


def crawler_script() -> Any:
    task = ShelfCrawler

    def act(observation: Any) -> Any:
        _, ballast, x, rise, _, z, salt, speed = observation["observation"]
        to = observation["desired_goal"] - [x, z]
        neutral, wish = 0.5 + 0.04 * (salt - 34), 0.0
        if x >= 0:
            wish = float(np.clip((np.clip(0.12 * to[1], -0.04, 0.04) - 0.75 * rise) / task.lift, -0.4, 0.4))
        drive = (0.3 * to[0] - 0.7 * speed) / task.drive
        return np.clip([(neutral - wish - ballast) / task.pump, drive], -1, 1).astype(np.float32)

    return act


class SheepDog(_GoalEnv):
    """A dog drives three sheep, which flee from it and keep together, until the middle of the flock is at a position."""

    near, sight, pace = 4.0, 12.0, 1.6  # metres; of the dog in a step

    def __init__(self) -> None:
        super().__init__(10, 2, 2, np.float32)

    def begin(self, draw: Any) -> None:
        middle = draw([15, 10], [38, 28])
        self.sheep, self.speed = middle + draw(-3, 3, (3, 2)), np.zeros(2)
        self.goal = self.dog = middle
        while not 8 < np.linalg.norm(self.goal - middle) < 18:
            self.goal = draw([12, 8], [52, 30])
        while not 12 < np.linalg.norm(self.dog - middle) < 20:
            self.dog = draw([0, 0], [60, 40])

    def move(self, action: Any) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action
        self.dog = np.clip(self.dog + self.speed, [-8, -8], [68, 48])
        away = self.sheep - self.dog
        distance = np.sqrt((away**2).sum(1, keepdims=True)) + 1e-6
        flight = 1.8 * away / distance * np.maximum(0.0, 1 - distance / self.sight)
        apart = self.sheep[:, None] - self.sheep
        crowd = (apart * np.maximum(0.0, 3 - np.sqrt((apart**2).sum(-1, keepdims=True)))).sum(1)
        together = 0.12 * (self.sheep.mean(0) - self.sheep)
        wander = self.np_random.normal([0.02, 0.01], 0.06, (3, 2))  # they graze towards the far corner
        self.sheep = np.clip(self.sheep + flight + together + 0.1 * crowd + wander, [0, 0], [60, 40])

    def sensors(self) -> Any:
        return [*(self.sheep[:, 0] - self.dog[0]), *self.dog, *(self.sheep[:, 1] - self.dog[1]), *self.speed]

    def reached(self) -> Any:
        return self.sheep.mean(0)


def dog_script() -> Any:
    def act(observation: Any) -> Any:
        dog, flock = observation["observation"][3:5], observation["achieved_goal"]
        gap = dog - flock
        to = observation["desired_goal"] - flock
        if np.linalg.norm(to) < 1.5:
            move = gap if np.linalg.norm(gap) < 12 else np.zeros(2)
        else:
            move = around(dog, flock, observation["desired_goal"], 9.0, SheepDog.pace)
        return np.clip(move / SheepDog.pace, -1, 1).astype(np.float32)

    return act


class KiwiRooms(_GoalEnv):
    """A robot on three omnidirectional wheels drives through a house of three rooms by their speeds."""

    near = 0.4
    wheels = _unit(np.radians([20, 140, 260])).T  # where each pushes
    wall, door = 4.0, (3.8, 5.4)  # across the house, metres
    partition, gap = 3.0, (7.6, 9.2)  # along the house, beyond the wall

    def __init__(self) -> None:
        super().__init__(6, 2, 3)

    def begin(self, draw: Any) -> None:
        self.at, self.velocity, self.bump = draw([0.2, 0.2], [9.8, 5.8]), np.zeros(2), 0.0
        self.goal, self.volts = self.at, draw(11, 12.6)
        while np.linalg.norm(self.goal - self.at) < 1.5:
            self.goal = draw([0.3, 0.3], [9.7, 5.7])

    def move(self, action: Any) -> None:
        self.velocity = 0.5 * self.velocity + 0.1 * action @ self.wheels
        self.velocity += 0.005 * self.np_random.normal(size=2)
        (x, y), (new_x, new_y) = self.at, np.clip(self.at + self.velocity, [0, 0], [10, 6])
        if (x < self.wall) != (new_x < self.wall) and not self.door[0] < y < self.door[1]:
            new_x = self.wall + (0.01 if x >= self.wall else -0.01)
        if new_x > self.wall and (y < self.partition) != (new_y < self.partition) and not self.gap[0] < new_x < self.gap[1]:
            new_y = self.partition + (0.01 if y >= self.partition else -0.01)
        after = np.array([new_x, new_y])
        self.bump = float(np.abs(after - self.at - self.velocity).sum() > 1e-6)
        self.velocity, self.at = after - self.at, after
        self.volts -= 0.001

    def sensors(self) -> Any:
        return [self.velocity[1], self.at[0], self.bump, self.velocity[0], self.volts, self.at[1]]

    def reached(self) -> Any:
        return self.at


def kiwi_script() -> Any:
    def room(place: Any) -> int:
        """Return 0 before the wall, and beyond it 1 above and 2 below the partition."""
        return 0 if place[0] < KiwiRooms.wall else 1 if place[1] >= KiwiRooms.partition else 2

    doors = {(0, 1): (4.0, 4.6, 0), (1, 0): (4.0, 4.6, 0), (1, 2): (8.4, 3.0, 1), (2, 1): (8.4, 3.0, 1)}

    def act(observation: Any) -> Any:
        vy, x, _, vx, _, y = observation["observation"]
        at, goal = np.array([x, y]), observation["desired_goal"]
        here, there = room(at), room(goal)
        target = goal
        if here != there:
            following = there if (here, there) in doors else 1
            *door, axis = doors[here, following]
            target, off = np.array(door), abs(at[1 - axis] - door[1 - axis])
            target[axis] += 0.5 * np.sign(at[axis] - door[axis]) * (1 if off > 0.4 else -1)
        wish = (np.clip(0.5 * (target - at), -0.25, 0.25) - 0.5 * np.array([vx, vy])) / 0.1
        speeds = KiwiRooms.wheels @ wish * 2 / 3
        return (speeds / max(1.0, np.abs(speeds).max())).astype(np.float32)

    return act


TASKS = (
    Task("SpringBroom-v0", "push", "closed", SpringBroom, 70, broom_script),
    Task("TurretPick-v0", "grasp", "closed", TurretPick, 50, turret_script),
    Task("VelcroPong-v0", "hit", "closed", VelcroPong, 60, pong_script),
    Task("WindSegway-v0", "fragile", "closed", WindSegway, 120, segway_script),
    Task("RovPose-v0", "angles", "closed", RovPose, 50, rov_script),
    Task("ShelfCrawler-v0", "later", "closed", ShelfCrawler, 80, crawler_script),
    Task("SheepDog-v0", "several-objects", "closed", SheepDog, 90, dog_script),
    Task("KiwiRooms-v0", "obstacles", "closed", KiwiRooms, 100, kiwi_script),
)
