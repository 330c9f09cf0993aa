"""Closed tasks: a pinball, four plates, a feather, a magnet, and a toy tank."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, OwnUnits, Seen, SizedTask, clipped, grid_path, unit, wrapped
from ..task import Observation, Task


class PinballDeck(GoalTask):
    """A ball on a square deck of 1 by 1 goes to a place. It bounces off two walls and three bumpers.

    The episode ends at the goal. Actions: nothing, and accelerations to the right, the left, upwards and downwards.
    """

    near, thrust, kept, radius, bounce = 0.06, 0.012, 0.96, 0.03, 0.7
    # Each obstacle is a line between two points, and its half width.
    walls = np.array([[0.0, 0.62, 0.45, 0.62, 0.02], [0.6, 0.0, 0.6, 0.4, 0.02]])
    bumpers = np.array([[0.3, 0.3, 0.3, 0.3, 0.1], [0.72, 0.7, 0.72, 0.7, 0.1], [0.35, 0.85, 0.35, 0.85, 0.06]])
    obstacles = np.vstack([walls, bumpers])

    def __init__(self) -> None:
        super().__init__(4, 2, 1)
        observed, goal = spaces.Box(-2.0, 2.0, (4,), np.float32), spaces.Box(0.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(5)

    @classmethod
    def nearest(cls, ball: Array) -> tuple[Array, float]:
        """Return the gap from the nearest obstacle, and the distance to its edge."""
        start, end = cls.obstacles[:, :2], cls.obstacles[:, 2:4]
        line = end - start
        along = np.sum((ball - start) * line, 1) / np.maximum(1e-9, np.sum(line**2, 1))
        gaps = ball - start - np.clip(along, 0, 1)[:, None] * line
        distances = np.linalg.norm(gaps, axis=1) - cls.obstacles[:, 4]
        first = int(np.argmin(distances))
        return gaps[first], float(distances[first])

    def free(self) -> Array:
        """Return a random place at some distance from obstacles."""
        place = self.place(0.06, 0.94)
        while self.nearest(place)[1] < 0.06:
            place = self.place(0.06, 0.94)
        return place

    def begin(self) -> None:
        self.ball, self.speed = self.free(), np.zeros(2)
        self.goal = self.free()
        while np.linalg.norm(self.goal - self.ball) < 0.35:
            self.goal = self.free()

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)][int(action)]))

    def move(self, action: Array) -> None:
        self.speed = self.kept * self.speed + self.thrust * action
        for _ in range(4):
            self.ball = self.ball + 0.25 * self.speed
            is_out = (self.ball < self.radius) | (self.ball > 1 - self.radius)
            self.speed = np.where(is_out, -self.bounce * self.speed, self.speed)
            self.ball = np.clip(self.ball, self.radius, 1 - self.radius)
            gap, distance = self.nearest(self.ball)
            if distance < self.radius:
                away = gap / max(1e-9, float(np.linalg.norm(gap)))
                self.ball = self.ball + (self.radius - distance) * away
                self.speed = self.speed - (1 + self.bounce) * min(0.0, float(self.speed @ away)) * away

    def is_over(self) -> bool:
        return bool(self.is_met(self.ball, self.goal))

    def observe(self) -> Array:
        return np.append(self.ball, 10 * self.speed)

    def achieved(self) -> Array:
        return np.clip(self.ball, 0, 1)

    def seen(self) -> Seen:
        return {key: value.astype(np.float32) for key, value in super().seen().items()}


def play_pinball() -> Any:
    """Follow a path around the obstacles, and accelerate along the axis that lacks more speed."""
    path: list[Array] = []

    def is_free(at: Array) -> bool:
        return bool((at > 0.03).all() and (at < 0.97).all() and PinballDeck.nearest(at)[1] > 0.04)

    def act(observation: Observation) -> int:
        seen, task = observation["observation"].astype(float), PinballDeck
        ball, speed = seen[:2], 0.1 * seen[2:]
        if not path:
            goal = observation["desired_goal"].astype(float)
            path.extend(grid_path(ball, goal, 0.05, is_free))
        while len(path) > 1 and np.linalg.norm(path[0] - ball) < 0.07:
            path.pop(0)
        way = path[0] - ball
        distance = float(np.linalg.norm(way))
        lack = way / max(1e-9, distance) * min(0.04, 0.3 * distance + 0.015) - speed
        axis = int(np.argmax(np.abs(lack)))
        if abs(lack[axis]) < 0.5 * task.thrust:
            return 0
        return 1 + 2 * axis + int(lack[axis] < 0)

    return act


class FourPlates(OwnUnits):
    """Four plates at the sides of an oiled tray of 60 by 60 cm push a puck between them to a place, in centimetres.

    The puck glides on. The reward is 1 at the place, else 0. Actions: accelerations of the northern, the eastern, the
    southern and the western plate, in centimetres per step.
    """

    numbers, thing, near = (12, 2, 4), "puck", 2.5
    limits = (-1.5, -1.5, -1.5, -1.5), (1.5, 1.5, 1.5, 1.5)
    kept, glide, radius, size, bounce = 0.6, 0.8, 3.0, 60.0, 0.3

    def begin(self) -> None:
        self.puck, self.speed, self.rates = self.place(15, 45), np.zeros(2), np.zeros((2, 2))
        room = self.np_random.uniform(2, 9, (2, 2))
        self.plates = np.array([self.puck - self.radius - room[0], self.puck + self.radius + room[1]])
        self.goal = self.puck
        while not 8 < np.linalg.norm(self.goal - self.puck) < 30:
            self.goal = self.place(8, 52)

    def move(self, action: Array) -> None:
        north, east, south, west = self.half * action
        self.rates = self.kept * self.rates + np.array([[west, south], [east, north]])
        moved = np.clip(self.plates + self.rates, 0, self.size)
        is_tight = moved[1] - moved[0] < 2 * self.radius
        self.rates = np.where(is_tight, 0, moved - self.plates)
        self.plates = self.plates + self.rates
        self.speed = self.glide * self.speed
        self.puck = self.puck + self.speed
        low, high = self.plates[0] + self.radius, self.plates[1] - self.radius
        self.speed = np.where(self.puck < low, np.maximum(self.rates[0], -self.bounce * self.speed), self.speed)
        self.speed = np.where(self.puck > high, np.minimum(self.rates[1], -self.bounce * self.speed), self.speed)
        self.puck = np.clip(self.puck, low, high)

    def observe(self) -> Array:
        (west, south), (east, north) = self.plates
        rates = self.rates[[1, 1, 0, 0], [1, 0, 1, 0]]
        return np.array([*self.puck, north, east, south, west, *rates, *self.speed])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the puck is at its place, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)


def squeeze() -> Any:
    """Move each pair of plates to where the puck between them is at its place."""

    def act(observation: Observation) -> Array:
        seen, task, goal = observation["observation"], FourPlates, observation["desired_goal"]
        wish = np.array([goal[1], goal[0], goal[1], goal[0]]) + (task.radius + 0.5) * np.array([1, 1, -1, -1])
        way = np.clip(0.35 * (wish - seen[2:6]), -2.2, 2.2)
        return np.clip(way - task.kept * seen[6:10], -1.5, 1.5).astype(np.float32)

    return act


class FeatherFall(SizedTask):
    """A feather sinks through a room, seen from the front, and sways. A hand takes it and brings it to a place. Metres.

    The feather can be taken in the air or on the floor. Actions: speeds of opening the fingers, upwards and to the right.
    """

    numbers, thing, near = (8, 2, 3), "feather", 0.06
    pace, spread, grab, shut, sink, sway = 0.07, 0.3, 0.07, 0.4, 0.035, 0.025
    low, high = np.array([-1.0, 0.0]), np.array([1.0, 1.5])

    def begin(self) -> None:
        self.feather, self.phase = self.place([-0.6, 0.8], [0.6, 1.3]), float(self.np_random.uniform(0, 2 * math.pi))
        self.hand, self.opening, self.is_held = self.feather, 1.0, False
        self.drift = np.zeros(2)
        while not 0.25 < np.linalg.norm(self.hand - self.feather) < 0.7:
            self.hand = self.place([-0.9, 0.2], [0.9, 1.3])
        self.goal = self.feather
        while np.linalg.norm(self.goal - self.feather) < 0.3:
            self.goal = self.place([-0.8, 0.15], [0.8, 1.3])

    def move(self, action: Array) -> None:
        spread, up, right = action
        self.hand = np.clip(self.hand + self.pace * np.array([right, up]), self.low, self.high)
        self.opening = float(np.clip(self.opening + self.spread * spread, 0, 1))
        before = self.feather
        if not self.is_held and before[1] > 0:
            self.phase += 0.5
            fall = np.array([self.sway * math.sin(self.phase), -self.sink])
            self.feather = np.clip(before + fall, self.low, self.high)
        is_near = np.linalg.norm(self.hand - self.feather) < self.grab
        # Fingers that are shut already take nothing.
        self.is_held = self.opening < self.shut and (self.is_held or bool(is_near and spread < 0))
        if self.is_held:
            self.feather = self.hand
        self.drift = self.feather - before

    def observe(self) -> Array:
        gap = self.feather - self.hand
        return np.array(
            [gap[1], gap[0], self.opening, self.hand[0], self.hand[1], *(20 * self.drift), math.sin(self.phase)]
        )


def take_feather() -> Any:
    """Go to where the feather is next, shut the fingers there, and carry it to the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], FeatherFall
        gap, drift = seen[[1, 0]], 0.05 * seen[5:7]
        if seen[2] < task.shut and np.linalg.norm(gap) < 1e-6:
            right, up = (observation["desired_goal"] - observation["achieved_goal"]) / task.pace
            return clipped(-1, up, right)
        right, up = (gap + drift) / task.pace
        is_near = np.linalg.norm(gap + drift) < task.pace + 0.5 * task.grab
        if seen[2] < task.shut:
            return clipped(1, up, right)
        return clipped(-1 if is_near else (0.5 - seen[2]) / task.spread, up, right)

    return act


