"""A game of carrom, a spanner, and a buoy that is seen by radar."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, OwnUnits, push_out, toward_push


class CarromFlick(OwnUnits):
    """A striker, flicked from its line on a board of 74 centimetres, hits a coin, which should come to rest at a place.

    When both lie still the striker is put back on the line. Actions: motion along the line in centimetres, the direction
    of a flick in degrees from straight ahead, and its strength; it is flicked if that is positive.
    """

    numbers, thing, near = (9, 2, 3), "coin_at", 4.0
    limits = ((-6.0, -60.0, -1.0), (6.0, 60.0, 1.0))
    line, ends, touch, fastest, brake, parts = 10.0, (14.0, 60.0), 3.7, 40.0, 6.0, 8
    given = 0.95  # of the speed along the line of centres, from the striker to the coin

    def begin(self) -> None:
        self.goal = np.full(2, 99.0)
        while self.goal.max() > 69 or self.goal.min() < 5:
            coin = self.place([20, 24], [54, 40])
            angle = self.np_random.uniform(-0.7, 0.7)
            self.goal = coin + self.np_random.uniform(10, 28) * np.array([np.sin(angle), np.cos(angle)])
        self.coin, self.home = complex(*coin), float(self.np_random.uniform(*self.ends))
        self.striker, self.speeds = complex(self.home, self.line), [0j, 0j]  # of striker and coin

    @property
    def coin_at(self) -> Array:
        return np.array([self.coin.real, self.coin.imag])

    def move(self, action: Array) -> None:
        if self.speeds == [0j, 0j]:
            if action[2] <= 0:
                self.home = float(np.clip(self.home + 6 * action[0], *self.ends))
                self.striker = complex(self.home, self.line)
                return
            angle = math.radians(60 * action[1])
            self.speeds[0] = self.fastest * float(action[2]) * complex(math.sin(angle), math.cos(angle))
        for _ in range(self.parts):
            self._slide(1 / self.parts)
        if self.speeds == [0j, 0j]:
            self.striker = complex(self.home, self.line)
            if abs(self.coin - self.striker) < self.touch:  # the coin gives way
                self.striker -= self.touch

    def _slide(self, time: float) -> None:
        gap, closing = self.coin - self.striker, (self.speeds[1] - self.speeds[0]) * time
        square, middle = abs(closing) ** 2, (gap * closing.conjugate()).real
        root = middle**2 - square * (abs(gap) ** 2 - self.touch**2)
        meets = (-middle - math.sqrt(root)) / square if root > 0 and middle < 0 else 2.0
        share = max(0.0, meets) if meets <= 1 else 1.0
        self._go(share * time)
        if meets <= 1:
            normal = (self.coin - self.striker) / abs(self.coin - self.striker)
            hit = self.given * ((self.speeds[0] - self.speeds[1]) * normal.conjugate()).real * normal
            self.speeds = [self.speeds[0] - hit, self.speeds[1] + hit]
            self._go((1 - share) * time)
        for index, speed in enumerate(self.speeds):
            left = abs(speed) - self.brake * time
            self.speeds[index] = speed * left / abs(speed) if left > 0 else 0j

    def _go(self, time: float) -> None:
        places = [self.striker, self.coin]
        for index, place in enumerate(places):
            x, y = (getattr(place + self.speeds[index] * time, part) for part in ("real", "imag"))
            across, along = self.speeds[index].real, self.speeds[index].imag
            if not 2 <= x <= 72:
                x, across = min(max(x, 2.0), 72.0), -0.7 * across
            if not 2 <= y <= 72:
                y, along = min(max(y, 2.0), 72.0), -0.7 * along
            places[index], self.speeds[index] = complex(x, y), complex(across, along)
        self.striker, self.coin = places

    def observe(self) -> Array:
        gap, (striker, coin) = self.coin - self.striker, self.speeds
        motion = [coin.real, coin.imag, striker.real, striker.imag]
        return np.array([gap.imag, gap.real, *motion, self.home, self.striker.imag, self.striker.real])


def flick() -> Any:
    """Go to where the coin is between striker and goal, and flick with the strength that carries it there."""
    task = CarromFlick
    half = 0.5 * task.brake / task.parts

    def speed_for(distance: float) -> float:
        return math.sqrt(half**2 + 2 * task.brake * distance) - half

    def act(observation: Observation) -> Array:
        seen, coin = observation["observation"], observation["achieved_goal"]
        way = observation["desired_goal"] - coin
        far = float(np.linalg.norm(way))
        if np.any(seen[2:6]) or far < 2.5:
            return np.array([0, 0, -1], np.float32)
        ahead = way / far
        ghost = coin - task.touch * ahead
        best = ghost[0] - ahead[0] / max(0.2, ahead[1]) * (ghost[1] - task.line)
        sideways = float(np.clip(best, *task.ends)) - seen[6]
        if abs(sideways) > 0.05:
            return np.array([np.clip(sideways, -6, 6), 0, -1], np.float32)
        path = ghost - [seen[6], task.line]
        long = float(np.linalg.norm(path))
        cut = max(0.3, float(path @ ahead) / long)
        after = speed_for(far) / (task.given * cut)
        start = speed_for(long + after * (after + 2 * half) / (2 * task.brake))
        turn = math.degrees(math.atan2(path[0], path[1]))
        return np.array([0, np.clip(turn, -60, 60), min(1.0, start / task.fastest)], np.float32)

    return act


class SpannerNut(OwnUnits):
    """A spanner turns a nut in a niche where its handle can swing by 40 degrees to both sides only. All is in degrees.

    The spanner fits on the nut in six positions. Actions: swing of the handle in degrees, and whether to put it on.
    """

    numbers, thing = (4, 1, 2), "nut"
    limits = ((-10.0, -1.0), (10.0, 1.0))
    widest, slack, slow = 40.0, 6.0, 5.0

    def begin(self) -> None:
        self.nut, self.handle, self.is_on = float(self.np_random.uniform(0, 360)), float(self.place(-40, 40, 1)[0]), False
        turn = self.np_random.uniform(20, 180) * self.np_random.choice([-1, 1])
        self.goal = np.array([(self.nut + turn) % 360])

    def move(self, action: Array) -> None:
        swing = 10.0 * float(action[0])
        if action[1] <= 0:
            self.is_on = False
        elif not self.is_on:
            misfit = (self.handle - self.nut + 30) % 60 - 30
            self.is_on = abs(misfit) < self.slack and abs(self.handle - misfit) <= self.widest
            self.handle -= misfit * self.is_on
        before = self.handle
        swing = min(self.slow, max(-self.slow, swing)) if self.is_on else swing
        self.handle = min(self.widest, max(-self.widest, before + swing))
        if self.is_on:
            self.nut = (self.nut + self.handle - before) % 360

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.abs((achieved_goal - desired_goal + 180) % 360 - 180).max(-1) <= 5.0

    def observe(self) -> Array:
        torque = 12.0 * self.is_on + self.np_random.normal(0, 2)  # newton metres
        return np.array([torque, self.nut, float(self.is_on), self.handle])


def tighten() -> Any:
    """Put the spanner on where most room is left, turn, take it off, and swing back."""

    def act(observation: Observation) -> Array:
        _, nut, is_on, handle = observation["observation"]
        turn = (observation["desired_goal"][0] - nut + 180) % 360 - 180
        if abs(turn) < 1.5:
            return np.array([0, -1], np.float32)
        sign = 1.0 if turn > 0 else -1.0
        if is_on:
            has_room = sign * (40 * sign - handle) > 0.5
            return np.array([np.clip(turn, -5, 5), 1] if has_room else [0, -1], np.float32)
        fits = nut % 60 + 60.0 * np.arange(-2, 2)
        fits = fits[np.abs(fits) <= 40]
        best = float(fits[np.argmin(sign * fits)])
        if abs(handle - best) < 3:
            return np.array([0, 1], np.float32)
        return np.array([np.clip(best - handle, -10, 10), -1], np.float32)

    return act


class RadarBuoy(OwnUnits):
    """A launch pushes a loose buoy to a place in a bay. A radar on the shore sees both, by bearing and range.

    Ranges are in cables, a tenth of a nautical mile; bearings are in degrees, north is 0 and east 90. Goals are a bearing
    and a range. Actions: a course in degrees and a speed in knots.
    """

    numbers, thing = (7, 2, 2), "buoy_seen"
    limits = ((-180.0, 0.0), (180.0, 8.0))
    contact, pace = 0.5, 0.04  # cables; cables in a step for each knot
    near_each = np.array([3.0, 0.25])

    def begin(self) -> None:
        self.buoy = polar_to_map(*self.place([55, 4], [125, 8]))
        self.goal = np.array([0.0, 0.0])
        while not 1.2 < np.linalg.norm(polar_to_map(*self.goal) - self.buoy) < 3:
            self.goal = self.place([50, 3.5], [130, 8.5])
        self.launch = self.buoy + self.np_random.uniform(0.8, 2.2) * polar_to_map(self.np_random.uniform(-180, 180), 1)
        self.velocity = np.zeros(2)

    @property
    def buoy_seen(self) -> Array:
        return map_to_polar(self.buoy)

    def move(self, action: Array) -> None:
        course, knots = self.middle + self.half * action
        self.velocity = 0.4 * self.velocity + 0.6 * self.pace * polar_to_map(course, knots)
        self.launch = self._inside(self.launch + self.velocity)
        self.buoy = self._inside(self.buoy + push_out(self.buoy, self.launch, self.contact))

    def _inside(self, place: Array) -> Array:
        bearing, far = map_to_polar(place)
        return polar_to_map(min(165.0, max(15.0, bearing)), min(10.5, max(1.5, far)))

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near_each).all(-1)

    def observe(self) -> Array:
        waves, (bearing, far) = abs(self.np_random.normal(0.4, 0.1)), map_to_polar(self.launch)
        (east, north), buoy = self.velocity / self.pace, self.buoy_seen
        return np.array([far, bearing, north, east, buoy[1], waves, buoy[0]])


def polar_to_map(bearing: float, far: float) -> Array:
    """Return how far to the east and to the north a place is."""
    return far * np.array([math.sin(math.radians(bearing)), math.cos(math.radians(bearing))])


def map_to_polar(place: Array) -> Array:
    """Return the bearing from -180 to 180 degrees and the range of a place."""
    return np.array([math.degrees(math.atan2(place[0], place[1])), math.hypot(place[0], place[1])])


def push_buoy() -> Any:
    """Steer around the buoy to the side behind it, and push."""

    def act(observation: Observation) -> Array:
        far, bearing, north, east, buoy_far, _, buoy_bearing = observation["observation"]
        launch, buoy = polar_to_map(bearing, far), polar_to_map(buoy_bearing, buoy_far)
        way = toward_push(launch, buoy, polar_to_map(*observation["desired_goal"]), RadarBuoy.contact, 0.12)
        wish = way * min(1.0, 0.3 / max(1e-9, float(np.linalg.norm(way)))) / RadarBuoy.pace
        course, knots = map_to_polar((wish - 0.4 * np.array([east, north])) / 0.6)
        return np.array([course, min(8.0, knots)], np.float32)

    return act


TASKS: tuple[Task, ...] = (
    Task("CarromFlick-v0", "hit", "open", CarromFlick, 30, flick),
    Task("SpannerNut-v0", "angles", "open", SpannerNut, 90, tighten),
    Task("RadarBuoy-v0", "units", "open", RadarBuoy, 80, push_buoy),
)
