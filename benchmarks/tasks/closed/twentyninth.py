"""Five closed tasks: a vacuum cleaner, a lander, a snowball, a balloon on a string, and two traffic cones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, grid_path, push_out, toward_push, unit, wrapped
from ..task import Observation, Task


class SofaVacuum(SizedTask):
    """A round vacuum cleaner with two wheels drives in a room of 5 by 4 metres, around a sofa and a shelf.

    Where it bumps, it stays and can only turn. Actions: the speeds of the left and the right wheel.
    """

    numbers, thing, near, size = (6, 2, 2), "at", 0.25, np.array([5.0, 4.0])
    pace, width, radius = 0.22, 0.3, 0.17
    low, high = np.array([[1.2, 1.6], [3.7, 0.0]]), np.array([[3.2, 2.4], [4.1, 1.3]])  # corners of the furniture

    def begin(self) -> None:
        self.at, self.goal, self.is_bumped = self._free(), self._free(), False
        while np.linalg.norm(self.goal - self.at) < 0.8:
            self.goal = self._free()
        self.heading = float(self.np_random.uniform(-math.pi, math.pi))

    def _free(self) -> Array:
        """Return a random place that is not at the furniture."""
        at = self.place(0.3, self.size - 0.3)
        return at if self.is_free(at, 0.1) else self._free()

    @classmethod
    def is_free(cls, at: Array, margin: float = 0.0) -> bool:
        """Return whether the robot has room at a place, with some more metres around it."""
        room = cls.radius + margin
        is_in = bool((at >= room).all() and (at <= cls.size - room).all())
        return is_in and not bool(((at > cls.low - room) & (at < cls.high + room)).all(1).any())

    def move(self, action: Array) -> None:
        left, right = self.pace * action + self.np_random.normal(0, 0.004, 2)
        self.heading = wrapped(self.heading + (right - left) / self.width)
        at = self.at + 0.5 * (left + right) * unit(self.heading)
        self.is_bumped = not self.is_free(at)
        if not self.is_bumped:
            self.at = at

    def observe(self) -> Array:
        (x, y), charge = self.at, float(self.np_random.normal(14.4, 0.1))
        return np.array([self.is_bumped, x, charge, math.cos(self.heading), y, math.sin(self.heading)])


def vacuum() -> Any:
    """Search a path on a grid, and drive to the last place on it that is in sight."""
    path: list[Array] = []

    def act(observation: Observation) -> Array:
        _, x, _, c, y, s = observation["observation"]
        at, goal = np.array([x, y]), observation["desired_goal"]
        if not path:
            path.extend(grid_path(at, goal, 0.2, lambda place: SofaVacuum.is_free(place, 0.04)))
        shares = np.linspace(0, 1, 12)
        seen = [p for p in path if all(SofaVacuum.is_free(at + share * (p - at), 0.02) for share in shares)]
        way = (seen or [min(path, key=lambda p: float(np.linalg.norm(p - at)))])[-1] - at
        far, aside = float(np.linalg.norm(goal - at)), wrapped(math.atan2(way[1], way[0]) - math.atan2(s, c))
        if far < 0.1:
            return clipped(0, 0)
        ahead = min(1.0, float(np.linalg.norm(way)) / SofaVacuum.pace) if abs(aside) < 0.4 else 0.0
        turn = 0.5 * aside * SofaVacuum.width / SofaVacuum.pace
        return clipped(ahead - turn, ahead + turn)

    return act


class MoonLander(SizedTask):
    """A lander goes down to a place on the moon, in metres and seconds. Too fast a touch wrecks it and ends the episode.

    The goal is the place, the height, and the speed, both 0. Actions: the main thrust, from none to twice what hovering
    needs, and the thrust aside.
    """

    numbers, near = (6, 3, 2), 1.0
    gravity, main, aside, hardest, scale = 1.6, 3.2, 0.8, 2.2, np.array([4.0, 1.0, 1.0])

    def begin(self) -> None:
        self.at, self.speed = self.place([-40, 30], [40, 50]), self.place([-2, -2], [2, 0])
        self.burnt, self.is_wrecked = 0.0, False
        self.goal = np.array([np.clip(self.at[0] + self.np_random.uniform(-30, 30), -45, 45), 0, 0])

    def move(self, action: Array) -> None:
        thrust = 0.5 * self.main * (1 + action[0])
        self.speed = self.speed + np.array([self.aside * action[1], thrust - self.gravity])
        self.at, self.burnt = self.at + self.speed, self.burnt + thrust
        if self.at[1] <= 0:
            self.at[1] = 0.0
            self.is_wrecked = bool(np.linalg.norm(self.speed) > self.hardest)
            if not self.is_wrecked:
                self.speed = np.zeros(2)

    def is_over(self) -> bool:
        return self.is_wrecked

    def achieved(self) -> Array:
        return np.array([*self.at, np.linalg.norm(self.speed)])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.scale).all(-1)

    def observe(self) -> Array:
        (x, z), (along, up) = self.at, self.speed
        return np.array([up, z, along, self.np_random.normal(-120, 3), x, self.burnt])


def land() -> Any:
    """Go over the place and sink, the slower the lower; wait with the last metres until it is below."""

    def act(observation: Observation) -> Array:
        up, z, along, _, x, _ = observation["observation"]
        task, way = MoonLander, float(observation["desired_goal"][0]) - x
        if z == 0 and abs(way) < 3.8:
            return clipped(-1, 0)
        wish = np.clip(0.15 * way, -3.5, 3.5) if z > 0 else 0.0
        sink = -min(4.5, 0.8 + 0.12 * z) if abs(way) < 3 or z > 15 else 0.15 * (6 - z)
        return clipped(0.6 * (sink - up) / (0.5 * task.main), 0.5 * (wish - along) / task.aside)

    return act


class SnowballRoll(SizedTask):
    """A child rolls a snowball over a meadow to a place, in metres. The farther it rolls, the larger and heavier it is.

    A heavy ball gives way less to a push, and holds the child back. Actions: velocities.
    """

    numbers, thing, near = (7, 2, 2), "ball", 0.4
    pace, child_radius, grows, wide = 0.45, 0.25, 0.07, np.array([6.0, 6.0])

    def begin(self) -> None:
        self.ball, self.radius = self.place(-3, 3), float(self.np_random.uniform(0.2, 0.45))
        self.child = self.ball + self.np_random.uniform(0.9, 1.8) * unit(self.np_random.uniform(-math.pi, math.pi))
        self.goal = self.ball + self.np_random.uniform(1.2, 3.5) * unit(self.np_random.uniform(-math.pi, math.pi))

    def move(self, action: Array) -> None:
        self.child = np.clip(self.child + self.pace * action, -self.wide, self.wide)
        push = push_out(self.ball, self.child, self.child_radius + self.radius)
        ease = 1 / (1 + 1.5 * self.radius**2)
        before, self.ball = self.ball, np.clip(self.ball + ease * push, -self.wide, self.wide)
        self.child = self.child - (1 - ease) * push
        self.radius = min(0.8, self.radius + self.grows * float(np.linalg.norm(self.ball - before)))

    def observe(self) -> Array:
        (x, y), cold = self.ball, float(self.np_random.normal(-4, 1))
        return np.array([x, y, self.radius, *self.child, cold, np.linalg.norm(self.ball - self.child)])


def roll() -> Any:
    """Walk around the snowball, and push it."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], SnowballRoll
        contact = task.child_radius + seen[2]
        way = toward_push(seen[3:5], seen[:2], observation["desired_goal"], contact, task.near)
        return clipped(*(way / max(task.pace, float(np.abs(way).max()))))

    return act


