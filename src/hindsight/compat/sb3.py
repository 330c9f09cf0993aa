"""Stable-Baselines3's HerReplayBuffer, with our store inside: change one import.

    from hindsight.compat.sb3 import HerReplayBuffer

    model = SAC("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer,
                replay_buffer_kwargs=dict(n_sampled_goal=4, goal_selection_strategy="future"))

Works with every off-policy algorithm of stable-baselines3 (2.3 or newer) and sb3-contrib. What differs from SB3's own:

- Floats are kept and sampled as float32 where a space is float64 (dtype="float64" keeps them); networks read float32.
- Each sample is relabelled apart, with the probability `her_ratio`; SB3 relabels exactly int(her_ratio * batch_size).
- Open episodes are sampled, with the goals reached so far, as long as none has ended; afterwards finished ones alone.
- A reset that nobody reported (a second `learn`) closes the open episode as cut off; `reset` forgets everything.
- `next_observations["desired_goal"]` of a sample is its goal, also where the environment asked for another meanwhile.

Saving and loading without pickle and without an environment: `model.replay_buffer.save_transitions(folder)` writes arrays
and JSON; `HerReplayBuffer(size, observation_space, action_space).load_transitions(folder)` reads them, on any machine, and
`set_env` gives the environment once rewards are needed. A policy to act with, from a file of SB3's, needs no environment
either: `SAC.load(path, replay_buffer_class=None, replay_buffer_kwargs={}, buffer_size=1)`; its weights without pickle are
`safetensors.torch.save_model(model.policy, file)` and `load_model`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer as TheirHerReplayBuffer
from stable_baselines3.common.preprocessing import get_action_dim, get_obs_shape
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ..errors import FileError, GoalEnvError, InputError, OptionError, UnknownNameError, nearest
from ..records import OBSERVATION_KEYS, Array, Batch, Episode
from ..replay.buffer import HindsightBuffer
from ..replay.goals import goal_rows
from ..replay.rows import whole_number
from ..storage import load_folder, save_folder
from .sb3_envs import NUMBER, GoalVecNormalize, RewardFunction, as_box, as_declared, as_vec_env, is_small, time_limit
from .sb3_ring import Ring

__all__ = [
    "HER_OBSERVATION_SPACE",
    "KEY_TO_GOAL_STRATEGY",
    "OPTIONAL_INFO_KEYS",
    "REQUIRED_INFO_KEYS",
    "GoalSelectionStrategy",
    "GoalVecNormalize",
    "HerReplayBuffer",
]
KIND = "replay buffer of stable-baselines3"
HER_OBSERVATION_SPACE = spaces.Dict({key: spaces.Box(-np.inf, np.inf, (1,), np.float32) for key in OBSERVATION_KEYS})
REQUIRED_INFO_KEYS = ["is_success"]
OPTIONAL_INFO_KEYS = ["TimeLimit.truncated"]


class GoalSelectionStrategy(StrEnum):
    """Where hindsight goals come from (Andrychowicz et al. 2017); RANDOM draws from everything that is held."""

    FUTURE = "future"
    FINAL = "final"
    EPISODE = "episode"
    RANDOM = "random"


KEY_TO_GOAL_STRATEGY = {strategy.value: strategy for strategy in GoalSelectionStrategy}


class HerReplayBuffer(TheirHerReplayBuffer):
    """A drop-in HerReplayBuffer of Stable-Baselines3 around a `HindsightBuffer`; the module says what differs.

    buffer_size: transitions kept, of all environments together. env: the vector environment that computes rewards under new
    goals; the algorithm hands it over. device, n_envs, handle_timeout_termination, n_sampled_goal, copy_info_dict as SB3's;
    copies of the infos cost far more than the steps. goal_selection_strategy: "future", "final", "episode" or "random", or
    a member of our enum or SB3's. optimize_memory_usage: must be False, as in SB3; no state is kept twice here anyway.
    Older arguments: wrapped_env, the environment that computes rewards where `sample` is called without one, or where `env`
    is missing; online_sampling=False draws the goals when an episode ends; max_episode_length cuts longer episodes off
    there; env_info, which also may stand in the place of `env`, never meant anything, and a warning says so.
    Ours: n_steps above 1 sums rewards under the goal of each sample, discounted by gamma, which must be that of the
    algorithm. relabel_terminated ("keep" as SB3, "never", or "success", with success_reward) says whether new goals end
    episodes, as in `HindsightBuffer`; dtype is its own too.
    An episode longer than the whole buffer is kept in pieces. Raises OptionError, UnknownNameError and GoalEnvError.
    """

    env: VecEnv | None

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
        relabel_terminated: str | None = None,
        success_reward: float = 0.0,
        dtype: str = "float32",
    ) -> None:
        # SB3's own constructor is not called: it would allocate the arrays that are properties here.
        if not isinstance(env, VecEnv | gymnasium.Env | None):
            env, env_info = None, env
        if env_info is not None:
            warnings.warn("env_info never had a meaning and is ignored: leave it out", stacklevel=2)
        _refuse(observation_space, optimize_memory_usage, copy_info_dict)
        _refuse_n_steps(n_steps, online_sampling)
        self.n_envs = whole_number("n_envs", n_envs, 1)
        self.buffer_size = max(int(buffer_size) // self.n_envs, 1)
        self.observation_space, self.action_space = observation_space, action_space
        self.obs_shape: Any = get_obs_shape(observation_space)
        self.action_dim = get_action_dim(action_space)
        self.device = get_device(device)
        self.optimize_memory_usage, self.handle_timeout_termination = False, handle_timeout_termination
        self.n_sampled_goal, self.copy_info_dict = n_sampled_goal, copy_info_dict
        self.goal_selection_strategy = find_strategy(goal_selection_strategy)
        self.env, self.wrapped_env = as_vec_env(env), as_vec_env(wrapped_env)
        self.max_episode_length, self.n_steps, self.gamma = max_episode_length, n_steps, gamma
        if max_episode_length is not None:
            self.max_episode_length = whole_number("max_episode_length", max_episode_length, 1)
        self.online_sampling = online_sampling
        self._options: dict[str, Any] = {
            "episode_length": max_episode_length or time_limit(self.env or self.wrapped_env),
            "relabel_terminated": relabel_terminated,
            "success_reward": success_reward,
            "dtype": dtype,
        }
        seed = np.random.randint(2**32, size=4, dtype=np.uint32)  # noqa: NPY002 - the state that SB3's set_random_seed seeds
        self._generator = np.random.default_rng(seed)
        self._judge = RewardFunction(observation_space, copy_info_dict)
        self._store = self._make_store()
        self._ring = Ring(self.buffer_size, self.n_envs)
        self.her_ratio = self._store.her_probability
        self._look_ahead()

    def _look_ahead(self) -> None:
        """What every step or every batch asks for: how long episodes may be, which values have another shape or dtype."""
        space, rows = self.observation_space, self._store.timeline.rows
        self._longest = min(self.max_episode_length or len(rows), self.buffer_size * self.n_envs)
        self._discrete = [key for key in OBSERVATION_KEYS if isinstance(space[key], spaces.Discrete)]
        self._small = {key: space[key].dtype for key in OBSERVATION_KEYS if is_small(rows[key].dtype, space[key].dtype)}

    def _make_store(self) -> HindsightBuffer:
        return HindsightBuffer(
            self.buffer_size * self.n_envs,
            spaces.Dict({key: as_box(self.observation_space[key], self.obs_shape[key]) for key in OBSERVATION_KEYS}),
            as_box(self.action_space, (self.action_dim,)),
            self._judge,
            self.n_sampled_goal,
            self.goal_selection_strategy.value,
            n_envs=self.n_envs,
            seed=self._generator,
            info_keys=(NUMBER,) if self.copy_info_dict else (),
            n_steps=self.n_steps,
            discount=self.gamma,
            relabel_at="sample" if self.online_sampling else "episode_end",
            **self._options,
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
        """Take one step of every environment, with the last observation of an episode put back, as SB3's algorithms do.

        Raises what `HindsightBuffer.add` does: for NaN, other shapes, values that do not survive; nothing is stored then.
        """
        open_episodes = self._store.open_episodes
        ended = np.asarray(done, np.bool_).reshape(self.n_envs)
        truncated = ended | (open_episodes.steps >= self._longest - 1)
        terminated = ended & ~self._timeouts(infos) if ended.any() else ended
        info = None
        if self._judge.infos is not None:  # a step that is refused leaves them to the next one, which has its numbers
            info = {NUMBER: self._ring.numbers()}
            self._judge.infos |= zip(info[NUMBER].tolist(), copy.deepcopy(list(infos)), strict=True)
        if self._discrete:
            obs, next_obs = self._shaped(obs), self._shaped(next_obs)
        action = np.asarray(action).reshape(self.n_envs, self.action_dim)
        self._judge.env = self._judging_env(None)
        try:
            self._store.add(obs, action, reward, next_obs, terminated, truncated, info)
            self._ring.n_added += 1
        finally:  # an episode that an unreported reset closed has entered even where the step was refused
            if open_episodes.closed:
                self._follow()
                open_episodes.forget_ends()

    def _timeouts(self, infos: Sequence[dict[str, Any]]) -> Array:
        """Which environments were cut off by a time limit, (n_envs,) bool, as far as that is to be known."""
        cut = [self.handle_timeout_termination and bool(info.get("TimeLimit.truncated", False)) for info in infos]
        return np.array(cut, np.bool_)

    def _shaped(self, obs: Mapping[str, Any]) -> Mapping[str, Any]:
        """`obs` with the axis that SB3 gives to the values of Discrete spaces."""
        return {**obs, **{key: np.asarray(obs[key]).reshape(self.n_envs, 1) for key in self._discrete}}

    def _follow(self) -> None:
        """Keep up with the store: which episodes ended, and which left, with their infos."""
        evicted = self._ring.follow(self._store)
        if self._judge.infos is not None:
            for number in evicted:
                self._judge.infos.pop(number, None)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> DictReplayBufferSamples:
        """A batch of tensors, as SB3's; `env` normalises observations and rewards.

        Raises NothingToSampleError while there is no step at all, GoalEnvError where the rewards cannot be computed.
        """
        self._judge.env = self._judging_env(env)
        batch = self._store.sample(batch_size) if len(self._store) else self._store.sample_open(batch_size)
        return self._to_samples(batch, env)

    def _judging_env(self, env: VecNormalize | None) -> VecEnv | None:
        """The environment that is asked for rewards in `sample(env=env)`."""
        if self.wrapped_env is not None and (env is None or self.env is None):
            return self.wrapped_env
        return env if self.env is None else self.env

    def _to_samples(self, batch: Batch, env: VecNormalize | None) -> DictReplayBufferSamples:
        """Tensors of a fresh batch: its own memory where they stay in this machine's."""
        now = {"observation": batch.observation, "achieved_goal": batch.achieved_goal, "desired_goal": batch.goal}
        after = {"observation": batch.next_observation, "achieved_goal": batch.next_achieved_goal}
        after["desired_goal"] = batch.goal.copy()
        reward = batch.reward[:, None].astype(np.float32, copy=False)
        for key, dtype in self._small.items():
            now[key], after[key] = now[key].astype(dtype), after[key].astype(dtype)
        if env is not None:
            now, after = env.normalize_obs(now), env.normalize_obs(after)
            # SB3 clips the reward of one step, so that of n steps is clipped as their mean
            reward = self.n_steps * env.normalize_reward(reward / self.n_steps).astype(np.float32)
        samples = DictReplayBufferSamples(
            observations={key: self._tensor(now[key]) for key in self.obs_shape},
            actions=self._tensor(as_declared(batch.action, self.action_space.dtype)),
            next_observations={key: self._tensor(after[key]) for key in self.obs_shape},
            dones=self._tensor(batch.terminated[:, None].astype(np.float32)),
            rewards=self._tensor(reward),
        )
        if batch.discount is None:
            return samples
        return samples._replace(discounts=self._tensor(batch.discount[:, None].astype(np.float32)))

    def _tensor(self, array: Array) -> torch.Tensor:
        """`array`, which is nobody else's, as a tensor: quicker than `to_torch`."""
        tensor = torch.from_numpy(array)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    def set_env(self, env: Any) -> None:
        """Let `env` compute the rewards of new goals from now on; it may be called at any time, as after model.set_env."""
        self.env = as_vec_env(env)
        self._judge.forget()

    def reset(self) -> None:
        """Forget everything."""
        self._judge.infos = {} if self.copy_info_dict else None
        self._store, self._ring = self._make_store(), Ring(self.buffer_size, self.n_envs)

    def truncate_last_trajectory(self) -> None:
        """Close open episodes as cut off, with a warning where there are any: for buffers that were loaded."""
        if self._store.open_episodes.steps.any():
            warnings.warn(
                "The last trajectory in the replay buffer will be truncated: if the environment goes on where it was when "
                "the buffer was saved, load with truncate_last_traj=False",
                stacklevel=2,
            )
            self._end_open_episodes()

    def _end_open_episodes(self) -> None:
        self._judge.env = self._judging_env(None)
        self._store.end_open_episodes()
        self._follow()

    def store_episode(
        self, episode_transitions: Sequence[tuple[Any, ...]] | None = None, is_success: bool | None = None
    ) -> None:
        """Take a whole episode: (obs, action, reward, next_obs, done) of every step, or with a sixth part, the info.

        Observations are dicts without an axis for environments. is_success: whether it reached its goal; it is not kept.
        Open episodes are closed where there is one environment alone. The arrays show it then too; of several, they cannot.
        Without transitions, as up to SB3 1.7, open episodes are closed as cut off, and nothing else happens.
        Raises what `HindsightBuffer.add_episode` does.
        """
        if episode_transitions is None:
            self._end_open_episodes()
            return
        if not episode_transitions:
            raise InputError("an episode without a step cannot be stored: give at least one transition")
        seen = [step[0] for step in episode_transitions] + [episode_transitions[-1][3]]
        steps = len(episode_transitions)
        parts: dict[str, Any] = {
            key: np.array([each[key] for each in seen]).reshape(-1, *self.obs_shape[key]) for key in OBSERVATION_KEYS
        }
        infos = [step[5] if len(step) > 5 else {} for step in episode_transitions]
        timeout = self.handle_timeout_termination and bool(infos[-1].get("TimeLimit.truncated", False))
        if self.n_envs == 1:
            self._end_open_episodes()
        episode = Episode(
            **parts,
            action=np.array([step[1] for step in episode_transitions]).reshape(steps, self.action_dim),
            reward=np.array([step[2] for step in episode_transitions]).reshape(steps),
            terminated=bool(episode_transitions[-1][4]) and not timeout,
            success=is_success,
        )
        self._insert(episode, infos)

    def _insert(self, episode: Episode, infos: list[dict[str, Any]]) -> None:
        if self._judge.infos is not None:
            numbers = self._ring.numbers_of_whole(len(episode))
            self._judge.infos |= zip(numbers, copy.deepcopy(infos), strict=True)
            episode = replace(episode, info={NUMBER: np.array(numbers, np.float64)})
        self._judge.env = self._judging_env(None)
        self._store.add_episode(episode)
        self._ring.insert(len(episode))
        self._store.open_episodes.closed.clear()
        self._follow()

    def sample_goals(
        self, episode_transitions: Sequence[tuple[Any, ...]], transition_idx: int, n_sampled_goal: int
    ) -> Array:
        """Goals for one step of an episode, by the strategy of the buffer: (n_sampled_goal, *goal).

        episode_transitions: see `store_episode`. transition_idx: which step. Raises InputError for a step that is not
        there, NothingToSampleError where "random" has nothing to draw from.
        """
        steps = len(episode_transitions)
        if not 0 <= transition_idx < steps:
            raise InputError(f"transition_idx is {transition_idx}, but the episode has the steps 0 to {steps - 1}")
        count = whole_number("n_sampled_goal", n_sampled_goal, 1)
        if self.goal_selection_strategy is GoalSelectionStrategy.RANDOM:
            return self._store.sample(count).next_achieved_goal
        row, u = np.full(count, transition_idx), self._generator.random(count)
        chosen = goal_rows(self.goal_selection_strategy.value, row, row, steps - row, u, row)
        return np.array([episode_transitions[i - 1][3]["achieved_goal"] for i in chosen])

    _store_episode = store_episode
    _sample_goals = sample_goals

    def save_transitions(self, path: str | Path) -> None:
        """Write all that is held, open episodes too, to the folder `path`: arrays and JSON, whole or not at all.

        Raises InputError where infos are kept, which may be any objects, and OSError where the disk fails.
        """
        if self.copy_info_dict:
            raise InputError("the infos of copy_info_dict=True are objects of any kind: only save_replay_buffer keeps them")
        arrays, data = self._store.state_dict()
        save_folder(Path(path), KIND, arrays | self._ring.state(), data)

    def load_transitions(self, path: str | Path) -> HerReplayBuffer:
        """Take what was saved at `path` in place of what is held, and go on to the same samples; returns the buffer.

        Sizes, spaces and dtype must be those of the saved one. Raises FileError; reading runs no code.
        """
        arrays, data = load_folder(Path(path), KIND)
        store, ring = self._make_store(), Ring(self.buffer_size, self.n_envs)
        try:
            store.load_state_dict(arrays, data)
            ring.load(arrays, store)
        except (KeyError, TypeError, AttributeError) as problem:
            raise FileError(f"the buffer at {path} is malformed ({problem!r}): it is not ours, or damaged") from None
        self._store, self._ring = store, ring
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything but the environments, as in SB3."""
        state = {
            name: value for name, value in vars(self).items() if name not in ("env", "wrapped_env", "_store", "_judge")
        }
        return state | {"_contents": self._store.state_dict(), "_infos": self._judge.infos}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The buffer without an environment: `set_env` gives one."""
        contents, infos = state.pop("_contents"), state.pop("_infos")
        self.__dict__.update(state)
        self.env = self.wrapped_env = None
        self._judge = RewardFunction(self.observation_space, self.copy_info_dict)
        self._judge.infos = infos
        self._store = self._make_store()
        self._store.load_state_dict(*contents)

    @property
    def pos(self) -> int:
        """Where the next step goes in the arrays."""
        return self._ring.n_added % self.buffer_size

    @property
    def full(self) -> bool:
        """Whether the arrays have been gone round."""
        return self._ring.n_added >= self.buffer_size

    @property
    def observations(self) -> dict[str, Array]:
        """What was seen before each step: (buffer_size, n_envs, ...) each; as all arrays read-only, and made when asked."""
        return {key: self._laid_out(key) for key in self.obs_shape}

    @property
    def next_observations(self) -> dict[str, Array]:
        """What was seen after each step: (buffer_size, n_envs, ...) each."""
        return {key: self._laid_out(key, after=1) for key in self.obs_shape}

    def _laid_out(self, key: str, after: int = 0) -> Array:
        values = self._ring.column(self._store, key, after)
        return self._ring.lay_out(self._store, values, self.obs_shape[key], self.observation_space[key].dtype)

    @property
    def actions(self) -> Array:
        """(buffer_size, n_envs, action_dim)."""
        dtype = np.float32 if self.action_space.dtype == np.float64 else self.action_space.dtype
        return self._ring.lay_out(self._store, self._ring.column(self._store, "action"), (self.action_dim,), dtype)

    @property
    def rewards(self) -> Array:
        """(buffer_size, n_envs), float32."""
        return self._ring.lay_out(self._store, self._ring.column(self._store, "reward"), (), np.float32)

    @property
    def dones(self) -> Array:
        """1 at the last step of an episode, (buffer_size, n_envs), float32."""
        return self._ring.lay_out(self._store, self._is_last(), (), np.float32)

    @property
    def timeouts(self) -> Array:
        """1 at the last step of an episode that was cut off, so that its values go on, (buffer_size, n_envs), float32."""
        is_cut = self._is_last() & ~self._ring.column(self._store, "terminated")
        return self._ring.lay_out(self._store, is_cut, (), np.float32)

    def _is_last(self) -> Array:
        return np.asarray(self._ring.lengths(self._store)[1] == 1)

    @property
    def ep_start(self) -> Array:
        """The position of the first step of each step's episode, (buffer_size, n_envs)."""
        return self._ring.lay_out(self._store, self._ring.starts(self._store), (), np.int64)

    @property
    def ep_length(self) -> Array:
        """The length of the finished episode that a step belongs to, 0 for others, (buffer_size, n_envs)."""
        return self._ring.lay_out(self._store, self._ring.lengths(self._store)[0], (), np.int64)

    @property
    def _current_ep_start(self) -> Array:
        """Where the open episode of each environment started, (n_envs,)."""
        return self._ring.positions()


