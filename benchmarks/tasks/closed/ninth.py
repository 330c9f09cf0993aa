"""The fork of a high rack, and a magnet for two discs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..open.base import Array, GoalTask
from ..task import Observation, Task

GOALS = ("achieved_goal", "desired_goal")


class RackFork(GoalTask):
    """The fork of a truck in an aisle takes a pallet out of a rack of two levels and brings it to another position.

    Lengths are in metres. The fork enters the pallet near its middle, lifts it, and carries it. The goal is x, the height
    and the depth in the rack, where 1 is in its place. Actions drive the truck, and move mast and fork.
    """

    near, shelf, pocket, aside, deep = np.array([0.25, 0.1, 0.15]), 1.5, 0.25, 0.35, 0.8
    most = np.array([0.35, 0.15, 0.25])  # of truck, mast and fork in a step

    def __init__(self) -> None:
        super().__init__(10, 3, 3)

    def begin(self) -> None:
        draw, level = self.np_random.uniform, self.shelf * self.np_random.integers(2)
        self.pallet, self.is_loaded = np.array([draw(1, 7), level, 1.0]), False
        self.is_in = False
        start = [np.clip(self.pallet[0] + draw(-0.8, 0.8), 0, 8), level + draw(0, 0.4), draw(0, 0.2)]
        self.fork, self.speed, self.goal = np.array(start), 0.0, self.pallet
        while not 0.8 < abs(self.goal[0] - self.pallet[0]) < 3:
            self.goal = np.array([draw(0.5, 7.5), self.shelf * self.np_random.integers(2), 1.0])

    def level(self, z: float) -> float:
        """Return the height of the shelf below the fork, or below its load."""
        return self.shelf * (z - self.pocket * self.is_loaded >= self.shelf - 1e-9)

    def move(self, action: Array) -> None:
        drive, lift, reach = self.most * action
        self.speed = 0.5 * self.speed + 0.5 * drive
        before = x, z, depth = self.fork.tolist()
        level = self.level(z)
        low, high = (level, level + 0.7) if depth > 0.2 else (0.0, 2.3)  # between the shelves, or in the aisle
        x, z = min(max(x + self.speed, 0.0), 8.0), min(max(z + lift, low), high)
        depth = min(max(depth + reach, 0.0), 1.0 if before[2] > 0.2 or z <= self.level(z) + 0.7 else 0.2)
        depth = min(depth, before[2] + 1.0 - self.pallet[2]) if self.is_loaded else depth  # the rack has a stop
        inside, aside, under = depth - self.pallet[2] + self.deep, x - self.pallet[0], z - self.pallet[1]
        self.is_in = inside > 0 and bool(self.is_in or (abs(aside) <= self.aside and 0 <= under <= self.pocket))
        if self.is_in:
            z = self._carry(x, z, depth, inside)
        elif inside > 0 and abs(aside) < 0.8 and -0.1 < under < 1.0:  # the fork does not fit, and stops
            self.speed = self.speed if before[2] <= self.pallet[2] - self.deep else 0.0
            x, z, depth = (x, z, before[2]) if before[2] <= self.pallet[2] - self.deep else before
        self.fork = np.array([x, z, depth])

    def _carry(self, x: float, z: float, depth: float, inside: float) -> float:
        """Shift the pallet, lift it, or set it down. Return the height of the fork."""
        ground = self.shelf if self.pallet[2] > 0.6 and self.pallet[1] >= self.shelf - 1e-9 else 0.0
        if self.is_loaded:
            self.pallet += [x - self.fork[0], 0.0, depth - self.fork[2]]
        self.pallet[0] = min(max(self.pallet[0], x - self.aside), x + self.aside)
        self.is_loaded = z - self.pocket > ground and (self.is_loaded or inside > 0.5)
        z = max(z, ground) if self.is_loaded or inside > 0.5 else min(max(z, ground), ground + self.pocket)
        self.pallet[1] = z - self.pocket if self.is_loaded else ground
        return z

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.all(np.abs(achieved_goal - desired_goal) <= self.near, axis=-1)

    def observe(self) -> Array:
        (x, z, depth), (to_x, height, to_depth) = self.fork, self.pallet
        load = 420.0 * self.is_loaded + self.np_random.normal(0, 4)  # kilograms
        return np.array([height, depth, x, load, to_x - x, self.shelf, to_depth, self.speed, z, to_x])

    def achieved(self) -> Array:
        return self.pallet.copy()


def stack(observation: Observation) -> Array:
    """Enter the pallet, lift it, draw it out, drive, and set it down in its place."""
    seen, (pallet, goal), task = observation["observation"], (observation[key] for key in GOALS), RackFork
    height, depth, load, gap, speed, z = seen[[0, 1, 3, 4, 7, 8]]
    drive = lift = reach = 0.0
    is_there = np.all(np.abs(pallet - goal) < [0.2, 0.05, 0.1])
    if load < 200 and not is_there:
        if abs(gap) < 0.15 and -0.05 < z - height - 0.1 < (0.3 if depth > 0.3 else 0.1):
            reach, lift = pallet[2] - depth, 0.35 if depth > pallet[2] - 0.1 else 0.0
        else:
            reach = -depth
            drive, lift = (gap, height + 0.12 - z) if depth < 0.1 else (0.0, 0.0)
    elif load > 200:
        above, across = goal[1] + task.pocket + 0.15 - z, goal[0] - pallet[0]
        if abs(across) < 0.1 and abs(above) < 0.16 and pallet[2] > 0.95:
            lift = goal[1] + task.pocket - 0.02 - z
        elif abs(across) < 0.1 and abs(above) < 0.1:
            reach, drive = 1.0 - pallet[2], across
        elif depth > 0.15:
            reach, lift = -depth, 0.1 if height - task.shelf * (height >= task.shelf - 1e-9) < 0.1 else 0.0
        else:
            drive, lift = across, above
    wish = np.array([(0.6 * drive - 0.5 * speed) * 2, lift, reach])
    return np.clip(wish / task.most, -1, 1).astype(np.float32)


class MagnetDiscs(GoalTask):
    """An electromagnet above a bench drags two steel discs, each to a position of its own. Lengths are in centimetres.

    Discs push each other aside. Actions are the wished speed of the magnet along x and y, and its current, on above 0.
    """

    near, radius, reach, pace = 3.0, 3.0, 5.0, 5.0

    def __init__(self) -> None:
        super().__init__(14, 4, 3)

    def begin(self) -> None:
        self.discs, self.goal = np.zeros((2, 2)), np.zeros(4)
        while not 9 < np.linalg.norm(self.discs[0] - self.discs[1]) < 30:
            self.discs = self.place([-22, -14], [22, 14], (2, 2))
        while not self.is_fair(self.goal.reshape(2, 2)):
            self.goal = (self.discs + self.place(-20, 20, (2, 2))).ravel()
        self.magnet, self.speed, self.current, self.held = self.place([-25, -18], [25, 18]), np.zeros(2), 0.0, -1

    def is_fair(self, goals: Array) -> bool:
        """Return whether the positions are on the bench, away from the starts and from each other."""
        apart = np.linalg.norm(goals[:, None] - self.discs, axis=-1)
        ways = np.diag(apart)
        return bool(
            np.all(np.abs(goals) < [26, 18])
            and np.all((ways > 7) & (ways < 20))
            and min(apart[0, 1], apart[1, 0], float(np.linalg.norm(goals[0] - goals[1]))) > 9
        )

    def move(self, action: Array) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action[:2]
        self.current = 0.4 * self.current + 0.6 * float(action[2] > 0)
        self.magnet = np.clip(self.magnet + self.speed, [-30, -22], [30, 22])
        if self.current < 0.5:
            self.held = -1
            return
        gap = self.magnet - self.discs
        distance = np.linalg.norm(gap, axis=-1)
        if self.held < 0:
            nearest = int(np.argmin(distance))
            if distance[nearest] < self.reach:
                pull = min(1.0, 2.5 / max(distance[nearest], 1e-6))
                self.discs[nearest] += pull * gap[nearest]
                self.held = nearest if pull == 1.0 else -1
        else:
            self.discs[self.held] = self.magnet
        away = self.discs[1] - self.discs[0]
        apart = float(np.linalg.norm(away))
        if apart < 2 * self.radius:
            other = 1 - self.held if self.held >= 0 else 1 - int(np.argmin(distance))
            self.discs[other] += (2 * other - 1) * away * (2 * self.radius / max(apart, 1e-6) - 1)
            self.discs[other] = np.clip(self.discs[other], [-30, -22], [30, 22])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        missing = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return np.all(np.linalg.norm(missing, axis=-1) <= self.near, axis=-1)

    def observe(self) -> Array:
        (one_x, one_y), (two_x, two_y) = self.discs + self.np_random.normal(0, 0.05, (2, 2))
        (x, y), (speed_x, speed_y) = self.magnet, self.speed
        gaps = [two_x - x, one_y - y, one_x - x, two_y - y]
        return np.array([speed_y, one_x, two_y, *gaps, 12 * self.current, y, two_x, x, one_y, speed_x, self.held >= 0])

    def achieved(self) -> Array:
        return self.discs.flatten()


def drag_discs(observation: Observation) -> Array:
    """Drag the disc that is held, or else the first that is not in its place."""
    seen, (one, two) = observation["observation"], (observation[key].reshape(2, 2) for key in GOALS)
    missing, speed, at = two - one, seen[[12, 0]], seen[[10, 8]]
    left, gap = np.linalg.norm(missing, axis=-1), one - at
    disc = int(np.argmin(np.linalg.norm(gap, axis=-1))) if seen[13] else int(left[0] < 1.5)
    if left[disc] < 1.5 or (not seen[13] and np.linalg.norm(gap[disc]) > 2):
        to, current = gap[disc] if not seen[13] and left[disc] >= 1.5 else 0 * at, -1.0
    else:
        to, current = missing[disc] if seen[13] else gap[disc], 1.0
    steer = (to - 0.4 * speed) / (0.6 * MagnetDiscs.pace)
    return np.clip([*steer, current], -1, 1).astype(np.float32)


TASKS = (
    Task("RackFork-v0", "grasp", "closed", RackFork, 80, lambda: stack),
    Task("MagnetDiscs-v0", "several-objects", "closed", MagnetDiscs, 80, lambda: drag_discs),
)
