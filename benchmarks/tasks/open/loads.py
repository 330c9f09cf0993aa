"""Open tasks: a robot that dribbles a ball, a claw machine, and a loader that moves sand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, toward_push, wrapped


class DribbleBall(SizedTask):
    """A football robot on wheels pushes a ball over a carpet with its hollow front. It sees the ball from where it is.
    Actions: speed and turn. Metres; a step lasts 0.1 seconds.
    """

    numbers, thing, near, reach = (10, 2, 2), "ball", 0.08, 0.12

    def begin(self) -> None:
        draw, self.speed, self.turn, self.roll = self.np_random.uniform, 0.0, 0.0, np.zeros(2)
        self.heading, self.ball = draw(-math.pi, math.pi), draw([-0.7, -0.5], [0.7, 0.5])
        self.robot = self.goal = self.ball
        while np.linalg.norm(self.robot - self.ball) < 0.25:
            self.robot = draw([-1.0, -0.8], [1.0, 0.8])
        while np.linalg.norm(self.goal - self.ball) < 0.3:
            self.goal = draw([-0.9, -0.7], [0.9, 0.7])

    def move(self, action: Array) -> None:
        self.speed, self.turn = 0.4 * self.speed + 0.042 * action[0], 0.3 * self.turn + 0.35 * action[1]
        self.heading = wrapped(self.heading + self.turn)
        ahead = np.array([math.cos(self.heading), math.sin(self.heading)])
        self.robot = np.clip(self.robot + self.speed * ahead, [-1.5, -1.2], [1.5, 1.2])
        was, self.ball = self.ball, self.ball + 0.6 * self.roll
        gap = self.ball - self.robot
        front = float(gap @ ahead)
        if math.hypot(*gap) < self.reach:
            if front > 0.07:  # the hollow front leads the ball to its middle
                gap = front * ahead + 0.6 * (gap - front * ahead)
            self.ball = self.robot + gap * self.reach / max(1e-6, math.hypot(*gap))
        self.ball = np.clip(self.ball, [-1.2, -0.9], [1.2, 0.9])
        self.roll = self.ball - was

    def observe(self) -> Array:
        """Return the ball as the robot sees it, heading, speeds, roll of the ball, and the robot's place."""
        c, s = math.cos(self.heading), math.sin(self.heading)
        sees = np.array([[c, s], [-s, c]]) @ (self.ball - self.robot)
        return np.array([*sees, s, c, 10 * self.speed, self.turn, *(10 * self.roll), *self.robot])


def dribble(observation: Observation) -> Array:
    """Go behind the ball, turn to the goal, and push."""
    seen, ball = observation["observation"], observation["achieved_goal"]
    aim = toward_push(seen[8:10], ball, observation["desired_goal"], 0.17, 0.06)
    far = math.hypot(*aim)
    off = wrapped(math.atan2(aim[1], aim[0]) - math.atan2(seen[2], seen[3])) if far else 0.0
    return clipped(min(1.0, far / 0.15) * (abs(off) < 0.3), 1.5 * off)


class ClawMachine(SizedTask):
    """A claw hangs on a cable below a trolley and swings. It closes round a prize on the floor and lifts it away. Seen from
    the front. Actions: speed of the trolley, winch, and the claw, which takes some steps to close. Metres.
    """

    numbers, thing, near, pause = (10, 2, 3), "prize", 0.06, 0.1

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.x, self.cable, self.open, self.speed, self.swing, self.rate = *draw([0.1, 0.2], [0.9, 0.5]), 1.0, 0.0, 0.0, 0.0
        self.prize, self.holds = np.array([draw(0.1, 0.9), 0.04]), False
        self.goal = self.prize
        while np.linalg.norm(self.goal - self.prize) < 0.15:
            self.goal = np.array([draw(0.1, 0.9), draw(0.15, 0.6) if draw() < 0.7 else 0.04])

    def claw(self) -> Array:
        """Return where the claw is."""
        return np.array([self.x + self.cable * math.sin(self.swing), 1 - self.cable * math.cos(self.swing)])

    def move(self, action: Array) -> None:
        before, speed = self.open, 0.5 * self.speed + 0.3 * action[0]
        push, self.speed = (speed - self.speed) / self.pause, speed
        self.cable = min(0.96, max(0.15, self.cable + 0.06 * action[1]))
        self.x = min(1.0, max(0.0, self.x + self.pause * speed))
        for _ in range(4):
            turn = -(9.81 * math.sin(self.swing) + push * math.cos(self.swing)) / self.cable - 3 * self.rate
            self.rate += 0.25 * self.pause * turn
            self.swing += 0.25 * self.pause * self.rate
        self.open = min(1.0, max(0.0, self.open - 0.35 * action[2]))
        claw = self.claw()
        self.holds = self.open < 0.5 and (self.holds or (before >= 0.5 and np.linalg.norm(claw - self.prize) < 0.045))
        falls = np.array([self.prize[0], max(0.04, self.prize[1] - 0.25)])
        self.prize = np.maximum(claw, [-0.1, 0.04]) if self.holds else falls

    def observe(self) -> Array:
        claw, swing = self.claw(), (math.sin(self.swing), self.rate)
        return np.array([*self.prize, self.x, self.open, *claw, self.speed, *swing, float(self.holds)])


