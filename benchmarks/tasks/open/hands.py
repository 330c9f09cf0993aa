"""Open tasks: a sling, a sheet of paper, a garage door, hockey in a hall, and a spatula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, push_out, toward_push, unit


class SlingMarble(SizedTask):
    """A hand draws the pouch of a sling back and lets go: the marble rolls the other way and comes to rest at a place.

    The stronger the rubber, the farther. There is one marble in an episode. Actions: velocities of the hand, and letting go
    (above 0.8). Metres.
    """

    numbers, thing, near = (8, 2, 3), "marble", 0.15
    pace, longest, kept = 0.06, 0.5, 0.85

    def begin(self) -> None:
        self.hand, self.is_held = self.place(-0.05, 0.05), True
        self.marble, self.speed = self.hand, np.zeros(2)
        self.rubber = float(self.np_random.uniform(0.8, 1.2))
        self.goal = self.np_random.uniform(0.7, 2.0) * unit(self.np_random.uniform(0, math.pi))

    def move(self, action: Array) -> None:
        if self.is_held and action[2] > 0.8:
            self.is_held, self.speed = False, -self.rubber * self.hand
        self.hand = self.hand + self.pace * action[:2]
        self.hand = self.hand * min(1.0, self.longest / max(1e-9, float(np.linalg.norm(self.hand))))
        if self.is_held:
            self.marble = self.hand
        else:
            self.marble, self.speed = self.marble + self.speed, self.kept * self.speed

    def observe(self) -> Array:
        (x, y), tension = self.marble, self.rubber * float(np.linalg.norm(self.hand)) * self.is_held
        return np.array([tension, *self.hand, self.is_held, y, x, *(10 * self.speed)])


def sling() -> Any:
    """Draw the pouch to the place from which the marble rolls to the goal, and let go."""

    def act(observation: Observation) -> Array:
        seen, goal, task = observation["observation"], observation["desired_goal"], SlingMarble
        hand, tension = seen[1:3], seen[0]
        rubber = tension / max(1e-9, float(np.linalg.norm(hand)))
        if not seen[3] or rubber == 0:
            return clipped(0, 0, -1)
        way = -goal / (rubber / (1 - task.kept) - 1) - hand
        return clipped(*(way / task.pace), 1 if np.linalg.norm(way) < 0.004 else -1)

    return act


class SheetFinger(SizedTask):
    """A finger on a desk moves a sheet of paper to a place, in centimetres. It slips if it is dry: a wet sponge helps.

    Pressed on the sponge it becomes wet, and dries slowly. Actions: velocities, and pressing (above 0).
    """

    numbers, thing, near = (8, 2, 3), "sheet", 3.0
    pace, sponge, soft, half, least = 4.0, np.array([-22.0, 12.0]), 5.0, np.array([7.0, 5.0]), 0.2
    wide = np.array([30.0, 20.0])

    def begin(self) -> None:
        self.sheet = self.place([-12, -12], [20, 12])
        self.finger, self.is_pressed = self.place(-self.wide, self.wide), False
        self.wet = float(self.np_random.uniform(0, 0.5))
        self.goal = self.sheet
        while not 8 < np.linalg.norm(self.goal - self.sheet) < 25:
            self.goal = self.place([-15, -14], [24, 14])

    def move(self, action: Array) -> None:
        before = self.finger
        self.finger = np.clip(before + self.pace * action[:2], -self.wide, self.wide)
        self.is_pressed = bool(action[2] > 0)
        is_on = bool((np.abs(before - self.sheet) < self.half).all())
        if self.is_pressed and is_on and self.wet > self.least:
            self.sheet, self.wet = self.sheet + self.finger - before, self.wet - 0.02
        if self.is_pressed and np.linalg.norm(self.finger - self.sponge) < self.soft:
            self.wet = 1.0
        self.wet *= 0.985

    def observe(self) -> Array:
        (x, y), (along, across) = self.finger, self.sheet - self.finger
        return np.array([self.wet, x, along, self.is_pressed, y, across, *self.sheet])


def slide_sheet() -> Any:
    """Wet the finger if it is too dry, press it on the sheet, and draw."""
    is_wetting = False

    def act(observation: Observation) -> Array:
        nonlocal is_wetting
        wet, x, along, _, y, across, *_ = observation["observation"]
        task, way = SheetFinger, observation["desired_goal"] - observation["achieved_goal"]
        is_wetting = wet < (0.8 if is_wetting else 0.25)
        if np.linalg.norm(way) < 1.5:
            return clipped(0, 0, -1)
        if is_wetting:
            gap = task.sponge - [x, y]
            return clipped(*(gap / task.pace), 1 if np.linalg.norm(gap) < 7 else -1)
        if abs(along) < 5 and abs(across) < 3.5:
            return clipped(*(way / task.pace), 1)
        return clipped(along / task.pace, across / task.pace, -1)

    return act


class GarageDoor(SizedTask):
    """A hand, seen from the side, swings a garage door by its handle to an angle, in degrees, and holds it there.

    A spring shuts the door if nobody holds it, or opens it wholly if it is more than half open. Actions: velocities along
    and up, and the grip. Metres.
    """

    numbers, near = (9, 1, 3), 3.0
    hinge, length, pace, grab, most = 2.2, 1.7, 0.1, 0.12, 1.5
    low, high = np.array([-0.5, 0.1]), np.array([2.2, 2.4])

    def begin(self) -> None:
        self.angle, self.turn, self.is_held = self.most * float(self.np_random.integers(2)), 0.0, False
        self.hand = self.handle() + self.np_random.uniform(0.3, 0.7) * unit(self.np_random.uniform(-math.pi, math.pi))
        self.hand = np.clip(self.hand, self.low, self.high)
        self.goal = self.achieved()
        while abs(self.goal - self.achieved()) < 15:
            self.goal = self.place(10, 80, 1)

    def handle(self) -> Array:
        """Return where the handle is: along, and above the ground."""
        return np.array([self.length * math.sin(self.angle), self.hinge - self.length * math.cos(self.angle)])

    def achieved(self) -> Array:
        return np.array([math.degrees(self.angle)])

    def move(self, action: Array) -> None:
        is_near = bool(np.linalg.norm(self.handle() - self.hand) < self.grab)
        self.is_held = bool(action[2] > 0) and (self.is_held or is_near)
        step, before = self.pace * action[:2], self.angle
        if self.is_held:
            change = float(step @ unit(self.angle)) / self.length
        else:
            change = 0.04 if self.angle > 0.5 * self.most else -0.04
        self.angle = min(self.most, max(0.0, self.angle + change))
        self.turn = self.angle - before
        self.hand = self.handle() if self.is_held else np.clip(self.hand + step, self.low, self.high)

    def observe(self) -> Array:
        (along, up), (to, above) = self.hand, self.handle() - self.hand
        return np.array([along, up, self.is_held, math.hypot(to, above), self.angle, 10 * self.turn, above, to, self.hinge])


def swing_door() -> Any:
    """Go to the handle, hold it, and move along the arc."""

    def act(observation: Observation) -> Array:
        task, seen = GarageDoor, observation["observation"]
        if not seen[2]:
            return clipped(seen[7] / task.pace, seen[6] / task.pace, 1)
        lack = math.radians(float(observation["desired_goal"][0])) - seen[4]
        return clipped(*(lack * task.length / task.pace * unit(seen[4])), 1)

    return act


class IndoorHockey(SizedTask):
    """A stick hits a ball on the floor of a hall with boards at its sides. The ball shall come to rest at a place. Metres.

    The stick does not come beyond the line at 0.8 metres. Actions: velocities of the stick.
    """

    numbers, thing, near = (9, 2, 2), "ball", 0.2
    pace, kept, bounce, contact, line = 0.12, 0.9, 0.8, 0.12, 0.8
    low, high = np.array([-1.0, -0.2]), np.array([1.0, 2.8])

    def begin(self) -> None:
        self.ball, self.speed, self.rate = self.place([-0.5, 0.35], [0.5, 0.6]), np.zeros(2), np.zeros(2)
        self.stick, self.goal = self.place([-0.6, -0.1], [0.6, 0.15]), self.place([-0.7, 1.1], [0.7, 2.2])

    def move(self, action: Array) -> None:
        before = self.stick
        self.stick = np.clip(before + self.pace * action, self.low, [self.high[0], self.line])
        self.rate = self.stick - before
        gap = self.ball - self.stick
        far = float(np.linalg.norm(gap))
        if far < self.contact:
            normal = gap / max(far, 1e-9)
            self.speed = self.speed + (1 + self.bounce) * max(0.0, float((self.rate - self.speed) @ normal)) * normal
        self.ball = self.ball + self.speed
        is_out = (self.ball < self.low) | (self.ball > self.high)
        self.ball = np.clip(self.ball, self.low, self.high)
        self.speed = self.kept * np.where(is_out, -0.7 * self.speed, self.speed)

    def observe(self) -> Array:
        (x, y), (along, up) = self.ball, 10 * self.speed
        return np.array([*(self.ball - self.stick), x, along, y, up, *(10 * self.rate), self.line - self.stick[1]])


def strike() -> Any:
    """Go behind the resting ball as seen from the goal, and hit it with the right speed; then wait."""

    def act(observation: Observation) -> Array:
        seen, task, ball = observation["observation"], IndoorHockey, observation["achieved_goal"]
        way, stick = observation["desired_goal"] - ball, ball - seen[:2]
        far = float(np.linalg.norm(way))
        if math.hypot(seen[3], seen[5]) > 0.1 or far < 0.15 or ball[1] > task.line:
            return clipped(0, 0)
        ahead = way / far
        side = np.array([-ahead[1], ahead[0]])
        along, across = float((stick - ball) @ ahead), float((stick - ball) @ side)
        if along < -0.5 * task.contact and abs(across) < 0.004:
            return clipped(*(far * (1 - task.kept) / (1 + task.bounce) / task.pace * ahead))
        start = ball - 0.2 * ahead
        if along > -0.18 or abs(across) > 0.1:
            start = np.array([start[0], min(stick[1], ball[1] - 0.25)]) if abs(start[0] - stick[0]) > 0.01 else start
        step = start - stick
        return clipped(*(step / max(task.pace, float(np.abs(step).max()))))

    return act


class SpatulaOven(SizedTask):
    """A hand takes a spatula from the table and moves a biscuit with it to a place on the tray in the oven, in metres.

    The hand itself stays before the oven; the blade is half a metre before the hand. Actions: velocities, and the grip.
    """

    numbers, thing, near = (8, 2, 3), "biscuit", 0.06
    pace, grab, reach, contact = 0.07, 0.08, np.array([0.0, 0.5]), 0.1
    low, high = np.array([-0.7, -0.3]), np.array([0.7, 0.5])

    def begin(self) -> None:
        self.biscuit, self.is_held = self.place([-0.35, 0.64], [0.35, 0.78]), False
        self.spatula, self.hand = self.place([-0.4, -0.2], [0.4, 0.0]), self.place([-0.5, -0.3], [0.5, 0.2])
        self.goal = self.biscuit
        while np.linalg.norm(self.goal - self.biscuit) < 0.15:
            self.goal = self.place([-0.45, 0.6], [0.45, 0.9])

    def move(self, action: Array) -> None:
        is_near = bool(np.linalg.norm(self.spatula - self.hand) < self.grab)
        was_held, self.is_held = self.is_held, bool(action[2] > 0) and (self.is_held or is_near)
        if self.is_held and not was_held:
            self.hand = self.spatula
        self.hand = np.clip(self.hand + self.pace * action[:2], self.low, self.high)
        if self.is_held:
            self.spatula = self.hand
        self.biscuit = self.biscuit + push_out(self.biscuit, self.spatula + self.reach, self.contact)
        self.biscuit = np.clip(self.biscuit, [-0.6, 0.5], [0.6, 1.0])

    def observe(self) -> Array:
        warm = 180 + self.np_random.normal(0, 2)
        return np.array([*(self.biscuit - self.hand), *self.hand, warm, *self.spatula, self.is_held])


def bake() -> Any:
    """Take the spatula, go around the biscuit with the blade, and push."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], SpatulaOven
        hand, spatula = seen[2:4], seen[5:7]
        if seen[7]:
            way = toward_push(hand + task.reach, hand + seen[:2], observation["desired_goal"], task.contact, task.near)
        else:
            way = spatula - hand
        return clipped(*(way / max(task.pace, float(np.abs(way).max()))), 1)

    return act


TASKS: tuple[Task, ...] = (
    Task("SlingMarble-v0", "hit", "open", SlingMarble, 40, sling),
    Task("SheetFinger-v0", "later", "open", SheetFinger, 60, slide_sheet),
    Task("GarageDoor-v0", "pull", "open", GarageDoor, 40, swing_door),
    Task("IndoorHockey-v0", "hit", "open", IndoorHockey, 50, strike),
    Task("SpatulaOven-v0", "later", "open", SpatulaOven, 60, bake),
)
