"""Five closed tasks: a game of carrom, a ferry, a spanner, candles, and a buoy on a radar."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, push_out, toward_push
from ..task import Observation, Task
from .twentieth import OwnUnits


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


class FerryScooter(SizedTask):
    """A scooter, in metres, rides to an address on this or the other bank of a river, which a ferry crosses by timetable.

    Headings are in degrees, north is 0 and east 90. Actions: throttle or brake, and the handlebar.
    """

    numbers, thing, near = (8, 2, 2), "at", 3.0
    banks, town, deck, period = (25.0, 45.0), np.array([100.0, 70.0]), np.array([4.0, 3.0]), 30

    def begin(self) -> None:
        self.landing, self.clock = float(self.np_random.uniform(25, 75)), int(self.np_random.integers(self.period))
        is_north, is_across = self.np_random.random() < 0.5, self.np_random.random() < 0.65
        self.at = self.goal = self._address(is_north)
        while np.linalg.norm(self.goal - self.at) < 15:
            self.goal = self._address(is_north != is_across)
        self.heading, self.speed = float(self.np_random.uniform(0, 360)), 0.0

    def _address(self, is_north: bool) -> Array:
        return self.place([5, 3], [95, 22]) + np.array([0, 45 * is_north])

    @property
    def ferry(self) -> Array:
        return np.array([self.landing, 28.0 + 2 * min(7, max(0, self.clock - 7)) - 2 * min(7, max(0, self.clock - 22))])

    def _is_floor(self, at: Array) -> bool:
        is_land = not self.banks[0] < at[1] < self.banks[1]
        return bool(is_land or (np.abs(at - self.ferry) <= self.deck).all())

    def move(self, action: Array) -> None:
        before = self.ferry
        is_aboard = self.banks[0] < self.at[1] < self.banks[1]
        self.clock = (self.clock + 1) % self.period
        if is_aboard:
            self.at = self.at + self.ferry - before
        self.heading = (self.heading + 30 * action[1]) % 360
        self.speed = float(np.clip(self.speed + 0.8 * action[0], 0, 3))
        turn = math.radians(self.heading)
        ahead = np.clip(self.at + self.speed * np.array([math.sin(turn), math.cos(turn)]), 0, self.town)
        if self._is_floor(ahead):
            self.at = ahead
        else:
            self.speed = 0.0

    def observe(self) -> Array:
        charge = 60 + self.np_random.normal()  # per cent
        ferry, (x, y) = self.ferry, self.at
        return np.array([self.clock, x, self.heading, ferry[0] - x, charge, self.speed, y, ferry[1]])


def ride() -> Any:
    """Ride to the landing, onto the ferry when it is there, off it on the other side, and to the address."""

    def act(observation: Observation) -> Array:
        _, x, heading, gap, _, speed, y, ferry = observation["observation"]
        goal, (south, north) = observation["desired_goal"], FerryScooter.banks
        is_north, landing, is_waiting = goal[1] >= north, x + gap, False
        if (y >= north) if is_north else (y <= south):
            to = goal
        elif south < y < north:
            to = np.array([landing, north + 2 if is_north else south - 2])
            is_waiting = abs(ferry - (42 if is_north else 28)) > 0.5
        else:
            to = np.array([landing, south - 1.5 if is_north else north + 1.5])
            if abs(gap) < 2.5 and abs(ferry - (28 if is_north else 42)) < 0.5:
                to = np.array([landing, ferry])
        way = to - [x, y]
        far = float(np.linalg.norm(way))
        turn = (math.degrees(math.atan2(way[0], way[1])) - heading + 180) % 360 - 180
        wish = 0.0 if is_waiting or abs(turn) > 30 or far < 0.5 else min(3.0, 0.5 * far)
        return clipped((wish - speed) / 0.8, turn / 30 if far > 0.5 else 0)

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
    Task("CarromFlick-v0", "hit", "closed", CarromFlick, 30, flick),
    Task("FerryScooter-v0", "later", "closed", FerryScooter, 110, ride),
    Task("SpannerNut-v0", "angles", "closed", SpannerNut, 90, tighten),
    Task("CandleRow-v0", "rewards", "closed", CandleRow, 80, light_candles),
    Task("RadarBuoy-v0", "units", "closed", RadarBuoy, 80, push_buoy),
)
