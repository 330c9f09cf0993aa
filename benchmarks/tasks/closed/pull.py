"""Pull and open."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real


class Drawer(gymnasium.Env):
    """A hand takes the handle of a drawer and brings the drawer to a wished opening. The grip holds only at the handle."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, dtype=np.float64), real(1, 0, 0.3, np.float64))
        self.action_space = real(3, -1, 1)

    def _observe(self) -> dict[str, Any]:
        # The last column is the temperature of the room, which changes nothing.
        state = np.array([self.handle, *self.hand, self.grip, self.opening, self.warmth])
        achieved, goal = np.array([self.opening]), np.array([self.goal])
        return {"observation": state, "achieved_goal": achieved, "desired_goal": goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.handle = self.np_random.uniform(-0.15, 0.15)  # sideways
        self.hand = self.np_random.uniform([0.1, -0.3], [0.45, 0.3])
        self.grip, self.warmth = 0.0, self.np_random.normal(20, 2)
        self.opening, self.goal = self.np_random.uniform(0, 0.15), 0.0
        while abs(self.goal - self.opening) < 0.05 or self.goal == 0:
            self.goal = self.np_random.uniform(0, 0.3)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        *move, close = np.clip(action, -1, 1)
        self.warmth += self.np_random.normal(0, 0.1)
        place = np.array([0.1 + self.opening, self.handle])
        is_held = self.grip == 1 and close > 0 and np.linalg.norm(self.hand - place) < 0.06
        before = self.hand[0]
        self.hand = np.clip(self.hand + 0.06 * np.array(move), [0.05, -0.4], [0.5, 0.4])
        if is_held and abs(self.hand[1] - self.handle) < 0.06:
            self.opening = float(np.clip(self.opening + self.hand[0] - before, 0, 0.3))
            self.hand[0] = np.clip(self.hand[0], 0.1 + self.opening - 0.05, 0.1 + self.opening + 0.05)
        self.grip = float(close > 0)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.abs(achieved_goal - desired_goal)[..., 0] < 0.02, 0.0, -1.0)


def drawer_script() -> Any:
    def act(observation: Any) -> Any:
        handle, x, y, grip, opening, _ = observation["observation"]
        to = np.array([0.1 + opening - x, handle - y])
        is_near = np.linalg.norm(to) < 0.04
        wish = observation["desired_goal"][0] - opening
        if grip == 1 and is_near:
            to = np.array([wish, to[1]])
        return np.array([*np.clip(to / 0.06, -1, 1), 1.0 if is_near else -1.0], np.float32)

    return act


class BarnDoor(gymnasium.Env):
    """A round hand pushes a door around its hinge to a wished angle, from either side. It can go round the edge."""

    length, radius = 0.8, 0.07

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4, -2, 2), real(1, 0, np.float32(np.pi)))
        self.action_space = real(2, -0.08, 0.08)

    def _observe(self) -> dict[str, Any]:
        state = np.array([np.cos(self.door), np.sin(self.door), *self.hand], np.float32)
        achieved, goal = np.array([self.door], np.float32), np.array([self.goal], np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": goal}

    def _in_door(self, hand: Any) -> tuple[float, float]:
        cos, sin = np.cos(self.door), np.sin(self.door)
        return float(hand @ [cos, sin]), float(hand @ [-sin, cos])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.door = self.goal = self.np_random.uniform(0.6, 2.5)
        while abs(self.goal - self.door) < 0.3:
            self.goal = self.np_random.uniform(0.5, 2.6)
        self.hand = np.zeros(2)
        while np.linalg.norm(self.hand) < 0.3 or abs(self._in_door(self.hand)[1]) < 0.15:
            self.hand = self.np_random.uniform([-1, -0.1], [1, 1])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        new = np.clip(self.hand + np.clip(action, -0.08, 0.08), [-1.3, -0.4], [1.3, 1.3])
        new = new * max(1.0, 0.2 / max(float(np.linalg.norm(new)), 1e-6))  # the post of the hinge is in the way
        side = 1.0 if self._in_door(self.hand)[1] >= 0 else -1.0
        along, across = self._in_door(new)
        if 0 < along < self.length and (abs(across) < self.radius or across * side < 0):
            angle = np.arctan2(new[1], new[0]) - side * np.arcsin(self.radius / np.linalg.norm(new))
            self.door = float(np.clip(angle, 0.3, 2.8))
            if self.door != angle:
                new = self.hand  # the door is at its stop, and so is the hand
        self.hand = new
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.abs(achieved_goal - desired_goal)[..., 0] > 0.1).astype(np.float32)


def barn_script() -> Any:
    is_behind = False

    def act(observation: Any) -> Any:
        nonlocal is_behind
        cos, sin, *hand = observation["observation"]
        along, across = np.array([cos, sin]) @ hand, np.array([-sin, cos]) @ hand
        wish = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        side = -1.0 if wish > 0 else 1.0  # where the hand must be
        is_behind = is_behind or across * side > (0.05 if along < 0.75 else 0.1)
        if is_behind:  # on the right side: to the door, then with it
            push = abs(across) - BarnDoor.radius + abs(wish) * along
            target = np.array([0.6, across - side * min(push, 0.07) if along < 0.75 else side * 0.12])
        elif along < 0.9:  # out to the edge
            target = np.array([0.97, across])
        else:  # round the edge
            target = np.array([0.97, side * 0.15])
        to = target - [along, across]
        move = to[0] * np.array([cos, sin]) + to[1] * np.array([-sin, cos])
        if abs(wish) < 0.03:
            move = np.zeros(2)
        return np.clip(move, -0.08, 0.08).astype(np.float32)

    return act


TASKS = (
    Task("StuckDrawer-v0", "pull", "closed", Drawer, 40, drawer_script, budget=20_000),
    Task("BarnDoor-v0", "pull", "closed", BarnDoor, 60, barn_script, budget=20_000),
)
