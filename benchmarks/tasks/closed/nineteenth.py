"""A suitcase, tweezers, coats on a rail, blimps, a cue, a drawbridge, a telescope and a submarine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, push_out, unit, wrapped
from ..task import Observation, Task


class SuitcaseTow(SizedTask):
    """A porter robot takes a suitcase on two wheels by its handle and draws it to a place in the lobby, in metres.

    The gap from robot to handle is in centimetres. A positive last action closes the gripper; open, it lets go.
    """

    numbers, thing, near = (10, 2, 3), "case", 0.25
    long, body, reach, fastest = 0.6, 0.45, 0.16, 0.2

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.case, self.yaw, self.is_held, self.charge = self.place(-1.6, 1.6), draw(-np.pi, np.pi), False, draw(30, 100)
        self.robot = self.goal = self.case
        while not 0.8 < np.linalg.norm(self.robot - self.case) < 2.0:
            self.robot = self.place(-2.6, 2.6)
        while not 0.8 < np.linalg.norm(self.goal - self.case) < 2.4:
            self.goal = self.place(-2.2, 2.2)

    def handle(self) -> Array:
        return self.case + self.long * unit(self.yaw)

    def move(self, action: Array) -> None:
        self.charge -= 0.1
        is_near = np.linalg.norm(self.handle() - self.robot) < self.reach
        self.is_held = bool(action[2] > 0 and (self.is_held or is_near))
        self.robot = np.clip(self.robot + self.fastest * action[:2], -3, 3)
        if self.is_held:  # the wheels follow the handle
            gap = self.robot - self.case
            self.yaw = math.atan2(gap[1], gap[0])
            self.case = np.clip(self.robot - self.long * unit(self.yaw), -2.9, 2.9)
            self.robot = self.handle()
        else:
            self.robot = self.robot + push_out(self.robot, self.case, self.body)

    def observe(self) -> Array:
        gap = 100 * (self.handle() - self.robot)
        return np.array([*self.robot, *gap, self.is_held, math.cos(self.yaw), math.sin(self.yaw), *self.case, self.charge])


def tow() -> Any:
    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        robot, gap, case, yaw = seen[:2], seen[2:4] / 100, seen[7:9], math.atan2(seen[6], seen[5])
        if seen[4] < 0.5:
            back, around = robot - case, wrapped(yaw - math.atan2(*(robot - case)[::-1]))
            if abs(around) > 0.5:  # around the suitcase
                bearing = math.atan2(back[1], back[0]) + math.copysign(0.4, around)
                gap = case + 0.75 * unit(bearing) - robot
            return clipped(*(gap / 0.2), 1)
        if np.linalg.norm(way) < 0.08:
            return clipped(0, 0, 1)
        turn = wrapped(math.atan2(way[1], way[0]) - yaw)
        if abs(turn) > 0.5:
            return clipped(*unit(yaw + math.copysign(np.pi / 2 - 0.15, turn)), 1)
        return clipped(*(way / max(0.2, float(np.linalg.norm(way)))), 1)

    return act


class TweezerSeed(SizedTask):
    """Tweezers pick a seed from a tray and bring it to a place on it or above it, in millimetres.

    Seeds are of different sizes. The first action opens and closes the tweezers, whose tips close along x.
    """

    numbers, thing, near = (11, 3, 4), "seed", 4.0
    widest, fastest, closing = 12.0, 5.0, 3.0

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.size, self.opening, self.is_held = draw(3, 6), draw(7, 12), False
        self.seed, self.tip = np.array([*draw(-18, 18, 2), 0.0]), np.array([*draw(-22, 22, 2), draw(4, 22)])
        if draw() < 0.25:  # already picked
            self.seed, self.opening, self.is_held = self.tip.copy(), self.size, True
        self.goal = self.seed
        while np.linalg.norm(self.goal - self.seed) < 8:
            self.goal = np.array([*draw(-22, 22, 2), draw(4, 20) if draw() < 0.5 else 0.0])

    def move(self, action: Array) -> None:
        gap, before = self.seed - self.tip, self.opening
        is_between = abs(gap[0]) < before / 2 and abs(gap[1]) < 3.5 and abs(gap[2]) < 3.0
        self.opening = float(np.clip(before + self.closing * action[0], 0, self.widest))
        catches = bool(is_between) and before > self.size >= self.opening
        self.is_held = self.opening <= self.size + 0.4 and (self.is_held or catches)
        self.tip = np.clip(self.tip + self.fastest * action[1:], [-30, -30, 0], [30, 30, 30])
        if self.is_held:
            self.opening, self.seed = self.size, self.tip.copy()
        else:
            self.seed = self.seed - np.array([0, 0, min(6.0, self.seed[2])])

    def observe(self) -> Array:
        force = self.is_held * 0.8 + self.np_random.normal(0, 0.03)
        return np.array([self.opening, *self.tip, *(self.seed - self.tip), force, self.size, self.seed[2], self.size / 2])


def pick_seed() -> Any:
    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        gap = seen[4:7]
        if seen[7] > 0.4:
            return clipped(-0.2, *(way / 5))
        if np.linalg.norm(way) < 3:  # let go and stay
            return clipped(1, 0, 0, 0)
        is_between = abs(gap[0]) < 1 and abs(gap[1]) < 1.5 and abs(gap[2]) < 1.5
        return clipped(-1 if is_between and seen[0] > seen[8] else 1, *(gap / 5))

    return act


class CoatRail(SizedTask):
    """A hook takes two coats to their places on the rail of a wardrobe of 120 cm. Coats do not pass one another.

    The actions are the speed of the hook and, above 0, to let it down. A hook that is down takes the coat below it.
    """

    numbers, thing, near = (8, 2, 2), "coats", 4.0
    width, reach, fastest = 7.0, 4.0, 9.0

    def begin(self) -> None:
        self.hook, self.speed, self.down, self.taken = self.np_random.uniform(10, 110), 0.0, 0.0, -1
        self.coats, self.goal, self.weights = self.pair(), self.pair(), self.place(0.5, 2.5)
        while np.abs(self.goal - self.coats).min() < 6:
            self.goal = self.pair()

    def pair(self) -> Array:
        left = self.np_random.uniform(8, 90)
        return np.array([left, self.np_random.uniform(left + 14, 112)])

    def move(self, action: Array) -> None:
        is_down, gaps = action[1] > 0, np.abs(self.coats - self.hook)
        self.down = float(np.clip(self.down + (0.5 if is_down else -0.5), 0, 1))
        if self.down < 1:
            self.taken = -1
        elif self.taken < 0 and gaps.min() < self.reach:
            self.taken = int(gaps.argmin())
        before, self.speed = self.hook, 0.3 * self.speed + 0.7 * self.fastest * float(action[0])
        low, high = 5 + self.width * (self.taken == 1), 115 - self.width * (self.taken == 0)
        self.hook = float(np.clip(before + self.speed, low, high))
        self.speed = self.hook - before
        if self.taken == 0:
            self.coats = np.array([self.hook, max(self.coats[1], self.hook + self.width)])
        elif self.taken == 1:
            self.coats = np.array([min(self.coats[0], self.hook - self.width), self.hook])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near).all(-1)

    def observe(self) -> Array:
        load = (self.weights[self.taken] if self.taken >= 0 else 0.0) + self.np_random.normal(0, 0.02)
        light = self.np_random.uniform(200, 300)
        return np.array([self.coats[1], self.hook, light, self.down, self.speed, self.coats[0], load, self.taken >= 0])


def hang() -> Any:
    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        hook, speed, gaps = seen[1], seen[4], observation["achieved_goal"] - seen[1]
        if seen[7] > 0.5:
            taken = int(np.abs(gaps).argmin())
            if abs(way[taken]) > 1.5:
                return clipped((way[taken] - 0.3 * speed) / 6.3, 1)
            return clipped(-0.3 * speed / 6.3, -1)
        if np.abs(way).max() < 3:
            return clipped(-0.3 * speed / 6.3, -1)
        next_one = 0 if abs(way[0]) >= 3 else 1
        to = float(np.clip(observation["achieved_goal"][next_one], 5, 115)) - hook
        return clipped((to - 0.3 * speed) / 6.3, 1 if abs(to) < 2 else -1)

    return act


class ThreeBlimps(SizedTask):
    """Three blimps fly to places in a hall of 12 by 8 metres, seen from above. They bounce off each other.

    Each has two thrusters. A slow draught blows in another direction each episode; speeds are in centimetres per step.
    """

    numbers, near, contact, thrust = (15, 6, 6), 0.7, 1.2, 0.14

    def begin(self) -> None:
        self.at, self.speed = self.apart(), np.zeros((3, 2))
        self.goal, self.clock = self.apart().ravel(), 0
        self.draught = self.np_random.uniform(0, 0.02) * unit(self.np_random.uniform(-np.pi, np.pi))

    def apart(self) -> Array:
        """Return three places that are not near to each other."""
        while True:
            drawn = self.np_random.uniform([-5, -3], [5, 3], (3, 2))
            if min(np.linalg.norm(drawn[i] - drawn[i - 1]) for i in range(3)) > 2.2:
                return drawn

    def move(self, action: Array) -> None:
        self.clock += 1
        self.speed = 0.75 * self.speed + self.thrust * action.reshape(3, 2) + self.draught
        place = self.at + self.speed
        self.at = np.clip(place, [-6, -4], [6, 4])
        self.speed = np.where(self.at == place, self.speed, -0.3 * self.speed)
        for i in range(3):
            push = push_out(self.at[i], self.at[i - 1], self.contact) / 2
            self.at[i], self.at[i - 1] = self.at[i] + push, self.at[i - 1] - push
            self.speed[i], self.speed[i - 1] = self.speed[i] + 0.5 * push, self.speed[i - 1] - 0.5 * push

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 3, 2)
        return (np.linalg.norm(gaps, axis=-1) <= self.near).all(-1)

    def achieved(self) -> Array:
        return self.at.ravel().copy()

    def observe(self) -> Array:
        return np.array([*np.hstack([self.at, 100 * self.speed]).ravel(), *(100 * self.draught), self.clock])


def fly_blimps() -> Any:
    def act(observation: Observation) -> Array:
        seen, goals = observation["observation"], observation["desired_goal"].reshape(3, 2)
        at, speed = seen[:12].reshape(3, 4)[:, :2], seen[:12].reshape(3, 4)[:, 2:] / 100
        wanted = 0.3 * (goals - at)
        wanted = wanted / np.maximum(1, np.linalg.norm(wanted, axis=1, keepdims=True) / 0.4)
        for i in range(3):
            for j in {0, 1, 2} - {i}:
                gap = at[i] - at[j]
                near = max(0.0, 2.4 - float(np.linalg.norm(gap)))
                is_ahead = gap @ (goals[i] - at[i]) < 0 and np.linalg.norm(goals[i] - at[i]) > 0.8
                wanted[i] += 0.35 * near * is_ahead * (0.3 * gap + np.array([-gap[1], gap[0]]))
        return clipped(*((wanted - 0.75 * speed - seen[12:14] / 100) / ThreeBlimps.thrust).ravel())

    return act


class SnookerCue(SizedTask):
    """A cue strikes a ball, once it lies still, so that it rolls to a place on a table of 1.8 by 0.9 metres.

    The actions turn the cue around the ball, and draw it back or drive it forward. How far it is drawn back and its speed
    are in centimetres.
    """

    numbers, thing, near = (9, 2, 2), "ball", 0.1
    size, longest, fastest, gain, friction = np.array([1.8, 0.9]), 25.0, 15.0, 0.012, 0.006

    def begin(self) -> None:
        self.ball = self.goal = self.place([0.2, 0.15], [1.6, 0.75])
        while not 0.3 < np.linalg.norm(self.goal - self.ball) < 1.2:
            self.goal = self.place([0.1, 0.1], [1.7, 0.8])
        self.yaw, self.roll, self.back, self.stroke = self.np_random.uniform(-np.pi, np.pi), np.zeros(2), 8.0, 0.0
        self.chalk = self.np_random.uniform(0.5, 1)

    def move(self, action: Array) -> None:
        if self.roll.any():
            self.ball = self.ball + self.roll
            inside = np.clip(self.ball, 0.03, self.size - 0.03)
            self.roll = np.where(inside == self.ball, self.roll, -0.8 * self.roll)
            self.ball = 2 * inside - self.ball
            speed = float(np.linalg.norm(self.roll))
            self.roll = self.roll * max(0.0, 1 - self.friction / speed)
            self.back, self.stroke = 8.0, 0.0
            return
        self.yaw = wrapped(self.yaw + 0.3 * action[0])
        self.back, self.stroke = self.drawn(self.back, self.stroke, float(action[1]))
        if self.back <= 0:
            self.roll, self.chalk = self.gain * self.stroke * unit(self.yaw), 0.9 * self.chalk

    @classmethod
    def drawn(cls, back: float, stroke: float, action: float) -> tuple[float, float]:
        """Return how far the cue is drawn back, and its speed, after a step."""
        stroke = 0.5 * stroke + 0.5 * cls.fastest * action
        return (back - stroke, stroke) if back - stroke < cls.longest else (cls.longest, 0.0)

    def observe(self) -> Array:
        return np.array([self.back, *self.ball, *unit(self.yaw), self.stroke, *self.roll, self.chalk])


def strike() -> Any:
    is_back = False

    def struck(back: float, stroke: float, action: float) -> float:
        for _ in range(30):
            back, stroke = SnookerCue.drawn(back, stroke, action)
            if back <= 0:
                return stroke
        return 0.0

    def act(observation: Observation) -> Array:
        nonlocal is_back
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        back, stroke, far = float(seen[0]), float(seen[5]), float(np.linalg.norm(way))
        if seen[6:8].any() or far < 0.07:
            is_back = False
            return clipped(0, -0.3)
        turn = wrapped(math.atan2(way[1], way[0]) - math.atan2(seen[4], seen[3])) / 0.3
        is_back = is_back or back > 22
        if not is_back or abs(turn) > 1:
            return clipped(turn, -1)
        speed = (math.sqrt(2 * SnookerCue.friction * far) + SnookerCue.friction / 2) / SnookerCue.gain
        tried = np.linspace(0.05, 1, 77)
        misses = [abs(struck(back, stroke, float(each)) - speed) for each in tried]
        return clipped(turn, tried[int(np.argmin(misses))])

    return act


class DrawbridgeBoat(SizedTask):
    """A boat on a canal, 100 by 160 metres, calls at a buoy before a drawbridge, passes it in time, and goes to a berth.

    The bridge rises when the boat is at a buoy on its side, and comes down some time later. The actions are to drift, or
    to drive to the east, west, north or south.
    """

    numbers, thing, near = (8, 2, 1), "boat", 7.0
    bridge, passage, open_time, reach = 80.0, (38.0, 62.0), 24, 12.0
    buoys = np.array([[25.0, 55.0], [75.0, 105.0]])
    ways = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(5)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.drive = self.ways[int(action)]
        return super().step(0.0)

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, np.zeros(2)
        self.timer = int(self.np_random.integers(10, 25)) * (draw() < 0.25)
        self.angle, self.hour = 80.0 * (self.timer > 0), draw(6, 20)
        self.boat = self.goal = self.place([10, 10], [90, 70]) + np.array([0, 80]) * (draw() < 0.4)
        while np.linalg.norm(self.goal - self.boat) < 25:
            self.goal = self.place([10, 10], [90, 70]) + np.array([0, 80]) * (draw() < 0.5)

    def move(self, action: Array) -> None:
        self.speed, self.hour = 0.6 * self.speed + 0.4 * 7.0 * self.drive, self.hour + 0.01
        to = np.clip(self.boat + self.speed, [2, 2], [98, 158])
        is_passage = self.passage[0] < to[0] < self.passage[1] and self.angle > 60
        if (self.boat[1] < self.bridge) != (to[1] < self.bridge) and not is_passage:
            to[1] = self.boat[1]
        self.speed, self.boat = to - self.boat, to
        buoy = self.buoys[int(to[1] >= self.bridge)]
        self.timer = self.open_time if np.linalg.norm(to - buoy) < self.reach else max(0, self.timer - 1)
        self.angle = float(np.clip(self.angle + (20 if self.timer > 0 else -20), 0, 80))

    def observe(self) -> Array:
        wind = self.np_random.normal(4, 1)
        return np.array([*self.boat, self.angle, *self.speed, self.timer, wind, self.hour])


def steer_boat() -> Any:
    task = DrawbridgeBoat

    def act(observation: Observation) -> int:
        seen, to = observation["observation"], observation["desired_goal"]
        boat, speed, side = seen[:2], seen[3:5], int(seen[1] >= task.bridge)
        if side != int(to[1] >= task.bridge):
            sign, away = 1 - 2 * side, abs(task.bridge - seen[1]) + abs(seen[0] - 50)
            if seen[5] * 5 < away + 10:
                to = task.buoys[side]
            elif abs(boat[0] - 50) > 9 or seen[2] < 61:
                to = np.array([50.0, task.bridge - 12 * sign])
            else:
                to = np.array([50.0, task.bridge + 12 * sign])
        way = to - boat - 1.5 * speed
        if np.abs(way).max() < 2.0:
            return 0
        axis = int(np.abs(way).argmax())
        return 1 + 2 * axis + int(way[axis] < 0)

    return act


class TelescopeMount(SizedTask):
    """Two motors turn a telescope to a star. Azimuth and altitude are in degrees.

    The azimuth goes from 0 to 360 and on from 0. The goal is met within 6 degrees on the sky.
    """

    numbers, near = (7, 2, 2), 6.0
    kept, gains = 0.7, np.array([5.0, 2.5])

    def begin(self) -> None:
        self.axes, self.rates, self.cold = self.place([0, 15], [360, 80]), np.zeros(2), self.np_random.uniform(-8, 12)
        self.goal, self.sidereal = self.axes, self.np_random.uniform(0, 24)
        while self.is_met(self.goal, self.axes):
            self.goal = self.place([0, 15], [360, 75])

    def move(self, action: Array) -> None:
        grease = 1 + 0.005 * self.cold
        self.rates = self.kept * self.rates + grease * self.gains * action
        azimuth, altitude = self.axes + self.rates
        if not 10 <= altitude <= 85:
            altitude, self.rates[1] = min(85.0, max(10.0, altitude)), 0.0
        self.axes, self.sidereal = np.array([azimuth % 360, altitude]), (self.sidereal + 0.003) % 24

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        one, other = np.radians(achieved_goal), np.radians(desired_goal)
        level = np.cos(one[..., 1]) * np.cos(other[..., 1]) * np.cos(one[..., 0] - other[..., 0])
        return level + np.sin(one[..., 1]) * np.sin(other[..., 1]) >= math.cos(math.radians(self.near))

    def achieved(self) -> Array:
        return self.axes.copy()

    def observe(self) -> Array:
        humid = self.np_random.normal(60, 2)
        return np.array([self.axes[1], self.sidereal, self.axes[0], *self.rates, self.cold, humid])


def point() -> Any:
    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        way[0] = (way[0] + 180) % 360 - 180
        return clipped(*((0.3 * way - 0.7 * seen[3:5]) / TelescopeMount.gains))

    return act


class SurveySub(SizedTask):
    """A small submarine goes to a station of a survey: easting and northing on a grid of metres, and depth.

    The actions are the rudder and the planes in degrees, and the propeller in turns per minute. A step is 10 seconds.
    """

    numbers, near = (10, 3, 3), 30.0
    high = np.array([30.0, 900.0, 20.0], np.float32)
    corner, far = np.array([2000.0, 5000.0]), np.array([2800.0, 5800.0])

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(self.high * np.array([-1, 0, -1], np.float32), self.high, dtype=np.float32)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.asarray(action, np.float64) / self.high)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.at, self.goal = (np.array([*draw(self.corner + 150, self.far - 150), draw(10, 90)]) for _ in range(2))
        while np.linalg.norm(self.goal[:2] - self.at[:2]) < 120:
            self.goal = np.array([*draw(self.corner + 150, self.far - 150), draw(10, 90)])
        self.heading, self.speed, self.volts = draw(-180, 180), 0.0, draw(44, 50)

    def move(self, action: Array) -> None:
        rudder, turns, planes = action * self.high
        self.speed, self.volts = 0.5 * self.speed + 0.5 * max(0.0, turns) / 300, self.volts - 0.02
        self.heading = (self.heading + rudder * self.speed / 2 + 180) % 360 - 180
        ahead, down = unit(math.radians(90 - self.heading)), math.sin(math.radians(planes))
        before = self.at
        self.at = self.at + 10 * self.speed * np.array([*(ahead * math.sqrt(1 - down**2)), down])
        self.at = np.clip(self.at, [*self.corner, 2], [*self.far, 110])
        self.drift = (self.at - before) / 10

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., :2], axis=-1) <= self.near) & (np.abs(gap[..., 2]) <= 7)

    def achieved(self) -> Array:
        return self.at.copy()

    def observe(self) -> Array:
        angle, (east, north, depth) = math.radians(self.heading), self.at
        sonar = 120 - depth + self.np_random.normal(0, 0.5)
        bar = 1.013 + 0.1 * depth
        course = [math.sin(angle), math.cos(angle)]
        return np.array([self.heading, self.speed, *course, bar, north, east, depth, sonar, self.volts])


def survey() -> Any:
    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        far, turn = float(np.hypot(*way[:2])), wrapped(math.atan2(way[0], way[1]) - math.radians(seen[0]))
        if far < 15 and abs(way[2]) < 4:
            return np.zeros(3, np.float32)
        is_deep = abs(way[2]) < max(4.0, 0.25 * far)
        wanted = min(3.0, max(0.8, far / 25)) if is_deep else 1.5
        wanted = wanted if abs(turn) < 1.2 or not is_deep else 0.8
        turns = (wanted - 0.5 * seen[1]) * 600
        rudder = math.degrees(turn) * 2 / max(0.5, wanted)
        planes = math.degrees(math.asin(float(np.clip(way[2] / (10 * wanted), -1, 1))))
        return np.array(np.clip([rudder, turns, planes], [-30, 0, -20], SurveySub.high), np.float32)

    return act


TASKS: tuple[Task, ...] = (
    Task("SuitcaseTow-v0", "pull", "closed", SuitcaseTow, 50, tow),
    Task("TweezerSeed-v0", "grasp", "closed", TweezerSeed, 40, pick_seed),
    Task("CoatRail-v0", "several-objects", "closed", CoatRail, 50, hang),
    Task("ThreeBlimps-v0", "several-bodies", "closed", ThreeBlimps, 50, fly_blimps),
    Task("SnookerCue-v0", "hit", "closed", SnookerCue, 60, strike),
    Task("DrawbridgeBoat-v0", "later", "closed", DrawbridgeBoat, 60, steer_boat),
    Task("TelescopeMount-v0", "angles", "closed", TelescopeMount, 30, point),
    Task("SurveySub-v0", "units", "closed", SurveySub, 50, survey),
)
