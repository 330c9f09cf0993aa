"""Six more tasks, of six families."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Task
from .spaces import around, real
from .sparse import Sparse, unit


def _wrapped(angle: Any) -> Any:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _scaled(step: Any, limit: float) -> Any:
    """Return a step as an action, at most of length 1."""
    return step / max(limit, float(np.linalg.norm(step)))


class CrankValve(Sparse):
    """A hand takes the crank of a valve and turns it, up to one and a half times around, to a wished opening."""

    near, radius, full, reach = 0.06, 0.12, 3 * np.pi, 0.06

    def __init__(self) -> None:
        super().__init__(8, 1, real(3, -1, 1), np.float32)

    def begin(self, draw: Any) -> None:
        self.axle, self.angle, self.turned = draw(-0.1, 0.1, 2), draw(0, self.full), 0.0
        self.goal = self.reached()
        while abs(self.goal[0] - self.angle / self.full) < 0.15:
            self.goal = draw(0, 1, 1)
        self.hand = self._crank() + draw(0.08, 0.2) * unit(draw(-np.pi, np.pi))
        self.is_held, self.pressure = False, draw(2.5, 3.5)

    def _crank(self) -> Any:
        return self.axle + self.radius * unit(self.angle)

    def move(self, action: Any) -> None:
        before, step = self._crank(), 0.05 * action[:2]
        self.is_held = bool(action[2] > 0 and np.linalg.norm(self.hand - before) < self.reach)
        self.pressure += 0.02 * self.np_random.normal()
        self.turned = 0.0
        if self.is_held:
            wish = self.angle + step @ [-np.sin(self.angle), np.cos(self.angle)] / self.radius
            wish = float(np.clip(wish, 0, self.full))
            self.turned, self.angle = wish - self.angle, wish
            step = self._crank() - before
        self.hand = np.clip(self.hand + step, -0.5, 0.5)

    def sensors(self) -> Any:
        return [self.angle / 2 / np.pi, self.turned, *self._crank(), self.pressure, float(self.is_held), *self.hand]

    def reached(self) -> Any:
        return np.array([self.angle / self.full])


def crank_script() -> Any:
    def act(observation: Any) -> Any:
        seen = observation["observation"]
        gap = seen[2:4] - seen[6:8]
        if np.linalg.norm(gap) > 0.7 * CrankValve.reach:
            return np.array([*_scaled(gap, 0.05), -1], np.float32)
        angle = 2 * np.pi * seen[0]
        arc = CrankValve.radius * (observation["desired_goal"][0] * CrankValve.full - angle)
        return np.array([*np.array([-np.sin(angle), np.cos(angle)]) * np.clip(arc / 0.05, -1, 1), 1], np.float32)

    return act


class SuctionTile(Sparse):
    """A suction cup lifts a flat tile, which it holds while the pump runs and the vacuum is strong enough, to a place."""

    seal, holds, deepest = 0.05, 0.4, -60.0  # metres from the middle; vacuum of 1 that carries the tile; kPa

    def __init__(self) -> None:
        super().__init__(15, 3, real(4, -1, 1))

    def begin(self, draw: Any) -> None:
        self.tile = self.goal = np.array([*draw(-0.2, 0.2, 2), 0.0])
        while np.linalg.norm(self.goal - self.tile) < 0.12:
            self.goal = np.array([*draw(-0.25, 0.25, 2), draw(0.05, 0.25) if draw(0, 1) < 0.5 else 0.0])
        self.cup = self.tile + np.array([*draw(-0.1, 0.1, 2), draw(0.03, 0.12)])
        self.velocity, self.vacuum, self.fall, self.yaw = np.zeros(3), 0.0, 0.0, draw(-np.pi, np.pi)

    def move(self, action: Any) -> None:
        gap = self.tile - self.cup
        is_sealed = np.linalg.norm(gap[:2]) < self.seal and abs(gap[2]) < 0.025
        if action[3] > 0:
            self.vacuum = min(1.0, self.vacuum + 0.3) if is_sealed else 0.1
        else:
            self.vacuum = max(0.0, self.vacuum - 0.2)
        before = self.cup
        self.cup = np.clip(before + 0.045 * action[:3], [-0.4, -0.4, 0], [0.4, 0.4, 0.35])
        self.velocity = self.cup - before
        if is_sealed and self.vacuum >= self.holds:
            self.tile, self.fall = self.tile + self.velocity, 0.0
        else:
            self.fall += 0.01
        self.tile[2] = max(0.0, self.tile[2] - self.fall)
        self.fall *= self.tile[2] > 0

    def sensors(self) -> Any:
        gap = self.tile - self.cup
        return [*self.cup, *gap, *unit(self.yaw), self.deepest * self.vacuum, *self.velocity, *self.tile]

    def reached(self) -> Any:
        return self.tile


def suction_script() -> Any:
    def act(observation: Any) -> Any:
        seen = observation["observation"]
        gap, vacuum = seen[3:6], seen[8] / SuctionTile.deepest
        if np.linalg.norm(gap[:2]) > 0.03:
            return np.array([*np.clip(gap[:2] / 0.045, -1, 1), 0, -1], np.float32)
        if abs(gap[2]) > 0.015:
            return np.array([0, 0, np.clip(gap[2] / 0.045, -1, 1), -1], np.float32)
        wish = observation["desired_goal"] - observation["achieved_goal"]
        return np.array([*np.clip(wish / 0.045, -1, 1) * (vacuum >= SuctionTile.holds), 1], np.float32)

    return act


class WaferPose(Sparse):
    """A vacuum tool brings a wafer to a place in millimetres and turns it to a heading; success gives 1, all else 0."""

    near, at_goal, reach = 12.0, 1.0, 18.0  # millimetres
    slack = np.cos(0.25)  # of the heading

    def __init__(self) -> None:
        most = np.array([15, 15, 20], np.float32)  # millimetres and degrees in a step
        actions = spaces.Box(np.append(-most, np.float32(0)), np.append(most, np.float32(1)), dtype=np.float32)
        super().__init__(10, 4, actions, np.float32)

    def begin(self, draw: Any) -> None:
        self.wafer, self.heading, self.angle = draw(-100, 100, 2), draw(-np.pi, np.pi), draw(-np.pi, np.pi)
        place = self.wafer
        while np.linalg.norm(place - self.wafer) < 40:
            place = draw(-120, 120, 2)
        self.goal = np.array([*place, *unit(draw(-np.pi, np.pi))])
        self.tool = self.wafer + draw(25, 60) * unit(draw(-np.pi, np.pi))
        self.vacuum, self.warmth = 0.0, draw(20, 24)

    def move(self, action: Any) -> None:
        is_held = action[3] > 0.5 and np.linalg.norm(self.wafer - self.tool) < self.reach
        self.vacuum, before = (0.8 if is_held else 0.1) * float(action[3] > 0.5), self.tool
        turn = np.radians(action[2])
        self.tool, self.angle = np.clip(before + action[:2], -170, 170), self.angle + turn
        if is_held:
            self.wafer, self.heading = self.wafer + self.tool - before, self.heading + turn
        self.warmth += 0.05 * self.np_random.normal()

    def sensors(self) -> Any:
        cosine, sine = unit(self.angle)
        own_cosine, own_sine = unit(self.heading)
        first = [sine, self.wafer[1], self.vacuum, self.tool[0], own_cosine]
        return [*first, self.warmth, self.tool[1], cosine, self.wafer[0], own_sine]

    def reached(self) -> Any:
        return [*self.wafer, *unit(self.heading)]

    def is_met(self, achieved: Any, goal: Any) -> Any:
        is_placed = np.linalg.norm((achieved - goal)[..., :2], axis=-1) <= self.near
        return is_placed & ((achieved * goal)[..., 2:].sum(-1) >= self.slack)


def wafer_script() -> Any:
    def act(observation: Any) -> Any:
        seen, goal = observation["observation"], observation["desired_goal"]
        tool, wafer = seen[[3, 6]], seen[[8, 1]]
        if np.linalg.norm(wafer - tool) > 0.7 * WaferPose.reach:
            return np.array([*15 * _scaled(wafer - tool, 15), 0, 0], np.float32)
        turn = np.degrees(_wrapped(np.arctan2(goal[3], goal[2]) - np.arctan2(seen[9], seen[4])))
        return np.array([*15 * _scaled(goal[:2] - wafer, 15), np.clip(turn, -20, 20), 1], np.float32)

    return act


class CartonPush(Sparse):
    """A round finger pushes a square carton, which also turns under the push, over a rough table to a place."""

    half, radius, grip, spread = 0.06, 0.03, 0.5, 0.0021  # metres; friction at the finger; square metres of the friction

    def __init__(self) -> None:
        super().__init__(9, 2, real(2, -1, 1))

    def begin(self, draw: Any) -> None:
        self.carton, self.angle = draw(-0.15, 0.15, 2), draw(-np.pi, np.pi)
        self.goal = self.carton
        while np.linalg.norm(self.goal - self.carton) < 0.12:
            self.goal = draw(-0.25, 0.25, 2)
        self.finger = self.carton + draw(0.13, 0.2) * unit(draw(-np.pi, np.pi))
        self.velocity, self.force = np.zeros(2), 0.0

    def move(self, action: Any) -> None:
        before, self.force = self.finger, 0.0
        for _ in range(3):
            last = self.finger
            self.finger = np.clip(last + 0.04 / 3 * action, -0.5, 0.5)
            self._push(self.finger - last)
        self.velocity = self.finger - before

    def _push(self, step: Any) -> None:
        """Move and turn the carton out of the finger's way; the finger slips where the friction does not hold."""
        cosine, sine = unit(self.angle)
        turned = np.array([[cosine, -sine], [sine, cosine]])
        own = (self.finger - self.carton) @ turned
        contact = np.clip(own, -self.half, self.half)
        distance = float(np.linalg.norm(contact - own))
        if not 0 < distance < self.radius:
            return
        normal, depth = (contact - own) / distance, self.radius - distance
        along, lever = np.array([-normal[1], normal[0]]), np.array([-contact[1], contact[0]])
        wish = depth * normal + (step @ turned @ along) * along
        force = wish - lever * (lever @ wish) / (self.spread + lever @ lever)
        pressed = max(float(force @ normal), 1e-9)
        force = normal + np.clip(force @ along / pressed, -self.grip, self.grip) * along
        force *= depth / (1 + (lever @ normal) * (lever @ force) / self.spread)
        self.carton = self.carton + turned @ force
        self.angle += float(lever @ force) / self.spread
        self.force += float(np.linalg.norm(force)) / 0.04

    def sensors(self) -> Any:
        force = self.force + 0.02 * self.np_random.normal()
        return [*self.velocity, *unit(self.angle), *self.finger, force, *self.carton]

    def reached(self) -> Any:
        return self.carton


