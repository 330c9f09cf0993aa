"""Conversion of Stable-Baselines3's arguments, spaces and samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ..errors import GoalEnvError, UnknownNameError, nearest
from ..records import OBSERVATION_KEYS, Array, Batch
from ..replay.buffer import HindsightBuffer
from .sb3_envs import as_vec_env


class GoalSelectionStrategy(StrEnum):
    """Where hindsight goals come from (Andrychowicz et al. 2017). RANDOM: any stored step."""

    FUTURE = "future"
    FINAL = "final"
    EPISODE = "episode"
    RANDOM = "random"


MOST_AHEAD = 8  # more batches at once save little time
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


def as_box(space: Any, shape: tuple[int, ...]) -> spaces.Box:
    """Return a Box for the values of a space as SB3 stores them."""
    if isinstance(space, spaces.Box):
        return spaces.Box(space.low.reshape(shape), space.high.reshape(shape), shape, space.dtype.type)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape, np.int8)
    low = np.asarray(space.start)
    high = low + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
    return spaces.Box(low.reshape(shape), high.reshape(shape), shape, np.int64)


def as_stored_actions(space: Any, shape: tuple[int, ...]) -> spaces.Box:
    """Return a Box for actions. SB3 scales float actions to -1 and 1 before it stores them, whatever their space says."""
    box = as_box(space, shape)
    return spaces.Box(-np.inf, np.inf, shape, box.dtype.type) if box.dtype.kind == "f" else box


class BatchesAhead:
    """Batches of a buffer, drawn and converted several at once. That takes less time than one after another.

    They are as good as batches drawn later, because the buffer changes only when an episode ends; then call `clear`. The
    number of batches doubles from 1 to MOST_AHEAD after each change, so at most half of them are drawn in vain. They are
    converted together too: right after an update the caches hold neither the code nor the batch.

    keys, n_steps: see `to_samples`.
    """

    def __init__(self, buffer: HindsightBuffer, keys: Iterable[str], n_steps: int) -> None:
        self._buffer, self._keys, self._n_steps = buffer, tuple(keys), n_steps
        self.clear()

    def clear(self) -> None:
        """Forget the batches."""
        self._ready: list[tuple[Batch, DictReplayBufferSamples | None]] = []
        self._kind: Any = None
        self._count = 1

    def next(
        self, batch_size: int, env: VecEnv | None, device: torch.device, normalizer: VecNormalize | None
    ) -> DictReplayBufferSamples:
        """Return a batch that was not returned before. env: computes the rewards. normalizer: see `to_samples`."""
        if self._kind != (batch_size, env, device):
            self.clear()
        if not self._ready:
            drawn = self._buffer.sample_many(self._count, batch_size)
            batches = [drawn[i] for i in range(self._count)]
            self._ready = [(batch, self._convert(batch, device, None) if normalizer is None else None) for batch in batches]
            self._kind, self._count = (batch_size, env, device), min(2 * self._count, MOST_AHEAD)
        batch, samples = self._ready.pop()
        if normalizer is None and samples is not None:
            return samples
        return self._convert(batch, device, normalizer)  # its statistics change with every step

    def _convert(self, batch: Batch, device: torch.device, normalizer: VecNormalize | None) -> DictReplayBufferSamples:
        return to_samples(batch, self._keys, device, normalizer, self._n_steps)


def to_samples(
    batch: Batch, keys: Iterable[str], device: torch.device, env: VecNormalize | None, n_steps: int
) -> DictReplayBufferSamples:
    """Return the arrays of a new batch as tensors, on the CPU without a copy.

    keys: order of the keys of observations. env: normalizes observations and rewards. n_steps: as the batch has.
    """
    obs = {"observation": batch.observation, "achieved_goal": batch.achieved_goal, "desired_goal": batch.goal}
    next_obs = {"observation": batch.next_observation, "achieved_goal": batch.next_achieved_goal}
    next_obs["desired_goal"] = batch.goal.copy()
    reward = batch.reward[:, None].astype(np.float32, copy=False)
    if env is not None:
        obs, next_obs = env.normalize_obs(obs), env.normalize_obs(next_obs)
        # SB3 clips the reward of one step, so the sum of n rewards is clipped as their mean
        reward = n_steps * env.normalize_reward(reward / n_steps).astype(np.float32)
    is_on_cpu = device.type == "cpu"  # the comparison takes half as long as a conversion

    def tensor(array: Array) -> torch.Tensor:
        return torch.from_numpy(array) if is_on_cpu else torch.from_numpy(array).to(device)

    samples = DictReplayBufferSamples(
        observations={key: tensor(obs[key]) for key in keys},
        actions=tensor(batch.action),
        next_observations={key: tensor(next_obs[key]) for key in keys},
        dones=tensor(batch.terminated[:, None].astype(np.float32)),
        rewards=tensor(reward),
    )
    if batch.discount is None:
        return samples
    return samples._replace(discounts=tensor(batch.discount[:, None].astype(np.float32)))
