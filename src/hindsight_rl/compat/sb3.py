"""A drop-in replacement for Stable-Baselines3's HerReplayBuffer: change one import.

    from hindsight_rl.compat.sb3 import HerReplayBuffer

    model = SAC("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer,
                replay_buffer_kwargs=dict(n_sampled_goal=4, goal_selection_strategy="future"))

It works with every off-policy algorithm of stable-baselines3 (2.3 or newer) and sb3-contrib. Differences from SB3's buffer:

- float64 observations are stored and sampled as float32 (dtype="float64" keeps them); networks read float32.
- Each sample is relabelled independently with probability `her_ratio`; SB3 relabels exactly int(her_ratio * batch_size).
- Up to eight batches are drawn at once. If `compute_reward` itself changes, batches have the new rewards after the next end
  of an episode, or after `set_env`.
- Until the first episode has ended, samples come from open episodes, with goals achieved so far.
- If a new episode starts without a `done` (a second `learn`), the open episode is truncated. `reset` removes everything.
- `next_observations["desired_goal"]` of a sample equals its `observations["desired_goal"]`.

Without pickle and without an environment: `model.replay_buffer.save_transitions(path)` writes arrays and JSON, and
`HerReplayBuffer(size, observation_space, action_space).load_transitions(path)` reads them; `set_env` adds the environment
that computes rewards. To act with a saved model, no environment is needed either:
`SAC.load(path, replay_buffer_class=None, replay_buffer_kwargs={}, buffer_size=1)`. To save only its weights without
pickle, use `safetensors.torch.save_model(model.policy, file)` and `load_model`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer as SB3HerReplayBuffer
from stable_baselines3.common.preprocessing import get_action_dim, get_obs_shape
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ..errors import FileError, InputError, OptionError
from ..options import FloatType, RelabelTerminated, ReplayOptions
from ..records import OBSERVATION_KEYS, Array
from ..replay.buffer import HindsightBuffer
from ..replay.rows import whole_number
from ..storage import load_arrays, save_arrays
from .sb3_convert import (
    KEY_TO_GOAL_STRATEGY,
    STEP_NUMBER,
    BatchesAhead,
    EnvReward,
    GoalSelectionStrategy,
    GoalVecNormalize,
    StorageArrays,
    as_box,
    as_stored_actions,
    as_vec_env,
    check_observation_space,
    find_strategy,
    split_env,
    time_limit,
    to_samples,
)

__all__ = [
    "KEY_TO_GOAL_STRATEGY",
    "GoalSelectionStrategy",
    "GoalVecNormalize",
    "HerReplayBuffer",
]
SB3_BUFFER_KIND = "replay buffer of stable-baselines3"


def _array(name: str) -> Any:
    """Return a read-only property: the array `name` of SB3's storage, made when it is read."""
    return property(lambda buffer: buffer._arrays.array(name))


