"""Open tasks: a puck and a wall with a gap, a box with a lid, and a gripper over bins."""

from __future__ import annotations

import math

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, push_out


class GapPuck(SizedTask):
    """A finger pushes a puck over a bench with a low wall, which has one gap. The finger can rise over wall and puck; the
    puck has to go through the gap, which is elsewhere in each episode. Actions: speeds along three axes. Centimetres.
    """

    numbers, thing, near, touch = (6, 2, 3), "puck", 4.0, 6.0

    def begin(self) -> None:
        draw, side = self.np_random.uniform, self.np_random.choice([-1, 1])
        self.gap, self.puck = draw(16, 44), np.array([50 + side * draw(14, 38), draw(12, 48)])
        self.finger, self.goal = draw([0, 0, 0], [100, 60, 6]), self.puck
        side = -side if draw() < 0.75 else side
        while np.linalg.norm(self.goal - self.puck) < 15:
            self.goal = np.array([50 + side * draw(14, 40), draw(10, 50)])
        self.finger[:2] = self.finger[:2] + push_out(self.finger[:2], self.puck, self.touch)

    def move(self, action: Array) -> None:
        (x, _, was), (new, y, h) = self.finger, np.clip(self.finger + [4, 4, 2] * action, [-8, -8, 0], [108, 68, 6])
        if h < 2 <= was and np.linalg.norm(self.puck - [new, y]) < self.touch:
            h = 2.0  # it stands on the puck
        if h < 4 and (x < 50) != (new < 50) and abs(y - self.gap) > 8:
            new = 49.0 if x < 50 else 51.0
        self.finger = np.array([new, y, h])
        if h < 2:
            self.push()

    def push(self) -> None:
        """Move the puck out of the finger's way as far as the wall lets it, and then the finger out of the puck."""
        inside = abs(self.puck[0] - 50) < 4
        x, y = np.clip(self.puck + push_out(self.puck, self.finger[:2], self.touch), 4, [96, 56])
        if inside:
            y = min(self.gap + 5, max(self.gap - 5, y))
        elif ((x < 50) != (self.puck[0] < 50) or abs(x - 50) < 4) and abs(y - self.gap) > 5:
            x = 46.0 if self.puck[0] < 50 else 54.0
        self.puck = np.array([x, y])
        self.finger[:2] = self.finger[:2] + push_out(self.finger[:2], self.puck, self.touch)

    def observe(self) -> Array:
        return np.array([self.finger[1], *self.puck[::-1], self.finger[2], self.gap, self.finger[0]])


def push_through(observation: Observation) -> Array:
    """Push the puck before the gap, through it, and to the goal. Rise to get behind the puck."""
    seen, puck, aim = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
    finger, gap = seen[[5, 0, 3]], seen[4]
    side, wish = (1 if place[0] > 50 else -1 for place in (puck, aim))
    if side != wish:
        is_before = abs(puck[1] - gap) > 2.5 and abs(puck[0] - 50) > 6
        aim = np.array([50 + 13 * (side if is_before else wish), gap])
    elif abs(puck[0] - 50) < 9:
        aim = np.array([50 + 13 * wish, gap])
    way = aim - puck
    far = max(1e-6, math.hypot(*way))
    if far < 1.2:
        return clipped(0, 0, 1)
    ahead, back = way / far, finger[:2] - puck
    side_way = np.array([-ahead[1], ahead[0]])
    along, across = float(back @ ahead), float(back @ side_way)
    if finger[2] < 2 and along < 0 and abs(across) < 2:
        return clipped(*((ahead * min(4.0, far - along - 6) - across * side_way) / 4), -1)
    behind = puck - 7.5 * ahead - finger[:2]
    if math.hypot(*behind) < 0.8:
        return clipped(0, 0, -1)
    return clipped(*(behind / 4 if finger[2] >= 4 else (0, 0)), 1)


