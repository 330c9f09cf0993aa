"""A drop-in replacement for cpprb's `HindsightReplayBuffer` that does not need cpprb: change one import.

Constructor, methods and dictionaries are those of cpprb 11. Differences:
- If `size` is reached, the oldest episodes are removed as a whole. An episode that does not fit `size` is refused.
- `seed` makes goals and samples reproducible.
- `indexes` are new arrays. They name transitions for `update_priorities`; they are not positions in
  `get_all_transitions`, which returns the oldest episode first.
- A step is stored once. Each of its transitions refers to it, so the buffer takes about 40 % of cpprb's memory.
- `update_priorities` refuses NaN, infinite and negative priorities and unknown indexes before anything changes. It skips
  transitions that are no longer stored (check_for_update is always on).
- NaN, infinity and numbers that the dtype of a field cannot hold are refused. Goals that `goal_func` makes from integer
  states keep their own dtype.
- `Nstep`, `next_of` and `mmap_prefix` are refused: in cpprb the first two give wrong data with hindsight.
- `stack_compress` is accepted and has no effect.
- Sampling from an empty buffer raises NothingToSampleError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from ..errors import EpisodeTooLongError, FileError, InputError, OptionError, ShapeError, UnknownNameError
from ..options import ReplayOptions
from ..options.replay import STRATEGIES
from ..records import Array, ArraySpec, Episode, GoalSpec
from ..replay.buffer import HindsightBuffer
from ..replay.priorities import SMALLEST_ERROR, ErrorPriorities
from ..replay.rows import as_array, whole_number
from ..storage import load_arrays, save_arrays
from .cpprb_episode import (
    EpisodeRelabelling,
    GoalFunction,
    MissingFieldError,
    RewardFunc,
    as_count,
    as_shape,
    as_steps,
    step_fields,
)

CPPRB_BUFFER_KIND = "cpprb buffer"
MOST_STORED_STEPS = 2**62  # in all episodes so far: their numbers are int64
NEARLY_EQUAL = 1.01  # more than rounding makes of a priority
SHORT_EPISODE = 5  # steps; with shorter episodes on average, fewer than `size` transitions are stored


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
        reward_func: RewardFunc,
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
        for name, value in {"next_of": next_of, "Nstep": Nstep, "mmap_prefix": mmap_prefix}.items():
            if value is not None:
                fix = "Use HindsightBuffer with ReplayOptions(n_steps=3)." if name == "Nstep" else "Leave it out."
                raise OptionError(f"`{name}` is not supported, got {value!r}. {fix}")
        if strategy not in STRATEGIES:
            raise UnknownNameError(f"Unknown Strategy: {strategy}. Known Strategies: {', '.join(STRATEGIES)}")
        if not SMALLEST_ERROR <= eps < np.inf:
            raise OptionError(f"`eps` must be at least {SMALLEST_ERROR}, got {eps}.")
        self.max_episode_len = as_count("max_episode_len", max_episode_len, 1)
        self.additional_goals = 1 if strategy == "final" else as_count("additional_goals", additional_goals, 0)
        self._size = as_count("size", size, 1 + self.additional_goals)
        self._more_eps = float(eps) - SMALLEST_ERROR  # the buffer adds SMALLEST_ERROR itself
        self._fields = step_fields(env_dict, default_dtype, state, action, next_state)
        self.goal_shape = self._fields.dtype[state].shape if goal_shape is None else as_shape(goal_shape, "goal_shape")
        self._relabelling = EpisodeRelabelling(
            self._fields, reward_func, goal_func, self.goal_shape, strategy, self.additional_goals
        )
        # beta 0: the buffer computes no weights, because `sample` computes those of cpprb.
        self._options = ReplayOptions(n_sampled_goal=0, prioritized=prioritized, alpha=alpha, beta=0.0)
        self._rng = np.random.default_rng(np.random.default_rng(seed).integers(2**64, dtype=np.uint64))
        self._open = np.zeros(self.max_episode_len, self._fields.dtype)
        self._steps = np.zeros(self._size // (1 + self.additional_goals), self._fields.dtype)
        self.clear()

    def clear(self) -> None:
        """Remove all transitions, the open episode and the priorities. The random state stays as it is."""
        nothing, transition = ArraySpec((0,), "uint8"), ArraySpec((self._relabelling.transition.itemsize,), "uint8")
        self._buffer = HindsightBuffer(
            self._size,
            GoalSpec(nothing, nothing, transition),  # a transition is stored as the bytes of an action
            None,
            _no_rewards,
            seed=self._rng,
            options=self._options,
            episode_length=min(self.max_episode_len, SHORT_EPISODE) * (1 + self.additional_goals),
        )
        self._open_steps = self._n_steps = 0  # of the open episode; of all episodes so far
        self._lowest = LowestPriority()
        if self._options.prioritized:
            self._error_priorities().largest_error += self._more_eps

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
                f"Exceed Max Episode Length: {stop} steps, but max_episode_len is {self.max_episode_len}."
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
        count, total = self._open_steps, self._open_steps * (1 + self.additional_goals)
        if total > self._size:
            raise EpisodeTooLongError(f"The episode with its goals has {total} transitions, but `size` is {self._size}.")
        if not count:
            return
        steps, n_stored = self._open[:count], len(self._buffer) // (1 + self.additional_goals)
        stored = range(self._n_steps - n_stored, self._n_steps)
        transitions = self._relabelling.relabel(steps, goal, self._steps, stored, self._rng)
        nothing, action = np.zeros((total + 1, 0), np.uint8), transitions.view(np.uint8).reshape(total, -1)
        self._buffer.add_episode(Episode(nothing, nothing, nothing, action, np.zeros(total)))
        self._steps[(self._n_steps + np.arange(count)) % len(self._steps)] = steps
        self._n_steps, self._open_steps = self._n_steps + count, 0

    def sample(self, batch_size: float, beta: float = 0.4) -> dict[str, Array]:
        """Sample transitions: {name: (B, shape)} of the fields in env_dict, "rew" (B, 1) and "goal" (B, goal_shape).

        beta: exponent of the importance weights, at least 0 (none), usually at most 1.
        With priorities also "weights", (B,) float32, divided by the largest weight of all transitions as in cpprb, and
        "indexes", (B,) uint64, for `update_priorities`.
        Raises NothingToSampleError for an empty buffer, OptionError, or InputError for a batch that is too large.
        """
        if not 0 <= beta < np.inf:
            raise OptionError(f"`beta` must be at least 0, got {beta}.")
        batch = self._buffer.sample(as_count("batch_size", batch_size, 1))
        transitions = self._transitions(batch.action)
        if batch.weight is None:
            return transitions
        priorities = self._error_priorities()
        values = priorities.values(batch.row % len(priorities.leaves))  # an index is a row plus a multiple of their number
        weights = ((self._lowest.find(priorities.leaves) / values) ** beta).astype(np.float32)
        return transitions | {"weights": weights, "indexes": batch.row.astype(np.uint64)}

    def get_all_transitions(self, shuffle: bool = False) -> dict[str, Array]:
        """Return all transitions, the oldest episode first: its steps under the desired goal, then under each other goal.

        shuffle: return them in random order.
        """
        timeline = self._buffer.timeline
        row = timeline.live_rows()
        row = row[np.argsort(timeline.positions(row), kind="stable")]
        return self._transitions(timeline.rows["action"][self._rng.permutation(row) if shuffle else row])

    def _transitions(self, action: Array) -> dict[str, Array]:
        """Return transitions as arrays of their own. action: their bytes, (B, itemsize)."""
        transitions = np.ascontiguousarray(action).reshape(-1).view(self._relabelling.transition)
        steps = self._steps.take(transitions["step"] % len(self._steps))
        batch = {name: np.array(steps[name]) for name in steps.dtype.names or ()}
        return batch | {"rew": transitions["rew"][:, None].copy(), "goal": transitions["goal"].copy()}

    def update_priorities(self, indexes: Any, priorities: Any) -> None:
        """Set the priorities of sampled transitions: two array-likes with as many numbers.

        Raises ValueError for NaN, infinity, negative numbers and unknown indexes, or if the buffer
        has no priorities. Nothing changes then.
        """
        leaves = self._error_priorities().leaves
        index, priority = as_array(indexes, "indexes").ravel(), as_array(priorities, "priorities").ravel()
        if len(index) != len(priority):
            raise InputError(
                f"`priorities` must have a number for each of the `indexes`, got {len(priority)} and {len(index)}."
            )
        if not len(index):
            return
        if (least := priority.min()) < 0:
            raise InputError(f"`priorities` must be at least 0, got {least}.")
        self._buffer.update_priorities(index, priority + self._more_eps)
        self._lowest.note(leaves, index, (least + self._more_eps + SMALLEST_ERROR) ** self._options.alpha)

    def get_max_priority(self) -> float:
        """Return the largest priority so far, that of new transitions; 1 at first. Raises ValueError without priorities."""
        return self._error_priorities().largest_error - self._more_eps

    def _error_priorities(self) -> ErrorPriorities:
        priorities = self._buffer.timeline.priorities
        if not isinstance(priorities, ErrorPriorities):
            raise InputError("Buffer is constructed without PER. Pass prioritized=True.")
        return priorities

    def get_stored_size(self) -> int:
        """Return the number of stored transitions; 0 until the first episode has ended."""
        return len(self._buffer)

    def get_buffer_size(self) -> int:
        """Return `size`."""
        return self._size

    def save_transitions(self, file: str | Path | BinaryIO) -> None:
        """Write the buffer without its functions to a path (atomically) or to an open binary file. No pickle.

        The open episode and the random state are included: a loaded buffer continues with the same bytes.
        """
        arrays, data = self._buffer.state_dict()
        arrays["open_fields"] = self._open[: self._open_steps].view(np.uint8)
        arrays["steps"] = self._steps[: self._n_steps].view(np.uint8)
        data = {"buffer": data, "n_steps": self._n_steps, "random_state": self._rng.bit_generator.state}
        save_arrays(file, CPPRB_BUFFER_KIND, arrays, data | {"settings": self._settings()})

    def load_transitions(self, file: str | Path | BinaryIO) -> None:
        """Replace the contents by those of a saved buffer with the same settings. Reading runs no code.

        Raises FileError, which names what differs or is damaged. The buffer is unchanged then.
        """
        arrays, data = load_arrays(file, CPPRB_BUFFER_KIND)
        rng, expected = np.random.default_rng(0), self._settings()
        try:
            if data["settings"] != expected:
                raise FileError(f"expected {expected}, got {data['settings']}")
            rng.bit_generator.state = data["random_state"]
            opened = _filled(self._open, arrays["open_fields"])
            steps, n_steps = _filled(self._steps, arrays["steps"]), whole_number("n_steps", data["n_steps"], 0)
            if n_steps > MOST_STORED_STEPS:
                raise FileError(f"n_steps must be at most {MOST_STORED_STEPS}, got {n_steps}")
            self._buffer.load_state_dict(arrays, data["buffer"])
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise FileError(f"The file does not fit this buffer, or is damaged: {problem}") from None
        self._open, self._open_steps = opened, len(arrays["open_fields"]) // opened.itemsize
        self._steps, self._n_steps, self._rng, self._lowest = steps, n_steps, rng, LowestPriority()

    def _settings(self) -> dict[str, Any]:
        """Return what a file and the buffer that loads it must have in common, as JSON, besides the buffer's own."""
        goals = [self._relabelling.strategy, self.additional_goals, str(self._relabelling.transition)]
        return {"fields": str(self._fields), "goals": goals, "max_episode_len": self.max_episode_len, "eps": self._more_eps}


