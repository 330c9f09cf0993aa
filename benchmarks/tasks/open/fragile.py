"""Bodies that break or die: a car with range sensors, a drone in a plane, a submarine, a robot among trams, a balancer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, unit

RAYS = np.linspace(-np.pi, np.pi, 16, endpoint=False)
RANGE, CAR, STEP = 0.6, 0.05, 0.06
GRAVITY, TIME = 0.6, 0.1


class SensorCar(GoalTask):
    """A car drives among three round walls, which are elsewhere in each episode. A car that touches one stands still."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(5 + len(RAYS), 2, 2)

    def begin(self) -> None:
        """Draw walls, a start and a goal that are apart."""
        self.walls = self.place(-0.7, 0.7, (3, 2))  # type: ignore[arg-type]
        self.radius = self.np_random.uniform(0.08, 0.16, 3)
        self.at, self.goal = self._free(), self._free()
        self.heading, self.is_broken = float(self.np_random.uniform(-np.pi, np.pi)), False

    def _free(self) -> Array:
        while True:
            place = self.place(-0.9, 0.9)
            if (np.linalg.norm(self.walls - place, axis=1) > self.radius + 0.15).all():
                return place

    def move(self, action: Array) -> None:
        """Turn and drive forward."""
        if self.is_broken:
            return
        self.heading = float((self.heading + 0.5 * action[1] + np.pi) % (2 * np.pi) - np.pi)
        self.at = np.clip(self.at + STEP * max(0.0, (action[0] + 1) / 2) * unit(self.heading), -1, 1)
        self.is_broken = bool((np.linalg.norm(self.walls - self.at, axis=1) < self.radius + CAR).any())

    def observe(self) -> Array:
        """Return position, heading, whether the car is broken, and the distances that the sensors measure."""
        return np.concatenate([self.at, unit(self.heading), [float(self.is_broken)], self._distances()])

    def _distances(self) -> Array:
        rays = np.stack([np.cos(self.heading + RAYS), np.sin(self.heading + RAYS)], 1)
        gap = self.walls - self.at
        along = rays @ gap.T
        aside = np.maximum(np.square(gap).sum(1) - np.square(along), 0.0)
        reach = along - np.sqrt(np.maximum(np.square(self.radius) - aside, 0.0))
        hit = np.where((aside < np.square(self.radius)) & (along > 0), reach, RANGE)
        return np.clip(hit.min(1), 0, RANGE)

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


def drive_free(observation: Observation) -> Array:
    """Turn to the free direction nearest to the goal, and drive if the car looks there."""
    seen = observation["observation"]
    way = observation["desired_goal"] - seen[:2]
    distance, heading = float(np.linalg.norm(way)), float(np.arctan2(seen[3], seen[2]))
    wanted = (np.arctan2(way[1], way[0]) - heading + np.pi) % (2 * np.pi) - np.pi
    sensors = seen[5:]
    candidates = np.append(RAYS, wanted)
    apart = candidates[:, None] - RAYS
    is_beside = (sensors * np.abs(np.sin(apart)) < 1.7 * CAR) & (np.cos(apart) > 0) & (sensors < RANGE)
    ahead = np.where(is_beside, sensors * np.cos(apart), RANGE).min(1)  # free way of the whole car
    is_free = ahead > min(0.3, distance)
    off = np.abs((candidates - wanted + np.pi) % (2 * np.pi) - np.pi)
    turn = candidates[int((off + 0.1 * np.abs(candidates) + np.where(is_free, 0.0, 10.0 - 5 * ahead)).argmin())]
    front = np.where(np.abs(RAYS) < 0.9, sensors, RANGE).min()
    speed = min(1.0, distance / STEP, max(0.1, (front - 0.08) / 0.15)) if abs(turn) < 0.5 and distance > 0.05 else 0.0
    return np.array([2 * speed - 1, np.clip(turn / 0.5, -1, 1)], np.float32)