class MagLevBall(OwnUnits):
    """A magnet holds a steel ball in the air below it, at a wished gap in millimetres. A step takes 4 milliseconds.

    The ball falls onto a pedestal or sticks to the magnet if the current is wrong. The reward is minus the error.
    Action: the wished current in amperes, which the coil follows with a lag.
    """

    numbers, thing, near = (3, 1, 1), "gap", 0.5
    limits = (0.0,), (2.5,)
    gravity, middle_gap, time, lag, top, pedestal = 9.81, 10.0, 0.004, 0.6, 4.0, 17.0

    def begin(self) -> None:
        self.gap, self.speed = float(self.np_random.uniform(7, 14)), 0.0
        self.current = self.gap / self.middle_gap
        self.goal = np.array([self.gap])
        while abs(self.goal[0] - self.gap) < 2:
            self.goal = self.place(7, 14, 1)

    def move(self, action: Array) -> None:
        wish = float((self.middle + self.half * action)[0])
        for _ in range(4):
            self.current += 0.25 * self.lag * (wish - self.current)
            pull = (self.current * self.middle_gap / self.gap) ** 2
            self.speed += 1000 * self.gravity * (1 - pull) * 0.25 * self.time - 0.005 * self.speed
            to = self.gap + self.speed * 0.25 * self.time
            self.gap = min(self.pedestal, max(self.top, to))
            self.speed = self.speed if to == self.gap else 0.0

    def observe(self) -> Array:
        return np.array([self.current, 0.001 * self.speed, self.gap])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return minus the error in millimetres."""
        return -np.linalg.norm(achieved_goal - desired_goal, axis=-1)


def levitate() -> Any:
    """Hold the ball by the error of its gap and by its speed."""

    def act(observation: Observation) -> Array:
        (current, speed, gap), task, goal = observation["observation"], MagLevBall, float(observation["desired_goal"][0])
        rate = float(np.clip(60 * (goal - gap), -150, 150))
        wished = float(np.clip(80 * (rate - 1000 * speed), -9000, 9000))
        pull = max(0.0, 1 - wished / 1000 / task.gravity)
        needed = gap / task.middle_gap * math.sqrt(pull)
        return np.clip([current + (needed - current) / task.lag], 0, 2.5).astype(np.float32)

    return act


class PixelTank(gymnasium.Env[Seen, Array]):
    """A toy tank drives to a place below a camera, whose picture has 640 by 480 pixels. The second pixel counts downwards.

    The observation has the dots on its tail and its nose, with noise, and the battery in volts. The reward is 1 at
    the goal, which ends the episode, else 0. Actions: pulse widths of the left and the right track; 128 stands still.
    """

    frame, near, pace, width, dead, half_length = np.array([640.0, 480.0]), 15.0, 11.0, 40.0, 14.0, 18.0

    def __init__(self) -> None:
        goal = spaces.Box(0.0, 640.0, (2,), np.float32)
        observed = spaces.Box(-100.0, 740.0, (5,), np.float32)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(0.0, 255.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self.tank, self.volts = self.np_random.uniform(40, self.frame - 40), float(self.np_random.uniform(7.2, 8.2))
        self.heading, self.goal = float(self.np_random.uniform(-math.pi, math.pi)), self.tank
        while not 110 < np.linalg.norm(self.goal - self.tank) < 350:
            self.goal = self.np_random.uniform(20, self.frame - 20)
        return self.seen(), {}

    def seen(self) -> Seen:
        """Return the three parts of the observation."""
        reach = self.half_length * unit(self.heading)
        dots = np.append(self.tank - reach, self.tank + reach) + self.np_random.normal(0, 0.5, 4)
        parts = {"observation": np.append(dots, self.volts), "achieved_goal": self.tank, "desired_goal": self.goal}
        return {key: value.astype(np.float32) for key, value in parts.items()}

    def step(self, action: Array) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        pulse = np.clip(np.asarray(action, np.float64), 0, 255) - 128
        pulse = np.sign(pulse) * np.maximum(0, np.abs(pulse) - self.dead) / (127 - self.dead)
        left, right = self.pace * self.volts / 8 * pulse
        self.heading = wrapped(self.heading + (left - right) / self.width)
        self.tank = np.clip(self.tank + 0.5 * (left + right) * unit(self.heading), 0, self.frame)
        seen = self.seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, reward == 1, False, {"is_success": reward == 1}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the tank is within 15 pixels of the goal, else 0."""
        return (np.linalg.norm(achieved_goal - desired_goal, axis=-1) < self.near).astype(np.float64)


def drive_tank() -> Any:
    """Turn to the goal, and drive there."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"].astype(float), PixelTank
        nose, way = seen[2:4] - seen[:2], observation["desired_goal"] - 0.5 * (seen[2:4] + seen[:2])
        turn = wrapped(math.atan2(way[1], way[0]) - math.atan2(nose[1], nose[0]))
        ahead, spin = max(0.0, 1 - 1.5 * abs(turn)), min(1.0, max(-1.0, turn / 0.5))
        tracks = np.array([ahead + spin, ahead - spin])
        tracks = tracks / max(1.0, float(np.abs(tracks).max()))
        return (128 + np.sign(tracks) * task.dead + (127 - task.dead) * tracks).astype(np.float32)

    return act


TASKS: tuple[Task, ...] = (
    Task("PinballDeck-v0", "obstacles", "closed", PinballDeck, 70, play_pinball),
    Task("FourPlates-v0", "push", "closed", FourPlates, 40, squeeze),
    Task("FeatherFall-v0", "grasp", "closed", FeatherFall, 50, take_feather),
    Task("MagLevBall-v0", "not-a-robot", "closed", MagLevBall, 100, levitate),
    Task("PixelTank-v0", "units", "closed", PixelTank, 55, drive_tank),
)
