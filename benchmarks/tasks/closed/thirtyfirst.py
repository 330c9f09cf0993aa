"""Five closed tasks: a seal with a ball, a garage door, a gripper for jars, a dog with a bowl, and indoor hockey."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, push_out, toward_push, unit
from ..task import Observation, Task


class SealBall(SizedTask):
    """A seal swims in a pool of 6 by 4 metres and pushes a ball to a place. Both glide on for a while.

    Actions: two accelerations.
    """

    numbers, thing, near = (9, 2, 2), "ball", 0.2
    strength, kept, kept_by_ball, contact = 0.05, 0.75, 0.5, 0.35
    wide = np.array([3.0, 2.0])

    def begin(self) -> None:
        self.ball, self.drift, self.speed = self.place([-1.8, -1], [1.8, 1]), np.zeros(2), np.zeros(2)
        self.seal = self.goal = self.ball
        while np.linalg.norm(self.seal - self.ball) < 0.5:
            self.seal = self.place(0.1 - self.wide, self.wide - 0.1)
        while not 0.6 < np.linalg.norm(self.goal - self.ball) < 2.2:
            self.goal = self.place([-2.1, -1.2], [2.1, 1.2])

    def move(self, action: Array) -> None:
        self.speed = self.kept * self.speed + self.strength * action
        self.seal = np.clip(self.seal + self.speed, -self.wide, self.wide)
        self.drift = self.kept_by_ball * self.drift + self.np_random.normal(0, 0.002, 2)
        push = push_out(self.ball + self.drift, self.seal, self.contact)
        self.drift = self.drift + push
        self.ball = np.clip(self.ball + self.drift, -self.wide, self.wide)

    def observe(self) -> Array:
        return np.array([*self.seal, *self.speed, *(self.ball - self.seal), *self.drift, self.np_random.normal(8, 0.3)])


def swim() -> Any:
    """Swim around the ball and push it, gently near the goal."""

    def act(observation: Observation) -> Array:
        seen, goal, task = observation["observation"], observation["desired_goal"], SealBall
        seal, speed = seen[:2], seen[2:4]
        ball = seal + seen[4:6]
        glided = ball + seen[6:8] * task.kept_by_ball / (1 - task.kept_by_ball)
        if np.linalg.norm(glided - goal) < 0.1:
            wish = -0.1 * unit(math.atan2(*seen[5:3:-1])) if np.linalg.norm(seen[4:6]) < 0.5 else np.zeros(2)
        else:
            way = toward_push(seal, ball, goal, task.contact, 0.15)
            most = 0.18 if np.linalg.norm(ball - goal) > 0.5 else 0.1
            wish = 0.5 * way * min(1.0, most / max(1e-9, 0.5 * float(np.linalg.norm(way))))
            ahead = (goal - ball) / np.linalg.norm(goal - ball)
            side = np.array([-ahead[1], ahead[0]])
            across = float((seal - ball) @ side)
            if (seal - ball) @ ahead < 0 and abs(across) < 0.15:  # behind the ball: come back to the middle slowly
                wish = (most - 0.4 * abs(across)) * ahead - 0.5 * across * side
        return clipped(*((wish - task.kept * speed) / task.strength))

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


class JarLifter(SizedTask):
    """A gripper with two fingers takes a jar from a table and brings it to a place, on the table or above it, in metres.

    Jars differ in width. The fingers push a jar that they meet from outside. Actions: three velocities, and opening.
    """

    numbers, thing, near = (12, 3, 4), "jar", 0.03
    pace, opening, widest, wide, low = 0.03, 0.02, 0.1, 0.25, 0.05

    def begin(self) -> None:
        self.radius, self.is_held = float(self.np_random.uniform(0.02, 0.035)), False
        self.jar, self.speed = np.array([*self.place(-0.15, 0.15), 0]), np.zeros(3)
        self.hand = np.array([*self.place(-0.15, 0.15), self.np_random.uniform(0.08, 0.2)])
        self.width = float(self.np_random.uniform(0.05, self.widest))
        self.goal = self.jar
        while np.linalg.norm(self.goal - self.jar) < 0.08:
            above = self.np_random.uniform(0.05, 0.25) * self.np_random.integers(2)
            self.goal = np.array([*self.place(-0.18, 0.18), above])

    def move(self, action: Array) -> None:
        before, step = self.jar, self.pace * action[:3]
        hand = np.clip(self.hand + step, [-self.wide, -self.wide, 0], [self.wide, self.wide, 0.35])
        step, self.hand = hand - self.hand, hand
        self.width = float(np.clip(self.width + self.opening * action[3], 0, self.widest))
        if self.is_held:
            self.jar = self.jar + step
            self.is_held = bool(action[3] < 0.2)
        else:
            gap = np.abs(self.jar - hand)
            is_between = bool((gap < [0.015, 0.015, 0.03]).all())
            self.is_held = is_between and self.width < 2 * self.radius
            self.jar = np.maximum(self.jar - [0, 0, 0.06], [-9, -9, 0])
        if self.is_held:
            self.width = 2 * self.radius
        elif abs(self.jar[2] - hand[2]) < self.low:
            for sign in (-1, 1):
                finger = hand[:2] + sign * np.array([0.5 * self.width + 0.005, 0])
                self.jar[:2] += push_out(self.jar[:2], finger, self.radius)
        self.jar[:2] = np.clip(self.jar[:2], -self.wide, self.wide)
        self.speed = self.jar - before

    def observe(self) -> Array:
        diameter = 2000 * self.radius  # millimetres
        return np.array([*self.hand, self.width, *self.jar, diameter, *self.speed, self.np_random.normal(0, 1)])


def lift() -> Any:
    """Go above the jar with open fingers, down, close, and carry."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], JarLifter
        hand, width, jar, diameter = seen[:3], seen[3], seen[4:7], seen[7] / 1000
        gap = jar - hand
        if np.linalg.norm(gap) < 0.02 and width < diameter + 1e-6:
            return clipped(*((observation["desired_goal"] - jar) / task.pace), -0.5)
        aside = float(np.linalg.norm(gap[:2]))
        if aside < 0.012 and abs(gap[2]) < 0.012:
            return clipped(0, 0, 0, -1)
        if aside > 0.008 or width < diameter + 0.015:
            gap = gap + np.array([0, 0, 0.08])
        return clipped(*(gap / task.pace), 1)

    return act


