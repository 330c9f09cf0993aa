"""What Stable-Baselines3's environments and spaces are to our buffer: who judges, and what its arrays hold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from ..errors import GoalEnvError, OptionError
from ..records import OBSERVATION_KEYS, Array

NUMBER = "number"  # the column that says which info belongs to a row, where infos are kept


class GoalVecNormalize(VecNormalize):
    """VecNormalize in which achieved and desired goals share their statistics, as one stands in for the other.

    Raises OptionError where only one of the two is normalised.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.norm_obs:
            return
        normalised = [key for key in OBSERVATION_KEYS[1:] if key in self.obs_rms]
        if len(normalised) == 1:
            raise OptionError(f"norm_obs_keys has {normalised[0]} alone of the two goals: normalise both, or none")
        if normalised:
            self.obs_rms["desired_goal"] = self.obs_rms["achieved_goal"]


class RewardFunction:
    """Asks an SB3 environment for the rewards of steps under new goals, as SB3 does, and makes an array of the answer.

    env: where to ask. infos: the info of each kept step by its number; None where none are kept.
    """

    def __init__(self, observation_space: spaces.Dict, keeps_infos: bool) -> None:
        self.env: VecEnv | None = None
        self.infos: dict[int, dict[str, Any]] | None = {} if keeps_infos else None
        self._dtype = observation_space["desired_goal"].dtype
        self._goes_row_by_row = False

    def forget(self) -> None:
        """Another environment is to be asked: it may well take many goals at once."""
        self._goes_row_by_row = False

    def __call__(self, achieved_goal: Array, goal: Array, info: Mapping[str, Array]) -> Array:
        """The rewards, (B,), of achieving `achieved_goal` where `goal` is asked, both (B, ...).

        Raises GoalEnvError without an environment. One that answers with a single number is asked goal by goal.
        """
        if self.env is None:
            raise GoalEnvError(
                "the buffer has no environment to compute the rewards of new goals with: give it one, set_env(env)"
            )
        if self.infos is None:
            infos: list[dict[str, Any]] = [{}] * len(goal)
        else:
            infos = [dict(self.infos[number]) for number in info[NUMBER].astype(np.int64).tolist()]
        goals = as_declared(achieved_goal, self._dtype), as_declared(goal, self._dtype)
        if not self._goes_row_by_row:
            reward = np.asarray(_ask(self.env, *goals, infos))
            if reward.size != 1 or len(goal) == 1:
                return reward.reshape(len(goal)) if reward.size == len(goal) else reward
            self._goes_row_by_row = True
            warnings.warn(
                f"compute_reward returned one number for {len(goal)} goals: it is asked goal by goal from now on, which is "
                f"slow; let it take arrays with a leading axis and return a number for each",
                stacklevel=2,
            )
        rewards = [_ask(self.env, *each) for each in zip(*goals, infos, strict=True)]
        return np.array(rewards, np.float64).reshape(len(goal))


def _ask(env: VecEnv, achieved_goal: Array, goal: Array, info: Any) -> Any:
    return env.env_method("compute_reward", achieved_goal, goal, info, indices=[0])[0]


def is_small(kept: np.dtype[Any], declared: Any) -> bool:
    """Whether values are integers that are kept smaller than their space says."""
    return kept.kind in "iu" and kept != declared


def as_declared(values: Array, dtype: Any) -> Array:
    """Integers that are kept smaller than their space says, as their space says."""
    return values.astype(dtype) if is_small(values.dtype, dtype) else values


def as_box(space: Any, shape: tuple[int, ...]) -> spaces.Box:
    """A box of the values that a space has in SB3's arrays, of the smallest integer that holds them where they are few."""
    if isinstance(space, spaces.Box):
        return spaces.Box(space.low.reshape(shape), space.high.reshape(shape), shape, space.dtype.type)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape, np.int8)
    low = np.asarray(space.start)
    high = low + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
    dtype = np.result_type(np.min_scalar_type(low.min()), np.min_scalar_type(high.max()))
    return spaces.Box(low.reshape(shape), high.reshape(shape), shape, dtype.type if dtype.itemsize < 8 else np.int64)


def as_vec_env(env: Any) -> VecEnv | None:
    """`env` as a vector environment."""
    return DummyVecEnv([lambda: env]) if isinstance(env, gymnasium.Env) else env


def time_limit(env: VecEnv | None) -> int | None:
    """The time limit that an environment of this process was registered with; others cannot be asked without risk."""
    if env is None or not isinstance(env.unwrapped, DummyVecEnv):
        return None
    return getattr(env.unwrapped.envs[0].spec, "max_episode_steps", None)
