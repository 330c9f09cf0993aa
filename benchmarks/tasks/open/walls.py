"""Reach among obstacles: a point in a U of walls, an arm beside a post, a robot in a house, a cart, a mower."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..task import Observation, Task
from .angles import wrapped
from .base import Array, GoalTask, SinglePrecision, clipped, grid_path, unit

WALLS = np.array([[[-0.4, 0.4], [-0.4, -0.4]], [[-0.4, -0.4], [0.4, -0.4]], [[0.4, -0.4], [0.4, 0.4]]])
CORNERS = np.array([[-0.48, 0.48], [-0.32, 0.48], [0.32, 0.48], [0.48, 0.48], [0.48, -0.48], [-0.48, -0.48]])
LINKS, POST, POST_RADIUS = (0.5, 0.5), np.array([0.68, 0.3]), 0.1
MARGIN, GRID = 0.04, 60  # distance from the post, and angles of each joint for the scripted policy


def crosses(start: Array, end: Array) -> bool:
    """Return whether a straight move crosses a wall."""
    for first, last in WALLS:
        matrix = np.column_stack([end - start, first - last])
        if abs(np.linalg.det(matrix)) > 1e-12:
            along = np.linalg.solve(matrix, first - start)
            if (along >= 0).all() and (along <= 1).all():
                return True
    return False


class PointInU(GoalTask):
    """A point moves in a square. Three walls form a U that is open at its top."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(2, 2, 2)

    def begin(self) -> None:
        """Start and end anywhere."""
        self.at, self.goal = self.place(-0.9, 0.9), self.place(-0.9, 0.9)

    def move(self, action: Array) -> None:
        """Move, unless a wall is in the way."""
        target = np.clip(self.at + 0.08 * action, -1, 1)
        if not crosses(self.at, target):
            self.at = target

    def observe(self) -> Array:
        """Return the position."""
        return self.at.copy()

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


def walk_around(observation: Observation) -> Array:
    """Go to the first corner of the shortest path among corners that see each other."""
    places = [observation["achieved_goal"], *CORNERS, observation["desired_goal"]]
    queue: list[tuple[float, int, int]] = [(0.0, 0, -1)]
    done: dict[int, int] = {}
    while queue:
        length, here, first = heappop(queue)
        if here in done:
            continue
        done[here] = first
        for other, place in enumerate(places):
            if other not in done and not crosses(places[here], place):
                step = float(np.linalg.norm(place - places[here]))
                heappush(queue, (length + step, other, first if here else other))
    target = places[done.get(len(places) - 1, 0)]
    way = (target - places[0]) / 0.08
    return (way / max(1.0, float(np.abs(way).max()))).astype(np.float32)


def joints_of(angles: Array) -> tuple[Array, Array]:
    """Return the positions of elbow and tip."""
    elbow = LINKS[0] * unit(float(angles[0]))
    return elbow, elbow + LINKS[1] * unit(float(angles[0] + angles[1]))