def __getattr__(name: str) -> NoReturn:
    if name[:1].isupper():  # a class of cpprb; `from ... import` hides the message of an AttributeError
        raise ImportError(
            f"hindsight_rl.compat.cpprb has no {name!r}. Only HindsightReplayBuffer is replaced. "
            f"Keep importing every other class from cpprb."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class LowestPriority:
    """The lowest priority of a buffer. All rows are searched only if the row that had it has changed."""

    def __init__(self) -> None:
        self._row, self._value = 0, np.nan

    def find(self, leaves: Array) -> float:
        """Return the lowest priority that is not 0."""
        if leaves[self._row] != self._value:
            self._row = int(np.where(leaves > 0, leaves, np.inf).argmin())
            self._value = float(leaves[self._row])
        return self._value

    def note(self, leaves: Array, index: Array, least: float) -> None:
        """Take note that some priorities were updated, to at least `least`. New transitions have the highest one."""
        if least > NEARLY_EQUAL * self._value:
            return
        rows = index % len(leaves)
        lowest = rows[np.where(leaves[rows] > 0, leaves[rows], np.inf).argmin()]
        if 0 < leaves[lowest] < self._value:
            self._row, self._value = int(lowest), float(leaves[lowest])


def _no_rewards(achieved_goal: Array, goal: Array, info: Mapping[str, Array]) -> Array:
    """Stand in for compute_reward: n_sampled_goal is 0, so no reward is recomputed."""
    return np.zeros(len(goal), np.float32)


def _filled(records: Array, content: Array) -> Array:
    """Return an array like `records` that starts with the bytes `content`. Raises ValueError if they do not fit."""
    filled, stored = np.zeros_like(records), content.view(records.dtype)
    filled[: len(stored)] = stored
    return filled
