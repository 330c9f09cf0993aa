"""Conversion of Stable-Baselines3's spaces, samples and episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from ..errors import InputError
from ..records import Array, Batch, Episode
from ..replay.strategies import goal_rows

Transition = tuple[Any, ...]  # obs, action, reward, next_obs, done, and the info if there is one


def as_box(space: Any, shape: tuple[int, ...]) -> spaces.Box:
    """Return a Box for the values of a space as SB3 stores them."""
    if isinstance(space, spaces.Box):
        return spaces.Box(space.low.reshape(shape), space.high.reshape(shape), shape, space.dtype.type)
    if isinstance(space, spaces.MultiBinary):
        return spaces.Box(0, 1, shape, np.int8)
    low = np.asarray(space.start)
    high = low + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
    return spaces.Box(low.reshape(shape), high.reshape(shape), shape, np.int64)


def to_samples(
    batch: Batch, keys: Sequence[str], device: torch.device, env: VecNormalize | None, n_steps: int
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


def make_episode(
    transitions: Sequence[Transition], obs_shape: Mapping[str, tuple[int, ...]], action_dim: int, is_success: bool | None
) -> Episode:
    """Return an Episode; the `done` of its last transition means terminated. Raises InputError without a transition."""
    if not transitions:
        raise InputError("An episode needs at least one transition.")
    observations, steps = [step[0] for step in transitions] + [transitions[-1][3]], len(transitions)
    rows = {key: np.array([each[key] for each in observations]).reshape(-1, *shape) for key, shape in obs_shape.items()}
    return Episode(
        observation=rows["observation"],
        achieved_goal=rows["achieved_goal"],
        desired_goal=rows["desired_goal"],
        action=np.array([step[1] for step in transitions]).reshape(steps, action_dim),
        reward=np.array([step[2] for step in transitions]).reshape(steps),
        terminated=bool(transitions[-1][4]),
        success=is_success,
    )


def goals_of_episode(
    transitions: Sequence[Transition], step: int, count: int, strategy: str, rng: np.random.Generator
) -> Array:
    """Return hindsight goals for one step of an episode, (count, *goal). strategy: "future", "final" or "episode"."""
    row, u = np.full(count, step), rng.random(count)
    chosen = goal_rows(strategy, row, row, len(transitions) - row, u, row)
    return np.array([transitions[i - 1][3]["achieved_goal"] for i in chosen])
