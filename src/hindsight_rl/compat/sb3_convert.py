"""What Stable-Baselines3 passes and expects: environments, spaces, samples, and the layout of its storage."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from ..errors import FileError, GoalEnvError, OptionError, UnknownNameError, nearest
from ..records import OBSERVATION_KEYS, Array, Batch
from ..replay.buffer import HindsightBuffer

MOST_AHEAD = 8  # more batches at once save little time
STEP_NUMBER = "number"  # the info key under which a step's number is stored, if infos are kept
# Array: its values for an episode with T + 1 rows, of length 0 while open.
STORED_VALUES: dict[str, Callable[[Array, int], Any]] = {
    "observations": lambda rows, length: rows[:-1],
    "next_observations": lambda rows, length: rows[1:],
    "actions": lambda rows, length: rows["action"][:-1],
    "rewards": lambda rows, length: rows["reward"][:-1],
    "dones": lambda rows, length: np.arange(1, len(rows)) == length,
    "timeouts": lambda rows, length: (np.arange(1, len(rows)) == length) & ~rows["terminated"][:-1],
    "ep_length": lambda rows, length: np.int64(length),
}


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


class StorageArrays:
    """SB3's arrays, made on demand and read-only: (size, n_envs, ...), 0 where nothing is stored.

    buffer: where the steps are stored.
    types: shape and dtype per step of the observations, by key, and of the actions.

    SB3 writes the step of environment i from call n of `add` to [n % size, i]. This object only keeps the number of each
    stored step: n * n_envs + i. Call `update` after each change of the buffer.
    """

    def __init__(self, buffer: HindsightBuffer, types: Mapping[str, tuple[tuple[int, ...], Any]]) -> None:
        self._buffer, self._types = buffer, {**types, "ep_length": ((), np.int64)}
        self._n_envs = buffer.open_episodes.n_envs
        self._size = buffer.timeline.capacity // self._n_envs
        self.n_added = 0  # calls of `add`
        self.starts = [0] * self._n_envs  # the call with which the open episode of each environment starts
        self._episodes: deque[range] = deque()  # the step numbers of each finished episode, the oldest first

    def next_numbers(self) -> range:
        """Return the numbers of the steps that the next call of `add` brings, one per environment."""
        return range(self.n_added * self._n_envs, (self.n_added + 1) * self._n_envs)

    def update(self) -> list[int]:
        """Note the episodes that ended in the last call of the buffer. Return the numbers of all evicted steps."""
        for env, steps in self._buffer.open_episodes.closed:
            self._episodes.append(self._numbers(self.starts[env] * self._n_envs + env, steps))
            self.starts[env] += steps
        evicted: list[int] = []
        while len(self._episodes) > self._buffer.num_episodes:
            evicted += self._episodes.popleft()
        return evicted

    def _numbers(self, first: int, steps: int) -> range:
        return range(first, first + steps * self._n_envs, self._n_envs)

    def array(self, name: str) -> Any:
        """Return an array of SB3's; observations and next_observations are dicts of arrays."""
        if name in ("observations", "next_observations"):
            return {key: self._lay_out(name, key) for key in OBSERVATION_KEYS}
        return self._lay_out(name, name)

    def _lay_out(self, name: str, key: str) -> Array:
        """Return (size, n_envs, ...). name: of STORED_VALUES. key: of an observation, else as name."""
        shape, dtype = self._types.get(key, ((), np.float32))
        out = np.zeros((self._size, self._n_envs, *shape), dtype)
        for numbers, rows, length in self._stored_episodes():
            call, env = np.divmod(numbers, self._n_envs)
            is_shown, values = call >= max(0, self.n_added - self._size), STORED_VALUES[name](rows, length)
            values = np.broadcast_to(values[key] if key in OBSERVATION_KEYS else values, (len(call), *shape))
            out[call[is_shown] % self._size, env[is_shown]] = values[is_shown]
        out.flags.writeable = False
        return out

    def _stored_episodes(self) -> Iterator[tuple[Array, Array, int]]:
        """Yield step numbers, rows and length of the finished episodes, the oldest first, then of the open ones."""
        timeline, open_episodes = self._buffer.timeline, self._buffer.open_episodes
        for numbers, row in zip(self._episodes, timeline.first_rows(), strict=True):
            yield np.array(numbers), timeline.rows[row : row + len(numbers) + 1], len(numbers)
        for env, steps in enumerate(open_episodes.steps.tolist()):
            numbers = self._numbers(self.starts[env] * self._n_envs + env, steps)
            yield np.array(numbers, np.int64), open_episodes.rows[env, : steps + 1], 0

    def state(self) -> dict[str, Array]:
        """Return what `load` needs beside the buffer's own state."""
        counters = np.array([self.n_added, *self.starts], np.int64)
        return {"sb3_counters": counters, "sb3_numbers": np.array([numbers[0] for numbers in self._episodes], np.int64)}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take over the state that belongs to the contents of the buffer. Raises FileError if the two disagree."""
        self.n_added, *self.starts = state["sb3_counters"].tolist()
        first_numbers, timeline = state["sb3_numbers"].tolist(), self._buffer.timeline
        expected = [self.n_added - steps for steps in self._buffer.open_episodes.steps.tolist()]
        if self.starts != expected or len(first_numbers) != self._buffer.num_episodes:
            raise FileError("The positions of the stored episodes do not fit them: the file is damaged.")
        lengths = timeline.steps_left[timeline.first_rows()].tolist()
        self._episodes = deque(map(self._numbers, first_numbers, lengths))
