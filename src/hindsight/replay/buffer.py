"""HindsightBuffer: steps in, relabelled batches out. For anybody's learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ..errors import FileError, InputError, OptionError
from ..records import Array, Batch, Episode, GoalSpec
from .files import load_folder, save_folder
from .goals import Strategy
from .sampler import Judge, Sampler
from .staging import OpenEpisodes
from .timeline import Timeline

KIND = "hindsight buffer"


class HindsightBuffer:
    """A replay buffer for goal-conditioned tasks that relabels goals in hindsight (Andrychowicz et al. 2017).

    capacity: transitions kept, the oldest episodes leaving first. observation_space: a Dict space with observation,
    achieved_goal and desired_goal. compute_reward(next_achieved_goal, goal, info) -> (N,), vectorised; info holds an (N,)
    array per name in info_keys. n_sampled_goal: k hindsight goals per real one, a share of k/(k+1) of the samples, each
    decided apart. strategy: future, final, episode, random, or a function (rows, steps_done, steps_left, u) -> goal rows.
    n_envs: how many environments `add` serves at once. seed: a number, or a NumPy Generator to draw from.
    compute_terminated: like compute_reward, for the ends under a new goal; without it they stay as stored.
    episode_length: the usual length, from the time limit. dtype: the widest float that is kept, float32 or float64.
    """

    def __init__(
        self,
        capacity: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        compute_reward: Judge,
        n_sampled_goal: int = 4,
        strategy: str | Strategy = "future",
        n_envs: int = 1,
        seed: int | np.random.Generator = 0,
        compute_terminated: Judge | None = None,
        info_keys: Sequence[str] = (),
        episode_length: int | None = None,
        dtype: str = "float32",
    ) -> None:
        if isinstance(n_envs, bool) or not isinstance(n_envs, int | np.integer) or n_envs < 1:
            raise OptionError(f"n_envs is {n_envs!r}, but a whole number of at least 1 is needed")
        spec = GoalSpec.from_spaces(observation_space, action_space)
        generator = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        self._timeline = Timeline(spec, capacity, episode_length, info_keys, dtype)
        self._open = OpenEpisodes(self._timeline, int(n_envs))
        self._sampler = Sampler(self._timeline, compute_reward, n_sampled_goal, strategy, generator, compute_terminated)

    def __len__(self) -> int:
        """The number of transitions that can be sampled: those of finished episodes."""
        return len(self._timeline)

    @property
    def num_episodes(self) -> int:
        """The number of finished episodes held."""
        return self._timeline.num_episodes

    @property
    def nbytes(self) -> int:
        """All memory that the buffer owns: the ring, the open episodes, scratch."""
        return self._timeline.nbytes + self._open.nbytes + self._sampler.nbytes

    @property
    def her_probability(self) -> float:
        """The share of samples that are relabelled, k/(k+1)."""
        return self._sampler.her_probability

    def add(
        self,
        observation: Mapping[str, Any],
        action: Any,
        reward: Any,
        next_observation: Mapping[str, Any],
        terminated: Any,
        truncated: Any,
        info: Any = None,
    ) -> None:
        self._open.add(observation, next_observation, (action, reward, terminated, truncated), info)

    def add_episode(self, episode: Episode) -> None:
        """Take a whole episode at once; raises as `add`, before anything is written."""
        self._timeline.append(episode)

    def end_open_episodes(self) -> None:
        """Close every open episode as truncated: to be called after resetting environments in the middle of one."""
        self._open.close_all()

    def sample(self, batch_size: int, out: Batch | None = None) -> Batch:
        return self._sampler.sample((_size(batch_size, "batch_size"),), out)

    def sample_many(self, n: int, batch_size: int, out: Batch | None = None) -> Batch:
        return self._sampler.sample((_size(n, "n"), _size(batch_size, "batch_size")), out)

    def state_dict(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays = self._timeline.state() | self._open.state()
        return arrays, {"generator": self._sampler.generator.bit_generator.state}

    def load_state_dict(self, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
        self._timeline.load(arrays)
        self._open.load(arrays)
        self._sampler.generator.bit_generator.state = data["generator"]


def _size(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {value!r}, but a whole number of at least 1 is needed")
    return int(value)
