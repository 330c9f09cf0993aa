"""A drop-in replacement for cpprb's `HindsightReplayBuffer` that does not need cpprb: change one import.

Constructor, methods and dictionaries are those of cpprb 11. Differences:
- A step is stored once, with its goals and rewards beside it, instead of 1 + additional_goals times.
- If `size` is reached, whole episodes are removed, the oldest first. An episode that does not fit `size` is refused.
- `seed` makes goals and samples reproducible.
- `indexes` are new arrays. They name transitions for `update_priorities`; they are not positions in
  `get_all_transitions`, which returns the oldest episode first.
- `update_priorities` refuses NaN, infinite and negative priorities and unknown indexes before anything changes. It skips
  transitions that are no longer stored (check_for_update is always on).
- NaN, infinity and numbers that the dtype of a field cannot hold are refused. Goals that `goal_func` makes from integer
  states keep their own dtype.
- "random" goals come from all stored steps with equal probability.
- `Nstep`, `next_of` and `mmap_prefix` are refused: in cpprb the first two give wrong data with hindsight.
- `stack_compress` is accepted and has no effect.
- Sampling from an empty buffer raises NothingToSampleError.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import (
    EpisodeTooLongError,
    FileError,
    InputError,
    NothingToSampleError,
    OptionError,
    ShapeError,
    UnknownNameError,
)
from ..options.relabel import STRATEGIES
from ..records import Array
from ..storage import load_arrays, save_arrays
from .cpprb_fields import MissingFieldError, as_count, as_shape, as_steps, step_fields
from .cpprb_goals import EpisodeRelabelling, GoalFunction, RewardFunction
from .cpprb_priorities import TransitionPriorities, read_priorities
from .cpprb_storage import StepStorage

KIND = "cpprb buffer"
LARGEST_BATCH = 2**31  # bytes
UNSUPPORTED = {
    "next_of": "Next states are stored as given. Leave it out and pass them to `add`.",
    "Nstep": "A hindsight goal is stored with the reward of one step. Use hindsight.HindsightBuffer for n-step returns.",
    "mmap_prefix": "Everything is kept in memory. Leave it out.",
}


class HindsightReplayBuffer:
    """Hindsight experience replay with cpprb's interface: goals are drawn when an episode ends (Andrychowicz et al. 2017).

    size: stored transitions, such as 1e6; each additional goal of a step counts as one.
    env_dict: {name: {"shape": 1, "dtype": default_dtype}}, any names, shapes and dtypes except objects.
    max_episode_len: steps.
    reward_func: (next_state, action, goal) -> (T,) or (T, 1), for the T steps of an episode at once.
    goal_func: T states -> T goals; makes hindsight goals. Without it the states are the goals.
    goal_shape: shape of the goals that `goal_func` returns; default: the shape of the state.
    state, action, next_state: names of these fields in env_dict.
    strategy: "future", "episode", "random", or "final", which has one additional goal.
    additional_goals: hindsight goals per step.
    prioritized: sample in proportion to (priority + eps)^alpha (Schaul et al. 2016).
    default_dtype: dtype of the rewards and of fields without a dtype; float32 unless given.
    seed: a number or a NumPy Generator.

    Raises OptionError, UnknownNameError, or KeyError for a name that env_dict lacks.
    """

    def __init__(
        self,
        size: float,
        env_dict: Mapping[str, Mapping[str, Any]],
        max_episode_len: float,
        reward_func: RewardFunction,
        *,
        goal_func: GoalFunction | None = None,
        goal_shape: int | Iterable[int] | None = None,
        state: str = "obs",
        action: str = "act",
        next_state: str = "next_obs",
        strategy: str = "future",
        additional_goals: int = 4,
        prioritized: bool = True,
        alpha: float = 0.6,
        eps: float = 1e-4,
        default_dtype: Any = None,
        seed: int | np.random.Generator = 0,
        check_for_update: bool = True,
        stack_compress: Any = None,
        next_of: Any = None,
        Nstep: Any = None,
        mmap_prefix: str | None = None,
    ) -> None:
        _refuse_unsupported({"next_of": next_of, "Nstep": Nstep, "mmap_prefix": mmap_prefix})
        _check_strategy(strategy)
        self.strategy, self.prioritized = strategy, prioritized
        self.max_episode_len = as_count("max_episode_len", max_episode_len, 1)
        self.additional_goals = 1 if strategy == "final" else as_count("additional_goals", additional_goals, 0)
        self._n_goals = 1 + self.additional_goals
        self._size, reward_dtype = as_count("size", size, self._n_goals), np.dtype(default_dtype or np.float32)
        self._fields = step_fields(env_dict, reward_dtype, state, action, next_state)
        self.goal_shape = self._fields.dtype[state].shape if goal_shape is None else as_shape(goal_shape, "goal_shape")
        self._relabelling = EpisodeRelabelling(self._fields, reward_func, goal_func, strategy, self._n_goals)
        self._record = self._relabelling.record(self.goal_shape, reward_dtype)
        self._open, self._open_steps = np.zeros(self.max_episode_len, self._record), 0
        self._storage = StepStorage(self._size // self._n_goals, self._record)
        self._n_slots = self._size // self._n_goals * self._n_goals
        self._priorities = TransitionPriorities(self._n_slots, alpha, eps) if prioritized else None
        self._rng = np.random.default_rng(np.random.default_rng(seed).integers(2**64, dtype=np.uint64))

    def add(self, **fields: Any) -> None:
        """Store one step of the open episode, or n steps: fields of shape (shape) or (n, shape). Other fields are ignored.

        Raises KeyError for a missing field, and ValueError for a wrong shape, for NaN, infinity and numbers that a dtype
        cannot hold, and for more than max_episode_len steps. Nothing is stored then.
        """
        dtype = self._fields.dtype
        missing = [name for name in dtype.names or () if name not in fields]
        if missing:
            raise MissingFieldError(f"`add` needs {', '.join(missing)}. It got {', '.join(fields) or 'nothing'}.")
        values = {name: as_steps(name, fields[name], dtype[name]) for name in dtype.names or ()}
        count = max(map(len, values.values()))
        for name, value in values.items():
            if len(value) not in (1, count):
                raise ShapeError(f"`{name}` has {len(value)} steps, but another field has {count}. Give as many of each.")
        stop = self._open_steps + count
        if stop > self.max_episode_len:
            raise EpisodeTooLongError(
                f"Exceed Max Episode Length: the episode has {stop} steps, but max_episode_len is {self.max_episode_len}. "
                f"Raise it, or call on_episode_end first."
            )
        for name, value in values.items():
            self._open[name][self._open_steps : stop] = value
        self._open_steps = stop

    def on_episode_end(self, goal: Any) -> None:
        """End the open episode and draw its hindsight goals. Without a step this does nothing.

        goal: the desired goal, (goal_shape) or one per step.
        Raises ValueError if a function returns something unusable, or if the episode does not fit `size`. The episode
        stays open then.
        """
        count, storage = self._open_steps, self._storage
        if not count:
            return
        if count * self._n_goals > self._size:
            raise EpisodeTooLongError(
                f"{count} steps with {self.additional_goals} additional goals each are {count * self._n_goals} transitions,"
                f" but `size` is {self._size}. Raise it."
            )
        records, first = self._open[:count], storage.first_step
        self._relabelling.relabel(records, goal, storage, self._rng)
        storage.append(records)
        if self._priorities is not None:
            self._priorities.remove(self._slots(first, storage.first_step))
            self._priorities.insert(self._slots(storage.next_step - count, storage.next_step))
        self._open_steps = 0

    def _slots(self, step: int, stop: int) -> Array:
        """Return the priority slots of the transitions of some steps.

        Goal g of step i is the transition with the index i * n_goals + g, in slot index % n_slots. Indexes are never used
        twice, slots are.
        """
        return np.arange(step * self._n_goals, stop * self._n_goals) % self._n_slots

    def sample(self, batch_size: float, beta: float = 0.4) -> dict[str, Array]:
        """Sample transitions: {name: (B, shape)} of the fields in env_dict, "rew" (B, 1) and "goal" (B, goal_shape).

        beta: exponent of the importance weights, at least 0; 0 disables them.
        With priorities also "weights", (B,) float32, and "indexes", (B,) uint64, for `update_priorities`.
        Raises NothingToSampleError for an empty buffer, OptionError, or InputError for a batch that is too large.
        """
        size = self._check_batch_size(batch_size)
        if not 0 <= beta < np.inf:
            raise OptionError(f"`beta` must be at least 0, and is usually at most 1, got {beta}.")
        count, first = self.get_stored_size(), self._storage.first_step * self._n_goals
        if not count:
            raise NothingToSampleError("The buffer is empty: no episode has ended yet. Call `on_episode_end` first.")
        u = self._rng.random(size)
        if self._priorities is None:
            return self._transitions(first + (u * count).astype(np.int64))
        slots = self._priorities.draw((np.arange(size) + u) / size)
        index, weights = first + (slots - first) % self._n_slots, self._priorities.weights(slots, beta)
        return self._transitions(index) | {"weights": weights, "indexes": index.astype(np.uint64)}

    def _check_batch_size(self, batch_size: float) -> int:
        size = as_count("batch_size", batch_size, 1)
        if size * self._record.itemsize > LARGEST_BATCH:
            gigabytes = size * self._record.itemsize / 1e9
            raise InputError(f"`batch_size` is {size}, which takes {gigabytes:.1f} GB; the limit is 2 GB. Lower it.")
        return size

    def get_all_transitions(self, shuffle: bool = False) -> dict[str, Array]:
        """Return all transitions, the oldest episode first: its steps under the desired goal, then under each other goal.

        shuffle: return them in random order.
        """
        goals = np.arange(self._n_goals)[:, None]
        blocks = [(steps * self._n_goals + goals).ravel() for steps in self._storage.episodes()]
        index = np.concatenate([np.zeros(0, np.int64), *blocks])
        return self._transitions(self._rng.permutation(index) if shuffle else index)

    def _transitions(self, index: Array) -> dict[str, Array]:
        """Return copies of the transitions with these indexes."""
        step, goal = np.divmod(index, self._n_goals)
        records, sample = self._storage.take(step), np.arange(len(index))
        batch = {name: np.array(records[name]) for name in self._fields.dtype.names or ()}
        return batch | {"rew": records["rew"][sample, goal][:, None], "goal": records["goal"][sample, goal]}

    def update_priorities(self, indexes: Any, priorities: Any) -> None:
        """Set the priorities of sampled transitions: two array-likes with as many numbers.

        Raises TypeError for None, and ValueError for NaN, infinity, negative numbers and unknown indexes, or if the buffer
        has no priorities. Nothing changes then.
        """
        store, first_index = self._required_priorities(), self._storage.first_step * self._n_goals
        index, priority = read_priorities(indexes, priorities, first_index + self.get_stored_size())
        is_stored = index >= first_index
        store.update(index[is_stored] % self._n_slots, priority[is_stored])

    def get_max_priority(self) -> float:
        """Return the largest priority so far, that of new transitions; 1 at first. Raises ValueError without priorities."""
        return self._required_priorities().largest

    def _required_priorities(self) -> TransitionPriorities:
        if self._priorities is None:
            raise InputError("Buffer is constructed without PER. Pass prioritized=True.")
        return self._priorities

    def get_stored_size(self) -> int:
        """Return the number of stored transitions; 0 until the first episode has ended."""
        return len(self._storage) * self._n_goals

    def get_buffer_size(self) -> int:
        """Return `size`."""
        return self._size

    def clear(self) -> None:
        """Remove all transitions, the open episode and the priorities. The random state stays as it is."""
        self._storage.clear()
        self._open_steps = 0
        if self._priorities is not None:
            self._priorities.clear()

    def save_transitions(self, file: str | Path | BinaryIO) -> None:
        """Write the buffer without its functions to a path (atomically) or to an open binary file. No pickle.

        The open episode and the random state are included: a loaded buffer continues with the same bytes.
        """
        arrays = self._storage.state() | {"open_rows": self._open[: self._open_steps].view(np.uint8)}
        if self._priorities is not None:
            arrays |= self._priorities.state(self._slots(self._storage.first_step, self._storage.next_step))
        save_arrays(file, KIND, arrays, {"settings": self._settings(), "random_state": self._rng.bit_generator.state})

    def load_transitions(self, file: str | Path | BinaryIO) -> None:
        """Replace the contents by those of a saved buffer with the same settings. Reading runs no code.

        Raises FileError, which names what differs or is damaged. The buffer is unchanged then.
        """
        arrays, data = load_arrays(file, KIND)
        loaded, expected = copy.copy(self), self._settings()
        try:
            if data["settings"] != expected:
                raise FileError(f"expected {expected}, got {data['settings']}")
            loaded._load(arrays, data["random_state"])
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
            raise FileError(f"The file does not fit this buffer, or is damaged: {problem}") from None
        self.__dict__.update(vars(loaded))

    def _load(self, arrays: Mapping[str, Array], random_state: Any) -> None:
        """Make new parts and fill them."""
        records: Any = arrays["open_rows"].view(self._record)
        self._open, self._open_steps = np.zeros_like(self._open), len(records)
        self._open[: len(records)] = records
        self._storage = StepStorage(self._size // self._n_goals, self._record)
        self._storage.load(arrays)
        if self._priorities is not None:
            self._priorities = copy.copy(self._priorities)
            self._priorities.load(arrays, self._slots(self._storage.first_step, self._storage.next_step))
        self._rng = np.random.default_rng(0)
        self._rng.bit_generator.state = random_state

    def _settings(self) -> dict[str, Any]:
        """Return what a file and the buffer that loads it must have in common, as JSON."""
        priorities = self._priorities and [self._priorities.alpha, self._priorities.eps]
        names = ("max_episode_len", "additional_goals", "strategy")
        settings = {
            "size": self._size,
            "record": str(self._record),
            "fields": list(self._fields[1:]),
            "priorities": priorities,
        }
        return settings | {name: getattr(self, name) for name in names}


def _refuse_unsupported(given: Mapping[str, Any]) -> None:
    """Raise OptionError for arguments of cpprb that this buffer does not support."""
    for name, value in given.items():
        if value is not None:
            raise OptionError(f"`{name}` is not supported, got {value!r}. {UNSUPPORTED[name]}")


def _check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise UnknownNameError(f"Unknown Strategy: {strategy}. Known Strategies: {', '.join(STRATEGIES)}")
