"""A zipper, a mug, a cup and a dimmer, a mallet, a frozen puck, a crawler in a duct, and two fingers with a block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, push_out, toward_push, unit, wrapped

HALF_BLOCK = 0.04


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


class PinchBlock(SizedTask):
    """Two fingers, seen from the front, take a block from the floor and bring it to a place, often in the air.

    The block falls when the fingers let it go.
    """

    numbers, thing = (5, 2, 3), "block"

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.block = np.array([draw(-0.3, 0.3), HALF_BLOCK])
        self.hand = np.array([np.clip(self.block[0] + draw(-0.1, 0.1), -0.4, 0.4), 0.15])
        self.gap = 0.08  # half of the distance of the fingers
        if draw() < 0.5:  # half of the episodes begin with the block in the fingers
            self.hand, self.gap = self.block.copy(), HALF_BLOCK
        self.goal = self.block
        while np.linalg.norm(self.goal - self.block) < 0.12:
            height = HALF_BLOCK if draw() < 0.3 else draw(0.1, 0.4)
            self.goal = np.array([draw(-0.35, 0.35), height])

    def move(self, action: Array) -> None:
        gap = float(np.clip(self.gap + 0.03 * action[2], 0.02, 0.1))
        off = abs(self.block[0] - self.hand[0])
        is_level = abs(self.hand[1] - self.block[1]) < 0.05
        is_between = is_level and off <= self.gap - HALF_BLOCK + 1e-6
        is_held = is_between and gap <= HALF_BLOCK
        hand = np.clip(self.hand + 0.05 * action[:2], [-0.5, HALF_BLOCK], [0.5, 0.5])
        if is_between:
            gap = max(gap, HALF_BLOCK)
            if is_held:
                rise = max(hand[1] - self.hand[1], HALF_BLOCK - self.block[1])
                self.block = np.array([hand[0], self.block[1] + rise])
                hand[1] = self.hand[1] + rise
            else:
                free = gap - HALF_BLOCK
                self.block[0] = np.clip(self.block[0], hand[0] - free, hand[0] + free)
        elif is_level:  # the fingers are beside the block and do not go through it
            hand[0], gap = self.hand[0], min(gap, self.gap)
        elif abs(hand[1] - self.block[1]) < 0.05 and abs(abs(self.block[0] - hand[0]) - gap - 0.01) < HALF_BLOCK + 0.01:
            hand[1] = self.block[1] + 0.06  # a finger stands on the block
        if not is_held:
            self.block[1] = max(self.block[1] - 0.1, HALF_BLOCK)
        self.hand, self.gap = hand, gap

    def observe(self) -> Array:
        return np.array([*self.hand, self.gap, *self.block])


def pinch_script() -> Any:
    def act(observation: Observation) -> Array:
        x, z, gap, bx, bz = observation["observation"]
        goal = observation["desired_goal"]
        if abs(z - bz) < 0.04 and abs(x - bx) <= gap - HALF_BLOCK + 1e-3:
            move = np.array([goal[0] - bx, goal[1] - bz]) if gap <= HALF_BLOCK + 1e-3 else np.zeros(2)
            return np.array([*np.clip(move / 0.05, -1, 1), -1], np.float32)
        down = bz - z if abs(x - bx) < 0.02 and gap > 0.07 else 0.15 + bz - z
        return np.clip([(bx - x) / 0.05, down / 0.05, (0.08 - gap) / 0.03], -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("PinchBlock-v0", "grasp", "open", PinchBlock, 50, pinch_script),
    Task("JacketZipper-v0", "pull", "open", JacketZipper, 60, zipper_script),
    Task("MugHandle-v0", "grasp", "open", MugHandle, 50, mug_script),
    Task("CupDimmer-v0", "several-objects", "open", CupDimmer, 120, desk_script),
    Task("CroquetMallet-v0", "hit", "open", CroquetMallet, 60, mallet_script),
    Task("ThawPuck-v0", "later", "open", ThawPuck, 80, thaw_script),
    Task("DuctCrawler-v0", "obstacles", "open", DuctCrawler, 120, duct_script),
)
