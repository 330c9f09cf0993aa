"""Replace the rewards of an environment by those of its compute_reward."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from .goal_functions import find_reward
from .random_play import Environment, numeric_info
from .sample_goals import sample_goals


class RecomputedReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Return compute_reward of the goals of each step as its reward, whatever `step` of the environment returns.

    Goals are the achieved one after the step and the desired one before it, as in a replay buffer.
    env: a goal environment. It is reset; reset it again before the next step.
    Raises GoalEnvError if compute_reward cannot be used.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._compute_reward, _ = find_reward(env, sample_goals(env))
        self._desired_goal = np.zeros(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._desired_goal = np.array(observation["desired_goal"])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment. The reward is that of compute_reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        numbers = {key: values[0] for key, values in numeric_info([info]).items()}
        reward = self._compute_reward(observation["achieved_goal"], self._desired_goal, numbers)
        self._desired_goal = np.array(observation["desired_goal"])
        return observation, float(reward), terminated, truncated, info
