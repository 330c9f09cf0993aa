"""Three closed tasks: a seal with a ball, a gripper for jars, and a dog with a bowl."""

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


TASKS: tuple[Task, ...] = (
    Task("SealBall-v0", "push", "closed", SealBall, 70, swim),
    Task("JarLifter-v0", "grasp", "closed", JarLifter, 50, lift),
    Task("DogBowl-v0", "several-objects", "closed", DogBowl, 60, push_bowl),
)
