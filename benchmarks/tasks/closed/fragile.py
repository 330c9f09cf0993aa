"""Bodies that break."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real

RAYS = np.array([[np.cos(a), np.sin(a)] for a in np.arange(12) * np.pi / 6])
RANGE, PILLAR = 0.6, 0.15


class PillarDrone(gymnasium.Env):
    """A drone flies at one height between pillars that stand elsewhere in each episode; it sees them by twelve rays.

    It breaks at a pillar or at a wall, which ends the episode.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(14, -1.1, 1.1), real(2, -1.1, 1.1))
        self.action_space = real(2, -1, 1)

    def _rays(self) -> Any:
        with np.errstate(divide="ignore"):
            walls = np.min(np.where(RAYS != 0, (np.sign(RAYS) - self.place) / RAYS, np.inf), axis=1)
        to = self.pillars - self.place
        along = RAYS @ to.T
        inside = PILLAR**2 - (np.sum(to**2, axis=1) - along**2)
        hit = np.where((inside > 0) & (along > 0), along - np.sqrt(np.maximum(inside, 0)), np.inf)
        return np.clip(np.minimum(walls, hit.min(axis=1)), 0, RANGE)

    def _observe(self) -> dict[str, Any]:
        place = self.place.astype(np.float32)
        state = np.concatenate([self._rays() / RANGE, place]).astype(np.float32)
        return {"observation": state, "achieved_goal": place, "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.goal = self.np_random.uniform(-0.85, 0.85, 2)
        while np.linalg.norm(self.place - self.goal) < 0.5:
            self.goal = self.np_random.uniform(-0.85, 0.85, 2)
        pillars: list[Any] = []
        for _ in range(100):
            new = self.np_random.uniform(-0.75, 0.75, 2)
            is_free = all(np.linalg.norm(new - p) > PILLAR + 0.15 for p in (self.place, self.goal))
            if is_free and all(np.linalg.norm(new - p) > 2 * PILLAR + 0.2 for p in pillars) and len(pillars) < 3:
                pillars.append(new)
        self.pillars = np.array(pillars)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.place = self.place + 0.08 * np.clip(action, -1, 1)
        is_broken = bool(
            np.any(np.abs(self.place) > 1) or np.any(np.sum((self.pillars - self.place) ** 2, axis=1) < PILLAR**2)
        )
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        is_success = bool(reward == 0)
        return observation, float(reward), is_success or is_broken, False, {"is_success": is_success, "broken": is_broken}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.1).astype(np.float32)


def pillar_script() -> Any:
    last = np.zeros(2)

    def act(observation: Any) -> Any:
        nonlocal last
        rays, place = observation["observation"][:12] * RANGE, observation["achieved_goal"]
        to = observation["desired_goal"] - place
        distance = np.linalg.norm(to)
        points = RAYS[rays < RANGE - 1e-3] * rays[rays < RANGE - 1e-3, None]
        angles = np.arange(48) * np.pi / 24 + np.arctan2(to[1], to[0])
        ways = np.column_stack([np.cos(angles), np.sin(angles)])
        lengths = np.arange(0.05, min(0.25, distance) + 0.01, 0.05)
        off = points - (ways[:, None] * lengths[:, None])[:, :, None]
        near = np.min(np.linalg.norm(off, axis=-1), axis=-1, initial=1.0)  # how near the points come on each way
        costs = 3 * np.sum(np.maximum(0, 0.1 - near) / 0.1, axis=1) - ways @ to / distance - 0.4 * ways @ last
        best = ways[np.argmin(costs)]
        last = best
        return (best * min(0.6, distance / 0.08)).astype(np.float32)

    return act