def play(observation: Observation) -> Array:
    """Go over the prize, wait until the claw hangs still, go down, close, lift, and carry."""
    (px, pz, x, opened, cx, cz, *_, swing, rate, holds), goal = observation["observation"], observation["desired_goal"]
    if holds:
        return clipped((goal[0] - x) / 0.1, (pz - goal[1]) / 0.06, 0.0 if opened < 0.2 else 1.0)
    is_over, is_still = abs(px - x) < 0.02, abs(swing) < 0.03 and abs(rate) < 0.15
    down = (cz - pz) / 0.06 if is_over and (is_still or cz < 0.2) else (cz - 0.2) / 0.06
    closes = abs(cz - pz) < 0.02 and abs(cx - px) < 0.035
    return clipped((px - x) / 0.1, down, 1.0 if closes or (opened < 1 and abs(cx - px) < 0.04) else -1.0)


class SandPiles(SizedTask):
    """A wheel loader moves sand between three bays, and parks. The goal: what lies in each bay, and where the loader is.
    Actions: drive, and fill or empty the shovel, which works within a bay only. Metres and cubic metres.
    """

    numbers, near, bays = (6, 4, 2), 0.4, np.array([3.0, 9.0, 15.0])

    def begin(self) -> None:
        draw, self.speed, self.load = self.np_random.uniform, 0.0, 0.0
        self.x, self.piles = draw(0, 18), draw(2, 6, 3)
        moved = draw(1.0, 2.5) * self.np_random.permutation([1.0, -draw(0.3, 0.7), 0.0])
        moved[moved == 0] = -moved.sum()
        self.goal = np.array([*(self.piles - (1 if draw() < 0.5 else -1) * moved).clip(0, None), draw(0, 18)])
        self.goal[:3] *= self.piles.sum() / self.goal[:3].sum()

    def move(self, action: Array) -> None:
        self.speed = 0.5 * self.speed + 0.8 * action[0]
        self.x = min(18.0, max(0.0, self.x + self.speed))
        bay = int(np.abs(self.bays - self.x).argmin())
        if abs(self.bays[bay] - self.x) < 2:
            pile = self.piles[bay]
            taken = max(-self.load, min(2 - self.load, 0.8 * action[1] * min(1.0, pile / 2 if action[1] > 0 else 1.0)))
            self.load, self.piles[bay] = self.load + taken, pile - taken

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the piles are right within 0.4 cubic metres each, and the loader within 1.5 metres."""
        return (np.abs(achieved_goal - desired_goal) <= [0.4, 0.4, 0.4, 1.5]).all(-1)

    def observe(self) -> Array:
        return np.array([self.load, *self.piles, self.speed, self.x])

    def achieved(self) -> Array:
        return np.array([*self.piles, self.x])


def shovel() -> Any:
    """Fill the shovel where there is too much, empty it where there is too little, and park in the end."""
    brings = False

    def act(observation: Observation) -> Array:
        nonlocal brings
        (load, *piles, speed, x), goal = observation["observation"], observation["desired_goal"]
        extra = np.array(piles) - goal[:3]
        brings = load > 0.05 and (brings or load > 1.95 or extra.max() < 0.15)
        if not brings and extra.max() < 0.15:
            return clipped(0.5 * (goal[3] - x) - 0.5 * speed, 0)
        bay = int(extra.argmin() if brings else extra.argmax())
        gap, needs = SandPiles.bays[bay] - x, -min(load, -extra[bay]) if brings else min(2 - load, extra[bay])
        return clipped(0.5 * gap - 0.5 * speed, needs / 0.8 if abs(gap) < 1.5 else 0)

    return act


TASKS = (
    Task("DribbleBall-v0", "push", "open", DribbleBall, 80, lambda: dribble),
    Task("ClawMachine-v0", "grasp", "open", ClawMachine, 60, lambda: play),
    Task("SandPiles-v0", "several-objects", "open", SandPiles, 60, shovel),
)