def carton_script() -> Any:
    def act(observation: Any) -> Any:
        finger, carton = observation["observation"][4:6], observation["observation"][7:9]
        return (around(finger, carton, observation["desired_goal"], 0.1, 0.04) / 0.04).astype(np.float32)

    return act


class PipetteRail(Sparse):
    """A pipette on a rail fills two wells from a trough to wished volumes and then parks at a wished place."""

    trough, wells, width, most = 0.0, np.array([-0.2, 0.2]), 0.06, 0.6  # metres; millilitres in the tip
    pump, pace, slack = 0.15, 0.07, np.array([0.08, 0.08, 0.05])

    def __init__(self) -> None:
        super().__init__(7, 3, real(2, -1, 1), np.float32)

    def begin(self, draw: Any) -> None:
        self.volumes, self.at, self.speed = draw(0, 1, 2), draw(-0.3, 0.3), 0.0
        self.tip, self.warmth = draw(0, self.most), draw(20, 24)
        wished = self.volumes
        while np.abs(wished - self.volumes).max() < 0.2:
            wished = np.where(draw(0, 1, 2) < 0.6, draw(0, 1, 2), self.volumes)
        self.goal = np.array([*wished, draw(-0.3, 0.3)])

    def move(self, action: Any) -> None:
        before = self.at
        self.at = float(np.clip(before + self.pace * action[0], -0.35, 0.35))
        self.speed = self.at - before
        drawn = float(np.clip(self.pump * action[1], -self.tip, self.most - self.tip))
        below = np.flatnonzero(np.abs(self.wells - self.at) < self.width)
        if below.size:
            level = self.volumes[below[0]]
            drawn = float(np.clip(drawn, level - 1, level))
            self.volumes = np.where(np.arange(2) == below[0], level - drawn, self.volumes)
        elif abs(self.at - self.trough) > self.width:
            drawn = min(drawn, 0.0)  # it draws air, or spills
        self.tip += drawn
        self.warmth += 0.02 * self.np_random.normal()

    def sensors(self) -> Any:
        over = float(np.abs(np.append(self.wells, self.trough) - self.at).min() < self.width)
        return [self.volumes[1], self.at, self.warmth, self.tip, over, self.volumes[0], self.speed]

    def reached(self) -> Any:
        return [*self.volumes, self.at]

    def is_met(self, achieved: Any, goal: Any) -> Any:
        return (np.abs(achieved - goal) <= self.slack).all(-1)