class LidBox(SizedTask):
    """A hand slides the lid of a flat box by its knob, and brings a marble out of the box or into it. The lid covers what
    is below it. The goal: the opening of the box, and where the marble lies. Seen from above, in centimetres.
    """

    numbers, thing, near = (7, 3, 3), "things", 4.0

    def begin(self) -> None:
        draw, self.holds = self.np_random.uniform, 0
        places = [draw([3, 3], [37, 17]), draw([3, 26], [80, 44])]
        if draw() < 0.5:
            places.reverse()
        lids = draw(0, 40, 2)
        self.hand, self.things = draw([0, 0], [80, 45]), np.array([lids[0], *places[0]])
        self.goal = np.array([lids[1], *places[1]])

    @staticmethod
    def knob(lid: float) -> Array:
        """Return where the knob is."""
        return np.array([lid + 20, 10.0])

    def covers(self, place: Array) -> bool:
        """Return whether the lid is over a place."""
        return bool(0 <= place[1] <= 20 and 0 <= place[0] - self.things[0] <= 40)

    def move(self, action: Array) -> None:
        """Move the hand with the lid (1) or the marble (2), let go, or take hold."""
        was = self.hand
        self.hand = np.clip(was + 5 * action[:2], [-5, -5], [85, 50])
        if self.holds == 1:
            self.things[0] = min(45.0, max(0.0, self.things[0] + self.hand[0] - was[0]))
            self.hand = self.knob(self.things[0])
        elif self.holds == 2:
            self.things[1:] = self.hand
        if action[2] <= 0:
            if not (self.holds == 2 and self.covers(self.hand)):
                self.holds = 0
        elif not self.holds:
            if np.linalg.norm(self.hand - self.things[1:]) < 4 and not self.covers(self.things[1:]):
                self.holds, self.things[1:] = 2, self.hand
            elif np.linalg.norm(self.hand - self.knob(self.things[0])) < 5:
                self.holds, self.hand = 1, self.knob(self.things[0])

    def observe(self) -> Array:
        return np.array([*self.hand, float(self.holds == 1), *self.things, float(self.holds == 2)])


def unbox(observation: Observation) -> Array:
    """Open the lid as far as the marble needs, carry the marble, and set the lid."""
    x, y, has_lid, lid, *marble, has_marble = observation["observation"]
    goal, hand, marble = observation["desired_goal"], np.array([x, y]), np.array(marble)
    missing = goal[1:] - marble
    if has_marble:
        return clipped(*(missing / 5), 1 if math.hypot(*missing) > 1 else -1)
    wish, is_there = goal[0], math.hypot(*missing) < 2
    if not is_there:
        wish = max([4 + place[0] for place in (marble, goal[1:]) if place[1] < 20])
        if lid >= wish - 1 and not has_lid:
            return clipped(*((marble - hand) / 5), 1 if math.hypot(*(marble - hand)) < 5 else -1)
    if has_lid:
        return clipped((wish - lid) / 5, 0, 1 if abs(wish - lid) > 0.5 else -1)
    if is_there and abs(wish - lid) < 1:
        return clipped(0, 0, -1)
    knob = LidBox.knob(lid) - hand
    return clipped(*(knob / 5), 1 if math.hypot(*knob) < 6 else -1)


