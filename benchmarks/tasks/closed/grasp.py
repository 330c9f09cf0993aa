"""Grasp."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real

HALF = 0.04  # of the block


class PinchBlock(gymnasium.Env):
    """Two fingers, seen from the front, take a block from the floor and bring it to a place, often in the air.

    The block falls when the fingers let it go.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5), real(2))
        self.action_space = real(3, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([*self.hand, self.gap, *self.block], np.float32)
        return {"observation": state, "achieved_goal": state[3:].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.block = np.array([self.np_random.uniform(-0.3, 0.3), HALF])
        self.hand = np.array([np.clip(self.block[0] + self.np_random.uniform(-0.1, 0.1), -0.4, 0.4), 0.15])
        self.gap = 0.08  # half of the distance of the fingers
        if self.np_random.random() < 0.5:  # half of the episodes begin with the block in the fingers
            self.hand, self.gap = self.block.copy(), HALF
        self.goal = self.block
        while np.linalg.norm(self.goal - self.block) < 0.12:
            height = HALF if self.np_random.random() < 0.3 else self.np_random.uniform(0.1, 0.4)
            self.goal = np.array([self.np_random.uniform(-0.35, 0.35), height])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        dx, dz, dg = np.clip(action, -1, 1) * [0.05, 0.05, 0.03]
        gap = float(np.clip(self.gap + dg, 0.02, 0.1))
        off = abs(self.block[0] - self.hand[0])
        is_level = abs(self.hand[1] - self.block[1]) < 0.05
        is_between = is_level and off <= self.gap - HALF + 1e-6
        is_held = is_between and gap <= HALF
        hand = np.clip(self.hand + np.array([dx, dz]), [-0.5, HALF], [0.5, 0.5])
        if is_between:
            gap = max(gap, HALF)
            if is_held:
                rise = max(hand[1] - self.hand[1], HALF - self.block[1])
                self.block = np.array([hand[0], self.block[1] + rise])
                hand[1] = self.hand[1] + rise
            else:
                free = gap - HALF
                self.block[0] = np.clip(self.block[0], hand[0] - free, hand[0] + free)
        elif is_level:  # the fingers are beside the block and do not go through it
            hand[0] = self.hand[0]
            gap = min(gap, self.gap)
        elif abs(hand[1] - self.block[1]) < 0.05 and gap - HALF < abs(self.block[0] - hand[0]) < gap + HALF + 0.02:
            hand[1] = self.block[1] + 0.06  # a finger stands on the block
        if not is_held:
            self.block[1] = max(self.block[1] - 0.1, HALF)
        self.hand, self.gap = hand, gap
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.05).astype(np.float32)


def pinch_script() -> Any:
    def act(observation: Any) -> Any:
        x, z, gap, bx, bz = observation["observation"]
        goal = observation["desired_goal"]
        if abs(z - bz) < 0.04 and abs(x - bx) <= gap - HALF + 1e-3:
            move = np.array([goal[0] - bx, goal[1] - bz]) if gap <= HALF + 1e-3 else np.zeros(2)
            return np.array([*np.clip(move / 0.05, -1, 1), -1], np.float32)
        down = bz - z if abs(x - bx) < 0.02 and gap > 0.07 else 0.15 + bz - z
        return np.clip([(bx - x) / 0.05, down / 0.05, (0.08 - gap) / 0.03], -1, 1).astype(np.float32)

    return act


BAIL, LIP = 0.2, 0.08  # height of the bail above the bottom of the bucket, half the width of the hook


class WellBucket(gymnasium.Env):
    """A hook on a rope, seen from the front, catches the bail of a bucket and lifts the bucket to a position in the air.

    The bucket falls from the hook if the hook moves sideways too fast.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, -10, 10, np.float64), real(2, -10, 10, np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([*self.hook, *self.bucket, self.fall, self._above_bail()])
        return {"observation": state, "achieved_goal": self.bucket.copy(), "desired_goal": self.goal.copy()}

    def _above_bail(self) -> float:
        return self.hook[1] - self.bucket[1] - BAIL

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self.hook = np.array([draw(-0.4, 0.4), draw(0.1, 0.6)])
        self.bucket, self.fall, self.is_hung = np.array([draw(-0.3, 0.3), 0.0]), 0.0, False
        self.goal = np.array([np.clip(self.bucket[0] + draw(-0.25, 0.25), -0.4, 0.4), draw(0.1, 0.4)])
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        before, gap = self.hook, self._above_bail()
        self.hook = np.clip(before + 0.05 * np.clip(action, -1, 1), [-0.5, 0.02], [0.5, 0.8])
        dx, dz = self.hook - before
        if self.is_hung:
            self.bucket = self.bucket + np.array([np.clip(dx, -0.04, 0.04), dz])
            if self.bucket[1] < 0 or abs(self.bucket[0] - self.hook[0]) > LIP:
                self.is_hung, self.fall = False, 0.0
        else:
            self.fall -= 0.02
            self.bucket = self.bucket + np.array([0, self.fall])
        if self.bucket[1] <= 0:
            self.bucket[1], self.fall = 0.0, 0.0
        if not self.is_hung and abs(self.hook[0] - self.bucket[0]) < LIP:
            if gap < 0 <= self._above_bail():
                self.is_hung, self.fall, self.bucket[1] = True, 0.0, self.hook[1] - BAIL
            elif gap >= 0 > self._above_bail():  # from above, the hook rests on the bail
                self.hook[1] = self.bucket[1] + BAIL
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1) < 0.07, 0.0, -1.0)


def bucket_script() -> Any:
    def act(observation: Any) -> Any:
        x, _, bx, bz, _, gap = observation["observation"]
        offset = x - bx
        if abs(gap) < 1e-6 and bz > 0:  # the bucket hangs on the hook
            move = observation["desired_goal"] - observation["achieved_goal"]
            return np.clip(move / 0.05, [-0.7, -1], [0.7, 1]).astype(np.float32)
        if gap < 0 and abs(offset) < 0.04:
            move = np.array([-offset, 0.05])
        elif gap > -0.05:  # down beside the bail
            target = bx + np.copysign(0.14, offset) if abs(offset) < 0.12 else x
            move = np.array([target - x, -0.05 if abs(offset) > 0.09 else 0.0])
        else:
            move = np.array([-offset, 0.0])
        return np.clip(move / 0.05, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("PinchBlock-v0", "grasp", "closed", PinchBlock, 50, pinch_script, budget=20_000),
    Task("WellBucket-v0", "grasp", "closed", WellBucket, 60, bucket_script, budget=20_000),
)
