"""A sideboard, a rack of test tubes, a carousel of jars, candles, and a vase on a rug."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, EachNear, OwnUnits, SizedTask, clipped


class Sideboard(OwnUnits):
    """A hand opens and shuts two drawers of a sideboard, seen from above; a sliding panel always covers one of them.

    Goals are how far the left and the right drawer are out, in centimetres. The panel slides only before shut drawers.
    Actions: motion of the hand in centimetres, to the right and away from the sideboard, and the grip.
    """

    numbers, thing = (7, 2, 3), "out"
    limits = ((-5.0, -5.0, -1.0), (5.0, 5.0, 1.0))
    handles, reach, longest = np.array([20.0, 80.0]), 3.5, 35.0

    def begin(self) -> None:
        free = int(self.np_random.integers(2))
        self.panel, self.out, self.goal, self.held = (75.0, 25.0)[free], np.zeros(2), np.zeros(2), 0
        if self.np_random.random() < 0.5:
            self.out[free] = self.np_random.uniform(8, 33)
        wished = free if self.np_random.random() < 0.4 else 1 - free
        self.goal[wished] = self.out[wished]
        while abs(self.goal[wished] - self.out[wished]) < 6:
            self.goal[wished] = self.np_random.uniform(8, 33)
        self.hand = self.place([5, 10], [95, 55])

    def move(self, action: Array) -> None:
        right, away = 5.0 * action[:2]
        if action[2] <= 0:
            self.held = 0
        elif not self.held:
            places = np.array([[20, self.out[0]], [self.panel, 0], [80, self.out[1]]])
            far = np.linalg.norm(places - self.hand, axis=1) + 99 * np.array([self.panel < 72, False, self.panel > 28])
            self.held = int(np.argmin(far)) + 1 if far.min() < self.reach else 0
        if self.held == 2:
            if self.out.max() < 1:
                self.panel = float(np.clip(self.panel + right, 25, 75))
            self.hand = np.array([self.panel, 0.0])
        elif self.held:
            drawer = self.held // 2
            self.out = self.out.copy()
            self.out[drawer] = np.clip(self.out[drawer] + away, 0, self.longest)
            self.hand = np.array([self.handles[drawer], self.out[drawer]])
        else:
            self.hand = np.clip(self.hand + np.array([right, away]), 0, [100, 60])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= 2.0).all(-1)

    def observe(self) -> Array:
        warmth = 21 + self.np_random.normal(0, 0.5)
        return np.array([self.hand[1], self.held, self.out[1], warmth, self.hand[0], self.panel, self.out[0]])


def open_drawer() -> Any:
    """Shut the drawer that is out in vain, slide the panel away, then pull the other one."""

    def act(observation: Observation) -> Array:
        away, held, right_out, _, right, panel, left_out = observation["observation"]
        goal, out = observation["desired_goal"], (left_out, right_out)
        wished = int(np.argmax(goal))
        drawer = 1 - wished if out[1 - wished] > 0.8 else wished
        aside = (75, 25)[wished] - panel
        if drawer == wished and abs(aside) > 2.5:
            thing, handle, shift = 2, np.array([panel, 0]), np.array([aside, 0])
        else:
            thing = 1 + 2 * drawer
            handle, shift = np.array([Sideboard.handles[drawer], out[drawer]]), np.array([0, goal[drawer] - out[drawer]])
        if held == thing and np.abs(shift).max() > 0.3:
            return np.append(np.clip(shift, -5, 5), 1).astype(np.float32)
        way = handle - [right, away]
        if held or np.abs(shift).max() <= 0.3:
            return np.array([0, 0, -1], np.float32)
        return np.append(np.clip(way, -5, 5), 1 if np.linalg.norm(way) < 2 else -1).astype(np.float32)

    return act


class TubeRack(OwnUnits):
    """A jaw, seen from the side, takes a test tube out of a hole of a rack and brings it into another one, or above it.

    All in millimetres, goals are the position of the foot of the tube. A tube leaves its hole straight up only.
    Actions: where the jaw should be, and how far open. A balance in the wrist shows grams.
    """

    numbers, thing, near = (6, 2, 3), "tube", 4.0
    limits = ((-10.0, 60.0, 0.0), (130.0, 190.0, 30.0))
    holes, top, length, wide = 30.0 * np.arange(5), 40.0, 75.0, 16.0  # top: of the rack; wide: the tube

    def begin(self) -> None:
        start, other = self.np_random.choice(5, 2, replace=False)
        self.tube, self.is_held = np.array([self.holes[start], 0.0]), False
        is_hole = self.np_random.random() < 0.7
        self.goal = np.array([self.holes[other], 0.0]) if is_hole else self.place([0, 50], [120, 100])
        self.jaw, self.width = self.place([-10, 100], [130, 180]), float(self.np_random.uniform(0, 30))

    def move(self, action: Array) -> None:
        wish = self.middle + self.half * action
        before, way = self.width, wish[:2] - self.jaw
        way = way * min(1.0, 12 / max(1e-9, float(np.linalg.norm(way))))
        self.width += float(np.clip(wish[2] - self.width, -8, 8))
        if self.is_held and self.width <= self.wide + 1:
            self.width = self.wide
            self._carry(way)
            return
        if self.is_held:
            self.is_held = False
            over = self._hole(self.tube[0])
            self.tube = np.array([self.tube[0], self.top]) if over is None else np.array([over, 0.0])
        head = self.tube[1] + self.length
        x, height = np.clip(self.jaw + way, [-10, 60], [130, 190])
        fits = self.width >= 22 and abs(x - self.tube[0]) < 5
        if height < head and abs(x - self.tube[0]) < 14 and not fits:
            x, height = (self.jaw[0], height) if self.jaw[1] < head else (x, head)
        self.jaw = np.array([x, height])
        is_around = abs(x - self.tube[0]) < 5 and height < head - 3
        if is_around and before > self.wide >= self.width:
            self.is_held, self.width, self.grip = True, self.wide, height - self.tube[1]
            self.jaw = np.array([self.tube[0], height])

    def _hole(self, x: float) -> float | None:
        nearest = float(self.holes[np.argmin(np.abs(self.holes - x))])
        return nearest if abs(nearest - x) < 3 else None

    def _carry(self, way: Array) -> None:
        x, height = self.tube
        if height >= self.top:
            x = float(np.clip(x + way[0], -10, 130))
        over = self._hole(x)
        height = float(np.clip(height + way[1], self.top if over is None else 0, 110))
        self.tube = np.array([over if over is not None and height < self.top else x, height])
        self.jaw = self.tube + np.array([0, self.grip])

    def observe(self) -> Array:
        grams, gap = 18 * self.is_held + self.np_random.normal(0, 1.5), self.tube - self.jaw
        return np.array([self.width, gap[0], grams, self.jaw[1], gap[1], self.jaw[0]])


def carry_tube() -> Any:
    """Put the open jaw over the tube, close it, lift the tube out, carry it, and lower it."""

    def act(observation: Observation) -> Array:
        width, gap, grams, height, below, x = observation["observation"]
        tube, goal = np.array([x + gap, height + below]), observation["desired_goal"]
        head = tube[1] + TubeRack.length
        if grams > 9:
            across = np.array([0, 50 - tube[1]] if tube[1] < 46 else [goal[0] - tube[0], 0])
            shift = goal - tube if abs(tube[0] - goal[0]) < 1 else across
            return np.array([x + shift[0], height + shift[1], 5], np.float32)
        if abs(gap) > 2:
            return np.array([x if height < head + 8 else tube[0], head + 15, 30], np.float32)
        if height > head - 10:
            return np.array([tube[0], head - 12 if width >= 22 else height, 30], np.float32)
        return np.array([x, height, 5], np.float32)

    return act


class SpiceCarousel(OwnUnits):
    """A carousel carries three jars. A rod at one side hooks the jar before it and draws it in or out.

    Goals say how far out each jar should stand, in per cent. The carousel does not turn while a jar is hooked.
    Actions: motion of the rod in centimetres, of the carousel in degrees, and the hook.
    """

    numbers, thing = (9, 3, 3), "percent"
    limits = ((-1.5, -12.0, -1.0), (1.5, 12.0, 1.0))
    inner, outer = 4.0, 16.0

    def begin(self) -> None:
        self.seats = np.array([0.0, 130.0, 235.0]) + self.np_random.uniform(0, 360)
        self.jars, self.rod, self.hooked = self.place(self.inner, self.outer, 3), float(self.place(3, 16, 1)[0]), -1
        self.goal = self.percent
        while np.abs(self.goal - self.percent).max() < 25:
            changes = self.np_random.random(3) < 0.6
            self.goal = np.where(changes, self.place(5, 95, 3), self.percent)

    @property
    def percent(self) -> Array:
        return 100 * (self.jars - self.inner) / (self.outer - self.inner)

    def angles(self) -> Array:
        return (self.seats + 180) % 360 - 180

    def move(self, action: Array) -> None:
        if action[2] <= 0:
            self.hooked = -1
        elif self.hooked < 0:
            found = np.flatnonzero((np.abs(self.angles()) < 6) & (np.abs(self.jars - self.rod) < 1))
            self.hooked = int(found[0]) if found.size else -1
        self.rod = float(np.clip(self.rod + 1.5 * action[0], 3, self.outer))
        if self.hooked < 0:
            self.seats = self.seats + 12 * action[1]
        else:
            self.rod = max(self.inner, self.rod)
            self.jars = np.where(np.arange(3) == self.hooked, self.rod, self.jars)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= 6.0).all(-1)

    def observe(self) -> Array:
        current = 0.4 + 0.3 * (self.hooked >= 0) + self.np_random.normal(0, 0.1)  # ampere
        return np.array([current, *self.jars, self.rod, *self.angles(), float(self.hooked >= 0)])


def sort_spices() -> Any:
    """Turn the first jar that is wrong to the rod, hook it, and draw it to its place."""

    def act(observation: Observation) -> Array:
        seen, span = observation["observation"], SpiceCarousel.outer - SpiceCarousel.inner
        jars, rod, angles, is_hooked = seen[1:4], seen[4], seen[5:8], seen[8]
        lack = SpiceCarousel.inner + span * observation["desired_goal"] / 100 - jars
        wrong = np.flatnonzero(np.abs(lack) > 0.4)
        if not wrong.size:
            return np.array([0, 0, -1], np.float32)
        jar = wrong[0]
        is_there = abs(angles[jar]) < 5 and abs(jars[jar] - rod) < 0.7
        if is_hooked or is_there:
            return np.array([np.clip(lack[jar], -1.5, 1.5) if is_there else 0, 0, 1 if is_there else -1], np.float32)
        return np.array([np.clip(jars[jar] - rod, -1.5, 1.5), np.clip(-angles[jar], -12, 12), -1], np.float32)

    return act


class CandleRow(SizedTask):
    """A lighter on a gantry lights and snuffs four candles until those burn that should. Lengths are in centimetres.

    It catches its flame at a lamp, and loses it if it moves too fast. A step pays the share of candles that are right.
    Actions: speeds along two axes, and what to do there: light above 0.3, snuff below -0.3.
    """

    numbers, thing = (16, 4, 3), "burning"
    table, lamp, speed, calm, reach = np.array([80.0, 50.0]), np.array([40.0, 4.0]), 6.0, 4.5, 3.0

    def begin(self) -> None:
        self.candles = np.stack([np.array([10.0, 30.0, 50.0, 70.0]) + self.place(-5, 5, 4), self.place(15, 47, 4)], 1)
        self.burning = self.np_random.integers(0, 2, 4).astype(np.float64)
        self.goal = self.burning
        while np.abs(self.goal - self.burning).sum() < 2:
            self.goal = self.np_random.integers(0, 2, 4).astype(np.float64)
        self.lighter, self.velocity, self.has_flame = self.place(0, self.table), np.zeros(2), False

    def move(self, action: Array) -> None:
        before = self.lighter
        self.lighter = np.clip(before + self.speed * action[:2], 0, self.table)
        self.velocity = self.lighter - before
        is_calm = np.linalg.norm(self.velocity) <= self.calm
        self.has_flame = bool(is_calm and (self.has_flame or np.linalg.norm(self.lighter - self.lamp) < self.reach))
        near = np.linalg.norm(self.candles - self.lighter, axis=1) < self.reach
        if action[2] < -0.3:
            self.burning = np.where(near, 0.0, self.burning)
        elif action[2] > 0.3 and self.has_flame:
            self.burning = np.where(near, 1.0, self.burning)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        return (achieved_goal == desired_goal).mean(-1)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (achieved_goal == desired_goal).all(-1)

    def observe(self) -> Array:
        light = 50 + 12 * self.burning.sum() + self.np_random.normal(0, 3)  # lux
        state = [float(self.has_flame), *self.velocity, light]
        return np.array([*self.lighter, *self.candles.ravel(), *state, *(self.lamp - self.lighter)])


def light_candles() -> Any:
    """Snuff what should not burn, fetch the flame, and carry it slowly to what should."""

    def act(observation: Observation) -> Array:
        seen, burning, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        lighter, candles, has_flame, lamp = seen[:2], seen[2:10].reshape(4, 2), seen[10], seen[14:16]
        wrong = np.flatnonzero(burning > goal if (burning > goal).any() else burning < goal)
        if not wrong.size:
            return np.zeros(3, np.float32)
        ways = candles[wrong] - lighter
        way = ways[np.argmin(np.linalg.norm(ways, axis=1))]
        must_light = bool(goal[wrong[0]])
        if must_light and not has_flame:
            way = lamp
        far = float(np.linalg.norm(way))
        does = 0.0 if far > 5 else 1.0 if must_light else -1.0
        return clipped(*(way * min(1.0, 4 / max(far, 1e-9)) / CandleRow.speed), does)

    return act


class RugVase(EachNear):
    """A hand takes the edge of a rug, seen from the side, on which a vase stands, and brings both to wished places.

    Pulled slowly, the rug takes the vase along; pulled fast, it slides away below it. How fast, depends on the polish of
    the rug. Actions: the hand's velocity aside and up, and the grip.
    """

    numbers, near = (8, 2, 3), 0.08
    pace, grab, long, most = 0.12, 0.08, 0.9, 1.2

    def begin(self) -> None:
        self.rug = float(self.np_random.uniform(-0.6, 0.2))
        self.vase = self.rug + float(self.np_random.uniform(0.2, 0.7))
        self.hand = np.array([self.rug + self.np_random.uniform(-0.2, 0.2), self.np_random.uniform(0.05, 0.2)])
        self.is_held, self.speed, self.polish = False, 0.0, float(self.np_random.uniform(0, 1))
        self.goal = np.array([self.rug, self.vase])
        while not 0.2 < np.abs(self.goal - [self.rug, self.vase]).max() < 0.8:
            rug = float(self.np_random.uniform(-0.8, 0.4))
            self.goal = np.array([rug, rug + self.np_random.uniform(0.15, 0.75)])

    def move(self, action: Array) -> None:
        is_near = np.linalg.norm(self.hand - [self.rug, 0]) < self.grab
        self.is_held, before = bool(is_near and action[2] > 0), self.hand[0]
        self.hand = np.clip(self.hand + self.pace * action[:2], [-self.most, 0], [self.most, 0.3])
        self.speed = float(self.hand[0] - before)
        if not self.is_held:
            return
        self.hand[1] *= 0.1
        stands = 0 < self.vase - self.rug < self.long
        self.rug += self.speed
        if stands and abs(self.speed) < 0.08 - 0.03 * self.polish:
            self.vase += self.speed

    def achieved(self) -> Array:
        return np.array([self.rug, self.vase])

    def observe(self) -> Array:
        x, z = self.hand
        edge, polish = self.rug - x, self.polish
        return np.array([self.vase, z, self.is_held, edge, 10 * self.speed, self.vase - self.rug, polish, x])


def draw_rug() -> Any:
    """Take the rug, draw it slowly until the vase is at its place, then draw it away below the vase."""

    def act(observation: Observation) -> Array:
        _, z, is_held, edge, *_ = observation["observation"]
        rug, vase = observation["desired_goal"] - observation["achieved_goal"]
        pace = RugVase.pace
        if abs(rug) < 0.06 and abs(vase) < 0.06:
            return clipped(0, 0, -1)
        if math.hypot(edge, z) > 0.06:
            return clipped(edge / pace, -z / pace, -1)
        if abs(vase) > 0.02 and not (is_held and abs(vase) < 0.03):
            return clipped(np.clip(vase, -0.045, 0.045) / pace, 0, 1)
        return clipped(math.copysign(max(0.09, abs(rug)), rug) / pace if abs(rug) > 0.045 else 0, 0, 1)

    return act


TASKS: tuple[Task, ...] = (
    Task("Sideboard-v0", "pull", "open", Sideboard, 90, open_drawer),
    Task("TubeRack-v0", "grasp", "open", TubeRack, 60, carry_tube),
    Task("SpiceCarousel-v0", "several-objects", "open", SpiceCarousel, 90, sort_spices),
    Task("CandleRow-v0", "rewards", "open", CandleRow, 80, light_candles),
    Task("RugVase-v0", "pull", "open", RugVase, 50, draw_rug),
)