class PlaneDrone(GoalTask):
    """A drone with two rotors flies in a plane. If it touches the ground or turns over, the episode ends."""

    near = 0.2

    def __init__(self) -> None:
        super().__init__(7, 2, 2)

    def begin(self) -> None:
        """Hover at the start."""
        centre = np.array([0.0, 1.2])
        self.at, self.goal = centre + self.place(-0.8, 0.8), centre + self.place(-0.8, 0.8)
        self.velocity, self.angle, self.spin, self.is_broken = np.zeros(2), 0.0, 0.0, False

    def move(self, action: Array) -> None:
        """Thrust and turn. Both rotors at 0 carry the weight."""
        thrust = GRAVITY * (1 + 0.8 * action.mean())
        self.spin = 0.8 * self.spin + 0.6 * float(action[1] - action[0]) * TIME * 5
        self.angle += self.spin * TIME
        up = np.array([-np.sin(self.angle), np.cos(self.angle)])
        self.velocity = 0.98 * self.velocity + TIME * (thrust * up - [0, GRAVITY])
        self.at = self.at + TIME * self.velocity
        self.is_broken = bool(self.at[1] < 0 or abs(self.angle) > 1.5)

    def observe(self) -> Array:
        """Return position, velocity, cosine and sine of the angle, and its speed."""
        return np.array([*self.at, *self.velocity, np.cos(self.angle), np.sin(self.angle), self.spin])

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()

    def is_over(self) -> bool:
        """Return whether the drone is broken."""
        return self.is_broken


def hover_to(observation: Observation) -> Array:
    """Lean toward the goal, with proportional and derivative terms."""
    x, z, vx, vz, cosine, sine, spin = observation["observation"]
    wanted = np.clip(0.8 * (observation["desired_goal"] - [x, z]) - 1.6 * np.array([vx, vz]), -0.25, 0.25)
    lean = np.clip(-wanted[0] / GRAVITY, -0.4, 0.4)
    turn = np.clip(3 * (lean - np.arctan2(sine, cosine)) - 1.0 * spin, -0.5, 0.5)
    lift = np.clip(wanted[1] / (0.8 * GRAVITY) + (1 - cosine), -0.5, 0.5)
    return np.array([lift - turn, lift + turn], np.float32)


class CaveDiver(GoalTask):
    """A small submarine with a propeller and a slow ballast pump dives through a cave. A touch of rock breaks it."""

    near, hull = 0.1, 0.04
    along = np.array([0.0, 0.5, 0.75, 0.95, 1.25, 1.45, 2.0])
    floor = np.array([-0.9, -0.9, -0.5, -0.5, -0.9, -0.9, -0.8])
    roof = np.array([0.0, 0.0, 0.0, -0.05, -0.45, -0.2, 0.0])

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def room(self, at: Array) -> tuple[float, float]:
        """Return the distances to the roof and to the floor."""
        roof, floor = (float(np.interp(at[0], self.along, height)) for height in (self.roof, self.floor))
        return roof - at[1], at[1] - floor

    def begin(self) -> None:
        """Start and end where there is room."""
        self.at, self.goal = self._free(), self._free()
        while np.linalg.norm(self.goal - self.at) < 0.35:
            self.goal = self._free()
        self.velocity, self.ballast, self.warmth = np.zeros(2), 0.0, self.np_random.uniform(8, 12)

    def _free(self) -> Array:
        while True:
            at = self.np_random.uniform([0.15, -0.9], [1.85, 0.0])
            if min(min(self.room(at + np.array([aside, 0]))) for aside in (-0.1, 0, 0.1)) > 0.16:
                return at

    def move(self, action: Array) -> None:
        """Pump, drive, and drift on."""
        self.ballast = float(np.clip(self.ballast + 0.3 * action[1], -1, 1))
        self.velocity = 0.75 * self.velocity + 0.022 * np.array([action[0], self.ballast])
        self.at = self.at + self.velocity
        self.warmth += 0.05 * self.np_random.normal()

    def is_over(self) -> bool:
        """Return whether it touches rock."""
        return min(*self.room(self.at), self.at[0], 2 - self.at[0]) < self.hull

    def observe(self) -> Array:
        """Return the room, the position, the velocity, the ballast, and how warm the water is."""
        up, down = self.room(self.at)
        return np.array([up, self.velocity[0], self.at[0], self.ballast, down, self.warmth, self.at[1], self.velocity[1]])

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