class BalloonString(SizedTask):
    """A hand takes the end of the string of a balloon below the ceiling, and brings the balloon to a place in the room.

    A draught leans the balloon aside; let go, it rises again. Actions: three velocities, and the grip. Metres.
    """

    numbers, thing, near = (12, 3, 4), "balloon", 0.12
    pace, grab, string, rise, ceiling, lag = 0.12, 0.12, 1.1, 0.15, 2.4, 0.6

    def begin(self) -> None:
        self.balloon = self.place([-0.8, -0.8, self.ceiling], [0.8, 0.8, self.ceiling], 3)
        self.draught, self.is_held = self.place(-0.2, 0.2), False
        self.hand = self.end() + self.place([-0.3, -0.3, -0.5], [0.3, 0.3, 0.1], 3)
        self.goal = self.balloon
        while not 0.3 < np.linalg.norm(self.goal - self.balloon) < 1.2:
            self.goal = self.place([-0.9, -0.9, 1.5], [0.9, 0.9, 2.2], 3)

    def end(self) -> Array:
        """Return where the end of the string hangs."""
        return np.asarray(self.balloon - [*self.draught, self.string])

    def move(self, action: Array) -> None:
        self.is_held = bool(action[3] > -0.3 if self.is_held else action[3] > 0) and (
            self.is_held or bool(np.linalg.norm(self.end() - self.hand) < self.grab)
        )
        self.hand = np.clip(self.hand + self.pace * action[:3], [-1.3, -1.3, 0.1], [1.3, 1.3, 1.6])
        if self.is_held:
            self.balloon = self.balloon + self.lag * (self.hand - self.end())
        else:
            self.balloon = self.balloon + np.array([0, 0, self.rise])
        self.balloon[2] = min(self.ceiling, self.balloon[2])

    def observe(self) -> Array:
        x, y, z = self.balloon
        return np.array([z, x, y, *(self.end() - self.hand), self.is_held, *self.hand, *self.draught])