def pipette_script() -> Any:
    def act(observation: Any) -> Any:
        at, tip = observation["observation"][1], observation["observation"][3]
        lacks = (observation["desired_goal"] - observation["achieved_goal"])[:2]
        for well in np.argsort(lacks):  # the well that is too full comes first
            lack = float(lacks[well])
            is_unable = tip < min(lack, 0.05) or (lack < 0 and tip > PipetteRail.most - 0.05)
            if abs(lack) < 0.04:
                continue
            if is_unable and lack < 0:  # spill a full tip between the vessels
                place, flow = 0.1, -1.0
                is_there = abs(at - place) < 0.03
            else:
                place = PipetteRail.trough if is_unable else PipetteRail.wells[well]
                flow = 1.0 if is_unable else float(np.clip(-lack / PipetteRail.pump, -1, 1))
                is_there = abs(at - place) < 0.7 * PipetteRail.width
            step = 0.0 if is_there else np.clip((place - at) / PipetteRail.pace, -1, 1)
            return np.array([step, flow * is_there], np.float32)
        return np.array([np.clip((observation["desired_goal"][2] - at) / PipetteRail.pace, -1, 1), 0], np.float32)

    return act


class LiftCourier(Sparse):
    """A courier robot in a house of two floors drives to a place, and rides the lift if that is on the other."""

    near, sill = 0.1, 0.2

    def __init__(self) -> None:
        super().__init__(9, 3, real(3, -1, 1))

    def begin(self, draw: Any) -> None:
        self.at = np.array([*draw([0.05, -0.3], [0.6, 0.3]), float(draw(0, 1) < 0.5)])
        self.goal, floor = self.at, self.at[2] if draw(0, 1) < 0.25 else 1 - self.at[2]
        while np.linalg.norm(self.goal - self.at) < 0.3:
            self.goal = np.array([*draw([0.1, -0.3], [0.6, 0.3]), floor])
        self.cabin, self.velocity, self.volts = draw(0, 1), np.zeros(2), draw(23.5, 25)

    def _is_level(self) -> bool:
        return bool(min(abs(self.cabin - floor) for floor in ([0, 1] if self.at[0] < 0 else [self.at[2]])) < self.sill)

    def move(self, action: Any) -> None:
        self.velocity = 0.4 * self.velocity + 0.07 * action[:2]
        is_inside = self.at[0] < 0  # the cabin is as broad as the corridor, and lies behind its end
        place = np.clip(self.at[:2] + self.velocity, [-0.3, -0.35], [0.7, 0.35])
        if (place[0] < 0) != is_inside and not self._is_level():  # the door is shut
            place[0] = -0.01 if is_inside else 0.01
        self.velocity = place - self.at[:2]
        self.cabin = float(np.clip(self.cabin + 0.2 * action[2], 0, 1))
        height = self.at[2]
        if place[0] < 0:
            height = self.cabin
        elif is_inside:
            height = float(height > 0.5)
        self.at = np.array([*place, height])
        self.volts -= 0.002

    def sensors(self) -> Any:
        return [*self.at[:2], self.volts, self.cabin, *self.velocity, float(self._is_level()), 0.7 - self.at[0], self.at[2]]

    def reached(self) -> Any:
        return self.at