def dive_to(observation: Observation) -> Array:
    """Stay in the middle of the cave until the goal is near."""
    _, speed, x, ballast, _, _, y, sink = observation["observation"]
    goal = observation["desired_goal"]
    ahead = x + np.clip(goal[0] - x, -0.15, 0.15)
    middle = sum(float(np.interp(ahead, CaveDiver.along, height)) for height in (CaveDiver.roof, CaveDiver.floor)) / 2
    to_y = (goal[1] if abs(goal[0] - x) < 0.15 else middle) - y
    forward = np.clip(0.25 * (goal[0] - x), -0.06, 0.06) * max(0.1, 1 - abs(to_y) / 0.2)
    pump = (np.clip(0.15 * to_y, -0.06, 0.06) - 0.75 * sink) / 0.022
    action = [(forward - 0.75 * speed) / 0.022, (np.clip(pump, -1, 1) - ballast) / 0.3]
    return np.clip(action, -1, 1).astype(np.float32)


class TramSquare(GoalTask):
    """A courier robot crosses a square with two tracks. On each shuttles a tram; a robot that is hit is broken."""

    near, touch = 0.1, np.array([0.25, 0.14])  # metres; between the middles of a tram and the robot, along and across

    def __init__(self) -> None:
        super().__init__(12, 2, 2)

    def begin(self) -> None:
        """Draw the tracks, the trams and their speeds, a start and a goal."""
        draw = self.np_random.uniform
        self.tracks, self.trams = np.array([-0.4, 0.4]) + draw(-0.1, 0.1, 2), draw(-0.9, 0.9, 2)
        self.speeds = draw(0.03, 0.07, 2) * np.where(draw(0, 1, 2) < 0.5, -1, 1)
        self.at = self.goal = self._free()
        while np.linalg.norm(self.goal - self.at) < 0.6:
            self.goal = self._free()
        self.velocity, self.volts = np.zeros(2), draw(23.5, 25)

    def _free(self) -> Array:
        while True:
            place = self.place(-0.9, 0.9)
            if np.abs(self.tracks - place[1]).min() > 0.2:
                return place

    def move(self, action: Array) -> None:
        """Drive on, as the trams do."""
        before = self.at
        self.at = np.clip(before + 0.6 * self.velocity + 0.03 * action, -1, 1)
        self.velocity = self.at - before
        self.trams, self.speeds = shuttled(self.trams, self.speeds)
        self.volts += 0.02 * self.np_random.normal() - 0.002

    def is_over(self) -> bool:
        """Return whether a tram hits the robot."""
        return bool(is_hit(self.at, self.trams, self.tracks))

    def observe(self) -> Array:
        """Return what the robot knows of itself and of the trams, and the voltage of its battery."""
        first = [self.at[1], self.trams[0], self.velocity[0], self.speeds[1], *self.tracks]
        return np.array([*first, self.volts, self.at[0], self.velocity[1], self.trams[1], self.speeds[0], 1 - self.at[1]])

    def achieved(self) -> Array:
        """Return the position of the robot."""
        return self.at.copy()


def shuttled(trams: Array, speeds: Array) -> tuple[Array, Array]:
    """Return the trams and their speeds a step later; they turn at the ends of the tracks."""
    ahead = trams + speeds
    return np.clip(ahead, -1, 1), np.where(np.abs(ahead) > 1, -speeds, speeds)


def is_hit(at: Array, trams: Array, tracks: Array, margin: float = 0.0) -> Array:
    """Return whether a tram is nearer to positions (..., 2) than a robot survives, and a margin, (...) bool."""
    gaps = np.abs(np.stack([trams - at[..., :1], tracks - at[..., 1:]], axis=-1))
    return np.asarray((gaps < TramSquare.touch + margin).all(-1).any(-1))