class TiltDrone(gymnasium.Env):
    """A drone seen from the side flies to a place by thrust and tilt. If it tips over or hits the floor it is broken:

    its motors stay off until the time is over.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(7), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([*self.place, *self.speed, np.cos(self.tilt), np.sin(self.tilt), self.broken], np.float32)
        return {"observation": state, "achieved_goal": state[:2].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform([-1, 1], [1, 2])
        self.speed, self.tilt, self.broken = np.zeros(2), 0.0, False
        self.goal = self.place
        while np.linalg.norm(self.goal - self.place) < 0.6:
            self.goal = self.np_random.uniform([-1.2, 0.8], [1.2, 2.3])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        thrust, rate = np.clip(action, -1, 1)
        if not self.broken:
            self.tilt += 0.15 * rate
        up = 0.0 if self.broken else 1 + 0.4 * thrust
        force = 9.81 * up * np.array([np.sin(self.tilt), np.cos(self.tilt)]) - [0, 9.81]
        self.speed = self.speed + 0.06 * (force - 0.8 * self.speed)
        self.place = self.place + 0.06 * self.speed
        self.broken = bool(self.broken or self.place[1] <= 0 or abs(self.tilt) > 1.0)
        if self.place[1] <= 0:
            self.place[1], self.speed = 0.0, np.zeros(2)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.25).astype(np.float32)


def tilt_script() -> Any:
    def act(observation: Any) -> Any:
        x, z, vx, vz, cos, sin, _ = observation["observation"]
        gx, gz = observation["desired_goal"]
        lean = np.clip(0.4 * (gx - x) - 0.3 * vx, -0.4, 0.4)
        thrust = ((1 + 0.4 * (gz - z) - 0.3 * vz) / max(cos, 0.5) - 1) / 0.4
        return np.clip([thrust, (lean - np.arctan2(sin, cos)) / 0.15], -1, 1).astype(np.float32)

    return act


POSTS, POST = np.array([[-0.25, 0.45], [0.1, -0.5]]), 0.16  # centres, radius
HEDGE_END, HEDGE = 0.3, 0.06  # x at which the hedge that begins at the left wall ends, half its width


def clearance(points: Any) -> Any:
    """Return the distance of points (..., 2) from the nearest obstacle."""
    posts = np.linalg.norm(points[..., None, :] - POSTS, axis=-1).min(axis=-1) - POST
    beyond = np.maximum(np.stack([points[..., 0] - HEDGE_END, np.abs(points[..., 1]) - HEDGE], axis=-1), 0)
    return np.minimum(posts, np.linalg.norm(beyond, axis=-1))


class GlassMarble(gymnasium.Env):
    """A glass marble rolls around a hedge and two posts to a position on the other side of the hedge.

    The marble breaks if it touches a post or the hedge, which ends the episode.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4, -2, 2, np.float64), real(2, -2, 2, np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.marble, self.speed])
        return {"observation": state, "achieved_goal": self.marble.copy(), "desired_goal": self.goal.copy()}

    def _somewhere(self, sign: int) -> Any:
        while True:
            point = self.np_random.uniform([-0.9, 0.15], [0.9, 0.9]) * [1, sign]
            if clearance(point) > 0.12:
                return point

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        sign = self.np_random.choice([-1, 1])
        self.marble, self.speed, self.goal = self._somewhere(sign), np.zeros(2), self._somewhere(-sign)
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        speed = 0.6 * self.speed + 0.032 * np.clip(action, -1, 1)
        new = np.clip(self.marble + speed, -1, 1)
        self.speed, self.marble = new - self.marble, new
        is_broken = bool(clearance(self.marble) <= 0)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), is_broken, False, {"is_success": bool(reward == 0), "broken": is_broken}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1) > 0.1).astype(np.float64)


def path_costs(cells: Any, goal: Any) -> Any:
    """Return the length of the shortest free path from each cell of a square grid to the goal, in cells."""
    costs = np.where(np.linalg.norm(cells - goal, axis=-1) < 0.05, 0.0, np.inf)
    is_blocked, n = clearance(cells) <= 0.06, len(cells)
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    for _ in range(150):
        padded = np.pad(costs, 1, constant_values=np.inf)
        moved = [padded[1 + i : 1 + n + i, 1 + j : 1 + n + j] + np.hypot(i, j) for i, j in steps]
        costs = np.minimum(costs, np.min(moved, axis=0))
        costs[is_blocked] = np.inf
    return costs


def marble_script() -> Any:
    axis = np.linspace(-1, 1, 41)
    cells = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    costs = None

    def act(observation: Any) -> Any:
        nonlocal costs
        (marble, speed), target = np.split(observation["observation"], 2), observation["desired_goal"]
        costs = path_costs(cells, target) if costs is None else costs
        if np.linalg.norm(marble - target) > 0.1:  # to the best of the cells that are about 0.09 away
            is_far = np.abs(np.linalg.norm(cells - marble, axis=-1) - 0.09) > 0.03
            target = cells.reshape(-1, 2)[(costs + 1e3 * is_far).argmin()]
        return np.clip((0.5 * (target - marble) - 0.6 * speed) / 0.032, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("PillarDrone-v0", "fragile", "closed", PillarDrone, 60, pillar_script, budget=20_000),
    Task("TiltDrone-v0", "fragile", "closed", TiltDrone, 80, tilt_script, budget=20_000),
    Task("GlassMarble-v0", "fragile", "closed", GlassMarble, 90, marble_script, budget=20_000),
)