def find_strategy(given: Any) -> GoalSelectionStrategy:
    """The strategy of a name, of ours or of SB3's enum; raises UnknownNameError."""
    name = str(given.lower() if isinstance(given, str) else getattr(given, "name", given)).lower()
    if name not in KEY_TO_GOAL_STRATEGY:
        known = ", ".join(KEY_TO_GOAL_STRATEGY)
        raise UnknownNameError(
            f"there is no strategy {given!r}: choose one of {known}.{nearest(name, KEY_TO_GOAL_STRATEGY)}"
        )
    return KEY_TO_GOAL_STRATEGY[name]


def _refuse(observation_space: spaces.Space[Any], optimize_memory_usage: bool, copy_info_dict: bool) -> None:
    """Raise for what cannot be."""
    if not isinstance(observation_space, spaces.Dict) or set(observation_space.spaces) != set(OBSERVATION_KEYS):
        got = ", ".join(observation_space.spaces) if isinstance(observation_space, spaces.Dict) else observation_space
        raise GoalEnvError(
            f"the observation space has {got}, but exactly {', '.join(OBSERVATION_KEYS)} are needed: put the rest into "
            f"observation"
        )
    if optimize_memory_usage:
        raise OptionError(
            "optimize_memory_usage is True, which SB3 does not have for HER: no state is kept twice here anyway"
        )
    if not isinstance(copy_info_dict, bool):
        raise OptionError(
            f"copy_info_dict is {copy_info_dict!r}, but True or False is needed: name the arguments behind it"
        )


def _refuse_n_steps(n_steps: int, online_sampling: bool) -> None:
    """Raise where rewards of several steps cannot be summed."""
    if n_steps != 1 and "discounts" not in DictReplayBufferSamples._fields:
        raise OptionError(f"n_steps is {n_steps}, but this stable-baselines3 reads one-step samples alone: upgrade it")
    if n_steps != 1 and not online_sampling:
        raise OptionError(
            f"n_steps is {n_steps}, but online_sampling=False keeps the reward of one step per goal: choose one of the two"
        )