def cross(observation: Observation) -> Array:
    """Foresee 30 steps to each of six places, and drive to the first one on whose way no tram hits the robot."""
    seen, goal = observation["observation"], observation["desired_goal"]
    at, velocity, tracks = seen[[7, 0]], seen[[2, 8]], seen[4:6]
    between = [[x, tracks.mean()] for x in (goal[0], at[0], at[0] - 0.4, at[0] + 0.4)]
    targets = np.clip([goal, *between, at], -0.95, 0.95)
    places, moves, trams, speeds = np.tile(at, (6, 1)), np.tile(velocity, (6, 1)), seen[[1, 9]], seen[[10, 3]]
    unsafe, actions = np.zeros(6, bool), np.clip((0.4 * (targets - at) - 0.6 * velocity) / 0.03, -1, 1)
    for _ in range(30):
        moves = 0.6 * moves + 0.03 * np.clip((0.4 * (targets - places) - 0.6 * moves) / 0.03, -1, 1)
        places, (trams, speeds) = places + moves, shuttled(trams, speeds)
        unsafe |= is_hit(places, trams, tracks, 0.02)
    return actions[unsafe.argmin() if not unsafe.all() else 5].astype(np.float32)


class WindSegway(GoalTask):
    """A balancer on two wheels drives along a platform, in the wind, to a position. One that falls or drives off is broken.

    A success has the reward 1, other steps 0.
    """

    near, tick, length, push = 0.15, 0.05, 1.4, 4.0  # metres, seconds, metres, metres per square second
    falls, ends = 0.5, (-2.0, 4.0)  # radians; metres

    def __init__(self) -> None:
        super().__init__(5, 1, 1)

    def begin(self) -> None:
        """Place the balancer, and a goal that is not beside it."""
        draw = self.np_random.uniform
        self.at, self.speed, self.lean, self.swing = draw(-0.6, 0.8), 0.0, draw(-0.06, 0.06), draw(-0.05, 0.05)
        self.wind, self.goal = draw(0.1, 0.5), draw(-1.2, 3.2, 1)
        while abs(self.goal[0] - self.at) < 0.5:
            self.goal = draw(-1.2, 3.2, 1)

    def move(self, action: Array) -> None:
        """Drive. The body leans against the drive, and further by its weight and the wind."""
        drive = self.push * float(action[0]) - 0.2 * self.speed
        gust = self.wind + 0.1 * self.np_random.normal()
        turn = (9.8 * np.sin(self.lean) + (gust - drive) * np.cos(self.lean)) / self.length
        self.swing += self.tick * turn
        self.lean += self.tick * self.swing
        self.speed += self.tick * drive
        self.at += self.tick * self.speed

    def observe(self) -> Array:
        """Return lean and swing in degrees, position, wind and speed."""
        return np.array([np.degrees(self.lean), self.at, np.degrees(self.swing), self.wind, self.speed])

    def achieved(self) -> Array:
        """Return the position."""
        return np.array([self.at])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the goal is met, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def is_over(self) -> bool:
        """Return whether the balancer fell or drove off the platform."""
        return bool(abs(self.lean) > self.falls or not self.ends[0] < self.at < self.ends[1])


def balance(observation: Observation) -> Array:
    """Drive by a linear-quadratic regulator: first away from the goal, so that the body leans towards it."""
    lean, at, swing, wind, speed = observation["observation"]
    gap = float(np.clip(at - observation["desired_goal"][0], -1, 1))
    drive = 3.6 * gap + 5.6 * speed + 51 * (np.radians(lean) + wind / 9.8) + 18 * np.radians(swing)
    return np.clip([(drive + 0.2 * speed) / WindSegway.push], -1, 1).astype(np.float32)


TASKS = (
    Task("SensorCar-v0", "fragile", "open", SensorCar, 80, lambda: drive_free),
    Task("PlaneDrone-v0", "fragile", "open", PlaneDrone, 100, lambda: hover_to),
    Task("CaveDiver-v0", "fragile", "open", CaveDiver, 80, lambda: dive_to),
    Task("TramSquare-v0", "fragile", "open", TramSquare, 70, lambda: cross),
    Task("WindSegway-v0", "fragile", "open", WindSegway, 120, lambda: balance),
)
