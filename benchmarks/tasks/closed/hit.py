"""Hit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import around, goal_space, real

SLOWING = 0.006  # of the puck, a step
CONTACT = 0.1


class IceShot(gymnasium.Env):
    """A mallet that stays behind a line hits a puck, which slides on the ice and shall come to rest at a place beyond."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.mallet, self.puck, self.speed]).astype(np.float32)
        return {"observation": state, "achieved_goal": state[2:4].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.puck = self.np_random.uniform([0.0, -0.1], [0.1, 0.1])
        self.speed = np.zeros(2)
        self.mallet = self.puck - [0.2, 0] + self.np_random.uniform(-0.05, 0.05, 2)
        distance, angle = self.np_random.uniform(0.4, 1.0), self.np_random.uniform(-0.4, 0.4)
        self.goal = self.puck + distance * np.array([np.cos(angle), np.sin(angle)])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        before = self.mallet
        self.mallet = np.clip(self.mallet + 0.12 * np.clip(action, -1, 1), [-0.5, -0.5], [0.2, 0.5])
        fast = np.linalg.norm(self.speed)
        self.speed = self.speed * max(0.0, 1 - SLOWING / max(fast, 1e-9))
        self.puck = self.puck + self.speed
        away = self.puck - self.mallet
        distance = np.linalg.norm(away)
        if distance < CONTACT:
            normal = away / max(distance, 1e-6)
            push = (self.mallet - before) @ normal - self.speed @ normal
            self.speed = self.speed + max(push, 0.0) * normal
            self.puck = self.mallet + normal * CONTACT
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.12).astype(np.float32)


def ice_script() -> Any:
    is_hit = False

    def act(observation: Any) -> Any:
        nonlocal is_hit
        mallet, puck, speed = np.split(observation["observation"], 3)
        goal = observation["desired_goal"]
        if is_hit or np.linalg.norm(speed) > 0.01:
            return np.zeros(2, np.float32)
        to = goal - puck
        distance = np.linalg.norm(to)
        ahead = to / distance
        gap = -(mallet - puck) @ ahead - CONTACT
        across = (mallet - puck) @ np.array([-ahead[1], ahead[0]])
        if -0.001 < gap < 0.02 and abs(across) < 0.01:
            speeds = np.linspace(0, 0.12, 241)
            slides = speeds - gap + speeds**2 / (2 * SLOWING) - speeds / 2  # how far the puck goes for each speed
            is_hit = True
            return (ahead * speeds[np.argmin(np.abs(slides - distance))] / 0.12).astype(np.float32)
        target = puck - ahead * (CONTACT + 0.01)
        move = target - mallet
        if abs(across) > 0.02 and gap < 0.02:
            move = around(mallet, puck, goal, CONTACT * 1.1, 0.04)
        return np.clip(move / 0.12, -0.4, 0.4).astype(np.float32)

    return act


FRICTION = 0.0025  # speed that the disc loses in a step
MOUTH, DEPTH = 0.09, 0.05  # half the width of the cue, and its distance from the centre of the disc when they touch


class Shuffleboard(gymnasium.Env):
    """A cue drives a disc from behind. The disc must come to rest on a mark far up the court, where the cue cannot go."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(8, dtype=np.float64), real(2, dtype=np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.cue, self.disc, self.speed, self.glide])
        return {"observation": state, "achieved_goal": self.disc.copy(), "desired_goal": self.mark.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self.cue, self.speed = np.array([draw(-0.3, 0.3), draw(-0.2, -0.1)]), np.zeros(2)
        self.disc, self.glide = np.array([draw(-0.2, 0.2), draw(-0.03, 0.05)]), np.zeros(2)
        self.mark = np.array([draw(-0.3, 0.3), draw(0.5, 1.0)])
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        before, gap = self.cue, self.disc - self.cue
        self.speed = 0.5 * self.speed + 0.04 * np.clip(action, -1, 1)
        self.cue = np.clip(self.cue + self.speed, [-0.4, -0.25], [0.4, 0.3])
        self.speed = self.cue - before
        self.disc = self.disc + self.glide
        across, ahead = self.disc - self.cue
        if abs(across) < MOUTH and gap[1] >= DEPTH - 1e-9 and ahead < DEPTH:
            self.disc[1] = self.cue[1] + DEPTH
            self.glide = self.speed.copy()
        else:
            fast = np.sqrt(self.glide @ self.glide)
            self.glide = self.glide * max(0.0, 1 - FRICTION / (fast + 1e-12))
        inside = np.clip(self.disc, [-0.6, -0.3], [0.6, 1.4])
        self.glide = np.where(inside == self.disc, self.glide, 0.0)
        self.disc = inside
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1) <= 0.15, 0.0, -1.0)


def shuffle_script() -> Any:
    is_gone = False

    def act(observation: Any) -> Any:
        nonlocal is_gone
        cue, disc, speed, glide = np.split(observation["observation"], 4)
        to = observation["desired_goal"] - disc
        distance = np.linalg.norm(to)
        wish = np.sqrt(2 * FRICTION * max(distance - 0.05, 0.02)) * to / distance
        is_touching = glide.any() and abs(disc[1] - cue[1] - DEPTH) < 1e-6
        is_gone = is_gone or bool(is_touching and (glide - wish) @ to >= -0.08 * (wish @ to))
        if is_gone:
            return np.array([0, -1], np.float32)
        across, ahead = disc - cue
        drive = 0.99 * wish if is_touching else np.array([0.3 * across, 0.03])
        if not is_touching and (abs(across) > 0.03 or abs(speed[0]) > 0.01):  # behind the disc first
            drive = np.array([0.5 * across, 0.5 * (ahead - 0.17)])
        return np.clip((drive - 0.5 * speed) / 0.04, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("IceShot-v0", "hit", "closed", IceShot, 40, ice_script, budget=20_000),
    Task("Shuffleboard-v0", "hit", "closed", Shuffleboard, 70, shuffle_script, budget=20_000),
)
