"""Closed tasks, eighteenth file: ten tasks of ten families, from ten imagined workplaces."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, push_out, shortest_path, toward_push, unit, wrapped
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class BoomJar(SizedTask):
    """A boom that turns about a post and telescopes pushes a jar with its tip. Actions are targets of angle and length.

    The tip and the jar are in metres. The angle spans -1.4 to 1.4 rad and the length 0.3 to 1 m for actions from -1 to 1.
    """

    numbers, thing, near = (10, 2, 2), "jar", 0.05
    middle, half, rate = np.array([0.0, 0.65]), np.array([1.4, 0.35]), np.array([0.1, 0.06])
    radius = 0.08

    def begin(self) -> None:
        self.boom, self.rates, self.warmth = np.array([-1.3, 0.35]), np.zeros(2), float(self.place(30, 40, 1)[0])
        self.jar = self.goal = self._spot()
        while np.linalg.norm(self.goal - self.jar) < 0.15:
            self.goal = self._spot()

    def _spot(self) -> Array:
        return self.np_random.uniform(0.48, 0.82) * unit(self.np_random.uniform(-0.8, 0.8))

    def tip(self) -> Array:
        return self.boom[1] * unit(self.boom[0])

    def move(self, action: Array) -> None:
        before = self.boom
        wish = np.clip(self.middle + self.half * action - before, -self.rate, self.rate)
        for part in (0.5, 1.0):
            self.boom = before + part * wish
            self.jar = self.jar + push_out(self.jar, self.tip(), self.radius)
        self.rates, self.warmth = wish, self.warmth + 0.1 * self.np_random.normal()

    def observe(self) -> Array:
        gap, share = self.jar - self.tip(), (self.boom[1] - 0.65) / 0.35
        return np.array([*gap, self.warmth / 40, *unit(self.boom[0]), share, *(self.rates / self.rate), *self.tip()])


def boom_script() -> Any:
    def act(observation: Observation) -> Array:
        tip, jar = observation["observation"][8:], observation["achieved_goal"]
        way = toward_push(tip, jar, observation["desired_goal"], BoomJar.radius, BoomJar.near)
        wish = tip + way * min(1.0, 0.045 / max(float(np.linalg.norm(way)), 1e-9))
        polar = np.array([math.atan2(wish[1], wish[0]), float(np.linalg.norm(wish))])
        return clipped(*((polar - BoomJar.middle) / BoomJar.half))

    return act


class JacketZipper(SizedTask):
    """A hand pinches the tab of a zipper and draws it along a curved seam, in centimetres.

    The goal is a place from -1 to 1. The tab slips from the fingers if they pull too far beside the seam.
    """

    numbers, near = (10, 1, 3), 0.06
    stick, slip, pinch = 0.5, 3.0, 2.0

    def begin(self) -> None:
        self.at, self.grip, self.is_held = -0.85, 0.0, False
        self.hand = self.tab() + self.np_random.uniform(8, 18) * unit(self.np_random.uniform(-0.5, 2.5))
        self.goal, self.battery = self.place(-0.5, 0.95, 1), float(self.place(40, 100, 1)[0])

    def tab(self) -> Array:
        return np.array([30 * self.at, 12 * math.sin(1.8 * self.at)])

    def slope(self) -> Array:
        return np.array([30.0, 21.6 * math.cos(1.8 * self.at)])

    def move(self, action: Array) -> None:
        before, self.battery = self.grip, self.battery - 0.02
        self.grip = float(np.clip(self.grip + 0.35 * action[2], 0, 1))
        is_near = np.linalg.norm(self.hand - self.tab()) < self.pinch
        self.is_held = self.grip > 0.6 and (self.is_held or (before <= 0.6 and bool(is_near)))
        self.hand = np.clip(self.hand + 4 * action[:2], -45, 45)
        if self.is_held:
            slope, pull = self.slope(), self.hand - self.tab()
            long = float(np.linalg.norm(slope))
            along = float(pull @ slope) / long
            beside = abs(float(pull[0] * slope[1] - pull[1] * slope[0])) / long
            self.is_held = beside < self.slip
            shift = math.copysign(max(0.0, abs(along) - self.stick), along) / long
            self.at = float(np.clip(self.at + np.clip(shift, -0.12, 0.12), -1, 1))
            self.is_held = self.is_held and bool(np.linalg.norm(self.hand - self.tab()) < 5)

    def achieved(self) -> Array:
        return np.array([self.at])

    def observe(self) -> Array:
        slope = self.slope()
        seam = slope / np.linalg.norm(slope)
        return np.array(
            [self.grip, *(self.tab() - self.hand), *(self.hand / 45), self.battery, *seam, self.is_held, self.at]
        )


def zipper_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        gap, at, grip = seen[1:3], float(seen[9]), seen[0]
        if seen[8] < 0.5:
            is_there = np.linalg.norm(gap) < 1.2
            return clipped(*(gap / 4), 1 if is_there and (grip <= 0.6) else -1)
        way = float(observation["desired_goal"][0]) - at
        if abs(way) < 0.02:
            return clipped(*(gap / 4), 1)
        step = float(np.clip(way, -0.08, 0.08))
        tab, ahead = (np.array([30 * s, 12 * math.sin(1.8 * s)]) for s in (at, at + step))
        lead = seen[6:8] * math.copysign(0.5, way)
        return clipped(*((ahead - tab + lead + gap) / 4), 1)

    return act


class MugHandle(SizedTask):
    """A hand takes a mug by its handle and carries it to a place on the table or above, in centimetres.

    A low hand pushes the mug's body away. The sign of the last action opens or closes the hand, which stays a quarter open
    on the handle.
    """

    numbers, thing, near = (12, 3, 4), "mug", 3.0
    body, arm, wide = 4.5, 6.0, 0.25

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.mug, self.fall, self.yaw = np.array([*draw(-14, 14, 2), 0.0]), 0.0, draw(-np.pi, np.pi)
        self.hand, self.opening, self.is_held = np.array([*draw(-20, 20, 2), draw(12, 25)]), 1.0, False
        self.goal = np.array([*draw(-20, 20, 2), draw(6, 20) if draw() < 0.6 else 0.0])
        while np.linalg.norm(self.goal - self.mug) < 8:
            self.goal[:2] = draw(-20, 20, 2)

    def handle(self) -> Array:
        return self.mug + np.array([*(self.arm * unit(self.yaw)), 4.0])

    def move(self, action: Array) -> None:
        gap, before = self.handle() - self.hand, self.opening
        is_around = np.linalg.norm(gap[:2]) < 1.6 and abs(gap[2]) < 2.0
        self.opening = before + float(np.clip((action[3] >= 0) - before, -0.4, 0.4))
        catches = bool(is_around) and before > self.wide
        self.is_held = self.opening <= self.wide and (self.is_held or catches)
        if self.is_held:
            self.opening = self.wide
        place = np.clip(self.hand + 3 * action[:3], [-32, -32, 1], [32, 32, 32])
        moved, self.hand = place - self.hand, place
        if self.is_held:
            self.mug, self.fall = self.mug + moved, 0.0
            self.hand[2] += max(0.0, -self.mug[2])  # the mug stands on the table
            self.mug[2] = max(0.0, self.mug[2])
            return
        self.fall = self.fall + 1.5 if self.mug[2] > 0 else 0.0
        self.mug[2] = max(0.0, self.mug[2] - self.fall)
        if self.hand[2] < self.mug[2] + 9:
            self.mug[:2] += push_out(self.mug[:2], self.hand[:2], self.body)
            self.mug[:2] = np.clip(self.mug[:2], -24, 24)

    def observe(self) -> Array:
        first, hand = [*(self.handle() - self.hand), self.opening, *unit(self.yaw)], self.hand
        return np.array([*first, *self.mug, hand[2], hand[0], self.fall])


def mug_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        gap, opening, low = seen[:3], seen[3], seen[9] - seen[8]
        is_around = np.linalg.norm(gap[:2]) < 1.2 and abs(gap[2]) < 1.5
        if is_around and abs(opening - MugHandle.wide) < 1e-6:
            return clipped(*((observation["desired_goal"] - observation["achieved_goal"]) / 3), -1)
        if is_around:
            return clipped(0, 0, 0, -1 if opening > 0.3 else 1)
        if np.linalg.norm(gap[:2]) > 0.8:  # above the mug, then down
            return clipped(*(gap[:2] / 3 if low > 9 else [0, 0]), (11 - low) / 3, 1)
        return clipped(*(gap / 3), 1)

    return act


class CupDimmer(SizedTask):
    """On a desk of 60 cm, a hand driven by forces pushes a cup to a place and the knob of a dimmer to a level in percent.

    The knob slides along the right edge. The goal is x and y of the cup in centimetres, and the level.
    """

    numbers, near = (9, 3, 2), 1.0
    rail, touch, radius = 26.0, 4.0, 6.0

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.cup, self.level, self.speed = draw(-12, 12, 2), draw(0, 100), np.zeros(2)
        self.hand = draw([-20, -20], [18, 20])
        while np.linalg.norm(self.hand - self.cup) < 8:
            self.hand = draw([-20, -20], [18, 20])
        self.goal = np.array([*draw([-15, -15], [13, 15]), draw(5, 95)])
        while np.linalg.norm(self.goal[:2] - self.cup) < 7:
            self.goal[:2] = draw([-15, -15], [13, 15])

    def move(self, action: Array) -> None:
        self.speed = 0.6 * self.speed + 1.2 * action
        for _ in range(2):
            self.hand = self.hand + self.speed / 2
            self.cup = np.clip(self.cup + push_out(self.cup, self.hand, self.radius), [-26, -26], [20, 26])
            side, knob = self.rail - self.hand[0], 0.3 * self.level - 15
            if abs(side) < self.touch:
                room, gap = math.sqrt(self.touch**2 - side**2), knob - self.hand[1]
                knob += math.copysign(max(0.0, room - abs(gap)), gap)
                self.level = float(np.clip((knob + 15) / 0.3, 0, 100))
        inside = np.clip(self.hand, -30, 30)
        self.speed, self.hand = np.where(inside == self.hand, self.speed, 0.0), inside

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., :2], axis=-1) <= 4) & (np.abs(gap[..., 2]) <= 8)

    def achieved(self) -> Array:
        return np.array([*self.cup, self.level])

    def observe(self) -> Array:
        noise = self.np_random.normal()
        return np.array([*self.speed, *(self.cup - self.hand), self.level / 100, *(self.hand / 30), noise, self.level < 50])


def desk_script() -> Any:
    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], observation["desired_goal"]
        hand, cup, level = 30 * seen[5:7], observation["achieved_goal"][:2], 100 * seen[4]
        lack, knob = 0.3 * (goal[2] - level), 0.3 * level - 15
        if abs(lack) > 1.5:
            behind = knob - math.copysign(5.0, lack)
            is_behind = (hand[1] - knob) * math.copysign(1, lack) < -3.8
            if is_behind and hand[0] > 24.5:
                way = np.array([26 - hand[0], knob - math.copysign(4.0, lack) - hand[1] + min(1.5, max(-1.5, lack))])
            elif is_behind:
                way = np.array([26 - hand[0], behind - hand[1]])
            else:
                way = np.array([20.5 - hand[0], (behind - hand[1]) * (hand[0] < 22)])
        elif hand[0] > 22.2 and abs(knob - hand[1]) < 6:
            way = np.array([-3.0, 0.0])  # let the knob go
        else:
            way = toward_push(hand, cup, goal[:2], 6.0, 4.0)
        way = way * min(1.0, 1.8 / max(float(np.linalg.norm(way)), 1e-9))
        return clipped(*((way - 0.6 * seen[:2]) / 1.2))

    return act


class CroquetMallet(SizedTask):
    """A mallet that hangs and swings strikes a ball once, so that it rolls to a place on the lawn, in metres.

    The actions are a rate of turning about the vertical axis and the torque of the swing.
    """

    numbers, thing, near = (9, 2, 2), "ball", 0.13
    contact, gain, friction, tee = 0.15, 0.45, 0.01, np.array([3.0, 5.0])

    def begin(self) -> None:
        self.ball, self.slide, self.yaw, self.swing, self.rate, self.clock = self.tee, np.zeros(2), 0.0, 0.0, 0.0, 0
        self.goal = self.ball + self.np_random.uniform(0.8, 2.6) * unit(self.np_random.uniform(-0.8, 0.8))

    @staticmethod
    def swung(swing: float, rate: float, torque: float) -> tuple[float, float]:
        """Return angle and rate of the swing after a step."""
        rate = 0.98 * rate - 0.0625 * math.sin(swing) + 0.05 * torque
        wanted = swing + rate
        swing = min(0.9, max(-1.6, wanted))
        return swing, rate if swing == wanted else 0.0

    def move(self, action: Array) -> None:
        self.yaw = float(np.clip(self.yaw + 0.08 * action[0], -1, 1))
        before, self.clock = self.swing, self.clock + 1
        self.swing, self.rate = self.swung(before, self.rate, float(action[1]))
        if before < self.contact <= self.swing and np.array_equal(self.ball, self.tee):
            self.slide = self.gain * self.rate * unit(self.yaw)
        self.ball = self.ball + self.slide
        speed = float(np.linalg.norm(self.slide))
        self.slide = self.slide * max(0.0, 1 - self.friction / max(speed, 1e-9))

    def observe(self) -> Array:
        return np.array([self.swing, *unit(self.yaw), *self.ball, self.rate, *(10 * self.slide), self.clock / 60])


def mallet_script() -> Any:
    task, is_back = CroquetMallet, False

    def reached(swing: float, rate: float, torque: float) -> float:
        for _ in range(30):
            before, (swing, rate) = swing, task.swung(swing, rate, torque)
            if before < task.contact <= swing:
                return rate
        return 0.0

    def act(observation: Observation) -> Array:
        nonlocal is_back
        seen = observation["observation"]
        way = observation["desired_goal"] - task.tee
        turn = (math.atan2(way[1], way[0]) - math.atan2(seen[2], seen[1])) / 0.08
        far = float(np.linalg.norm(way))
        speed = math.sqrt(2 * task.friction * far + task.friction**2 / 4) - task.friction / 2
        swing, rate = float(seen[0]), float(seen[5])
        is_back = is_back or swing < -1.45
        if not is_back or swing >= task.contact:
            return clipped(turn, -1)
        tried = np.linspace(-1, 1, 41)
        misses = [abs(reached(swing, rate, float(torque)) - speed / task.gain) for torque in tried]
        return clipped(turn, tried[int(np.argmin(misses))])

    return act


class ThawPuck(SizedTask):
    """A tool pushes a puck that is frozen to the table until a tool warmed at the stove has melted the ice.

    The puck and the tool are in metres, the ice in millimetres, and the temperature in degrees.
    """

    numbers, thing, near = (8, 2, 2), "puck", 0.06
    stove, radius = np.array([0.4, -0.35]), 0.1

    def begin(self) -> None:
        self.puck, self.tool = self.place(-0.25, 0.25), self.place(-0.5, 0.5)
        while np.linalg.norm(self.tool - self.puck) < 0.15:
            self.tool = self.place(-0.5, 0.5)
        self.goal = self.puck
        while np.linalg.norm(self.goal - self.puck) < 0.12:
            self.goal = self.place(-0.35, 0.35)
        self.warmth, ice, chance = self.place(0, 1, 3)
        self.ice, self.clock = (2 + 4 * ice) * (chance < 0.8), 0

    def move(self, action: Array) -> None:
        self.tool, self.clock = np.clip(self.tool + 0.05 * action, -0.55, 0.55), self.clock + 1
        is_warmed = np.linalg.norm(self.tool - self.stove) < 0.13
        self.warmth = self.warmth + 0.3 * (1 - self.warmth) if is_warmed else 0.98 * self.warmth
        push = push_out(self.puck, self.tool, self.radius)
        if self.ice > 0:
            self.ice = max(0.0, self.ice - 1.6 * self.warmth * bool(push.any()))
            self.tool = self.tool - push
        else:
            self.puck = np.clip(self.puck + push, -0.45, 0.45)

    def observe(self) -> Array:
        degrees = 20 + 60 * self.warmth
        return np.array([self.ice, *self.tool, *(self.puck - self.tool), degrees, self.clock, self.np_random.uniform()])


def thaw_script() -> Any:
    is_heating = False

    def act(observation: Observation) -> Array:
        nonlocal is_heating
        seen = observation["observation"]
        tool, warmth = seen[1:3], (seen[5] - 20) / 60
        is_heating = seen[0] > 0 and (warmth < 0.25 or (is_heating and warmth < 0.85))
        if is_heating:
            way = ThawPuck.stove - tool
            gap = seen[3:5]
            if np.linalg.norm(gap) < 0.13 and gap @ way > 0:  # the frozen puck is in the way
                side = np.array([-gap[1], gap[0]])
                way = side * np.copysign(1, side @ way) - 0.3 * gap
        elif seen[0] > 0:
            way = seen[3:5]
        else:
            way = toward_push(tool, tool + seen[3:5], observation["desired_goal"], 0.1, 0.05)
        return clipped(*(way / max(0.05, float(np.linalg.norm(way))) * min(1.0, float(np.linalg.norm(way)) / 0.05)))

    return act


class DuctCrawler(SizedTask):
    """A crawler steers through a duct with three baffles to a place, in metres, with feelers to its front and its sides.

    The actions are speed, slower backward, and a rate of turning. Positions that it observes lie between -1 and 1.
    """

    numbers, thing, near = (9, 2, 2), "at", 0.12
    size = np.array([4.0, 1.5])
    walls = np.array(
        [[0.9, -1.0, 1.1, 1.13], [1.9, 0.37, 2.1, 2.5], [2.9, -1.0, 3.1, 1.13]]
    )  # with the radius of the crawler
    beams, probe = np.array([-1.2, 0.0, 1.2]), np.linspace(0.1, 0.6, 6)

    def begin(self) -> None:
        self.at, self.heading, self.pace = self.place([0.1, 0.1], [0.8, 1.2]), self.np_random.uniform(-3.1, 3.1), 0.0
        left = (3.2, 3.2, 3.2, 2.2, 1.2)[int(self.np_random.integers(5))]
        self.goal = self.place([left, 0.15], [left + 0.7, 1.35])

    def blocked(self, places: Array) -> Any:
        """Return whether places (..., 2) lie in a wall or outside, (...) bool."""
        inside = np.zeros(places.shape[:-1], bool)
        for left, low, right, high in self.walls:
            x, y = places[..., 0], places[..., 1]
            inside |= (x > left) & (x < right) & (y > low) & (y < high)
        return inside | ((places < 0.08) | (places > self.size - 0.08)).any(-1)

    def move(self, action: Array) -> None:
        self.heading = wrapped(self.heading + 0.4 * action[1])
        self.pace = 0.09 * max(-0.3, float(action[0]))
        step = self.pace * unit(self.heading)
        for way in (step, step * [1, 0], step * [0, 1]):
            if not self.blocked(self.at + way):
                self.at = self.at + way
                return
        self.pace = 0.0

    def observe(self) -> Array:
        angles = self.heading + self.beams
        rays = self.at + self.probe[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], -1)
        free = np.cumprod(~self.blocked(rays), axis=0).mean(0)
        return np.array([*unit(self.heading), *free, self.pace, *(2 * self.at / self.size - 1), self.np_random.normal()])


def duct_script() -> Any:
    def part(x: float) -> int:
        return int(x > 1.1) + int(x > 2.1) + int(x > 3.1)

    def act(observation: Observation) -> Array:
        (x, y), goal, seen = observation["achieved_goal"], observation["desired_goal"], observation["observation"]
        here, there = part(x), part(goal[0])
        if there > here:  # through the gap at the other end of the next baffle
            high = here != 1
            is_level = y > 1.15 if high else y < 0.35
            wish = (here + (1.35 if is_level else 0.7), 1.28 if high else 0.22)
        else:
            wish = tuple(goal)
        far = math.hypot(wish[0] - x, wish[1] - y)
        if far < 0.06:
            return clipped(0, 0)
        turn = wrapped(math.atan2(wish[1] - y, wish[0] - x) - math.atan2(seen[1], seen[0]))
        return clipped(min(1.0, far / 0.09) if abs(turn) < 0.5 else 0.0, turn / 0.4)

    return act


class BridgeRovers(SizedTask):
    """Two rovers, in decimetres, go to their places in two yards that a bridge joins, too narrow for both at once.

    The first takes velocities, the second takes forces. A rover that would touch the other stops.
    """

    numbers, near = (8, 4, 4), 0.6
    apart = 0.9

    def begin(self) -> None:
        self.first, self.second, self.speed, self.clock = self._spot(), self._spot(), np.zeros(2), 0
        while np.linalg.norm(self.first - self.second) < 1.5:
            self.second = self._spot()
        self.goal = np.concatenate([self._spot(), self._spot()])
        while np.linalg.norm(self.goal[:2] - self.goal[2:]) < 1.8:
            self.goal[2:] = self._spot()

    def _spot(self) -> Array:
        x, y, side = self.place([2, -2.5, -1], [5.5, 2.5, 1], 3)
        return np.array([math.copysign(x, side), y])

    def _moved(self, rover: Array, way: Array, other: Array) -> Array:
        for part in (way, way * [1, 0], way * [0, 1]):
            place = rover + part
            is_free = abs(place[0]) <= 6 and abs(place[1]) <= (3 if abs(place[0]) >= 1 else 0.6)
            if is_free and (place - other) @ (place - other) > self.apart**2:
                return place
        return rover

    def move(self, action: Array) -> None:
        self.clock += 1
        self.first = self._moved(self.first, 0.5 * action[:2], self.second)
        before, self.speed = self.second, 0.6 * self.speed + 0.2 * action[2:]
        self.second = self._moved(before, self.speed, self.first)
        self.speed = self.second - before

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return np.maximum(np.linalg.norm(gap[..., :2], axis=-1), np.linalg.norm(gap[..., 2:], axis=-1)) <= self.near

    def achieved(self) -> Array:
        return np.concatenate([self.first, self.second])

    def observe(self) -> Array:
        return np.array([*self.first, *(self.second - self.first), *self.second, *self.speed])


def rovers_script() -> Any:
    leader = -1

    def route(at: Array, goal: Array) -> Array:
        if at[0] * goal[0] > 0 and abs(at[0]) >= 1.2:
            return goal - at
        side = math.copysign(1, goal[0])
        if abs(at[1]) > 0.3 and abs(at[0]) < 1.6:  # beside the mouth
            return np.array([-side if at[0] * side < 0 else side, -2 * at[1]])
        return np.array([-1.8 * side - at[0], -at[1]]) if at[0] * side < -1.9 else np.array([side, -at[1]])

    def aside(way: Array, gap: Array) -> Array:
        far, long = float(np.linalg.norm(gap)), float(np.linalg.norm(way))
        if far > 1.8 or long < 0.1 or gap @ way < 0.3 * far * long:
            return way
        side = np.array([-gap[1], gap[0]]) / far
        return long * (side * np.copysign(1.0, side @ way + 1e-6) - 0.25 * gap / far * (far < 1.3))

    def act(observation: Observation) -> Array:
        nonlocal leader
        seen = observation["observation"]
        at, to = [seen[:2], seen[4:6]], observation["desired_goal"].reshape(2, 2)
        crosses = [bool(at[k][0] * to[k][0] < 0 or abs(at[k][0]) < 1.6) for k in (0, 1)]
        if not any(crosses):
            leader = -1
        elif leader < 0 or not crosses[leader]:
            leader = int(crosses[1]) if not all(crosses) else int(abs(at[1][0]) < abs(at[0][0]))
        ways = []
        for k in (0, 1):
            other, way = at[1 - k], route(at[k], to[k])
            if leader == 1 - k:  # wait in the corner that is farther from the leader's goal
                corner = np.array([math.copysign(4.2, at[k][0]), -math.copysign(2.7, to[1 - k][1])])
                way = corner - at[k] if crosses[k] or abs(at[k][1]) < 1.5 else np.zeros(2)
            ways.append(aside(way, other - at[k]))
        first, second = (way / max(0.5, float(np.linalg.norm(way))) for way in ways)
        return clipped(*first, *((0.5 * second - 0.6 * seen[6:8]) / 0.2))

    return act


class PlatenPusher(SizedTask):
    """A square pusher slides a platen that stays parallel to it, in thousandths of an inch from 0 to 24,000.

    The actions are targets on the same scale, and the goal is also among the columns, in 32-bit numbers.
    """

    numbers, thing, near = (7, 2, 2), "platen", 1000.0
    reach, most = np.array([2100.0, 1600.0]), 1100.0  # of the centres at which the two touch, mils in a step

    def __init__(self) -> None:
        super().__init__()
        seen, goal = (spaces.Box(-np.inf, np.inf, (n,), np.float32) for n in (7, 2))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(0.0, 24_000.0, (2,), np.float32)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.asarray(action, np.float64) / 12_000 - 1)

    def begin(self) -> None:
        self.pusher, self.heat = np.array([1000.0, 1000.0]), 70 + float(self.place(-5, 5, 1)[0])
        self.platen = self.place(7000, 17_000)
        self.goal = self.platen
        while np.linalg.norm(self.goal - self.platen) < 3000:
            self.goal = np.round(self.place(5000, 19_000)).astype(np.float32)

    def move(self, action: Array) -> None:
        wish = np.clip(12_000 * (action + 1) - self.pusher, -self.most, self.most)
        self.pusher = np.clip(self.pusher + wish, 600, 23_400)
        gap = self.platen - self.pusher
        deep = self.reach - np.abs(gap)
        if (deep > 0).all():  # along the axis on which they overlap less
            k = int(np.argmin(deep))
            self.platen[k] = np.clip(self.platen[k] + math.copysign(deep[k], gap[k]), 2100, 21_900)
            left = self.reach[k] - abs(self.platen[k] - self.pusher[k])
            self.pusher[k] -= math.copysign(max(0.0, left), gap[k])
        self.heat += 0.1 * self.np_random.normal()

    def achieved(self) -> Array:
        return self.platen.astype(np.float32)

    def observe(self) -> Array:
        return np.array([*self.pusher, self.heat, *self.goal, *self.platen], np.float32)


def platen_script() -> Any:
    axis = 0

    def act(observation: Observation) -> Array:
        nonlocal axis
        seen = observation["observation"].astype(np.float64)
        at, goal, platen = seen[:2], seen[3:5], seen[5:7]
        lack = goal - platen
        if abs(lack[axis]) < 300:
            axis = 1 - axis
        if np.abs(lack).max() < 400:
            return at.astype(np.float32)
        k, m, sign = axis, 1 - axis, math.copysign(1, lack[axis])
        gap, reach, target = at - platen, PlatenPusher.reach, at.copy()
        if gap[k] * sign <= -reach[k] + 5:  # behind it
            target[m] = platen[m]
            if abs(gap[m]) < 400:
                free = -gap[k] * sign - reach[k]
                target[k] = at[k] + sign * (min(900.0, abs(lack[k])) + max(0.0, free))
            else:
                target[k] = platen[k] - sign * (reach[k] + 300)
        elif abs(gap[m]) >= reach[m] + 50:  # beside it
            target[k] = platen[k] - sign * (reach[k] + 400)
        else:
            side = math.copysign(1, gap[m]) if 3500 < platen[m] + math.copysign(2500, gap[m]) < 20_500 else 0.0
            side = side or math.copysign(1, 12_000 - platen[m])
            target[m] = platen[m] + side * (reach[m] + 400)
            if abs(gap[k]) < reach[k] + 50:
                target[k] = platen[k] + math.copysign(reach[k] + 200, gap[k])
        return np.clip(target, 0, 24_000).astype(np.float32)

    return act


class ForkliftBays(DiscreteTask):
    """A forklift on 7x7 cells carries a pallet before it. It turns, drives forward and back, and moves its fork.

    The state is the truck's cell and heading, whether the fork is up, and the pallet's cell. Racks stand on four cells.
    """

    size, ways, racks = 7, ((0, 1), (1, 0), (0, -1), (-1, 0)), frozenset({(2, 2), (2, 4), (4, 2), (4, 4)})

    def __init__(self) -> None:
        places = numbers(6, 2)
        self.observation_space = spaces.Dict(observation=numbers(40, 7), achieved_goal=places, desired_goal=places)
        self.action_space = spaces.Discrete(5)

    def _free(self, cell: tuple[int, int]) -> bool:
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size and cell not in self.racks

    def _cell(self, low: int, high: int) -> tuple[int, int]:
        while True:
            i, j = self.np_random.integers(low, high, 2).tolist()
            if (i, j) not in self.racks:
                return i, j

    def begin(self) -> None:
        self.clock, truck, pallet = 0, self._cell(0, 7), self._cell(1, 6)
        while truck == pallet:
            truck = self._cell(0, 7)
        goal = pallet
        while goal == pallet:
            goal = self._cell(0, 7)
        self.state, self.goal = (*truck, int(self.np_random.integers(4)), 0, *pallet), np.array(goal)

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.clock += 1
        return super().step(action)

    def after(self, state: Any) -> list[Any]:
        i, j, heading, is_up, *pallet = state
        load, found = tuple(pallet), []
        for turn, drive in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            new = (heading + turn) % 4
            (di, dj), (fi, fj) = self.ways[heading], self.ways[new]
            truck = (i + drive * di, j + drive * dj)
            front = (truck[0] + fi, truck[1] + fj) if is_up else load
            fits = self._free(truck) and self._free(front) and truck != front
            found.append((*truck, new, is_up, *front) if fits else state)
        di, dj = self.ways[heading]
        found.append((i, j, heading, 1 - is_up, *load) if is_up or (i + di, j + dj) == load else state)
        return found

    def seen(self) -> Seen:
        place = np.array(self.state[4:])
        return {
            "observation": np.array([self.clock, *self.state]),
            "achieved_goal": place,
            "desired_goal": self.goal.copy(),
        }


def forklift_script() -> Any:
    task, path, is_planned = ForkliftBays(), [], False
    follow = lru_cache(maxsize=None)(lambda state: tuple(task.after(state)))

    def act(observation: Observation) -> int:
        nonlocal path, is_planned
        goal = tuple(observation["desired_goal"].tolist())
        if not is_planned:
            path = shortest_path(tuple(observation["observation"][1:].tolist()), lambda state: state[4:] == goal, follow)
            is_planned = True
        return path.pop(0) if path else 4

    return act


TASKS = (
    Task("BoomJar-v0", "push", "closed", BoomJar, 100, boom_script),
    Task("JacketZipper-v0", "pull", "closed", JacketZipper, 60, zipper_script),
    Task("MugHandle-v0", "grasp", "closed", MugHandle, 50, mug_script),
    Task("CupDimmer-v0", "several-objects", "closed", CupDimmer, 120, desk_script),
    Task("CroquetMallet-v0", "hit", "closed", CroquetMallet, 60, mallet_script),
    Task("ThawPuck-v0", "later", "closed", ThawPuck, 80, thaw_script),
    Task("DuctCrawler-v0", "obstacles", "closed", DuctCrawler, 120, duct_script),
    Task("BridgeRovers-v0", "several-bodies", "closed", BridgeRovers, 90, rovers_script),
    Task("PlatenPusher-v0", "units", "closed", PlatenPusher, 100, platen_script),
    Task("ForkliftBays-v0", "discrete", "closed", ForkliftBays, 40, forklift_script),
)
