"""Not a robot."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real

PIPE, DRAIN = 2.0, 1.6  # litres a minute for a root of a centimetre of level
PUMP = 6.0


class ThreeTanks(gymnasium.Env):
    """Two pumps fill the outer ones of three connected tanks, and the middle one drains. The outer two shall be at levels.

    The meters show the levels in centimetres and are not exact.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(3), real(2))
        self.action_space = real(2, 0, 1)

    def _observe(self) -> dict[str, Any]:
        shown = (self.levels + self.np_random.normal(0, 0.2, 3)).astype(np.float32)
        achieved = self.levels[[0, 2]].astype(np.float32)
        return {"observation": shown, "achieved_goal": achieved, "desired_goal": self.goal.astype(np.float32)}

    def _steady(self) -> Any:
        flows = self.np_random.uniform(0.1, 0.9, 2) * PUMP  # the levels that two constant flows lead to
        middle = (flows.sum() / DRAIN) ** 2
        return np.array([middle + (flows[0] / PIPE) ** 2, middle, middle + (flows[1] / PIPE) ** 2])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.levels = self._steady()
        self.goal = self._steady()[[0, 2]]
        while np.max(np.abs(self.goal - self.levels[[0, 2]])) < 5:
            self.goal = self._steady()[[0, 2]]
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        pumps = PUMP * np.clip(action, 0, 1)
        for _ in range(4):
            h1, h2, h3 = self.levels
            left, right = (PIPE * np.sign(h - h2) * np.sqrt(abs(h - h2)) for h in (h1, h3))
            drain = DRAIN * np.sqrt(h2)
            self.levels = np.clip(
                self.levels + 0.1 * np.array([pumps[0] - left, left + right - drain, pumps[1] - right]), 0, 80
            )
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -np.any(np.abs(achieved_goal - desired_goal) > 2.5, axis=-1).astype(np.float32)


def tanks_script() -> Any:
    def act(observation: Any) -> Any:
        _, middle, _ = observation["observation"]
        goal, levels = observation["desired_goal"], observation["observation"][[0, 2]]
        flow = PIPE * np.sqrt(np.maximum(goal - middle, 0)) + 1.5 * (goal - levels)
        return np.clip(flow / PUMP, 0, 1).astype(np.float32)

    return act


class DripDose(gymnasium.Env):
    """A drip brings a drug into the blood, where it shall have a wished level. What is given arrives four steps later,

    and how much a dose does depends on the weight of the patient.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, 0, 500), real(1, 0, 500))
        self.action_space = real(1, 0, 10)

    def _observe(self) -> dict[str, Any]:
        state = np.array([self.weight, *self.pending, self.level], np.float32)
        achieved, goal = state[-1:].copy(), np.array([self.goal], np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.weight, self.goal = self.np_random.uniform(50, 100), self.np_random.uniform(20, 60)
        self.level, self.pending = self.np_random.uniform(0, 15), [0.0] * 4
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.pending.append(float(np.clip(action[0], 0, 10)))
        self.level = 0.92 * self.level + self.pending.pop(0) * 100 / self.weight
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.abs(achieved_goal - desired_goal)[..., 0] > 3).astype(np.float32)


def drip_script() -> Any:
    def act(observation: Any) -> Any:
        weight, *pending, level = observation["observation"]
        for dose in pending:
            level = 0.92 * level + dose * 100 / weight
        dose = (observation["desired_goal"][0] - 0.92 * level) * weight / 100
        return np.clip([dose], 0, 10).astype(np.float32)

    return act


DELAY = 6  # steps that water takes through the pipe
COLD, FLOW = 12.0, 7.0  # degrees Celsius, litres per minute of an open tap
TOLERANCE = np.array([1.5, 0.6])  # degrees Celsius, litres per minute


class LongPipeShower(gymnasium.Env):
    """Two taps, hot and cold, feed a shower through a long pipe. The temperature and the flow must be right.

    The temperature at the shower follows the taps with a delay, and that of the boiler drifts.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5, 0, 100), real(2, 0, 100))
        self.action_space = real(2, -1, 1)

    def _mixture(self) -> Any:
        return (self.taps @ [self.boiler, COLD]) / max(self.taps.sum(), 1e-6)

    def _achieved(self) -> Any:
        return np.array([self.warmth, FLOW * self.taps.sum()])

    def _observe(self) -> dict[str, Any]:
        achieved = self._achieved()
        state = np.array([*(100 * self.taps), self.boiler, *achieved], np.float32)
        goal = self.goal.astype(np.float32)
        return {"observation": state, "achieved_goal": achieved.astype(np.float32), "desired_goal": goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self.taps, self.boiler = draw(0.1, 0.9, 2), draw(52, 64)
        self.warmth = self._mixture()
        self.pipe = deque([self.warmth] * DELAY, maxlen=DELAY)
        self.goal = self._achieved()
        while np.all(np.abs(self.goal - self._achieved()) < 2 * TOLERANCE):
            self.goal = np.array([draw(32, 44), draw(4, 9)])
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        self.taps = np.clip(self.taps + 0.08 * np.clip(action, -1, 1), 0.02, 1.0)
        self.boiler = float(np.clip(self.boiler + self.np_random.normal(0, 0.1), 50, 66))
        self.warmth += 0.7 * (self.pipe[0] - self.warmth)
        self.pipe.append(self._mixture())
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 100)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        miss = np.abs(np.asarray(achieved_goal, np.float64) - desired_goal)
        return 100.0 * np.all(miss <= TOLERANCE, axis=-1)


def shower_script() -> Any:
    def act(observation: Any) -> Any:
        hot, cold, boiler, _, _ = observation["observation"].astype(float)
        warmth, flow = observation["desired_goal"].astype(float)
        fraction = (warmth - COLD) / (boiler - COLD)
        wish = flow / FLOW * np.array([fraction, 1 - fraction])
        return np.clip((wish - np.array([hot, cold]) / 100) / 0.08, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("ThreeTanks-v0", "not-a-robot", "closed", ThreeTanks, 100, tanks_script, budget=20_000),
    Task("DripDose-v0", "not-a-robot", "closed", DripDose, 50, drip_script, budget=15_000),
    Task("LongPipeShower-v0", "not-a-robot", "closed", LongPipeShower, 50, shower_script, budget=15_000),
)
