"""Several objects and bodies: a cursor with two disks, two pucks, two cars, a panel with faders, and a hoist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, push_out, toward_push

GRAB, SPEED, RADIUS, CAR = 0.07, 0.06, 0.09, 0.12


class CursorAndDisks(GoalTask):
    """A cursor carries two disks. The goal is where both disks and the cursor must be."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(8, 6, 3)

    def begin(self) -> None:
        """Place everything."""
        self.cursor, self.disks = self.place(-0.4, 0.4), self.np_random.uniform(-0.4, 0.4, (2, 2))
        self.goal, self.held = self.place(-0.4, 0.4, 6), -1

    def move(self, action: Array) -> None:
        """Move the cursor. With the third action above 0 it holds the nearest disk that it touches."""
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            distance = np.linalg.norm(self.disks - self.cursor, axis=1)
            self.held = int(distance.argmin()) if distance.min() < GRAB else -1
        step = SPEED * action[:2]
        self.cursor = self.cursor + step
        if self.held >= 0:
            self.disks[self.held] += step

    def observe(self) -> Array:
        """Return cursor, disks, and which disk is held."""
        return np.concatenate([self.cursor, self.disks.ravel(), np.arange(2) == self.held])

    def achieved(self) -> Array:
        """Return cursor and disks."""
        return np.concatenate([self.cursor, self.disks.ravel()])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether each of the three is near."""
        gap = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 3, 2)
        return (np.linalg.norm(gap, axis=-1) <= self.near).all(-1)


def carry_disks(observation: Observation) -> Array:
    """Carry one disk after the other, then go to the cursor's own goal."""
    seen, goal = observation["observation"], observation["desired_goal"]
    cursor = seen[:2]
    for k in range(2):
        disk, wanted = seen[2 + 2 * k : 4 + 2 * k], goal[2 + 2 * k : 4 + 2 * k]
        if np.linalg.norm(disk - wanted) < 0.5 * CursorAndDisks.near:
            continue
        if seen[6 + k]:
            return np.append(np.clip((wanted - disk) / SPEED, -1, 1), 1).astype(np.float32)
        gap = disk - cursor
        is_there = np.linalg.norm(gap) < 0.3 * GRAB
        return np.append(np.clip(gap / SPEED, -1, 1), 1 if is_there else -1).astype(np.float32)
    return np.append(np.clip((goal[:2] - cursor) / SPEED, -1, 1), -1).astype(np.float32)


