"""Closed tasks: an arm and a shelf, turning rings, a leaf blower, and a string."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, unit, wrapped
from ..task import Observation, Task


class ShelfArm(SizedTask):
    """An arm with three joints in a plane puts its tip into a compartment of a shelf, straight ahead of it. The arm stands
    still where a step would bring it into a board. Actions: speeds of the joints. Metres.
    """

    numbers, thing, near, links = (9, 2, 3), "tip", 0.04, (0.6, 0.5, 0.25)
    front, back, boards, rows = 0.6, 0.95, (-0.05, 0.25, 0.55, 0.85), (0.1, 0.4, 0.7)

    def begin(self) -> None:
        draw, self.stuck = self.np_random.uniform, 0.0
        start, wish = self.np_random.permutation(3)[:2]
        self.goal = np.array([draw(0.68, 0.9), self.rows[wish] + draw(-0.05, 0.05)])
        while True:
            if draw() < 0.5:
                place, turn = np.array([draw(0.68, 0.88), self.rows[start] + draw(-0.05, 0.05)]), draw(-0.1, 0.1)
            else:
                place, turn = draw([0.42, 0.1], [0.52, 0.7]), draw(-0.2, 0.2)
            self.joints = self.bend(place, turn)
            nodes = self.nodes(self.joints)
            if not self.hits(nodes):
                break
        self.tip = nodes[-1]

    @classmethod
    def nodes(cls, joints: Array) -> Array:
        """Return base, elbow, wrist and tip, (4, 2)."""
        angles = np.cumsum(joints)
        steps = np.stack([np.cos(angles), np.sin(angles)], -1) * np.array(cls.links)[:, None]
        return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, 0)])

    @classmethod
    def bend(cls, tip: Array, turn: float) -> Array:
        """Return the joints that bring the tip to a place with a direction, the elbow up."""
        upper, fore, hand = cls.links
        wrist = tip - hand * unit(turn)
        far = min(upper + fore - 1e-6, max(upper - fore + 1e-6, math.hypot(*wrist)))
        shoulder = math.atan2(wrist[1], wrist[0]) + math.acos((upper**2 + far**2 - fore**2) / (2 * upper * far))
        along = wrist - upper * unit(shoulder)
        elbow = wrapped(math.atan2(along[1], along[0]) - shoulder)
        return np.array([wrapped(shoulder), elbow, wrapped(turn - shoulder - elbow)])

    @classmethod
    def hits(cls, nodes: Array) -> bool:
        """Return whether a link crosses a board, or the arm is behind the back of the shelf."""
        if nodes[:, 0].max() > cls.back:
            return True
        for (x, y), (end, top) in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True):
            for board in cls.boards:
                if (y - board) * (top - board) < 0 and x + (board - y) / (top - y) * (end - x) > cls.front:
                    return True
        return False

    def move(self, action: Array) -> None:
        joints = np.clip(self.joints + 0.1 * action, -2.9, 2.9)
        self.stuck = float(self.hits(nodes := self.nodes(joints)))
        if not self.stuck:
            self.joints, self.tip = joints, nodes[-1]

    def observe(self) -> Array:
        return np.array([*np.sin(self.joints), *self.tip, *np.cos(self.joints), self.stuck])


def shelve(observation: Observation) -> Array:
    """Draw the hand out of a wrong compartment, go before the right one, and then straight in."""
    seen, tip, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
    joints = np.arctan2(seen[:3], seen[5:8])
    turn, row, wish = wrapped(float(joints.sum())), *(int((place[1] + 0.05) // 0.3) for place in (tip, goal))
    aim = goal
    if tip[0] > 0.58 and row != wish:
        aim = np.array([0.48, min(0.73, max(0.07, tip[1]))])
    elif tip[0] <= 0.58 and abs(tip[1] - goal[1]) > 0.03:
        aim = np.array([0.48, goal[1]])
    step = (aim - tip) * min(1.0, 0.06 / max(1e-6, math.hypot(*(aim - tip))))
    change = (ShelfArm.bend(tip + step, 0.6 * turn) - joints + math.pi) % (2 * math.pi) - math.pi
    return clipped(*(change / max(0.1, np.abs(change).max())))


class TurningRings(SizedTask):
    """A probe flies among two round fences that turn about the middle. Each has one gap, and the probe has to pass it when
    the gap comes by. Actions: thrust in two directions.
    """

    numbers, thing, near, rings, zones = (11, 2, 2), "place", 0.07, (0.4, 0.75), ((0, 0.33), (0.47, 0.68), (0.82, 1.05))

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, np.zeros(2)
        self.gaps, way = draw(-math.pi, math.pi, 2), self.np_random.choice([-1, 1])
        self.rates = way * draw(0.04, 0.08, 2) * np.array([1, -1])
        start, wish = (draw(*self.zones[zone]) for zone in self.np_random.permutation(3)[:2])
        self.place, self.goal = start * unit(draw(-math.pi, math.pi)), wish * unit(draw(-math.pi, math.pi))

    def move(self, action: Array) -> None:
        """Turn the fences, and stop the probe at them, except in their gaps."""
        was = self.place
        self.gaps = (self.gaps + self.rates + math.pi) % (2 * math.pi) - math.pi
        self.speed = 0.5 * self.speed + 0.045 * action
        place = was + self.speed
        before, after = math.hypot(*was), math.hypot(*place)
        for ring, gap in zip(self.rings, self.gaps, strict=True):
            is_free = abs(wrapped(math.atan2(place[1], place[0]) - gap)) < 0.17 / ring
            if (before < ring) != (after < ring) and not is_free:
                place = place / max(1e-9, after) * (ring + (0.01 if before >= ring else -0.01))
                after = math.hypot(*place)
        self.place = place * min(1.0, 1.1 / max(1e-9, after))
        self.speed = self.place - was

    def observe(self) -> Array:
        rates, speed = 10 * self.rates, 10 * self.speed
        return np.array([*self.place, *np.cos(self.gaps), *np.sin(self.gaps), *rates, *speed, math.hypot(*self.place)])


def slip_through(observation: Observation) -> Array:
    """Wait for the gap of the next fence, or meet it, go through, and then to the goal."""
    seen, goal, rings = observation["observation"], observation["desired_goal"], TurningRings.rings
    place, speed, radius = seen[:2], seen[8:10] / 10, float(seen[10])
    zone, wish = (sum(far > ring for ring in rings) for far in (radius, math.hypot(*goal)))
    angle, out = math.atan2(place[1], place[0]), 1 if wish > zone else -1
    if zone != wish:
        k = zone if out > 0 else zone - 1
        rate = seen[6 + k] / 10
        off = wrapped(math.atan2(seen[4 + k], seen[2 + k]) + rate - angle)
        flees = off * rate > 0 and abs(off) > 0.8
        aims = rings[k] + out * (0.12 if abs(off) < 0.1 / rings[k] else -0.06)
        aim = aims * unit(angle + min(0.4, max(-0.4, off + 2 * rate)) * (-1 if flees else 1))
    else:
        turn = wrapped(math.atan2(goal[1], goal[0]) - angle)
        aim = goal if abs(turn) < 0.5 or wish == 0 else math.hypot(*goal) * unit(angle + math.copysign(0.4, turn))
    return clipped(*((aim - place - 0.5 * speed) / 0.045))


class LeafBlower(SizedTask):
    """A nozzle hovers over a table and blows a light ball to a position. It blows where it points to, and feebly from afar.
    Actions: speeds of the nozzle, its turn, and the valve. Metres.
    """

    numbers, thing, near, size = (11, 2, 4), "ball", 0.08, np.array([1.0, 0.7])

    def begin(self) -> None:
        draw, self.speed, self.valve = self.np_random.uniform, np.zeros(2), 0.0
        self.angle = draw(-math.pi, math.pi)
        self.ball, self.nozzle = draw(-0.75, 0.75, 2) * self.size, draw(-1, 1, 2) * self.size
        self.goal = self.ball
        while np.linalg.norm(self.goal - self.ball) < 0.35:
            self.goal = draw(-0.8, 0.8, 2) * self.size

    def move(self, action: Array) -> None:
        self.nozzle = np.clip(self.nozzle + 0.08 * action[:2], -1.4 * self.size, 1.4 * self.size)
        self.angle, self.valve = wrapped(self.angle + 0.4 * action[2]), max(0.0, float(action[3]))
        gap = self.ball - self.nozzle
        hit = max(0.0, float(gap @ unit(self.angle)) / (far := max(1e-6, math.hypot(*gap)))) ** 8
        self.speed = 0.8 * self.speed + 0.025 * self.valve * hit * math.exp(-((far / 0.3) ** 2)) * gap / far
        was, self.ball = self.ball, np.clip(self.ball + self.speed, -self.size, self.size)
        self.speed = self.ball - was

    def observe(self) -> Array:
        """Return ball, its speed, valve, heading, nozzle, and the way from the nozzle to the ball."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        return np.array([*self.ball, *(20 * self.speed), self.valve, c, s, *self.nozzle, *(self.ball - self.nozzle)])


