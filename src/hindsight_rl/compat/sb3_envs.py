"""Environments of Stable-Baselines3: rewards, normalization, time limit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from ..errors import GoalEnvError, OptionError
from ..records import OBSERVATION_KEYS, Array

STEP_NUMBER = "number"  # the info key under which a step's number is stored, if infos are kept


class GoalVecNormalize(VecNormalize):
    """VecNormalize with one set of statistics for achieved and desired goals, since relabelling exchanges them.

    Raises OptionError if only one of the two is normalized.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.norm_obs:
            return
        normalized = [key for key in OBSERVATION_KEYS[1:] if key in self.obs_rms]
        if len(normalized) == 1:
            raise OptionError(f"`norm_obs_keys` has {normalized[0]} only. Normalize both goals, or none.")
        if normalized:
            self.obs_rms["desired_goal"] = self.obs_rms["achieved_goal"]


class EnvReward:
    """Compute rewards with the `compute_reward` of an SB3 environment.

    env: the environment; set it before a call.
    keep_infos: pass `compute_reward` the info of each step; otherwise it gets empty dicts, as in SB3.
    """

    def __init__(self, keep_infos: bool) -> None:
        self.env: VecEnv | None = None
        self.keep_infos = keep_infos
        self.infos: dict[int, dict[str, Any]] = {}  # by step number
        self.is_scalar = False  # whether `compute_reward` takes one goal at a time

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything but the environment, as in SB3."""
        return vars(self) | {"env": None}

    def __call__(self, achieved_goal: Array, goal: Array, info: Mapping[str, Array]) -> Array:
        """Return the rewards, (B,). achieved_goal, goal: (B, ...). Raises GoalEnvError without an environment."""
        infos: list[dict[str, Any]] = [{}] * len(goal)
        if self.keep_infos:
            infos = [dict(self.infos[number]) for number in info[STEP_NUMBER].astype(np.int64).tolist()]
        if not self.is_scalar:
            reward = np.asarray(self._compute(achieved_goal, goal, infos))
            if reward.size == len(goal):
                return reward.reshape(len(goal))
            if reward.size != 1:
                return reward  # of a wrong shape, which the buffer reports
            self.is_scalar = True
            warnings.warn(
                f"compute_reward returned one number for {len(goal)} goals. It is called for each goal now, which is slow. "
                f"Let it take arrays with a leading axis and return one number for each goal.",
                stacklevel=2,
            )
        rewards = [self._compute(*each) for each in zip(achieved_goal, goal, infos, strict=True)]
        return np.array(rewards, np.float64).reshape(len(goal))

    def _compute(self, achieved_goal: Array, goal: Array, info: Any) -> Any:
        if self.env is None:
            raise GoalEnvError("The buffer has no environment to compute rewards with. Call set_env(env).")
        return self.env.env_method("compute_reward", achieved_goal, goal, info, indices=[0])[0]


def as_vec_env(env: Any) -> VecEnv | None:
    """Return `env` as a vector environment."""
    return DummyVecEnv([lambda: env]) if isinstance(env, gymnasium.Env) else env


def time_limit(env: VecEnv | None) -> int | None:
    """Return the time limit that an environment was registered with, if it runs in this process."""
    if env is None or not isinstance(env.unwrapped, DummyVecEnv):
        return None
    return getattr(env.unwrapped.envs[0].spec, "max_episode_steps", None)