class TwoPucks(GoalTask):
    """A disc pushes two pucks to their places."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(6, 4, 2)

    def begin(self) -> None:
        """Place two pucks and their goals apart from each other."""
        self.disc = self.place(-0.1, 0.1)
        while True:
            places = self.np_random.uniform(-0.4, 0.4, (4, 2))
            gaps = np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(4, 1)]
            if gaps.min() > 0.25 and np.linalg.norm(places[:2], axis=1).min() > 0.2:
                break
        self.pucks, self.goal = places[:2], places[2:].ravel()

    def move(self, action: Array) -> None:
        """Move the disc, and the pucks out of its way and out of each other's."""
        self.disc = self.disc + SPEED * action
        self.pucks = np.stack([puck + push_out(puck, self.disc, RADIUS) for puck in self.pucks])
        apart = push_out(self.pucks[0], self.pucks[1], RADIUS) / 2
        self.pucks = self.pucks + np.stack([apart, -apart])

    def observe(self) -> Array:
        """Return the pucks and the disc."""
        return np.concatenate([self.pucks.ravel(), self.disc])

    def achieved(self) -> Array:
        """Return the pucks."""
        return self.pucks.ravel()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether both pucks are near."""
        gap = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return (np.linalg.norm(gap, axis=-1) <= self.near).all(-1)


def push_both() -> Callable[[Observation], Array]:
    """Return a policy that pushes the puck that is farther from its goal until it is there, then the other."""
    current = -1

    def act(observation: Observation) -> Array:
        nonlocal current
        seen, goals = observation["observation"], observation["desired_goal"].reshape(2, 2)
        pucks, disc = seen[:4].reshape(2, 2), seen[4:]
        distance = np.linalg.norm(pucks - goals, axis=1)
        if current < 0 or distance[current] < 0.06:
            current = int(distance.argmax())
        way = toward_push(disc, pucks[current], goals[current], RADIUS, TwoPucks.near)
        other = disc - pucks[1 - current]
        if np.linalg.norm(other) < 1.2 * RADIUS and way @ other < 0:  # slip past the other puck
            side = np.array([-other[1], other[0]]) / max(float(np.linalg.norm(other)), 1e-9)
            way = way - (way @ other) * other / (other @ other) + 0.05 * side * np.sign(way @ side or 1.0)
        return (way / max(SPEED, float(np.linalg.norm(way)))).astype(np.float32)

    return act


class TwoCars(GoalTask):
    """One action vector moves two cars, which cannot drive through each other. Each has a goal of its own."""

    near = 0.12

    def __init__(self) -> None:
        super().__init__(8, 4, 4)

    def begin(self) -> None:
        """Place the cars, and their goals, apart from each other."""
        self.cars, self.goal, self.velocity = self._apart(), self._apart().ravel(), np.zeros((2, 2))

    def _apart(self) -> Array:
        while True:
            places = self.np_random.uniform(-0.6, 0.6, (2, 2))
            if np.linalg.norm(places[0] - places[1]) > 2 * CAR:
                return places

    def move(self, action: Array) -> None:
        """Accelerate. Cars that collide stand still."""
        self.velocity = 0.6 * self.velocity + 0.03 * action.reshape(2, 2)
        target = np.clip(self.cars + self.velocity, -0.8, 0.8)
        if np.linalg.norm(target[0] - target[1]) < CAR:
            self.velocity = np.zeros((2, 2))
        else:
            self.cars = target

    def observe(self) -> Array:
        """Return positions and velocities."""
        return np.concatenate([self.cars.ravel(), self.velocity.ravel()])

    def achieved(self) -> Array:
        """Return the positions."""
        return self.cars.ravel()


def drive_both(observation: Observation) -> Array:
    """Drive straight, and turn right where the other car is near."""
    seen = observation["observation"]
    cars, velocity, goals = seen[:4].reshape(2, 2), seen[4:].reshape(2, 2), observation["desired_goal"].reshape(2, 2)
    wanted = 0.35 * (goals - cars)
    gap = cars[0] - cars[1]
    distance = float(np.linalg.norm(gap))
    if distance < 2.2 * CAR:
        away = gap / distance * np.array([[1.0], [-1.0]])
        right = np.stack([away[:, 1], -away[:, 0]], 1)
        approach = np.maximum(0, -(wanted * away).sum(1, keepdims=True))
        wanted = wanted + approach * away + 0.03 * (approach > 0.004) * right + 0.02 * away * (distance < 1.4 * CAR)
    size = np.maximum(1, np.linalg.norm(wanted, axis=1, keepdims=True) / 0.07)
    return np.clip((wanted / size - 0.6 * velocity).ravel() / 0.03, -1, 1).astype(np.float32)


class FaderPanel(GoalTask):
    """A finger drags two faders of a panel to levels, and leaves the lamp of a switch on or off, as wished."""

    columns, switch, touch = (-0.15, 0.05), np.array([0.22, 0.0]), 0.06

    def __init__(self) -> None:
        super().__init__(7, 3, 3)

    def begin(self) -> None:
        """Place the finger, and wish other levels."""
        draw = self.np_random.uniform
        self.levels, self.lamp = draw(0, 1, 2), float(draw() < 0.5)
        self.goal = self.achieved()
        self.goal[2] = float(draw() < 0.5)
        while np.abs(self.goal[:2] - self.levels).max() < 0.3:
            self.goal[:2] = np.where(draw(0, 1, 2) < 0.6, draw(0, 1, 2), self.levels)
        self.finger, self.volts = draw(-0.25, 0.25, 2), draw(225, 235)
        self.held, self.is_pressed = -1, False  # no fader

    def _knob(self, fader: int) -> Array:
        return np.array([self.columns[fader], 0.4 * self.levels[fader] - 0.2])

    def move(self, action: Array) -> None:
        """Press or let go, then move the finger. While it presses a knob, it stays on it."""
        is_new, self.is_pressed = not self.is_pressed, bool(action[2] > 0)
        self.volts += 0.3 * self.np_random.normal()
        if not self.is_pressed:
            self.held = -1
        elif self.held < 0:
            near = [fader for fader in range(2) if np.linalg.norm(self.finger - self._knob(fader)) < self.touch]
            self.held = near[0] if near else -1
            if is_new and np.linalg.norm(self.finger - self.switch) < self.touch:
                self.lamp = 1 - self.lamp
        step = 0.06 * action[:2]
        if self.held >= 0:
            before = self._knob(self.held)
            self.levels[self.held] = np.clip(self.levels[self.held] + step[1] / 0.4, 0, 1)
            step = self._knob(self.held) - before
        self.finger = np.clip(self.finger + step, -0.3, 0.3)

    def observe(self) -> Array:
        """Return the lamp, the finger, the mains voltage, the levels, and whether the finger presses."""
        return np.array([self.lamp, *self.finger, self.volts, *self.levels, float(self.is_pressed)])

    def achieved(self) -> Array:
        """Return both levels and the lamp."""
        return np.array([*self.levels, self.lamp])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether levels and lamp are as wished."""
        return np.asarray((np.abs(achieved_goal - desired_goal) <= [0.1, 0.1, 0.5]).all(-1))


