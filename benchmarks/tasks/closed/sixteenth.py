"""Closed tasks: a waiter, a belt, a curtain, and the dial of a safe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, push_out, toward_push, unit, wrapped
from ..task import Observation, Task


class SoupWaiter(SizedTask):
    """A robot on wheels brings a bowl of soup to a table of a dining room. The soup sloshes. What spills ends the episode.
    Actions: acceleration in two directions. Metres; a step lasts 0.2 seconds. The battery does not matter.
    """

    numbers, thing, near, most = (10, 2, 2), "place", 0.15, 1.2

    def begin(self) -> None:
        self.speed, self.slosh, self.rate, self.battery = np.zeros(2), np.zeros(2), np.zeros(2), 24.0
        self.depth = self.np_random.uniform(0.8, 1.2)
        self.place = self.goal = self.np_random.uniform(0.3, 3.7, 2)
        while np.linalg.norm(self.goal - self.place) < 1.2:
            self.goal = self.np_random.uniform(0.3, 3.7, 2)

    def move(self, action: Array) -> None:
        push, self.battery = self.most * action, self.battery - 0.01 * float(np.abs(action).sum())
        for _ in range(4):
            self.speed = self.speed + 0.05 * (push - 0.1 * self.speed)
            self.rate = self.rate - 0.05 * (16 * self.depth * self.slosh + 1.2 * self.rate + 8 * push)
            self.slosh = self.slosh + 0.05 * self.rate
            place = self.place + 0.05 * self.speed
            self.place = np.clip(place, 0, 4)
            self.speed[self.place != place] = 0

    def is_over(self) -> bool:
        return bool(np.linalg.norm(self.slosh) > 1)

    def observe(self) -> Array:
        return np.array([self.depth, *self.place, *self.rate, self.battery, *self.slosh, *self.speed])


def serve(observation: Observation) -> Array:
    """Speed up and slow down gently."""
    place, goal, seen = (observation[key] for key in ("achieved_goal", "desired_goal", "observation"))
    push = 0.5 * (goal - place) - 1.1 * seen[8:10]
    return clipped(*(push * min(1.0, 0.45 / max(1e-9, float(np.linalg.norm(push)))) / SoupWaiter.most))


class BeltParcel(SizedTask):
    """A hand pushes a round parcel to a position on one of two benches. Between them runs a belt, which carries the parcel
    along. Belts of other episodes run at other speeds, or the other way. Metres.
    """

    numbers, thing, near, radius, belt = (6, 2, 2), "parcel", 0.08, 0.16, 0.3

    def begin(self) -> None:
        draw, side = self.np_random.uniform, self.np_random.choice([-1, 1])
        self.run = self.np_random.choice([-1, 1]) * draw(0.01, 0.035)
        self.parcel = self.goal = np.array([draw(-0.7, 0.7), side * draw(0.45, 0.75)])
        while np.linalg.norm(self.goal - self.parcel) < 0.25:
            self.goal = np.array([draw(-0.7, 0.7), draw(0.45, 0.8) * (side if draw() < 0.25 else -side)])
        self.hand = draw([-0.9, -0.25], [0.9, 0.25])

    def move(self, action: Array) -> None:
        if abs(self.parcel[1]) < self.belt:
            self.parcel = self.parcel + np.array([self.run, 0])
        self.hand = np.clip(self.hand + 0.08 * action, -1.2, 1.2)
        self.parcel = np.clip(self.parcel + push_out(self.parcel, self.hand, self.radius), -1, 1)

    def observe(self) -> Array:
        return np.array(
            [self.parcel[0], self.hand[1], self.run, self.parcel[1], self.hand[0], np.abs(self.parcel[1]) < 0.3]
        )


def push_over(observation: Observation) -> Array:
    """Push the parcel straight over the belt, and go along with it; then push it to its place."""
    hand, run, is_carried = observation["observation"][[4, 1]], *observation["observation"][[2, 5]]
    parcel, goal = observation["achieved_goal"], observation["desired_goal"]
    along = np.array([run * is_carried, 0.0])
    if np.linalg.norm(goal - parcel) < 0.05:
        return clipped(0, 0)
    if is_carried or parcel[1] * goal[1] < 0:
        goal = np.array([parcel[0], goal[1]])
    gap, ahead, radius = parcel + along - hand, (goal - parcel) / np.linalg.norm(goal - parcel), BeltParcel.radius
    way = gap - ahead * (radius - 0.045)
    if np.linalg.norm(gap - radius * ahead) > 0.08:
        way = toward_push(hand, parcel + along, goal, radius, 0.06)
    return clipped(*((way * min(1.0, 0.08 / float(np.linalg.norm(way))) + along) / 0.08))


class CurtainCord(SizedTask):
    """A hand draws a curtain by its cord, a loop that hangs beside the window in two strands. Each strand, pulled down,
    moves the curtain another way. Actions: speeds of the hand, and its grip. Centimetres.
    """

    numbers, thing, near, strands = (7, 1, 3), "open", 4.0, np.array([12.0, 22.0])

    def begin(self) -> None:
        draw, self.held = self.np_random.uniform, -1
        self.hand, self.open, self.sun = draw([0, 60], [34, 160]), draw(0, 200), draw(0.3, 1)
        self.goal = np.array([self.open])
        while abs(self.goal[0] - self.open) < 25:
            self.goal = draw(0, 200, 1)

    def move(self, action: Array) -> None:
        """Move the hand. A hand that holds a strand can go up and down only, and a cord can't be pushed."""
        was, place = self.hand, np.clip(self.hand + 9 * action[:2], [0, 50], [34, 170])
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            gaps = np.abs(self.strands - was[0])
            self.held = int(gaps.argmin()) if gaps.min() < 2.5 else -1
        if self.held >= 0:
            place[0] = self.strands[self.held]
            drawn = max(0.0, was[1] - place[1]) * (1 if self.held else -1)
            self.open = min(200.0, max(0.0, self.open + drawn))
        self.hand = place

    def observe(self) -> Array:
        light = self.sun * (20 + 4 * self.open)
        return np.array([*self.hand[::-1], light, self.held == 0, self.held == 1, self.open, self.sun], np.float64)