def lift_script() -> Any:
    def act(observation: Any) -> Any:
        seen, goal = observation["observation"], observation["desired_goal"]
        at, cabin, velocity, height = seen[:2], seen[3], seen[4:6], seen[8]
        is_inside, is_floor = at[0] < 0, abs(height - goal[2]) < 0.5 * LiftCourier.sill
        level = goal[2] if is_inside or is_floor else height
        place = goal[:2] if is_floor else np.array([-0.15, at[1]])
        if not is_inside and not is_floor and abs(cabin - height) > 0.5 * LiftCourier.sill:
            place = np.array([0.1, at[1]])  # wait before the door
        drive = (0.6 * (place - at) - 0.4 * velocity) / 0.07
        return np.clip([*drive, (level - cabin) / 0.2], -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("CrankValve-v0", "pull", "closed", CrankValve, 60, crank_script),
    Task("SuctionTile-v0", "grasp", "closed", SuctionTile, 50, suction_script),
    Task("WaferPose-v0", "units", "closed", WaferPose, 50, wafer_script),
    Task("CartonPush-v0", "push", "closed", CartonPush, 60, carton_script),
    Task("PipetteRail-v0", "several-objects", "closed", PipetteRail, 75, pipette_script),
    Task("LiftCourier-v0", "later", "closed", LiftCourier, 60, lift_script),
)