def fetch_balloon() -> Any:
    """Go to the end of the string, hold it, and carry the balloon."""

    def act(observation: Observation) -> Array:
        seen, pace = observation["observation"], BalloonString.pace
        if seen[6]:
            return clipped(*((observation["desired_goal"] - observation["achieved_goal"] + seen[3:6]) / pace), 1)
        return clipped(*(seen[3:6] / pace), 1)

    return act


class ConeTruck(SizedTask):
    """A truck loads traffic cones, one at a time, and puts both at their places on a yard of 10 by 8 metres.

    Actions: two accelerations, and the loader: above 0 it takes the nearest cone in reach, below -0.5 it puts it down.
    """

    numbers, thing, near = (10, 4, 3), "cones", 0.5
    pace, kept, grab, size = 0.6, 0.4, 0.7, np.array([10.0, 8.0])

    def begin(self) -> None:
        self.truck, self.rate, self.load = self.place(1, self.size - 1), np.zeros(2), -1
        places = np.zeros((4, 2))
        while min(np.linalg.norm(places[i] - places[j]) for i in range(4) for j in range(i)) < 1.5:
            places = self.place(1, self.size - 1, (4, 2))  # type: ignore[arg-type]
        self.cones, goal = places[:2].copy(), places[2:].copy()
        if self.np_random.random() < 0.5:  # one cone is where it shall be
            stays = int(self.np_random.integers(2))
            goal[stays] = self.cones[stays]
        self.goal = goal.reshape(-1)

    def move(self, action: Array) -> None:
        self.rate = self.kept * self.rate + (1 - self.kept) * self.pace * action[:2]
        self.truck = np.clip(self.truck + self.rate, 0, self.size)
        gaps = np.linalg.norm(self.cones - self.truck, axis=1)
        if self.load < 0 and action[2] > 0 and gaps.min() < self.grab:
            self.load = int(gaps.argmin())
        elif action[2] < -0.5:
            self.load = -1
        if self.load >= 0:
            self.cones[self.load] = self.truck

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return np.linalg.norm(gaps, axis=-1).max(-1) <= self.near

    def observe(self) -> Array:
        return np.array([*self.cones.reshape(-1), self.load == 0, self.load == 1, *self.rate, *self.truck])


def set_cones() -> Any:
    """Bring the loaded cone to its place and put it down; then fetch the other one."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], ConeTruck
        cones, goals, rate, truck = seen[:4].reshape(2, 2), observation["desired_goal"].reshape(2, 2), seen[6:8], seen[8:]
        lacks = np.linalg.norm(goals - cones, axis=1)
        which = int(seen[4:6].argmax()) if seen[4:6].any() else int(lacks.argmax())
        is_loaded, is_right = bool(seen[4 + which]), lacks[which] < 0.2
        way = (goals if is_loaded else cones)[which] - truck
        if is_right:
            way = np.zeros(2)
        loader = (-1.0 if is_right else 1.0) if is_loaded else (1.0 if np.linalg.norm(way) < 0.6 and not is_right else -1.0)
        return clipped(*((0.7 * way - task.kept * rate) / ((1 - task.kept) * task.pace)), loader)

    return act


TASKS: tuple[Task, ...] = (
    Task("SofaVacuum-v0", "obstacles", "closed", SofaVacuum, 70, vacuum),
    Task("MoonLander-v0", "fragile", "closed", MoonLander, 50, land),
    Task("SnowballRoll-v0", "push", "closed", SnowballRoll, 60, roll),
    Task("BalloonString-v0", "grasp", "closed", BalloonString, 40, fetch_balloon),
    Task("ConeTruck-v0", "several-objects", "closed", ConeTruck, 80, set_cones),
)
