"""Open tasks: ways through a harbour, a lock, portals and past a wall, a counter between two robots, and drawers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, EachNear, SizedTask, clipped, push_out, unit, wrapped


class HarbourDinghy(SizedTask):
    """A dinghy sails in a harbour to a mark, where the episode ends. A mole with one open end lies across the harbour. The
    wind comes from elsewhere in each episode. Actions: rudder and sheet. Metres.
    """

    numbers, thing, near, head = (8, 2, 2), "place", 10.0, 20.0

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, 0.0
        self.wind, self.heading = draw(-math.pi, math.pi, 2)
        side = self.np_random.choice([-1, 1])
        self.place = self.goal = np.array([draw(-80, 80), side * draw(20, 80)])
        while np.linalg.norm(self.goal - self.place) < 50:
            self.goal = np.array([draw(-80, 80), draw(20, 80) * (side if draw() < 0.3 else -side)])

    @staticmethod
    def drive(angle: Any) -> Any:
        """Return the speed at an angle to the wind, in parts of the greatest one."""
        return np.clip((np.abs(angle) - 0.6) / 0.4, 0, 1) * (1 - 0.3 * np.abs(angle) / math.pi)

    def move(self, action: Array) -> None:
        self.heading = wrapped(self.heading + 0.5 * action[0] * (0.4 + 0.6 * self.speed))
        wish = float(self.drive(wrapped(self.heading - self.wind))) * (1 + action[1]) / 2
        self.speed = 0.6 * self.speed + 0.4 * wish
        was, place = self.place, np.clip(self.place + 8 * self.speed * unit(self.heading), -100, 100)
        if (was[1] < 0) != (place[1] < 0) and min(was[0], place[0]) < self.head:
            place, self.speed = was, 0.0
        self.place = place

    def is_over(self) -> bool:
        return bool(self.is_met(self.place, self.goal))

    def observe(self) -> Array:
        (ahead, aside), (east, north) = unit(self.heading), unit(self.wind)
        return np.array([east, self.place[1], ahead, self.speed, north, self.place[0], aside, 100 - self.place[0]])


def sail() -> Any:
    """Take the course that gains most on the next place of the way, and change it seldom."""
    courses = np.linspace(-math.pi, math.pi, 49)[:-1]

    def act(observation: Observation) -> Array:
        east, y, ahead, speed, north, x, aside, _ = observation["observation"]
        place, goal, heading = np.array([x, y]), observation["desired_goal"], math.atan2(aside, ahead)
        aim, wind, free = goal, math.atan2(north, east), HarbourDinghy.head + 20
        if (y < 0) != (goal[1] < 0) and min(x + (goal[0] - x) * y / (y - goal[1]), x) < free - 12:
            aim = np.array([free + 10, 15 * np.sign(y)] if x < free - 12 else [free, -10 * np.sign(y)])
        bearing = math.atan2(*(aim - place)[::-1])
        turns = np.abs((courses - heading + math.pi) % (2 * math.pi) - math.pi)
        drive = HarbourDinghy.drive((courses - wind + math.pi) % (2 * math.pi) - math.pi)
        steps = np.arange(1, 6)[:, None] * 8 * drive
        x_track, y_track = x + steps * np.cos(courses), y + steps * np.sin(courses)
        hits = (y_track * math.copysign(1, y) < 4) & (x_track < 26) | (np.maximum(np.abs(x_track), np.abs(y_track)) > 98)
        best = courses[np.argmax(drive * np.cos(courses - bearing) - 0.12 * turns - 0.25 * hits.sum(0))]
        return clipped(wrapped(best - heading) / (0.5 * (0.4 + 0.6 * speed)), 1)

    return act


class Airlock(SizedTask):
    """An astronaut floats between the outside and the inside of a station, through a lock with two doors. The outer door is
    open while the lock is empty of air, the inner one while it is full. The pump works only near the lock. Actions: thrust
    in two directions, and the pump. The oxygen counts down, and does not matter.
    """

    numbers, thing, near, sill, door = (8, 2, 3), "place", 0.08, 0.25, 0.15

    def begin(self) -> None:
        draw, side, self.speed, self.oxygen = self.np_random.uniform, self.np_random.choice([-1, 1]), np.zeros(2), 300.0
        self.air, self.temperature = draw(0, 1), draw(18, 24)
        self.place = np.array([side * draw(0.45, 1.2), draw(-0.5, 0.5)])
        other = -side if draw() < 0.85 else draw(-0.15, 0.15)
        self.goal = np.array([other * draw(0.4, 1.2), draw(-0.5, 0.5)])

    def move(self, action: Array) -> None:
        if abs(self.place[0]) < self.sill + 0.2:
            self.air = min(1.0, max(0.0, self.air + 0.07 * action[2]))
        self.oxygen -= 1
        self.speed = 0.6 * self.speed + 0.035 * action[:2]
        was, (x, y) = self.place, np.clip(self.place + self.speed, [-1.3, -0.6], [1.3, 0.6])
        for wall, is_open in ((-self.sill, self.air < 0.1), (self.sill, self.air > 0.9)):
            if (was[0] < wall) != (x < wall) and not (is_open and abs(y) < self.door):
                x = wall - 0.01 if was[0] < wall else wall + 0.01
        self.place = np.array([x, y])
        self.speed = self.place - was

    def observe(self) -> Array:
        return np.array([self.oxygen, *self.place, self.temperature, *(10 * self.speed), self.air, float(self.air > 0.9)])


def lock_through() -> Any:
    """Go before a shut door, pump until it opens, pass it, and pump for the other one."""

    def act(observation: Observation) -> Array:
        (x, y), goal, seen = (observation[key] for key in ("achieved_goal", "desired_goal", "observation"))
        air, speed, sill = seen[6], seen[4:6] / 10, Airlock.sill
        room, wish = (int(place > -sill) + int(place > sill) for place in (x, goal[0]))
        aim, pump = goal, 0.0
        if room != wish:
            side = sill if room + wish >= 3 else -sill if room + wish <= 1 else (sill if room == 2 else -sill)
            pump = 1.0 if side > 0 else -1.0
            is_open = air * pump > (0.92 if side > 0 else -0.08)
            ahead = math.copysign(0.1, wish - room) * (1 if is_open and abs(y) < 0.1 else -1)
            aim = np.array([side + ahead, 0.0])
        return clipped(*((aim - [x, y] - 0.6 * speed) / 0.035), pump)

    return act


class AroundWall(SizedTask):
    """A mallet that stays on the left hits a puck, which slides past a wall in the middle of the table, or off the cushions
    around it, and has to stop at a position on the right. Actions: speeds of the mallet. Metres.
    """

    numbers, thing, near, touch, wall = (6, 2, 2), "puck", 0.12, 0.09, 0.22

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, np.zeros(2)
        self.mallet, self.puck = draw([-0.95, -0.4], [-0.85, 0.4]), draw([-0.65, -0.25], [-0.5, 0.25])
        self.goal = draw([0.2, -0.4], [0.9, 0.4])

    @classmethod
    def slide(cls, puck: Array, speed: Array) -> tuple[Array, Array]:
        """Return places and speeds (..., 2) of pucks after a step."""
        speed = speed * np.maximum(0, 1 - 0.0045 / np.maximum(np.linalg.norm(speed, axis=-1, keepdims=True), 1e-9))
        new = puck + speed
        is_stopped = ((puck[..., 0] < 0) != (new[..., 0] < 0)) & (np.abs(puck[..., 1] + new[..., 1]) < 2 * cls.wall)
        is_stopped = is_stopped[..., None] & np.array([True, False])
        bounded = np.where(is_stopped, 0.0, np.clip(new, [-1, -0.5], [1, 0.5]))
        return bounded - 0.8 * (new - bounded), np.where(new != bounded, -0.8 * speed, speed)

    def move(self, action: Array) -> None:
        for _ in range(5):
            was, self.mallet = self.mallet, np.clip(self.mallet + 0.02 * action, [-1, -0.5], [-0.3, 0.5])
            far = float(np.linalg.norm(self.puck - self.mallet))
            if far < self.touch:
                ahead = (self.puck - self.mallet) / max(far, 1e-9)
                missing = 1.5 * 5 * float((self.mallet - was) @ ahead) - float(self.speed @ ahead)
                self.puck = self.puck + push_out(self.puck, self.mallet, self.touch)
                self.speed = self.speed + max(0.0, missing) * ahead
                break
        self.puck, self.speed = self.slide(self.puck, self.speed)

    def observe(self) -> Array:
        return np.array([*(10 * self.speed), *self.mallet, *self.puck])


def shoot() -> Any:
    """Find a shot by trying many, go behind the puck, and hit it. Do so again if it comes back."""
    shot: Array | None = None

    def plan(puck: Array, goal: Array) -> Array:
        ways, pace = np.meshgrid(np.linspace(-1.2, 1.2, 121), np.linspace(0.06, 0.14, 33))
        shots = np.stack([pace * np.cos(ways), pace * np.sin(ways)], -1)
        places, speeds = np.broadcast_to(puck, shots.shape), shots
        for _ in range(34):
            places, speeds = AroundWall.slide(places, speeds)
        return shots.reshape(-1, 2)[int(np.linalg.norm(places - goal, axis=-1).argmin())]

    def act(observation: Observation) -> Array:
        nonlocal shot
        speed, mallet, puck = np.split(observation["observation"], 3)
        if np.abs(speed).max() > 0 or puck[0] > -0.3:
            shot = None
            return clipped(*((np.array([-0.9, 0]) - mallet) / 0.2))
        shot = plan(puck, observation["desired_goal"]) if shot is None else shot
        ahead, gap = shot / np.linalg.norm(shot), puck - mallet
        if abs(float(gap @ [-ahead[1], ahead[0]])) < 2e-3 and gap @ ahead > 0:
            return clipped(*(shot / 0.15))
        way = gap - 0.15 * ahead
        return clipped(*(way / max(0.1, float(np.abs(way).max()))))

    return act


class CounterRelay(SizedTask):
    """Two robots stand on either side of a counter, over which each reaches a little. They bring a parcel to a position on
    one of the sides. Robots too near to each other stand still. Actions: speeds and grip of each. Metres.
    """

    numbers, thing, near, reach = (9, 2, 6), "parcel", 0.06, 0.12

    def begin(self) -> None:
        draw, side, self.holder = self.np_random.uniform, self.np_random.choice([-1, 1]), -1
        self.robots, self.mass = draw([[-0.9, -0.4], [0.3, -0.4]], [[-0.3, 0.4], [0.9, 0.4]]), draw(1, 3)
        self.parcel = self.goal = np.array([side * draw(0.2, 0.8), draw(-0.4, 0.4)])
        while np.linalg.norm(self.goal - self.parcel) < 0.2:
            self.goal = np.array([draw(0.2, 0.9) * (side if draw() < 0.3 else -side), draw(-0.4, 0.4)])

    def move(self, action: Array) -> None:
        acts, low = action.reshape(2, 3), np.array([[-1, -0.5], [-self.reach, -0.5]])
        if self.holder >= 0 and acts[self.holder, 2] <= 0:
            self.holder = -1
        for k in (0, 1):
            if self.holder < 0 and acts[k, 2] > 0 and np.linalg.norm(self.robots[k] - self.parcel) < 0.09:
                self.holder = k
        places = np.clip(self.robots + 0.09 * acts[:, :2], low, -low[::-1] * [1, 1])
        if np.linalg.norm(places[0] - places[1]) > 0.1:
            self.robots = places
        if self.holder >= 0:
            self.parcel = self.robots[self.holder].copy()

    def observe(self) -> Array:
        one, other = self.robots
        return np.array([*other, self.holder == 0, self.mass, *self.parcel, self.holder == 1, *one], np.float64)


def relay(observation: Observation) -> Array:
    """Lay the parcel on the counter; the other robot takes it from there."""
    seen, parcel, goal = (observation[key] for key in ("observation", "achieved_goal", "desired_goal"))
    robots, holds, acts = (seen[7:9], seen[0:2]), (seen[2], seen[6]), np.zeros((2, 3))
    last, first, inward = (1, 0, 1) if goal[0] > 0 else (0, 1, -1)
    is_over = parcel[0] * inward > -0.06 and not holds[first]
    k, aim = (last, goal) if is_over else (first, np.array([0.0, parcel[1]]))
    acts[1 - k, 0] = 1 if k == 0 else -1  # the other one keeps away
    gap = (aim if holds[k] else parcel) - robots[k]
    is_there = holds[k] and np.linalg.norm(gap) < 0.02
    if is_over and not holds[k] and np.linalg.norm(parcel - goal) < 0.03:
        return clipped(*acts.ravel())
    acts[k] = [*(gap / 0.09), 1.0 if (holds[k] and not is_there) or (not holds[k] and np.linalg.norm(gap) < 0.03) else -1.0]
    return clipped(*acts.ravel())


class FilingCabinet(EachNear):
    """A cabinet, seen from the side, has three drawers, of which only one can be open at a time. A hand takes the handle of
    one and moves it. The goal: how far each is open. Actions: speeds of the hand and its grip. Centimetres.
    """

    numbers, thing, near, heights = (9, 3, 3), "drawers", 2.0, np.array([20.0, 50.0, 80.0])

    def begin(self) -> None:
        draw, self.held = self.np_random.uniform, -1
        self.hand, self.drawers, self.goal = draw([48, 5], [65, 95]), np.zeros(3), np.zeros(3)
        was = self.np_random.integers(3)
        self.drawers[was] = draw(6, 44)
        wish = was if draw() < 0.2 else (was + self.np_random.integers(1, 3)) % 3
        while abs(self.goal[wish] - self.drawers[wish]) < 6:
            self.goal[wish] = draw(6, 44)

    def move(self, action: Array) -> None:
        """Move the hand, and a drawer with it. Open drawers are in the way of the hand, and snap shut at the end."""
        was, place = self.hand, np.clip(self.hand + 5 * action[:2], [0, 0], [70, 100])
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            far = np.hypot(self.drawers + 1 - was[0], self.heights - was[1])
            self.held = int(far.argmin()) if far.min() < 4 else -1
        if self.held >= 0:
            k, others = self.held, np.delete(self.drawers, self.held)
            if others.max() == 0:
                self.drawers[k] = min(45.0, max(0.0, place[0] - 1))
            self.hand = np.array([self.drawers[k] + 1, self.heights[k]])
        else:
            self.drawers[self.drawers < 1.5] = 0.0
            inside = (np.abs(self.heights - place[1]) < 10) & (place[0] < self.drawers)
            if inside.any():
                place = np.array([max(was[0], place[0]), was[1]])
            self.hand = place

    def observe(self) -> Array:
        return np.array([*self.drawers[::-1], *self.hand, *(float(self.held == k) for k in range(3)), self.drawers.max()])


def file_away(observation: Observation) -> Array:
    """Shut what is open and should not be; then open the right drawer."""
    seen, drawers, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
    wrong = [k for k in range(3) if drawers[k] > 0 and goal[k] == 0]
    k = wrong[0] if wrong else int(goal.argmax())
    missing, (x, z) = goal[k] - drawers[k], seen[3:5]
    held, height = bool(seen[5 + k]), FilingCabinet.heights[k]
    if not held and seen[5:8].any():
        return clipped(0, 0, -1)
    if held:
        is_done = abs(missing) < 0.7
        return clipped(0 if is_done else missing / 5, 0, -1 if is_done else 1)
    if abs(missing) < 1:
        return clipped(0, 0, -1)
    if abs(z - height) > 3:
        clear = drawers.max() + 2
        return clipped((clear + 2 - x) / 5, (height - z) / 5 if x > clear else 0, -1)
    return clipped((drawers[k] + 1 - x) / 5, (height - z) / 5, 1 if abs(drawers[k] + 1 - x) < 3 else -1)


class PortalRooms(SizedTask):
    """A figure of a game goes to a place, in pixels, in one of three rooms without doors. Two pairs of portals join them.

    A portal takes the figure to its partner, and works again once the figure has left that. Actions: the wished velocity.
    """

    numbers, thing, near = (13, 2, 2), "at", 18.0
    pace, room, wide, mouth = 14.0, np.array([190.0, 200.0]), 205.0, 18.0

    def begin(self) -> None:
        self.portals = self._in_rooms(35, (0, 1, 1, 2))
        while np.linalg.norm(self.portals[1] - self.portals[2]) < 80:
            self.portals = self._in_rooms(35, (0, 1, 1, 2))
        here = int(self.np_random.integers(3))
        there = here if self.np_random.random() < 0.2 else (here + int(self.np_random.integers(1, 3))) % 3
        self.at = self.goal = self.portals[0]
        while np.linalg.norm(self.portals - self.at, axis=1).min() < 30:
            self.at = self._in_rooms(10, (here,))[0]
        while min(np.linalg.norm(np.vstack([self.portals, self.at]) - self.goal, axis=1)) < 45:
            self.goal = self._in_rooms(10, (there,))[0]
        self.rate, self.is_fresh = np.zeros(2), False

    def _in_rooms(self, margin: float, rooms: tuple[int, ...]) -> Array:
        return np.array([self.place(margin, self.room - margin) + np.array([self.wide * room, 0]) for room in rooms])

    def move(self, action: Array) -> None:
        self.rate = 0.5 * self.rate + 0.5 * self.pace * action
        corner = np.array([self.wide * (self.at[0] // self.wide), 0])
        self.at = np.clip(self.at + self.rate, corner, corner + self.room)
        gaps = np.linalg.norm(self.portals - self.at, axis=1)
        if gaps.min() > self.mouth + 4:
            self.is_fresh = False
        elif gaps.min() < self.mouth and not self.is_fresh:
            self.at, self.is_fresh = self.portals[int(gaps.argmin()) ^ 1], True

    def is_over(self) -> bool:
        return bool(self.is_met(self.at, self.goal))

    def observe(self) -> Array:
        return np.array([*(self.portals - self.at).T.ravel(), *self.rate, *self.at, self.is_fresh])


def go_through_portals() -> Any:
    """Take the portal towards the room of the goal, then go to the goal, around portals."""

    def act(observation: Observation) -> Array:
        seen, at, goal = (observation[key] for key in ("observation", "achieved_goal", "desired_goal"))
        gaps, rate = seen[:8].reshape(2, 4).T, seen[8:10]
        here, there = int(at[0] // PortalRooms.wide), int(goal[0] // PortalRooms.wide)
        portal = None if here == there else (2 * here if there > here else 2 * here - 1)
        to = goal - at if portal is None else gaps[portal]
        away = np.zeros(2)
        for number, gap in enumerate(gaps):
            off = float(np.linalg.norm(gap))
            if number != portal and off < 50 and gap @ to > 0 and np.linalg.norm(to) > 0.8 * off:
                side = np.array([-gap[1], gap[0]]) / max(off, 1e-9)
                away = away + side * math.copysign(1.2 * (50 - off) / 30, float(side @ to))
        way = to / max(float(np.linalg.norm(to)), 1e-9) + away
        if portal is not None and seen[12] and np.linalg.norm(to) < PortalRooms.mouth + 5:
            way = -way  # leave the portal before it works again
        wish = way / max(1e-9, float(np.linalg.norm(way))) * min(PortalRooms.pace, 0.5 * float(np.linalg.norm(to)) + 4)
        return clipped(*(wish - 0.5 * rate) / (0.5 * PortalRooms.pace))

    return act


TASKS: tuple[Task, ...] = (
    Task("HarbourDinghy-v0", "obstacles", "open", HarbourDinghy, 100, sail),
    Task("Airlock-v0", "later", "open", Airlock, 100, lock_through),
    Task("AroundWall-v0", "hit", "open", AroundWall, 60, shoot),
    Task("CounterRelay-v0", "several-bodies", "open", CounterRelay, 60, lambda: relay),
    Task("FilingCabinet-v0", "pull", "open", FilingCabinet, 70, lambda: file_away),
    Task("PortalRooms-v0", "obstacles", "open", PortalRooms, 80, go_through_portals),
)
