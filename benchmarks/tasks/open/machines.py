"""A ladder that is carried through a door, a bulldozer with two tracks, and a robot in the rooms of a hotel."""

from __future__ import annotations

from math import atan2, cos, hypot, pi, sin
from typing import Any

import numpy as np

from ..task import Observation, Task
from .angles import wrapped
from .base import Array, GoalTask, unit

GOALS = ("achieved_goal", "desired_goal")


class LadderDoor(GoalTask):
    """A cart carries a long ladder through the door of a wall between two rooms. Lengths are in metres.

    The wall is along y, at x = 0, and the door is elsewhere in each episode. Actions are the wished speed along the ladder,
    the one across it, and the turn.
    """

    near, half, wall, door_half, size = 0.25, 1.1, 0.15, 0.45, np.array([4.0, 3.0])  # size: half of both rooms together
    most = np.array([0.3, 0.18, 0.2])  # metres and radians in a step

    def __init__(self) -> None:
        super().__init__(12, 2, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.door, self.at, self.angle = draw(-1.4, 1.4), self.room(self.np_random.choice([-1, 1])), draw(-np.pi, np.pi)
        self.motion, self.odometer, self.goal = np.zeros(3), draw(0, 20), self.at
        while np.linalg.norm(self.goal - self.at) < 1.0:
            self.goal = self.room(np.sign(self.at[0]) * (1 if draw() < 0.2 else -1))

    def room(self, side: float) -> Array:
        """Draw a position in one of the rooms where the ladder can lie in any direction."""
        x, y = self.place([1.4, -1.7], [2.7, 1.7])
        return np.array([side * x, y])

    def is_free(self, x: float, y: float, angle: float) -> bool:
        """Return whether the ladder touches neither the outer walls nor the one between the rooms."""
        along, up = cos(angle), sin(angle)
        if abs(x) + self.half * abs(along) > self.size[0] or abs(y) + self.half * abs(up) > self.size[1]:
            return False
        along = along if abs(along) > 1e-6 else 1e-6
        first, last = sorted(((-self.wall - x) / along, (self.wall - x) / along))  # the part of the ladder in the wall
        first, last = max(first, -self.half), min(last, self.half)
        return first > last or max(abs(y + t * up - self.door) for t in (first, last)) < self.door_half

    def move(self, action: Array) -> None:
        self.motion = 0.5 * self.motion + 0.5 * self.most * action
        for _ in range(3):
            ahead, aside = self.motion[:2] / 3
            along, up = unit(self.angle)
            shift = np.array([ahead * along - aside * up, ahead * up + aside * along])
            for step in (shift * [1, 0], shift * [0, 1]):  # along a wall, the ladder slides
                if self.is_free(*(self.at + step), self.angle):
                    self.at = self.at + step
            if self.is_free(*self.at, self.angle + self.motion[2] / 3):
                self.angle += self.motion[2] / 3
        self.odometer += float(np.abs(self.motion[:2]).sum())

    def observe(self) -> Array:
        (x, y), (along, up), (ahead, aside, turn) = self.at, unit(self.angle), self.motion
        front_x, front_y = self.at + self.half * unit(self.angle)
        rest = [along, 2 * x - front_x, ahead, self.door, 2 * y - front_y, turn]
        return np.array([front_y, self.odometer, *rest, front_x, up, aside, self.door - y + self.np_random.normal(0, 0.02)])

    def achieved(self) -> Array:
        return self.at.copy()


def carry_ladder(observation: Observation) -> Array:
    """Lay the ladder at right angles to the door, in front of it, and go through; else go straight to the goal."""
    seen, ((x, y), (goal_x, goal_y)) = observation["observation"], (observation[key] for key in GOALS)
    along, up, motion, side = seen[2], seen[9], seen[[4, 10, 7]], np.sign(goal_x)
    turn, to = 0.0, np.array([goal_x - x, goal_y - y])
    if x * side < 1.35:
        off = seen[5] - y
        turn = -np.arctan(up / along if abs(along) > 0.01 else 100.0)
        is_ready = abs(off) < 0.15 and abs(turn) < 0.1
        to = np.array([1.0 * side if is_ready or x * side > -1.2 else -1.35 * side - x, off])
    wish = np.array([to @ [along, up], to @ [-up, along], turn])
    return np.clip((0.6 * wish - 0.5 * motion) / (0.5 * LadderDoor.most), -1, 1).astype(np.float32)


class DozerBoulder(GoalTask):
    """A bulldozer pushes a boulder with its blade, which has short wings, over a yard to a position. Lengths are in metres.

    Actions are the speeds of the left and of the right track. The tracks slip. The heading is that of a compass.
    """

    near, radius, size, fastest = 0.5, 0.6, 7.0, 0.3
    # From and to, ahead of the middle and to the right of it, and the thickness: body, left wing, blade and right wing.
    parts = ((0, 0, 0, 0, 0.8), (1.0, 1.3, -0.8, -0.8, 0), (1.0, 1.0, -0.8, 0.8, 0), (1.0, 1.3, 0.8, 0.8, 0))

    def __init__(self) -> None:
        super().__init__(11, 2, 2)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.boulder = self.goal = self.dozer = self.place(-3.2, 3.2)
        while not 2.0 < np.linalg.norm(self.goal - self.boulder) < 4.5:
            self.goal = self.place(-4.5, 4.5)
        while not 2.4 < np.linalg.norm(self.dozer - self.boulder) < 3.5:
            self.dozer = self.place(-5, 5)
        self.heading, self.tracks, self.load = draw(-np.pi, np.pi), np.zeros(2), 0.0

    def move(self, action: Array) -> None:
        self.tracks = 0.4 * self.tracks + 0.6 * self.fastest * action * (1 + 0.03 * self.np_random.normal(size=2))
        before = self.boulder
        for _ in range(3):
            self.heading += (self.tracks[0] - self.tracks[1]) / 1.4 / 3
            forward = unit(np.pi / 2 - self.heading)
            right = np.array([forward[1], -forward[0]])
            self.dozer = np.clip(self.dozer + self.tracks.mean() / 3 * forward, -self.size, self.size)
            gap = self.boulder - self.dozer
            ahead, aside = self.pushed(float(gap @ forward), float(gap @ right))
            self.boulder = np.clip(self.dozer + ahead * forward + aside * right, -self.size, self.size)
        self.load = 80 * float(np.linalg.norm(self.boulder - before))

    def pushed(self, ahead: float, aside: float) -> tuple[float, float]:
        """Return where the boulder is, seen from the dozer, after each part pushed it away."""
        for back, front, left, right, thick in self.parts:
            gap_x, gap_y = ahead - min(max(ahead, back), front), aside - min(max(aside, left), right)
            distance = max(hypot(gap_x, gap_y), 1e-6)
            if distance < self.radius + thick:
                more = (self.radius + thick) / distance - 1
                ahead, aside = ahead + more * gap_x, aside + more * gap_y
        return ahead, aside

    def observe(self) -> Array:
        (east, north), (left, right), (x, y) = self.dozer, self.tracks, self.boulder
        distance = np.linalg.norm(self.boulder - self.dozer) + self.np_random.normal(0, 0.02)
        load = self.load + self.np_random.normal(0, 0.5)
        return np.array([left, north, cos(self.heading), load, x, distance, east, sin(self.heading), right, self.size, y])

    def achieved(self) -> Array:
        return self.boulder.copy()


def push_boulder() -> Any:
    """Drive around the boulder to a position behind it, and push it. Begin again if it slips off the blade."""
    is_pushing = False

    def act(observation: Observation) -> Array:
        nonlocal is_pushing
        seen, boulder = observation["observation"], observation["achieved_goal"]
        to, gap = observation["desired_goal"] - boulder, boulder - seen[[6, 1]]
        missing, left = float(np.linalg.norm(to)), np.array([-to[1], to[0]]) / np.linalg.norm(to)
        ahead, askew = gap @ to / missing, gap @ left
        if missing < 0.25:
            return np.zeros(2, np.float32)
        is_pushing = bool(abs(askew) < (0.6 if is_pushing else 0.2) and 1.3 < ahead < 2.8)
        bearing = np.arctan2(-gap[1], -gap[0])  # of the dozer, from the boulder
        around = (np.arctan2(-to[1], -to[0]) - bearing + np.pi) % (2 * np.pi) - np.pi
        far, part = (2.1, around) if abs(around) < 0.6 else (2.5, np.copysign(0.6, around))
        way = to if is_pushing else gap + far * unit(bearing + part)
        turn = (atan2(*way) - atan2(seen[7], seen[2]) + np.pi) % (2 * np.pi) - np.pi
        spin = np.clip(0.9 * turn - 0.4 * (seen[0] - seen[8]), -1, 1)
        speed = max(0.0, cos(turn)) ** 3 * min(1.0, 0.3 + (missing if is_pushing else np.linalg.norm(way)))
        return np.clip([speed + spin, speed - spin], -1, 1).astype(np.float32)

    return act


class HotelRobot(GoalTask):
    """A round robot drives from a room of a hotel to another one, or into the corridor. Lengths are in metres.

    Two rooms lie on either side of a corridor along x, each with a door to it. Actions are the wished speed, negative to go
    back, and the wished turn, to the left above 0. The robot slides along walls.
    """

    near, radius, wall, door_half, fastest, sharpest = 0.3, 0.2, 0.8, 0.5, 0.28, 0.5  # the corridor is from -wall to wall
    doors = ((-2.2, 0.9), (-0.9, 2.1))  # the position along x of the left and of the right door, above and below

    def __init__(self) -> None:
        super().__init__(9, 2, 2)

    def begin(self) -> None:
        draw = self.np_random.uniform
        first, second = self.np_random.choice(4, 2, replace=False)
        self.at, self.goal = self.room(first), self.room(second)
        if draw() < 0.15:
            self.goal = self.place([-2.7, -0.5], [2.7, 0.5])
        self.heading, self.speed, self.turn, self.bump, self.battery = draw(-pi, pi), 0.0, 0.0, 0.0, draw(40, 100)

    def room(self, number: int) -> Array:
        """Draw a position in a room."""
        return self.place([0.4, 1.2], [2.6, 2.8]) * [1 - 2 * (number % 2), 1 - 2 * (number // 2)]

    def is_free(self, x: float, y: float) -> bool:
        """Return whether the robot touches no wall."""
        if abs(x) > 3.0 - self.radius or abs(y) > 3.2 - self.radius:
            return False
        if abs(abs(y) - self.wall) > self.radius:
            return abs(y) < self.wall or abs(x) > self.radius
        return any(abs(x - door) < self.door_half - self.radius for door in self.doors[int(y < 0)])

    def move(self, action: Array) -> None:
        self.speed = 0.5 * self.speed + 0.5 * self.fastest * float(action[0])
        self.turn = 0.4 * self.turn + 0.6 * self.sharpest * float(action[1])
        self.bump, (x, y) = 0.0, self.at.tolist()
        for _ in range(3):
            self.heading = wrapped(self.heading + self.turn / 3)
            to_x, to_y = x + self.speed / 3 * cos(self.heading), y + self.speed / 3 * sin(self.heading)
            if self.is_free(to_x, y):
                x = to_x
            if self.is_free(x, to_y):
                y = to_y
            self.bump = max(self.bump, float(x != to_x or y != to_y))
        self.at = np.array([x, y])
        self.battery -= 0.05 + 0.2 * abs(self.speed)

    def observe(self) -> Array:
        (x, y), (noise_left, noise_right) = self.at, 1 + 0.02 * self.np_random.normal(size=2)
        left, right = self.speed - 0.18 * self.turn, self.speed + 0.18 * self.turn  # wheels
        pose = [x, y, wrapped(self.heading + 0.01 * self.np_random.normal())]
        return np.array([self.battery, *pose, left * noise_left, right * noise_right, self.bump, self.speed, self.turn])

    def achieved(self) -> Array:
        return self.at.copy()


def serve(observation: Observation) -> Array:
    """Leave the room by its door, follow the middle of the corridor, and enter the other room."""
    seen, ((x, y), (goal_x, goal_y)) = observation["observation"], (observation[key] for key in GOALS)
    side, goal_side = 1 if y > 0 else -1, 1 if goal_y > 0 else -1
    doors = HotelRobot.doors[int(y < 0)]
    door, goal_door = doors[int(x > 0)], HotelRobot.doors[int(goal_y < 0)][int(goal_x > 0)]
    is_inside, is_room = abs(y) > 1.05, abs(goal_y) > 0.8
    if (is_inside and is_room and (side, x > 0) == (goal_side, goal_x > 0)) or not (is_room or abs(y) > 0.6):
        to = goal_x, goal_y
    elif is_inside:
        to = (door, 0.0) if abs(x - door) < 0.15 else (door, 1.35 * side)
    elif is_room and abs(x - goal_door) < (0.15 if abs(y) < 0.4 else 0.3) and (side == goal_side or abs(y) < 0.4):
        to = goal_door, 1.35 * goal_side
    else:
        to = (goal_door if is_room else goal_x, 0.0) if abs(y) < 0.4 else (min(doors, key=lambda d: abs(d - x)), 0.0)
    away, turn = hypot(to[0] - x, to[1] - y), wrapped(atan2(to[1] - y, to[0] - x) - seen[3])
    if away < 0.12:
        return np.zeros(2, np.float32)
    speed = max(0.0, cos(turn)) ** 6 * min(1.0, 2.5 * away)
    return np.clip([speed, (0.8 * turn - 0.4 * seen[8]) / (0.6 * HotelRobot.sharpest)], -1, 1).astype(np.float32)


TASKS = (
    Task("LadderDoor-v0", "obstacles", "open", LadderDoor, 80, lambda: carry_ladder),
    Task("DozerBoulder-v0", "push", "open", DozerBoulder, 100, push_boulder),
    Task("HotelRobot-v0", "obstacles", "open", HotelRobot, 100, lambda: serve),
)