class BinPick(SizedTask):
    """A gripper, seen from the front, takes a block out of one of two deep bins, and brings it into a bin or above. The
    fingers need room beside the block. It holds the block while it squeezes. Actions: two speeds, squeeze. Centimetres.
    """

    numbers, thing, near, rim, walls = (7, 2, 3), "block", 2.0, 12.0, np.array([5.0, 25.0, 35.0, 55.0])

    def begin(self) -> None:
        draw, self.holds = self.np_random.uniform, False
        self.jaw, self.wide = draw([4, 16], [56, 36]), draw(2.5, 6)
        start, wish = self.np_random.integers(2, size=2)
        self.block = self.goal = np.array([draw(9.5, 20.5) + 30 * start, 0.0])
        while np.linalg.norm(self.goal - self.block) < 6:
            is_up = draw() < 0.4
            self.goal = np.array([draw(8, 52), draw(14, 28)]) if is_up else np.array([draw(9.5, 20.5) + 30 * wish, 0.0])

    def room(self, x: float, z: float) -> tuple[float, float]:
        """Return between which walls a place is."""
        k = int(np.searchsorted(self.walls, x))
        bounds = [-10.0, *self.walls.tolist(), 70.0]
        return (bounds[k], bounds[k + 1]) if z < self.rim else (-10.0, 70.0)

    def move(self, action: Array) -> None:
        """Open or close, move along, move up or down, and let the block fall if it is not held."""
        (x, z), (bx, bz) = self.jaw, self.block
        low, high = self.room(x, z)
        between = abs(bx - x) < self.wide and z < bz + 4
        most = min(6.0, x - low - 1.2, high - x - 1.2)
        wide = max(2.0 if between else 0.3, min(most, self.wide - 0.75 * action[2]))
        self.holds = bool(between and wide <= 2.0 and action[2] > 0.2)
        new = min(high - wide - 1.1, max(low + wide + 1.1, x + 3 * action[0]))
        if z < bz + 4 and not between:  # a block beside the fingers stops them
            new = min(bx - 3 - wide, new) if x < bx else max(bx + 3 + wide, new)
        x, z = min(60.0, max(0.0, new)), max(0.5, z + 3 * action[1])
        left, right = self.room(x, z)
        if z < self.rim and (x - wide - 1 < left or x + wide + 1 > right):
            z = self.rim
        if not between and z < bz + 4 and wide - 2 < abs(bx - x) < wide + 3:
            z = bz + 4.0  # a finger stands on the block
        if self.holds:
            bx, bz = x, max(0.0, z - 0.5)
        else:
            bx, bz = (min(x + wide - 2, max(x - wide + 2, bx)) if between else bx), max(0.0, bz - 8)
            left, right = self.room(bx, bz)
            bx = min(right - 2, max(left + 2, bx))
        self.jaw, self.wide, self.block = np.array([x, z]), wide, np.array([bx, bz])

    def observe(self) -> Array:
        return np.array([self.jaw[1], self.wide, *self.block, self.jaw[0], float(self.holds), self.block[0] - self.jaw[0]])


def fetch(observation: Observation) -> Array:
    """Open to a little more than the block, go down over it, squeeze, lift it over the walls, and bring it."""
    z, wide, bx, bz, x, holds, _ = observation["observation"]
    goal, missing = observation["desired_goal"], observation["desired_goal"] - observation["achieved_goal"]
    if holds:
        if abs(missing[0]) < 1:
            return clipped(missing[0] / 3, missing[1] / 3, -1 if goal[1] == 0 and bz < 0.5 else 1)
        height = 16 if (x < 30) != (goal[0] < 30) or goal[1] > 0 or z > 12 else 6
        return clipped(missing[0] / 3 if z > height - 3 else 0, (height - z) / 3, 1)
    opens = (wide - 3) / 0.75
    if goal[1] == 0 and math.hypot(*missing) < 1.5:
        return clipped(0, 1 if wide > 2.7 else 0, opens)
    if (abs(bx - x) < 0.5 and abs(wide - 3) < 0.3) or z < bz + 3:
        return clipped((bx - x) / 3, (bz + 0.5 - z) / 3, 1 if z < bz + 1.5 else opens)
    return clipped((bx - x) / 3 if z > 13 else 0, (16 - z) / 3, opens)


TASKS = (
    Task("GapPuck-v0", "push", "open", GapPuck, 90, lambda: push_through),
    Task("LidBox-v0", "several-objects", "open", LidBox, 80, lambda: unbox),
    Task("BinPick-v0", "grasp", "open", BinPick, 60, lambda: fetch),
)