class HerReplayBuffer(SB3HerReplayBuffer):
    """A drop-in replacement for SB3's HerReplayBuffer around a `HindsightBuffer`; the module lists the differences.

    buffer_size: transitions of all environments together.
    env: the vector environment that computes rewards; the algorithm passes it.
    device, n_envs, handle_timeout_termination, n_sampled_goal, copy_info_dict: as in SB3.
    optimize_memory_usage: must be False, as in SB3.
    goal_selection_strategy: "future", "final", "episode", "random", or a member of our enum or SB3's.

    Arguments of older versions:
    wrapped_env: computes rewards if `sample` is called without an environment, or if `env` is missing.
    online_sampling: False draws the goals once, when an episode ends.
    max_episode_length: longer episodes are truncated there.
    env_info: has no effect and warns; may also stand in the place of `env`.

    Additional arguments:
    n_steps, gamma: n-step returns under the goal of each sample; `gamma` must be that of the algorithm.
    relabel_terminated: "keep" (as SB3, the default), "never" or "success" (with `success_reward`), see `HindsightBuffer`.
    dtype: "float32" or "float64", the widest stored float.

    An episode longer than the buffer is stored in pieces. Raises OptionError, UnknownNameError and GoalEnvError.
    """

    env: VecEnv | None
    observations, next_observations = _array("observations"), _array("next_observations")
    actions, rewards, dones, timeouts = _array("actions"), _array("rewards"), _array("dones"), _array("timeouts")
    ep_length = _array("ep_length")
    pos = property(lambda buffer: buffer._arrays.n_added % buffer.buffer_size)
    full = property(lambda buffer: buffer._arrays.n_added >= buffer.buffer_size)
    _current_ep_start = property(lambda buffer: np.array(buffer._arrays.starts) % buffer.buffer_size)

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        env: Any = None,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_sampled_goal: int = 4,
        goal_selection_strategy: str | GoalSelectionStrategy | Any = "future",
        copy_info_dict: bool = False,
        *,
        wrapped_env: Any = None,
        online_sampling: bool = True,
        max_episode_length: int | None = None,
        env_info: Any = None,
        n_steps: int = 1,
        gamma: float = 0.99,
        relabel_terminated: RelabelTerminated | None = None,
        success_reward: float = 0.0,
        dtype: FloatType = "float32",
    ) -> None:
        # SB3's own constructor is not called: it would allocate the arrays that are properties here.
        self.env, self.wrapped_env = split_env(env, env_info), as_vec_env(wrapped_env)
        check_observation_space(observation_space)
        if optimize_memory_usage:
            raise OptionError("`optimize_memory_usage` must be False, as in SB3. No observation is stored twice anyway.")
        self.n_envs = whole_number("n_envs", n_envs, 1)
        self.buffer_size = max(int(buffer_size) // self.n_envs, 1)
        self.observation_space, self.action_space = observation_space, action_space
        self.obs_shape: Any = get_obs_shape(observation_space)
        self.action_dim, self.device = get_action_dim(action_space), get_device(device)
        self.optimize_memory_usage, self.handle_timeout_termination = False, handle_timeout_termination
        self.n_sampled_goal, self.copy_info_dict, self.online_sampling = n_sampled_goal, copy_info_dict, online_sampling
        self.goal_selection_strategy = find_strategy(goal_selection_strategy)
        if max_episode_length is not None:
            max_episode_length = whole_number("max_episode_length", max_episode_length, 1)
        self.max_episode_length, self.n_steps, self.gamma = max_episode_length, n_steps, gamma
        self.relabel_terminated, self.success_reward, self.dtype = relabel_terminated, success_reward, dtype
        self._discrete = [key for key in OBSERVATION_KEYS if isinstance(observation_space[key], spaces.Discrete)]
        seed = np.random.randint(2**32, size=4, dtype=np.uint32)  # noqa: NPY002 - SB3's set_random_seed seeds this state
        self._rng = np.random.default_rng(seed)
        self._longest = min(max_episode_length or self.buffer_size * self.n_envs, self.buffer_size * self.n_envs)
        self._time_limit = max_episode_length or time_limit(self.env or self.wrapped_env)
        self.reset()
        self.her_ratio = self._buffer.her_probability

    def reset(self) -> None:
        """Remove everything."""
        self._reward = EnvReward(self.copy_info_dict)
        self._use(self._make_buffer())

    def _use(self, buffer: HindsightBuffer, state: Mapping[str, Array] | None = None) -> None:
        """Store steps in `buffer` from now on. state: what SB3's arrays need if it has contents."""
        types = {key: (self.obs_shape[key], self.observation_space[key].dtype) for key in OBSERVATION_KEYS}
        action_dtype = np.float32 if self.action_space.dtype == np.float64 else self.action_space.dtype
        arrays = StorageArrays(buffer, {**types, "actions": ((self.action_dim,), action_dtype)})
        if state is not None:
            arrays.load(state)
        self._buffer, self._arrays = buffer, arrays
        self._ahead = BatchesAhead(buffer, self.obs_shape, self.n_steps)

    def _make_buffer(self) -> HindsightBuffer:
        options = ReplayOptions(
            n_sampled_goal=self.n_sampled_goal,
            strategy=self.goal_selection_strategy.value,
            relabel_at="sample" if self.online_sampling else "episode_end",
            relabel_terminated=self.relabel_terminated,
            n_steps=self.n_steps,
            info_keys=(STEP_NUMBER,) if self.copy_info_dict else (),
            dtype=self.dtype,
        )
        return HindsightBuffer(
            self.buffer_size * self.n_envs,
            spaces.Dict({key: as_box(self.observation_space[key], self.obs_shape[key]) for key in OBSERVATION_KEYS}),
            as_stored_actions(self.action_space, (self.action_dim,)),
            self._reward,
            n_envs=self.n_envs,
            autoreset="disabled",  # SB3 puts the last observation of an episode back
            seed=self._rng,
            options=options,
            success_reward=self.success_reward,
            episode_length=self._time_limit,
            discount=self.gamma,
        )

    def add(
        self,
        obs: Mapping[str, Any],
        next_obs: Mapping[str, Any],
        action: Any,
        reward: Any,
        done: Any,
        infos: Sequence[dict[str, Any]],
    ) -> None:
        """Store one step of every environment. At the end of an episode `next_obs` is its last observation, as in SB3.

        Raises what `HindsightBuffer.add` raises, for NaN or wrong shapes. Nothing is stored then.
        """
        open_episodes = self._buffer.open_episodes
        ended = np.asarray(done)
        if ended.shape != (self.n_envs,) or (ended.dtype != np.bool_ and not ((ended == 0) | (ended == 1)).all()):
            raise InputError(f"`done` must be true or false for each of {self.n_envs} environments, got {done}.")
        ended = ended.astype(np.bool_, copy=False)
        truncated = ended | (open_episodes.steps >= self._longest - 1)
        terminated = ended & ~self._timeouts(infos) if ended.any() else ended
        if self._discrete:
            obs, next_obs = self._with_axis(obs), self._with_axis(next_obs)
        action = np.asarray(action)
        if action.size == self.n_envs * self.action_dim:  # as in SB3; the buffer refuses another size
            action = action.reshape(self.n_envs, self.action_dim)
        info = None
        if self.copy_info_dict:  # if the step is refused, the next one overwrites its infos
            numbers = self._arrays.next_numbers()
            self._reward.infos |= zip(numbers, copy.deepcopy(list(infos)), strict=True)
            info = {STEP_NUMBER: np.array(numbers, np.float64)}
        self._buffer.add(obs, action, reward, next_obs, terminated, truncated, info)
        self._arrays.n_added += 1
        if open_episodes.closed:
            self._update_arrays()

    def _timeouts(self, infos: Sequence[dict[str, Any]]) -> Array:
        """Return which environments reached a time limit, (n_envs,) bool."""
        timeouts = [self.handle_timeout_termination and bool(info.get("TimeLimit.truncated", False)) for info in infos]
        return np.array(timeouts, np.bool_)

    def _with_axis(self, obs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `obs` with the last axis that SB3 gives to values of Discrete spaces."""
        return {**obs, **{key: np.reshape(obs[key], (self.n_envs, -1)) for key in self._discrete}}

    def _update_arrays(self) -> None:
        self._ahead.clear()
        for number in self._arrays.update():
            self._reward.infos.pop(number, None)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> DictReplayBufferSamples:
        """Return a batch of tensors. env: normalizes observations and rewards.

        Raises NothingToSampleError if no step is stored, and GoalEnvError if rewards cannot be computed.
        """
        self._reward.env = self._reward_env(env)
        if len(self._buffer) > 0:
            return self._ahead.next(batch_size, self._reward.env, self.device, env)
        return to_samples(self._buffer.sample_open(batch_size), self.obs_shape, self.device, env, self.n_steps)

    def _reward_env(self, env: VecNormalize | None) -> VecEnv | None:
        """Return the environment that computes the rewards for `sample(env=env)`."""
        if self.wrapped_env is not None and (env is None or self.env is None):
            return self.wrapped_env
        return env if self.env is None else self.env

    def set_env(self, env: Any) -> None:
        """Compute rewards with `env` from now on. Unlike SB3's, it may replace an environment, as after model.set_env."""
        self.env = as_vec_env(env)
        self._reward.is_scalar = False
        self._ahead.clear()

    def truncate_last_trajectory(self) -> None:
        """Truncate open episodes, with a warning if there are any. SB3 calls it after loading a buffer."""
        if self._buffer.open_episodes.steps.any():
            warnings.warn(
                "The last trajectory in the replay buffer will be truncated. If the environment continues where it was "
                "when the buffer was saved, load with truncate_last_traj=False.",
                stacklevel=2,
            )
            self._buffer.end_open_episodes()
            self._update_arrays()

    def save_transitions(self, path: str | Path) -> None:
        """Write all steps, open episodes too, to `path`: arrays and JSON, atomically. No pickle.

        Raises InputError if infos are kept, which may be any objects, and OSError if the disk fails.
        """
        if self.copy_info_dict:
            raise InputError("copy_info_dict=True keeps Python objects. Only save_replay_buffer (pickle) can save them.")
        save_arrays(Path(path), SB3_BUFFER_KIND, *self._contents())

    def _contents(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and JSON. Batches drawn ahead are forgotten: this buffer and its copy continue alike."""
        self._ahead.clear()
        arrays, data = self._buffer.state_dict()
        return arrays | self._arrays.state(), data

    def load_transitions(self, path: str | Path) -> HerReplayBuffer:
        """Replace the contents by those saved at `path` and return the buffer. It continues with the same samples.

        Sizes, spaces and dtype must be equal. Raises FileError. Reading runs no code.
        """
        arrays, data = load_arrays(Path(path), SB3_BUFFER_KIND)
        try:
            self._load(arrays, data)
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise FileError(f"The buffer at {path} does not fit, or is damaged: {problem}") from None
        return self

    def _load(self, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
        """Make a new storage with these contents; the old one stays if they are refused."""
        buffer = self._make_buffer()
        buffer.load_state_dict(arrays, data)
        self._use(buffer, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything but the environments, as in SB3."""
        left_out = ("env", "wrapped_env", "_buffer", "_arrays", "_ahead")
        return {name: value for name, value in vars(self).items() if name not in left_out} | {"contents": self._contents()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the buffer without an environment; call `set_env` before `sample`."""
        contents = state.pop("contents")
        self.__dict__.update(state, env=None, wrapped_env=None)
        self._load(*contents)
