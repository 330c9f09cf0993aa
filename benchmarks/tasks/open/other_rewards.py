"""Rewards of other kinds and other units: tasks of this folder with other rewards, lengths and forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, GoalTask, Seen
from .push import DiscPuck, push_puck

KILOMETRE, ORIGIN = 1_000.0, np.array([1_000.0, 1_000.0])


class HundredPuck(DiscPuck):
    """As DiscPuck, with the rewards 0 and 100. Success ends the episode."""

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 100 where the goal is met."""
        return 100.0 * self.is_met(achieved_goal, desired_goal)

    def is_over(self) -> bool:
        """Return whether the goal is met."""
        return bool(self.is_met(self.achieved(), self.goal))

    def compute_terminated(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return where the goal is met."""
        return self.is_met(achieved_goal, desired_goal)


class CostlyReach(GoalTask):
    """A point with inertia moves to a place. Each action costs something, which `info` reports."""

    def __init__(self) -> None:
        super().__init__(4, 2, 2)

    def begin(self) -> None:
        """Start at rest."""
        self.at, self.goal, self.velocity, self.cost = self.place(-0.5, 0.5), self.place(-0.5, 0.5), np.zeros(2), 0.0

    def move(self, action: Array) -> None:
        """Accelerate."""
        self.cost = 0.2 * float(np.square(action).mean())
        self.velocity = 0.7 * self.velocity + 0.03 * action
        self.at = self.at + self.velocity

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Add the cost to the info and to the reward."""
        seen, _, terminated, truncated, info = super().step(action)
        info["cost"] = self.cost
        return seen, float(self.compute_reward(seen["achieved_goal"], self.goal, info)), terminated, truncated, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return -1 or 0, less the cost."""
        cost = (
            np.array([each["cost"] for each in info])
            if isinstance(info, list | tuple | np.ndarray)
            else info.get("cost", 0.0)
        )
        return super().compute_reward(achieved_goal, desired_goal, info) - cost

    def observe(self) -> Array:
        """Return position and velocity."""
        return np.concatenate([self.at, self.velocity])

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


class DenseReach(CostlyReach):
    """A point with inertia moves to a place. The reward is minus the distance in millimetres."""

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return minus the distance, in millimetres."""
        return -1_000.0 * np.linalg.norm(achieved_goal - desired_goal, axis=-1)


def accelerate(observation: Observation) -> Array:
    """Move to the goal and stop there."""
    at, velocity = observation["observation"][:2], observation["observation"][2:]
    wanted = 0.25 * (observation["desired_goal"] - at)
    return np.clip((wanted - 0.7 * velocity) / 0.03, -1, 1).astype(np.float32)


class KilometrePuck(DiscPuck):
    """As DiscPuck, in kilometres, around the place (1000, 1000) in metres; the action is in metres per step."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-0.05, 0.05, (2,), np.float32)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Step with an action in metres."""
        return super().step(np.asarray(action, np.float64) / 0.05)

    def observe(self) -> Array:
        """Return the positions in kilometres and the velocities in metres per step."""
        return np.concatenate([(self.disc + ORIGIN) / KILOMETRE, self.achieved(), self.velocity, self.slide])

    def achieved(self) -> Array:
        """Return the position of the puck in kilometres."""
        return (self.puck + ORIGIN) / KILOMETRE

    def seen(self) -> Seen:
        """Return the observation with the goal in kilometres too."""
        return {**super().seen(), "desired_goal": (self.goal + ORIGIN) / KILOMETRE}

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether goals in kilometres are near."""
        return np.linalg.norm(achieved_goal - desired_goal, axis=-1) <= self.near / KILOMETRE


def push_in_kilometres(observation: Observation) -> Array:
    """Push as in DiscPuck."""
    parts = {key: KILOMETRE * observation[key] - ORIGIN for key in ("achieved_goal", "desired_goal")}
    disc = KILOMETRE * observation["observation"][:2] - ORIGIN
    return (0.05 * push_puck({"observation": disc, **parts})).astype(np.float32)


class ScalarReach(CostlyReach):
    """Reach in two dimensions. Actions are angles, the observation holds the goal, and one reward is a plain number."""

    def __init__(self) -> None:
        super().__init__()
        observed = spaces.Box(-np.inf, np.inf, (4,), np.float64)
        self.observation_space = spaces.Dict({**self.observation_space.spaces, "observation": observed})  # type: ignore[attr-defined]
        self.action_space = spaces.Box(-np.pi, np.pi, (1,), np.float32)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Move a step in the direction of the angle."""
        angle = float(np.asarray(action).ravel()[0])
        self.at = self.at + 0.04 * np.array([np.cos(angle), np.sin(angle)])
        seen = self.seen()
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        return seen, reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return a plain number for one goal, also if it comes as a batch of one."""
        rewards = np.atleast_1d(GoalTask.compute_reward(self, achieved_goal, desired_goal, info))
        return float(rewards[0]) if rewards.size == 1 else rewards

    def observe(self) -> Array:
        """Return goal and position."""
        return np.concatenate([self.goal, self.at])


def steer(observation: Observation) -> Array:
    """Walk toward the goal."""
    way = observation["desired_goal"] - observation["achieved_goal"]
    return np.array([np.arctan2(way[1], way[0])], np.float32)


TASKS = (
    Task("HundredPuck-v0", "rewards", "open", HundredPuck, 50, lambda: push_puck),
    Task("CostlyReach-v0", "rewards", "open", CostlyReach, 40, lambda: accelerate),
    Task("DenseReach-v0", "rewards", "open", DenseReach, 40, lambda: accelerate),
    Task("KilometrePuck-v0", "units", "open", KilometrePuck, 50, lambda: push_in_kilometres),
    Task("ScalarReach-v0", "units", "open", ScalarReach, 50, lambda: steer),
)