def draw_curtain() -> Any:
    """Pull the right strand, hand under hand."""
    is_rising = False

    def act(observation: Observation) -> Array:
        nonlocal is_rising
        height, x, _, *holds = observation["observation"][:5]
        missing = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        if abs(missing) < 1:
            return clipped(0, 0, -1)
        k = int(missing > 0)
        is_rising = height < 51 or (is_rising and height < 50 + min(110.0, abs(missing)))
        across = float(CurtainCord.strands[k] - x)
        if is_rising or abs(across) > 1 or holds[1 - k]:
            return clipped(across / 9, (50 + min(112.0, abs(missing) + 2) - height) / 9 if is_rising else 0, -1)
        return clipped(0, -abs(missing) / 9, 1)

    return act


class SafeDial(SizedTask):
    """The dial of a safe turns a wheel behind it, which it takes along by a peg: only once it has been turned back far
    enough does the wheel turn back, too. Wheel and dial have to be at two angles. The action is a torque.
    """

    numbers, near, play = (5, 4, 1), 0.15, 2.6

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, 0.0
        self.wheel, wish = draw(-math.pi, math.pi) + np.array([0, draw(0.4, 2 * math.pi - 0.4)])
        self.dial = self.wheel + draw(-self.play, self.play)
        self.goal = np.concatenate([unit(wish), unit(wish + draw(-2.4, 2.4))])

    def move(self, action: Array) -> None:
        self.speed = 0.5 * self.speed + 0.25 * float(action[0])
        self.dial += self.speed
        self.wheel = min(self.dial + self.play, max(self.dial - self.play, self.wheel))

    def achieved(self) -> Array:
        return np.concatenate([unit(self.wheel), unit(self.dial)])

    def observe(self) -> Array:
        (dial_x, dial_y), (wheel_x, wheel_y) = unit(self.dial), unit(self.wheel)
        return np.array([dial_y, wheel_x, self.speed, wheel_y, dial_x])


def crack() -> Any:
    """Turn the wheel to its angle in the shorter way, then the dial back to its own."""
    way = 0

    def act(observation: Observation) -> Array:
        nonlocal way
        angles = np.array([observation[key].reshape(2, 2) for key in ("achieved_goal", "desired_goal")])
        (wheel, dial), (wheel_goal, dial_goal) = np.arctan2(angles[..., 1], angles[..., 0])
        speed, play = observation["observation"][2], SafeDial.play
        lead, wish, missing = wrapped(dial - wheel), wrapped(dial_goal - wheel_goal), wheel_goal - wheel
        left = wish - lead
        if abs(wrapped(missing)) > 0.04:
            costs = {d: -d * lead + (d * missing) % (2 * math.pi) - d * wish for d in (1, -1)}
            way = way or min(costs, key=lambda d: costs[d])
            left = way * (play - way * lead + (way * missing) % (2 * math.pi))
        return clipped((min(0.5, max(-0.5, left)) - 0.5 * speed) / 0.25)

    return act


TASKS: tuple[Task, ...] = (
    Task("SoupWaiter-v0", "fragile", "closed", SoupWaiter, 80, lambda: serve),
    Task("BeltParcel-v0", "push", "closed", BeltParcel, 80, lambda: push_over),
    Task("CurtainCord-v0", "pull", "closed", CurtainCord, 80, draw_curtain),
    Task("SafeDial-v0", "angles", "closed", SafeDial, 60, crack),
)
