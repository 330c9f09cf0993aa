"""Conversion of Stable-Baselines3's spaces and samples."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from ..errors import CastError, ShapeError
from ..records import Array, Batch


def as_box(space: Any, shape: tuple[int, ...]) -> spaces.Box:
    """Return a Box for the values of a space as SB3 stores them."""
    if isinstance(space, spaces.Box):
        return spaces.Box(space.low.reshape(shape), space.high.reshape(shape), shape, space.dtype.type)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape, np.int8)
    low = np.asarray(space.start)
    high = low + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
    return spaces.Box(low.reshape(shape), high.reshape(shape), shape, np.int64)


def reshaped(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` as an array of this shape; raise ShapeError if it has another number of elements."""
    array = np.asarray(value)
    if array.size != math.prod(shape):
        raise ShapeError(f"Expected shape {shape} for `{name}`, got {array.shape}.")
    return array.reshape(shape)


def as_flags(name: str, value: Any, n_envs: int) -> Array:
    """Return (n_envs,) bool; raise ShapeError, or CastError for anything but true and false, such as NaN."""
    given = reshaped(name, value, (n_envs,))
    flags = given.astype(np.bool_)
    if given.dtype != np.bool_ and (flags != given).any():
        raise CastError(f"`{name}` must be true or false for each environment, got {given}.")
    return flags


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

    def tensor(array: Array) -> torch.Tensor:
        return torch.from_numpy(array) if device.type == "cpu" else torch.from_numpy(array).to(device)

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