def set_panel(observation: Observation) -> Array:
    """Set one fader after the other, then the lamp."""
    seen, wish = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
    finger, is_pressed = seen[1:3], seen[6] > 0
    for fader in range(2):
        gap = np.array([FaderPanel.columns[fader], 0.4 * seen[4 + fader] - 0.2]) - finger
        if abs(wish[fader]) > 0.05 and np.linalg.norm(gap) < 0.8 * FaderPanel.touch:
            return np.array([0, np.clip(0.4 * wish[fader] / 0.06, -1, 1), 1], np.float32)
        if abs(wish[fader]) > 0.05:
            return np.array([*(gap / max(0.06, float(np.linalg.norm(gap)))), -1], np.float32)
    gap = FaderPanel.switch - finger
    if abs(wish[2]) < 0.5:
        return np.array([0, 0, -1], np.float32)
    is_there = np.linalg.norm(gap) < 0.8 * FaderPanel.touch and not is_pressed
    return np.array([*(gap / max(0.06, float(np.linalg.norm(gap)))), 1 if is_there else -1], np.float32)


class HoistCrates(GoalTask):
    """A hoist with a magnet sets two crates at two positions on a line. A crate passes the other only above it."""

    near, size, catch, line = 70.0, 200.0, 80.0, 2000.0  # millimetres
    lift, pace = 100.0, 130.0  # in a step

    def __init__(self) -> None:
        super().__init__(9, 2, 3)

    def _apart(self, draw: Any) -> Any:
        while True:
            pair = draw(150, self.line - 150, 2)
            if abs(pair[0] - pair[1]) > 1.4 * self.size:
                return pair

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.crates = self.goal = self._apart(draw)
        while np.abs(self.goal - self.crates).max() < 250 or abs(self.goal[0] - self.goal[1]) < 1.4 * self.size:
            self.goal = np.where(draw(0, 1, 2) < 0.6, draw(150, self.line - 150, 2), self.crates)
        self.heights, self.held, self.speed = np.zeros(2), -1, 0.0
        self.hook = float(np.clip(self.crates[int(draw(0, 2))] + draw(-150, 150), 0, self.line))
        self.height, self.volts = draw(0, 200), draw(395, 405)

    def move(self, action: Array) -> None:
        gaps = np.abs(self.crates - self.hook)
        nearest = int(np.argmin(gaps))
        if action[1] <= 0:
            self.held = -1
        elif self.held < 0 and self.height < 60 and gaps[nearest] < self.catch:
            self.held = nearest
        before = self.hook
        self.speed = 0.3 * self.speed + 0.7 * self.pace * action[2]
        self.hook = float(np.clip(before + self.speed, 0, self.line))
        self.height = float(np.clip(self.height + self.lift * action[0], 0, 450))
        self.heights = np.where(np.arange(2) == self.held, self.height, 0.0)
        if self.held >= 0:
            self.crates[self.held] += self.hook - before
        self._keep_apart(self.held if self.held >= 0 else nearest)
        self.volts += 0.3 * self.np_random.normal()

    def _keep_apart(self, mover: int) -> None:
        """Let the crate that moved, or fell, push the other one aside, up to the ends of the line."""
        between = self.crates[1 - mover] - self.crates[mover]
        side = 1.0 if between >= 0 else -1.0
        if abs(self.heights[0] - self.heights[1]) < self.size and abs(between) < self.size:
            self.crates[1 - mover] = np.clip(self.crates[mover] + side * self.size, 0, self.line)
            self.crates[mover] = self.crates[1 - mover] - side * self.size

    def observe(self) -> Array:
        (left, right), (left_height, right_height) = self.crates, self.heights
        first = [self.volts, right, self.height, left_height, self.speed]
        return np.array([*first, left, right_height, float(self.held >= 0), self.hook])

    def achieved(self) -> Array:
        return self.crates.copy()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near).all(-1)


