"""Several objects, and goals of more than one thing."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import around, goal_space, real

WIRES = np.array([-0.3, 0.3])  # heights
REACH = 0.15  # between the centres of cursor and bead when they touch


class TwoBeads(gymnasium.Env):
    """Two beads slide on two wires, and a cursor pushes them along. Each shall be at its own place at the end."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4, dtype=np.float64), real(2, -1, 1, np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.beads, self.cursor])
        state = state + self.np_random.normal(0, 0.005, 4)  # the camera is not exact
        return {"observation": state, "achieved_goal": self.beads.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cursor = np.array([self.np_random.uniform(-0.8, 0.8), 0.0])
        self.beads = self.np_random.uniform(-0.6, 0.6, 2)
        self.goal = self.beads
        while np.any(np.abs(self.goal - self.beads) < 0.15):
            self.goal = self.np_random.uniform(-0.7, 0.7, 2)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.cursor = np.clip(self.cursor + 0.12 * np.clip(action, -1, 1), -1.2, 1.2)
        for bead in range(2):
            off = self.beads[bead] - self.cursor[0]
            if abs(self.cursor[1] - WIRES[bead]) < 0.12 and abs(off) < REACH:
                self.beads[bead] = np.clip(self.cursor[0] + (REACH if off >= 0 else -REACH), -1, 1)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -np.any(np.abs(achieved_goal - desired_goal) > 0.1, axis=-1).astype(np.float64)


def beads_script() -> Any:
    def act(observation: Any) -> Any:
        *_, x, y = observation["observation"]
        beads, goal = observation["achieved_goal"], observation["desired_goal"]
        bead = 0 if abs(goal[0] - beads[0]) > 0.05 else 1
        way = np.sign(goal[bead] - beads[bead])
        target = np.array([beads[bead] - way * (REACH + 0.06), WIRES[bead]])
        is_behind = (beads[bead] - x) * way > REACH - 0.02
        if abs(y - WIRES[bead]) < 0.1 and is_behind:
            target[0] = goal[bead] - way * REACH
        elif not is_behind or abs(x - target[0]) > 0.05:  # in the middle between the wires first
            target = np.array([target[0] if abs(y) < 0.2 else x, 0.0])
        return np.clip((target - [x, y]) / 0.12, -1, 1).astype(np.float32)

    return act


class StampDesk(gymnasium.Env):
    """A cursor takes a stamp by a button, leaves it at one place, and shall then itself be at another place."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5, 0, 100), real(4, 0, 100))
        self.action_space = real(3, np.array([-8, -8, 0], np.float32), np.array([8, 8, 1], np.float32))

    def _observe(self) -> dict[str, Any]:
        achieved = np.concatenate([self.stamp, self.cursor]).astype(np.float32)
        state = np.array([*self.cursor, self.is_held, *self.stamp], np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.stamp, self.cursor = self.np_random.uniform(10, 90, (2, 2))
        self.is_held = False
        self.goal = np.concatenate([self.stamp, self.cursor])
        while np.linalg.norm(self.goal[:2] - self.stamp) < 15 or np.linalg.norm(self.goal[:2] - self.goal[2:]) < 15:
            self.goal = self.np_random.uniform(10, 90, 4)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        dx, dy, button = np.clip(action, self.action_space.low, self.action_space.high)
        is_near = np.linalg.norm(self.cursor - self.stamp) < 8
        self.is_held = bool(button > 0.5 and (self.is_held or is_near))
        self.cursor = np.clip(self.cursor + np.array([dx, dy]), 0, 100)
        if self.is_held:
            self.stamp = self.cursor.copy()
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        off = np.asarray(achieved_goal) - np.asarray(desired_goal)
        is_there = (np.linalg.norm(off[..., :2], axis=-1) < 7) & (np.linalg.norm(off[..., 2:], axis=-1) < 7)
        return is_there.astype(np.float32) - 1


def stamp_script() -> Any:
    def act(observation: Any) -> Any:
        cursor, stamp, held = observation["observation"][:2], observation["observation"][3:], observation["observation"][2]
        first, last = observation["desired_goal"][:2], observation["desired_goal"][2:]
        is_done = np.linalg.norm(stamp - first) < 3
        target = last if is_done else first if held else stamp
        take = not is_done and (bool(held) or np.linalg.norm(cursor - stamp) < 6)
        move = np.zeros(2) if take and not held else np.clip(target - cursor, -8, 8)
        return np.array([*move, float(take)], np.float32)

    return act


CONTACT = 0.16  # between the centres of porter and trunk when they touch


class PorterAndTrunk(gymnasium.Env):
    """A porter pushes a trunk to one position, and must then wait at another position. Walls stop the trunk."""

    def __init__(self, tolerance: float = 0.08) -> None:
        self.tolerance = tolerance
        self.observation_space = goal_space(real(6, -2, 2), real(4, -2, 2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.porter, self.trunk, self.trunk - self.porter]).astype(np.float32)
        achieved = np.concatenate([self.trunk, self.porter]).astype(np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": self.goal.astype(np.float32)}

    def _info(self, observation: Any) -> dict[str, Any]:
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return {"is_success": bool(reward > 0)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        while True:
            points = self.np_random.uniform(-1, 1, (4, 2)) * [[0.6], [0.35], [0.4], [0.6]]
            if np.all(np.linalg.norm(np.diff(points, axis=0), axis=1) > [0.2, 0.15, 0.28]):
                break
        self.porter, self.trunk, self.goal = points[0], points[1], points[2:].ravel()
        observation = self._observe()
        return observation, self._info(observation)

    def step(self, action: Any) -> Any:
        self.porter = np.clip(self.porter + 0.07 * np.clip(action, -1, 1), -0.8, 0.8)
        away = self.trunk - self.porter
        distance = np.linalg.norm(away)
        if distance < CONTACT:
            normal = away / distance if distance > 1e-9 else np.array([1.0, 0.0])
            self.trunk = np.clip(self.porter + CONTACT * normal, -0.6, 0.6)
            distance = np.linalg.norm(self.trunk - self.porter)
            if distance < CONTACT - 1e-9:  # the trunk is at the wall and stops the porter
                self.porter = self.porter - (CONTACT - distance) * normal
        observation = self._observe()
        info = self._info(observation)
        return observation, float(info["is_success"]), False, False, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        gap = np.asarray(achieved_goal, np.float64) - desired_goal
        trunk, porter = np.linalg.norm(gap[..., :2], axis=-1), np.linalg.norm(gap[..., 2:], axis=-1)
        return ((trunk < self.tolerance) & (porter < self.tolerance)).astype(np.float64)


def porter_script() -> Any:
    def act(observation: Any) -> Any:
        trunk, porter = np.split(observation["achieved_goal"].astype(float), 2)
        first, last = np.split(observation["desired_goal"].astype(float), 2)
        if np.linalg.norm(trunk - first) >= 0.05:
            move = around(porter, trunk, first, CONTACT, 0.07)
        else:
            offset, move = porter - trunk, last - porter
            distance = np.linalg.norm(offset)
            if distance < 0.28 and offset @ move < 0:  # around the trunk
                turn = np.array([-offset[1], offset[0]]) / distance
                move = 0.06 * turn * (np.sign(turn @ move) or 1.0) + 0.5 * (0.24 / distance - 1) * offset
        return np.clip(move / 0.07, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("TwoBeads-v0", "several-objects", "closed", TwoBeads, 60, beads_script, budget=20_000),
    Task("StampDesk-v0", "several-objects", "closed", StampDesk, 50, stamp_script, budget=20_000),
    Task("PorterAndTrunk-v0", "several-objects", "closed", PorterAndTrunk, 70, porter_script, budget=20_000),
)