def blow(observation: Observation) -> Array:
    """Stay behind the ball, point to it, and blow as much as it needs."""
    seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
    far, speed = max(1e-6, math.hypot(*way)), seen[2:4] / 20
    ahead = way / far
    behind = seen[:2] - 0.15 * ahead - seen[7:9]
    if behind @ ahead < -0.15 and abs(behind @ [-ahead[1], ahead[0]]) < 0.1:
        behind = behind + 0.2 * np.array([-ahead[1], ahead[0]])
    off = wrapped(math.atan2(seen[10], seen[9]) - math.atan2(seen[6], seen[5]))
    near = math.hypot(*seen[9:])
    needs = float((min(0.05, 0.2 * far) * ahead - 0.8 * speed) @ ahead) / 0.025 * math.exp((near / 0.3) ** 2)
    blows = far > 0.03 and abs(off) < 0.4 and seen[9:] @ ahead > 0.9 * near
    return clipped(*(behind / 0.08), off / 0.4, needs if blows else 0)


class StringPair(SizedTask):
    """Two beads hang together by a string and lie on a table. A hand takes one of them and pulls; the other follows when
    the string is taut. The goal: where both beads lie. Actions: speeds of the hand, and its grip. Metres.
    """

    numbers, thing, near, string = (9, 4, 3), "beads", 0.06, 0.3

    def begin(self) -> None:
        draw, self.holds, self.hand = self.np_random.uniform, -1, self.np_random.uniform(-0.6, 0.6, 2)
        self.beads = self.goal = self.pair()
        while np.linalg.norm(self.goal - self.beads) < 0.3 or draw() < 0.1:
            self.goal = self.pair()

    def pair(self) -> Array:
        """Return two places that the string allows."""
        draw, first = self.np_random.uniform, self.np_random.uniform(-0.5, 0.5, 2)
        return np.array([*first, *(first + draw(0.12, 0.28) * unit(draw(-math.pi, math.pi)))])

    def move(self, action: Array) -> None:
        self.hand, beads = np.clip(self.hand + 0.08 * action[:2], -0.9, 0.9), self.beads.reshape(2, 2)
        if action[2] <= 0:
            self.holds = -1
        elif self.holds < 0:
            far = np.linalg.norm(beads - self.hand, axis=1)
            self.holds = int(far.argmin()) if far.min() < 0.04 else -1
        if self.holds >= 0:
            other = beads[1 - self.holds] - self.hand
            beads[self.holds] = self.hand
            beads[1 - self.holds] = self.hand + other * min(1.0, self.string / max(1e-9, math.hypot(*other)))

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether both beads are where they should be."""
        gaps = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return np.linalg.norm(gaps, axis=-1).max(-1) <= self.near

    def observe(self) -> Array:
        first, second = self.beads[:2], self.beads[2:]
        holds = float(self.holds == 0), float(self.holds == 1)
        return np.array([*second, *self.hand, *first, *holds, np.linalg.norm(first - second)])


def arrange() -> Any:
    """Bring the second bead to its place, then the first one."""
    which = 1

    def act(observation: Observation) -> Array:
        nonlocal which
        seen, beads, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        part = slice(2 * which, 2 * which + 2)
        missing, reach = goal[part] - beads[part], beads[part] - seen[2:4]
        if seen[6 + which]:
            return clipped(*(missing / 0.08), 1 if math.hypot(*missing) > 0.01 else -1)
        if math.hypot(*missing) < 0.03:
            which = 1 - which if math.hypot(*(goal - beads)) > 0.04 else which
            return clipped(0, 0, -1)
        return clipped(*(reach / 0.08), 1 if math.hypot(*reach) < 0.09 else -1)

    return act


TASKS: tuple[Task, ...] = (
    Task("ShelfArm-v0", "obstacles", "closed", ShelfArm, 60, lambda: shelve),
    Task("TurningRings-v0", "obstacles", "closed", TurningRings, 90, lambda: slip_through),
    Task("LeafBlower-v0", "push", "closed", LeafBlower, 80, lambda: blow),
    Task("StringPair-v0", "several-objects", "closed", StringPair, 50, arrange),
)