def hoist_script() -> Any:
    task = HoistCrates

    def act(observation: Any) -> Any:
        seen, crates, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        height, speed, is_held, hook = seen[2], seen[4], seen[7] > 0.5, seen[8]
        heights, lacks = seen[[3, 6]], goal - crates
        held = int(np.argmax(heights)) if heights.max() > 0 else int(np.argmin(np.abs(crates - hook)))
        if is_held:
            to, other = lacks[held], abs(crates[1 - held] - goal[held])
            if abs(to) < 25 and abs(speed) < 20:  # down, and let it go
                return np.array([-1, float(height > 20), 0], np.float32)
            is_blocked = other < task.size and height > 200  # the other crate has to leave first
            to = to + (-1 if to > 0 else 1) * 1.3 * task.size if is_blocked and abs(to) < 600 else to
            rise = 1.0 if abs(to) > 60 else 0.0
            pace = np.clip(to, -task.pace, task.pace) if height > 230 or abs(to) < 60 else 0.0
            if is_blocked and abs(to) < 40:
                return np.array([-1, float(height > 20), 0], np.float32)
            return np.clip([rise, 1, (pace - 0.3 * speed) / 91], -1, 1).astype(np.float32)
        is_due = np.abs(lacks) > 45
        is_free = np.abs(crates[::-1] - goal) >= task.size
        choice = int(np.argmax(is_due * (1 + is_free))) if is_due.any() else held
        to = crates[choice] - hook
        is_over = abs(to) < 40 and is_due.any()
        sink, pull = (-1.0 if is_over else 0.0), float(is_over and height < 60 and abs(speed) < 30)
        return np.clip([sink, pull, (0.8 * to - 0.3 * speed) / 91], -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("CursorAndDisks-v0", "several-objects", "open", CursorAndDisks, 60, lambda: carry_disks),
    Task("TwoPucks-v0", "several-objects", "open", TwoPucks, 100, push_both),
    Task("TwoCars-v0", "several-bodies", "open", TwoCars, 60, lambda: drive_both),
    Task("FaderPanel-v0", "several-objects", "open", FaderPanel, 60, lambda: set_panel),
    Task("HoistCrates-v0", "several-objects", "open", HoistCrates, 80, hoist_script),
)