def hits_post(angles: Array, margin: float = 0.0) -> bool:
    """Return whether one of the links comes nearer to the post than a margin."""
    elbow, tip = joints_of(angles)
    ends = ((np.zeros(2), elbow), (elbow, tip))
    for start, end in ends:
        along = np.clip((POST - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
        if np.linalg.norm(start + along * (end - start) - POST) < POST_RADIUS + margin:
            return True
    return False


class ArmAndPost(GoalTask):
    """An arm with two joints brings its tip to a point. A post stands in its way."""

    near = 0.08

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Draw angles that do not touch the post, for the start and for the goal."""
        self.angles, self.velocity = self._free(), np.zeros(2)
        self.goal = joints_of(self._free())[1]

    def _free(self) -> Array:
        while True:
            angles = np.array([self.np_random.uniform(-0.6, 2.2), self.np_random.uniform(-2.2, 2.2)])
            if not hits_post(angles, 2 * MARGIN):
                return angles

    def move(self, action: Array) -> None:
        """Turn the joints, unless the post is in the way."""
        target = np.clip(self.angles + 0.12 * action, [-0.8, -2.4], [2.4, 2.4])
        self.velocity = np.zeros(2) if hits_post(target) else target - self.angles
        self.angles = self.angles + self.velocity

    def observe(self) -> Array:
        """Return cosine and sine of each angle, the velocities and the tip."""
        return np.concatenate([np.cos(self.angles), np.sin(self.angles), self.velocity, joints_of(self.angles)[1]])

    def achieved(self) -> Array:
        """Return the position of the tip."""
        return joints_of(self.angles)[1]


@cache
def free_cells() -> tuple[Array, Array]:
    """Return the angles of a grid, and which of them are free of the post, (GRID, GRID)."""
    axes = np.linspace(-0.8, 2.4, GRID), np.linspace(-2.4, 2.4, GRID)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    return grid, np.array([[not hits_post(angles, MARGIN) for angles in row] for row in grid])


def plan_arm() -> Callable[[Observation], Array]:
    """Return a policy that follows a shortest path on a grid of angles."""
    steps: Array | None = None

    def act(observation: Observation) -> Array:
        nonlocal steps
        grid, free = free_cells()
        if steps is None:
            tips = np.stack([LINKS[0] * np.cos(grid[..., 0]) + LINKS[1] * np.cos(grid.sum(-1)),
                             LINKS[0] * np.sin(grid[..., 0]) + LINKS[1] * np.sin(grid.sum(-1))], -1)  # fmt: skip
            distance = np.where(free, np.linalg.norm(tips - observation["desired_goal"], axis=-1), np.inf)
            queue = [(0.0, *map(int, cell)) for cell in np.argwhere(distance <= max(0.06, distance.min()))]
            steps = np.full(free.shape, np.inf)
            while queue:
                length, i, j = heappop(queue)
                if length >= steps[i, j]:
                    continue
                steps[i, j] = length
                for k, m in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                    if 0 <= k < GRID and 0 <= m < GRID and free[k, m] and length + 1 < steps[k, m]:
                        heappush(queue, (length + 1, k, m))
        seen = observation["observation"]
        angles = np.arctan2(seen[2:4], seen[:2])
        near = np.abs(grid - angles).max(-1) <= 0.13
        reachable = np.where(near & free, steps, np.inf)
        best = np.unravel_index(int(reachable.argmin()), reachable.shape)
        return np.clip((grid[best] - angles) / 0.12, -1, 1).astype(np.float32)

    return act


class KiwiRooms(GoalTask):
    """A robot on three omnidirectional wheels drives through a house of three rooms by their speeds."""

    near = 0.4
    wheels = np.stack([unit(angle) for angle in np.radians([20, 140, 260])])  # where each pushes
    wall, door = 4.0, (3.8, 5.4)  # across the house, metres
    partition, gap = 3.0, (7.6, 9.2)  # along the house, beyond the wall

    def __init__(self) -> None:
        super().__init__(6, 2, 3)

    def begin(self) -> None:
        """Place the robot, and a goal that is not beside it."""
        self.at, self.velocity, self.bump = self.place([0.2, 0.2], [9.8, 5.8]), np.zeros(2), 0.0
        self.goal, self.volts = self.at, float(self.np_random.uniform(11, 12.6))
        while np.linalg.norm(self.goal - self.at) < 1.5:
            self.goal = self.place([0.3, 0.3], [9.7, 5.7])

    def move(self, action: Array) -> None:
        """Drive, and stop at walls."""
        self.velocity = 0.5 * self.velocity + 0.1 * action @ self.wheels
        self.velocity += 0.005 * self.np_random.normal(size=2)
        (x, y), (new_x, new_y) = self.at, np.clip(self.at + self.velocity, [0, 0], [10, 6])
        if (x < self.wall) != (new_x < self.wall) and not self.door[0] < y < self.door[1]:
            new_x = self.wall + (0.01 if x >= self.wall else -0.01)
        if new_x > self.wall and (y < self.partition) != (new_y < self.partition) and not self.gap[0] < new_x < self.gap[1]:
            new_y = self.partition + (0.01 if y >= self.partition else -0.01)
        after = np.array([new_x, new_y])
        self.bump = float(np.abs(after - self.at - self.velocity).sum() > 1e-6)
        self.velocity, self.at = after - self.at, after
        self.volts -= 0.001

    def observe(self) -> Array:
        """Return velocity, position, bumper and battery, mixed."""
        return np.array([self.velocity[1], self.at[0], self.bump, self.velocity[0], self.volts, self.at[1]])

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


DOORS = {(0, 1): (4.0, 4.6, 0), (1, 0): (4.0, 4.6, 0), (1, 2): (8.4, 3.0, 1), (2, 1): (8.4, 3.0, 1)}  # place; across


def room_of(place: Array) -> int:
    """Return 0 before the wall, and beyond it 1 above and 2 below the partition."""
    return 0 if place[0] < KiwiRooms.wall else 1 if place[1] >= KiwiRooms.partition else 2


def drive_through(observation: Observation) -> Array:
    """Drive to the door of the next room on the way, and through it."""
    vy, x, _, vx, _, y = observation["observation"]
    at, target = np.array([x, y]), observation["desired_goal"]
    here, there = room_of(at), room_of(target)
    if here != there:
        following = there if (here, there) in DOORS else 1
        *door, axis = DOORS[here, following]
        target, off = np.array(door), abs(at[1 - axis] - door[1 - axis])
        target[axis] += 0.5 * np.sign(at[axis] - door[axis]) * (1 if off > 0.4 else -1)
    wish = (np.clip(0.5 * (target - at), -0.25, 0.25) - 0.5 * np.array([vx, vy])) / 0.1
    speeds = KiwiRooms.wheels @ wish * 2 / 3
    return np.asarray(speeds / max(1.0, np.abs(speeds).max())).astype(np.float32)


RACKS = np.array([[3.6, 4.4], [7.6, 8.4]])  # metres along x


class RackCart(GoalTask):
    """A cart with two driven wheels goes around two racks of a hall to a position, where the episode ends.

    The racks stand elsewhere in each episode. An action is the speed of each wheel.
    """

    near, half, size, hall = 0.5, 2.0, 0.3, np.array([12.0, 8.0])  # metres

    def __init__(self) -> None:
        super().__init__(10, 2, 2)

    def _is_free(self, at: Any, margin: float) -> bool:
        x, y = at
        if not (margin <= x <= self.hall[0] - margin and margin <= y <= self.hall[1] - margin):
            return False
        for (left, right), middle in zip(RACKS, self.middles, strict=True):
            if left - margin < x < right + margin and abs(y - middle) < self.half + margin:
                return False
        return True

    def _somewhere(self, draw: Any) -> Any:
        while True:
            at = draw(0, self.hall)
            if self._is_free(at, 0.5):
                return at

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.middles = draw([2.9, 3.8], [4.2, 5.1])
        self.at = self.goal = self._somewhere(draw)
        while np.linalg.norm(self.goal - self.at) < 2:
            self.goal = self._somewhere(draw)
        self.heading, self.wheels, self.bump = draw(-np.pi, np.pi), np.zeros(2), 0.0

    def move(self, action: Array) -> None:
        self.wheels = 0.4 * self.wheels + 0.6 * action + 0.02 * self.np_random.normal(size=2)
        left, right = self.wheels
        self.heading += 0.3 * (right - left)
        at = self.at + 0.25 * (left + right) * unit(self.heading)
        self.bump = float(not self._is_free(at, self.size))
        if self.bump:
            self.wheels = np.zeros(2)
        else:
            self.at = at

    def observe(self) -> Array:
        cosine, sine = unit(self.heading)
        return np.array([*self.wheels, sine, *self.at[::-1], self.bump, cosine, *self.middles, self.hall[0] - self.at[0]])

    def achieved(self) -> Array:
        return self.at.copy()

    def is_over(self) -> bool:
        return bool(self.is_met(self.at, self.goal))


def _next_position(at: Any, goal: Any, middles: Any) -> Any:
    """Return the next corner of a shortest path among the corners of the racks."""
    corners = [
        (x, y + s * 2.6) for (a, b), y in zip(RACKS, middles, strict=True) for x in (a - 0.6, b + 0.6) for s in (-1, 1)
    ]
    points = np.array([goal, *corners, at])
    steps = np.linspace(0, 1, 60)[:, None, None, None]
    line = points[:, None] * (1 - steps) + points * steps
    cost = np.linalg.norm(points[:, None] - points, axis=-1)
    for (left, right), middle in zip(RACKS, middles, strict=True):
        inside = (line[..., 0] > left - 0.4) & (line[..., 0] < right + 0.4) & (np.abs(line[..., 1] - middle) < 2.4)
        cost = cost + 100 * inside.mean(0)
    best = cost[:, 0].copy()
    for _ in points:
        best = (cost + best).min(1)
        best[0] = 0
    return points[int(np.argmin((cost[-1] + best)[:-1]))]


def cart_script() -> Any:
    def act(observation: Any) -> Any:
        seen = observation["observation"]
        at, heading = seen[[4, 3]], np.arctan2(seen[2], seen[6])
        way = _next_position(at, observation["desired_goal"], seen[7:9]) - at
        turn = wrapped(np.arctan2(way[1], way[0]) - heading)
        drive = 0.9 * max(0.0, np.cos(turn)) ** 3 if not seen[5] else -0.3
        turn = np.clip(1.2 * turn, -1, 1)
        return np.clip([drive - turn, drive + turn], -1, 1).astype(np.float32)

    return act


class MowerBeds(SinglePrecision):
    """A lawn mower with two driven wheels drives to a place between round flower beds, which stop it. Metres.

    Actions: speeds of the left and the right wheel. The goal is a part of the observation too.
    """

    numbers, thing, near = (10, 2, 2), "mower", 0.3
    pace, width, radius, size = 0.2, 0.5, 0.65, 2.5
    beds = np.array([[-1.2, -1.0], [1.1, -1.2], [-0.9, 1.2], [1.0, 0.9]])

    @classmethod
    def is_free(cls, place: Array, margin: float = 0.0) -> bool:
        """Return whether a place lies in the garden and on no bed."""
        is_inside = bool((np.abs(place) <= cls.size - margin).all())
        return is_inside and bool((np.linalg.norm(cls.beds - place, axis=1) >= cls.radius + margin).all())

    def lawn(self) -> Array:
        """Return a random place on the lawn."""
        place = self.place(-2.3, 2.3)
        while not self.is_free(place, 0.15):
            place = self.place(-2.3, 2.3)
        return place

    def begin(self) -> None:
        self.mower, self.heading, self.wheels = self.lawn(), float(self.np_random.uniform(-math.pi, math.pi)), np.zeros(2)
        self.goal = self.mower
        while np.linalg.norm(self.goal - self.mower) < 1.2:
            self.goal = self.lawn()

    def move(self, action: Array) -> None:
        self.wheels = 0.3 * self.wheels + 0.7 * self.pace * action
        self.heading = wrapped(self.heading + float(self.wheels[1] - self.wheels[0]) / self.width)
        to = self.mower + 0.5 * float(self.wheels.sum()) * unit(self.heading)
        if self.is_free(to):
            self.mower = to

    def observe(self) -> Array:
        (x, y), room = self.mower, float(np.linalg.norm(self.beds - self.mower, axis=1).min()) - self.radius
        return np.array([x, math.cos(self.heading), y, math.sin(self.heading), *(5 * self.wheels), room, 0.5, *self.goal])


def mow() -> Any:
    """Follow a shortest path over the lawn, and turn toward the next place of it."""
    path: list[Array] = []

    def act(observation: Observation) -> Array:
        seen, at = observation["observation"].astype(float), observation["achieved_goal"].astype(float)
        if not path:
            path.extend(grid_path(at, seen[8:10], 0.1, lambda place: MowerBeds.is_free(place, 0.06)))
        while len(path) > 1 and np.linalg.norm(path[0] - at) < 0.25:
            path.pop(0)
        way = path[0] - at
        far = float(np.linalg.norm(way))
        if far < 0.1:
            return clipped(0, 0)
        turn = wrapped(math.atan2(way[1], way[0]) - math.atan2(seen[3], seen[1]))
        ahead = max(0.0, math.cos(turn)) ** 3 * min(1.0, 3 * far)
        spin = min(1.0, max(-1.0, 0.8 * turn))
        return clipped(ahead - spin, ahead + spin) if abs(turn) > 0.4 else clipped(ahead - 0.6 * spin, ahead + 0.6 * spin)

    return act


TASKS = (
    Task("PointInU-v0", "obstacles", "open", PointInU, 60, lambda: walk_around),
    Task("ArmAndPost-v0", "obstacles", "open", ArmAndPost, 60, plan_arm),
    Task("KiwiRooms-v0", "obstacles", "open", KiwiRooms, 100, lambda: drive_through),
    Task("RackCart-v0", "obstacles", "open", RackCart, 80, cart_script),
    Task("MowerBeds-v0", "obstacles", "open", MowerBeds, 80, mow),
)
