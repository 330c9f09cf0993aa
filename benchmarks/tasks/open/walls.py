"""Reach among obstacles: a point in a U of walls, and an arm with two joints beside a post."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from heapq import heappop, heappush

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, unit

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


TASKS = (
    Task("PointInU-v0", "obstacles", "open", PointInU, 60, lambda: walk_around),
    Task("ArmAndPost-v0", "obstacles", "open", ArmAndPost, 60, plan_arm),
)
