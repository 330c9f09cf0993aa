"""The names and the arguments of Stable-Baselines3's HerReplayBuffer."""

from __future__ import annotations

import warnings
from enum import StrEnum
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv

from ..errors import GoalEnvError, OptionError, UnknownNameError, nearest
from ..records import OBSERVATION_KEYS
from .sb3_envs import as_vec_env

HER_OBSERVATION_SPACE = spaces.Dict({key: spaces.Box(-np.inf, np.inf, (1,), np.float32) for key in OBSERVATION_KEYS})
REQUIRED_INFO_KEYS = ["is_success"]
OPTIONAL_INFO_KEYS = ["TimeLimit.truncated"]


class GoalSelectionStrategy(StrEnum):
    """Where hindsight goals come from (Andrychowicz et al. 2017). RANDOM: any stored step."""

    FUTURE = "future"
    FINAL = "final"
    EPISODE = "episode"
    RANDOM = "random"


KEY_TO_GOAL_STRATEGY = {strategy.value: strategy for strategy in GoalSelectionStrategy}


def find_strategy(given: Any) -> GoalSelectionStrategy:
    """Return the strategy for a name or a member of either enum; raise UnknownNameError for others."""
    name = str(given if isinstance(given, str) else getattr(given, "name", given)).lower()
    if name not in KEY_TO_GOAL_STRATEGY:
        known = ", ".join(KEY_TO_GOAL_STRATEGY)
        raise UnknownNameError(f"Unknown strategy {given!r}. Choose one of {known}.{nearest(name, KEY_TO_GOAL_STRATEGY)}")
    return KEY_TO_GOAL_STRATEGY[name]


def split_env(env: Any, env_info: Any) -> VecEnv | None:
    """Return the environment in the fourth argument, which older versions called `env_info`; warn if that is given."""
    is_env = isinstance(env, VecEnv | gymnasium.Env | None)
    if env_info is not None or not is_env:
        warnings.warn("`env_info` has no effect. Leave it out.", stacklevel=3)
    return as_vec_env(env) if is_env else None


def check_observation_space(space: spaces.Space[Any]) -> None:
    """Raise GoalEnvError unless `space` is a Dict with exactly the three keys of a goal environment."""
    keys = list(space.spaces) if isinstance(space, spaces.Dict) else [type(space).__name__]
    if set(keys) != set(OBSERVATION_KEYS):
        expected = ", ".join(OBSERVATION_KEYS)
        raise GoalEnvError(
            f"Expected an observation space with {expected}, got {', '.join(keys)}. Put the rest into observation."
        )


def check_arguments(optimize_memory_usage: bool, copy_info_dict: bool, n_steps: int, online_sampling: bool) -> None:
    """Raise OptionError for arguments that are not supported."""
    if optimize_memory_usage:
        raise OptionError("`optimize_memory_usage` must be False, as in SB3. No observation is stored twice anyway.")
    if not isinstance(copy_info_dict, bool):
        raise OptionError(f"`copy_info_dict` must be True or False, got {copy_info_dict!r}. Pass the others by name.")
    if n_steps != 1 and "discounts" not in DictReplayBufferSamples._fields:
        raise OptionError(f"`n_steps` is {n_steps}, but this stable-baselines3 has no n-step returns. Upgrade it.")
    if n_steps != 1 and not online_sampling:
        raise OptionError(f"`n_steps` is {n_steps}, but online_sampling=False supports one step only. Change one of them.")
