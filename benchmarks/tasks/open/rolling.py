"""What rolls and slides: a scoop that tilts takes a ball, and a ram on a ring pushes a puck."""

from __future__ import annotations

import cmath
import math

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask


def _along(one: complex, other: complex) -> float:
    """Return the scalar product of two vectors of the plane, which are complex numbers."""
    return one.real * other.real + one.imag * other.imag


def _nearest(first: complex, last: complex, point: complex) -> complex:
    """Return the point of a line from `first` to `last` that is nearest to `point`."""
    line = last - first
    return first + min(1.0, max(0.0, _along(point - first, line) / _along(line, line))) * line


def _pair(vector: complex) -> Array:
    return np.array([vector.real, vector.imag])


def _action(*numbers: float) -> Array:
    return np.array([min(1.0, max(-1.0, number)) for number in numbers], np.float32)


class ScoopBall(GoalTask):
    """A scoop, seen from the side, gets under a ball on the floor, tilts back and carries it, to the floor or into the air.

    The scoop is a blade with a wall at its rear end, about which it tilts. Its opening is on the right. The ball lies in
    it loosely, and rolls out if the scoop tilts forward or brakes hard. The action gives the speeds of the rear end
    (x, y) and of the tilt. Metres, seconds and radians.
    """

    near, radius, blade, wall, most_tilt = 0.04, 0.03, 0.13, 0.08, 0.9
    most, pause, parts = np.array([0.8, 0.8, 4.0]), 0.05, 5  # largest speeds; seconds in a step, and its parts

    def __init__(self) -> None:
        super().__init__(11, 2, 3)

    def begin(self) -> None:
        """Put the ball on the floor and the scoop above it or on its left."""
        draw = self.np_random.uniform
        self.ball, self.speed = complex(draw(-0.2, 0.25), self.radius), 0j
        self.pose = np.array([self.ball.real - draw(-0.05, 0.35), draw(0.08, 0.2), draw(-0.1, 0.4)])
        self.rate, self.goal = np.zeros(3), _pair(self.ball)
        while np.linalg.norm(self.goal - _pair(self.ball)) < 0.1:
            self.goal = np.array([draw(-0.3, 0.35), draw(0.1, 0.35) if draw() < 0.7 else self.radius])

    def move(self, action: Array) -> None:
        """Bring the speeds of the scoop halfway to those of the action, and let the ball roll and fall."""
        self.rate = 0.5 * (self.rate + self.most * action)
        part = self.pause / self.parts
        for _ in range(self.parts):
            before = self.pose
            x, y, tilt = (before + part * self.rate).tolist()
            tilt = min(self.most_tilt, max(-0.5, tilt))
            self.pose = np.array([min(0.5, max(-0.6, x)), min(0.5, max(0.0, y, -self.blade * math.sin(tilt))), tilt])
            self.rate = (self.pose - before) / part
            self.speed -= 9.81j * part
            self.ball += part * self.speed
            if self._touch() > 0 and self._touch() > 0.2 * self.radius and self._touch() > 0.2 * self.radius:
                self.pose, self.rate = before, np.zeros(3)  # the ball is jammed under the scoop, which stalls

    def _touch(self) -> float:
        """Move the ball out of blade, wall and floor. Return how deep it was in the scoop."""
        deepest, (x, y, tilt), (rate_x, rate_y, spin) = 0.0, self.pose.tolist(), self.rate.tolist()
        rear, along = complex(x, y), cmath.rect(1, tilt)
        for end in (rear + self.blade * along, rear + self.wall * 1j * along):
            point = _nearest(rear, end, self.ball)
            gap = self.ball - point
            distance = max(1e-6, abs(gap))
            if distance < self.radius:
                deepest, normal = max(deepest, self.radius - distance), gap / distance
                slip = self.speed - complex(rate_x, rate_y) - 1j * spin * (point - rear)
                into = _along(slip, normal)
                self.ball = point + self.radius * normal
                self.speed -= min(0.0, into) * normal + 0.04 * (slip - into * normal)
        if self.ball.imag <= self.radius:  # the floor
            self.ball = complex(self.ball.real, self.radius)
            self.speed = complex(0.96 * self.speed.real, max(0.0, self.speed.imag))
        if abs(self.ball.real) > 0.5:  # a kerb
            self.ball, self.speed = complex(math.copysign(0.5, self.ball.real), self.ball.imag), 1j * self.speed.imag
        return deepest

    def observe(self) -> Array:
        """Return ball, speeds of the scoop, its height, cosine, sine and x, and speed of the ball."""
        x, y, tilt = self.pose
        return np.array([*_pair(self.ball), *self.rate, y, math.cos(tilt), math.sin(tilt), x, *_pair(self.speed)])

    def achieved(self) -> Array:
        """Return the position of the ball."""
        return _pair(self.ball)


def scoop(observation: Observation) -> Array:
    """Go to the left of the ball, down, forward until the ball is in, tilt back, and carry it."""
    seen, ball = observation["observation"], observation["achieved_goal"]
    rear, tilt = seen[[8, 5]], math.atan2(seen[7], seen[6])
    gap, flat = ball - rear, -tilt / 0.2
    along, above = gap @ seen[6:8], gap[1] * seen[6] - gap[0] * seen[7]
    if 0 < along < 0.1 and 0.02 < above < 0.06:
        wish = (observation["desired_goal"] - ball) * (0.2 / 0.04 if tilt > 0.3 else 0.0)
        wish = wish / max(1.0, 2.0 * math.hypot(*wish))
        return _action(*wish, (0.45 - tilt) / 0.2)
    if gap[0] > ScoopBall.blade - 0.05 and rear[1] < 0.01:
        return _action(0.6, -1, flat)
    if gap[0] > ScoopBall.blade + 0.035:
        return _action((gap[0] - 0.2) / 0.04, -1, flat)
    return _action(-1 if rear[1] > 0.07 else 0, (0.1 - rear[1]) / 0.04, flat)