class DogBowl(SizedTask):
    """A dog pushes its bowl with its nose to a place in the kitchen, and then lies down on its mat. Metres.

    The goal is the place of the dog and that of the bowl. Actions: velocities.
    """

    numbers, near = (8, 4, 2), 0.15
    pace, contact, wide = 0.16, 0.3, np.array([2.0, 1.5])

    def begin(self) -> None:
        self.bowl, self.heading = self.place([-1.2, -0.8], [1.2, 0.8]), float(self.np_random.uniform(-3, 3))
        self.dog = self.bowl + self.np_random.uniform(0.5, 1.0) * unit(self.np_random.uniform(-math.pi, math.pi))
        self.dog = np.clip(self.dog, -self.wide, self.wide)
        bowl = mat = self.bowl
        while not 0.4 < np.linalg.norm(bowl - self.bowl) < 1.5:
            bowl = self.place([-1.3, -0.9], [1.3, 0.9])
        while not 0.5 < np.linalg.norm(mat - bowl) < 1.5:
            mat = self.place(0.1 - self.wide, self.wide - 0.1)
        self.goal = np.array([*mat, *bowl])

    def achieved(self) -> Array:
        return np.array([*self.dog, *self.bowl])

    def move(self, action: Array) -> None:
        if np.linalg.norm(action) > 0.1:
            self.heading = math.atan2(action[1], action[0])
        self.dog = np.clip(self.dog + self.pace * action, -self.wide, self.wide)
        self.bowl = self.bowl + push_out(self.bowl, self.dog, self.contact)
        self.bowl = np.clip(self.bowl, 0.15 - self.wide, self.wide - 0.15)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return np.linalg.norm(gaps, axis=-1).max(-1) <= self.near

    def observe(self) -> Array:
        far = float(np.linalg.norm(self.bowl - self.dog))
        return np.array(
            [*self.bowl, math.sin(self.heading), math.cos(self.heading), far, *self.dog, self.np_random.random()]
        )


def push_bowl() -> Any:
    """Push the bowl to its place, then walk around it to the mat."""
    is_right = False

    def act(observation: Observation) -> Array:
        nonlocal is_right
        seen, goal, task = observation["observation"], observation["desired_goal"], DogBowl
        bowl, dog = seen[:2], seen[5:7]
        lack = float(np.linalg.norm(goal[2:] - bowl))
        is_right = lack < (0.13 if is_right else 0.06)
        if not is_right:
            way = toward_push(dog, bowl, goal[2:], task.contact, 0.1)
        else:
            way, gap = goal[:2] - dog, bowl - dog
            far = max(1e-9, float(np.linalg.norm(way)))
            side = np.array([-way[1], way[0]]) / far
            along, across = float(gap @ way) / far, float(gap @ side)
            if 0 < along < far and abs(across) < 0.34:
                away = -math.copysign(1.0, across) * side
                near = np.linalg.norm(gap) < 0.42
                way = 0.5 * away - (0.3 if near else -0.2) * gap / max(1e-9, float(np.linalg.norm(gap)))
        return clipped(*(way / max(task.pace, float(np.abs(way).max()))))

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


TASKS: tuple[Task, ...] = (
    Task("SealBall-v0", "push", "closed", SealBall, 70, swim),
    Task("GarageDoor-v0", "pull", "closed", GarageDoor, 40, swing_door),
    Task("JarLifter-v0", "grasp", "closed", JarLifter, 50, lift),
    Task("DogBowl-v0", "several-objects", "closed", DogBowl, 60, push_bowl),
    Task("IndoorHockey-v0", "hit", "closed", IndoorHockey, 50, strike),
)
