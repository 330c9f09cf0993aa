"""A ladder behind a door, a bulldozer, the fork of a high rack, and a magnet for two discs."""

from __future__ import annotations

from math import atan2, cos, hypot, sin
from typing import Any

import numpy as np

from ..open.base import Array, GoalTask, unit
from ..task import Observation, Task

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
    Task("LadderDoor-v0", "obstacles", "closed", LadderDoor, 80, lambda: carry_ladder),
    Task("DozerBoulder-v0", "push", "closed", DozerBoulder, 100, push_boulder),
    Task("RackFork-v0", "grasp", "closed", RackFork, 80, lambda: stack),
    Task("MagnetDiscs-v0", "several-objects", "closed", MagnetDiscs, 80, lambda: drag_discs),
)