class RingRam(GoalTask):
    """A ram travels on a ring round a table, swivels, and extends a rod with a flat head, which pushes a puck.

    The side of the rod pushes the puck too. The puck slides on until friction stops it. The action gives the speeds of
    travel, swivel and rod. Centimetres and degrees.
    """

    near, radius, ring, head, rim, friction = 3.0, 4.0, 50.0, 6.0, 36.0, 0.25
    most, lowest, highest = np.array([9.0, 6.0, 4.5]), np.array([-np.inf, -50, 5]), np.array([np.inf, 50, 75])
    parts = 4  # of a step

    def __init__(self) -> None:
        super().__init__(13, 2, 3)

    def begin(self) -> None:
        """Put the puck near the middle and the ram anywhere, with its rod half out but off the puck."""
        draw = self.np_random.uniform
        self.puck, self.slide, self.rate = complex(*draw(-13, 13, 2)), 0j, np.zeros(3)
        self.pose = np.array([draw(-180, 180), draw(-15, 15), draw(15, 40)])
        while min(abs(self.puck - _nearest(*line, self.puck)) for line in self.lines()) < 1.5 * self.radius:
            self.pose = np.array([draw(-180, 180), draw(-15, 15), draw(15, 40)])
        self.goal = _pair(self.puck)
        while not 7 < np.linalg.norm(self.goal - _pair(self.puck)) < 25:
            self.goal = draw(-18, 18, 2)

    def lines(self) -> tuple[tuple[complex, complex], tuple[complex, complex]]:
        """Return the ends of the head, and those of the rod: its base on the ring and its tip."""
        travel, swivel, rod = self.pose.tolist()
        base, ahead = cmath.rect(self.ring, math.radians(travel)), cmath.rect(1, math.radians(travel + 180 + swivel))
        tip = base + rod * ahead
        return (tip - 1j * self.head * ahead, tip + 1j * self.head * ahead), (base, tip)

    def move(self, action: Array) -> None:
        """Change the speeds of the ram, move it, and slide the puck or push it out of the way."""
        self.rate = 0.4 * self.rate + 0.6 * self.most * action
        for _ in range(self.parts):
            before = self.pose
            self.pose = np.minimum(np.maximum(before + self.rate / self.parts, self.lowest), self.highest)
            self.rate, lines = (self.pose - before) * self.parts, self.lines()
            was, pushed = self.puck, False
            self.puck += self.slide / self.parts
            for line in lines:
                point = _nearest(*line, self.puck)
                distance = max(1e-6, abs(self.puck - point))
                if distance < self.radius:
                    self.puck, pushed = point + self.radius / distance * (self.puck - point), True
            if pushed:
                self.slide = (self.puck - was) * self.parts
            if abs(self.puck) > self.rim:
                self.puck, self.slide = self.puck * self.rim / abs(self.puck), 0j
                if abs(self.puck - _nearest(*lines[0], self.puck)) < self.radius - 0.2:
                    self.pose, self.rate = before, np.zeros(3)  # the puck is jammed at the rim, and the ram stalls
            speed = max(1e-6, abs(self.slide))
            self.slide *= max(0.0, min(8.0, speed) - self.friction) / speed

    def observe(self) -> Array:
        """Return rod, puck, direction of the ram, its speeds, tip of the rod, swivel, and slide of the puck."""
        travel, swivel, rod = self.pose
        ram, tip = _pair(cmath.rect(1, math.radians(travel))), _pair(self.lines()[1][1])
        return np.array([rod, *_pair(self.puck), *ram, *self.rate, *tip, swivel, *_pair(self.slide)])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return _pair(self.puck)


def ram(observation: Observation) -> Array:
    """Draw the rod back, travel to where the line from the goal through the puck meets the ring, aim, and push."""
    seen, puck, task = observation["observation"], observation["achieved_goal"], RingRam
    way = observation["desired_goal"] - puck
    distance = max(1e-6, math.hypot(*way))
    ahead, base, slide = way / distance, task.ring * seen[3:5], seen[11:13]
    back = puck @ ahead + math.sqrt((puck @ ahead) ** 2 + task.ring**2 - puck @ puck)
    place = puck - back * ahead
    travel, aim = math.atan2(seen[4], seen[3]), math.atan2(ahead[1], ahead[0])
    off = _turn(math.degrees(math.atan2(place[1], place[0]) - travel))
    swivel = _turn(math.degrees(aim - travel) - 180) - seen[10]
    free = (puck - base) @ ahead - task.radius - seen[0]  # from the head to the puck
    missing = distance - (slide @ slide) / (2 * task.friction * task.parts)
    rod = -1.0
    if distance < 1.0 or (missing < 0.5 and distance < 8):
        off, swivel, rod = 0.0, 0.0, -seen[7] / 10  # it is there, or slides there
    elif abs(off) < 4 and abs(swivel) < 6 and free > -1:
        rod = min(1.0, 0.06 * distance + 0.1 * max(0.0, free))
    elif seen[0] > 9 and free > 4 and abs(off) < 15:
        rod = 0.0
    clear = rod >= 0 or seen[0] < 14 or free > 12
    return _action(off / 9 if clear else 0, swivel / 6 if clear else 0, rod)


def _turn(angle: float) -> float:
    """Return an angle between -180 and 180 degrees."""
    return (angle + 180) % 360 - 180


TASKS = (
    Task("ScoopBall-v0", "grasp", "open", ScoopBall, 60, lambda: scoop),
    Task("RingRam-v0", "push", "open", RingRam, 80, lambda: ram),
)
