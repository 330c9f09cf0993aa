"""Known tasks in other forms: actions to choose from, an object that turns, and a tool that only a gap shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, Seen, unit
from .grasp import PlaneGrasp, lift
from .push import FixedPuck, push_puck

DIRECTIONS = np.array([*(unit(k * np.pi / 4) for k in range(8)), [0.0, 0.0]])
TURN, TILTED = 0.2, 0.25  # of a wrist in a step; angle within which a block counts as turned


class FarPuck(FixedPuck):
    """As FixedPuck, but the puck starts anywhere."""

    def begin(self) -> None:
        """Place the puck anywhere, and the disc on a circle around it."""
        super().begin()
        away = self.disc - self.puck
        self.puck = self.place(-0.3, 0.3)
        self.disc = self.puck + away


class ChoicePuck(FarPuck):
    """The disc moves in one of eight directions, or stays."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(len(DIRECTIONS))

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Move the disc in the direction of the choice."""
        return super().step(DIRECTIONS[int(action)])


def choose_push(observation: Observation) -> int:
    """Choose the direction nearest to that of `push_puck`."""
    return int(np.linalg.norm(DIRECTIONS - push_puck(observation), axis=1).argmin())


class TurnedBlock(PlaneGrasp):
    """As PlaneGrasp, but the hand turns, and with it what it holds: the goal is place and angle of the block."""

    def __init__(self) -> None:
        super(PlaneGrasp, self).__init__(10, 3, 4)

    def begin(self) -> None:
        """Tilt the block."""
        super().begin()
        self.turn, self.tilt = 0.0, float(self.np_random.uniform(-0.5, 0.5))
        self.goal = np.append(self.goal, self.np_random.uniform(-0.8, 0.8))

    def move(self, action: Array) -> None:
        """Turn the hand besides."""
        super().move(action[:3])
        turn = float(np.clip(self.turn + TURN * action[3], -1.5, 1.5))
        self.tilt += (turn - self.turn) * np.array_equal(self.block, self.hand)
        self.turn = turn

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether place and angle are right."""
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., :2], axis=-1) <= self.near) & (np.abs(gap[..., 2]) <= TILTED)

    def observe(self) -> Array:
        """Return what PlaneGrasp shows, and the angles of hand and block."""
        return np.array([*super().observe(), self.turn, self.tilt])

    def achieved(self) -> Array:
        """Return the position of the block and its angle."""
        return np.append(self.block, self.tilt)


def lift_and_turn(observation: Observation) -> Array:
    """Carry the block as `lift` does, and turn it meanwhile."""
    achieved, desired = observation["achieved_goal"], observation["desired_goal"]
    move = lift({**observation, "achieved_goal": achieved[:2], "desired_goal": desired[:2]})
    return np.append(move, np.clip((desired[2] - achieved[2]) / TURN, -1, 1) * (move[2] < 0)).astype(np.float32)


class BlindPuck(FarPuck):
    """No number shows where the disc is: only its gap to the puck does."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space["observation"] = spaces.Box(-np.inf, np.inf, (6,), np.float64)

    def observe(self) -> Array:
        """Return the gap and the velocities of disc and puck."""
        return np.concatenate([self.puck - self.disc, self.velocity, self.slide])


def push_by_gap(observation: Observation) -> Array:
    """Push the puck from behind."""
    seen, puck = observation["observation"], observation["achieved_goal"]
    return push_puck({**observation, "observation": np.append(puck - seen[:2], seen)})


TASKS = (
    Task("ChoicePuck-v0", "push", "open", ChoicePuck, 60, lambda: choose_push),
    Task("TurnedBlock-v0", "grasp", "open", TurnedBlock, 60, lambda: lift_and_turn),
    Task("BlindPuck-v0", "push", "open", BlindPuck, 60, lambda: push_by_gap),
)
