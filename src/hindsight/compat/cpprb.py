"""cpprb's `HindsightReplayBuffer`, without cpprb: change one import.

Same constructor, methods and dictionaries as cpprb 11. What differs, and why:
- An episode is kept once, with its extra goals and rewards beside it, instead of 1 + additional_goals times. Whole episodes
  leave, the oldest first, instead of single steps; one that does not fit `size` is refused, not kept in part.
- `seed` rules all chance. `indexes` are fresh arrays: names of stored transitions to hand back, not places in
  `get_all_transitions`, which goes from the oldest episode to the newest.
- Priorities that are NaN, infinite or negative, and indexes of nothing, are refused before anything changes; those of
  episodes that left since the last sample are passed over (check_for_update, always).
- Numbers that their integer dtype cannot hold are refused. Goals that goal_func makes of integer states keep the dtype in
  which it returns them, where cpprb cuts them to the state's.
- "random" goals come from all stored steps alike, where cpprb prefers the older ones.
- n-step rewards and `next_of`, which give wrong data there, and `mmap_prefix` are refused. `stack_compress` is accepted and
  changes nothing, since a step is kept only once.
- An empty buffer raises NothingToSampleError when sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import (
    CastError,
    EpisodeTooLongError,
    FileError,
    GoalEnvError,
    InputError,
    NothingToSampleError,
    OptionError,
    ShapeError,
    UnknownNameError,
)
from ..options.relabel import STRATEGIES
from ..records import Array, ArraySpec, Episode, GoalSpec
from ..replay.chance import Chance, check_state
from ..replay.priorities import ByError
from ..replay.rows import take_records
from ..replay.timeline import Timeline
from ..replay.told import Told
from ..storage import load_arrays, save_arrays
from .cpprb_fields import NUMBERS, MissingFieldError, as_array, as_count, as_shape, as_steps, cast, step_dtype

RewardFunction = Callable[[Array, Array, Array], Any]
GoalFunction = Callable[[Array], Any]
KIND = "cpprb buffer"
SHORT_EPISODE = 5  # steps, on average, down to which `size` is reached: each episode takes one row more than it has steps


class NothingGivenError(InputError, TypeError):
    """None came where values are needed."""


class HindsightReplayBuffer:
    """Hindsight experience replay as cpprb has it: goals are drawn when an episode ends (Andrychowicz et al. 2017).

    size: transitions kept, each extra goal of a step being one more; may be 1e6. env_dict: {name: {"shape": 1, "dtype":
    default_dtype}}, any names, shapes and dtypes (but no objects); what an entry lacks is as here. max_episode_len: steps.
    reward_func(next_state, action, goal) -> (T,) or (T, 1), for the T steps of an episode at once. goal_func(state) -> goal
    for T states at once, makes hindsight goals only; goal_shape: theirs, where it is not the state's. state, action,
    next_state: their names in env_dict. strategy: future, episode, random, or final, which takes one extra goal whatever
    additional_goals says. prioritized: draw in proportion to (priority + eps)^alpha (Schaul et al. 2016). default_dtype:
    float32 unless given. seed: a number, or a NumPy Generator to draw it from.
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
        _refuse({"next_of": next_of, "Nstep": Nstep, "mmap_prefix": mmap_prefix})
        if strategy not in STRATEGIES:
            raise UnknownNameError(f"Unknown Strategy: {strategy}. Known Strategies: {', '.join(STRATEGIES)}")
        self.max_episode_len = as_count("max_episode_len", max_episode_len, 1)
        self.reward_func, self.goal_func = reward_func, goal_func
        self.state, self.action, self.next_state, self.strategy = state, action, next_state, strategy
        self.additional_goals = 1 if strategy == "final" else as_count("additional_goals", additional_goals, 0)
        self.prioritized, self._alpha, self._eps = prioritized, alpha, eps
        self._size, self._reward_dtype = as_count("size", size, 1 + self.additional_goals), np.dtype(default_dtype or "f4")
        if self._reward_dtype.kind not in NUMBERS:
            raise OptionError(f"default_dtype is {self._reward_dtype}, but rewards are of it: a number is needed")
        self._step = step_dtype(env_dict, self._reward_dtype, (state, action, next_state))
        self.goal_shape = as_shape(goal_shape, "goal_shape") if goal_shape is not None else self._step[state].shape
        self._goal_dtype = self._find_goal_dtype()
        self._open, self._open_steps = np.zeros(self.max_episode_len, self._step), 0
        self._timeline = self._make_timeline()
        self._chance = Chance(self._timeline, seed)
        self._fill_timeline()

    def _find_goal_dtype(self) -> np.dtype[Any]:
        """That of the state, unless goal_func turns integers into something else, tried on one state of zeros."""
        found = self._step[self.state].base
        if self.goal_func is not None and found.kind != "f":
            made = np.asarray(self.goal_func(np.zeros((1, *self._step[self.state].shape), found))).dtype
            found = found if np.can_cast(made, found, "same_kind") else made
        if found.kind not in NUMBERS:
            raise OptionError(f"goals would be of {found}, which is not a number: give {self.state!r} another dtype")
        return found

    def _make_timeline(self) -> Timeline:
        """An empty ring; the record of a step lies as bytes where the action has its place."""
        nothing, bytes_of_step = ArraySpec((0,), "uint8"), ArraySpec((self._step.itemsize,), "uint8")
        spec = GoalSpec(nothing, ArraySpec(self.goal_shape, self._goal_dtype.name), bytes_of_step)
        is_exact = self._goal_dtype.kind != "f" or np.can_cast(self._goal_dtype, np.float32)  # integers stay as they are
        widest = "float32" if is_exact and np.can_cast(self._reward_dtype, np.float32) else "float64"
        shortest = min(self.max_episode_len, SHORT_EPISODE)
        return Timeline(spec, self._size // self._per_row, shortest, (), widest)

    def _fill_timeline(self) -> None:
        """What lies beside the rows of the timeline."""
        timeline, rows = self._timeline, self._timeline.rows
        self._told = Told(self._chance, self._judge, self.additional_goals, self.strategy)
        self._priorities = ByErrorOfAll(len(rows), self._alpha, self._per_row, self._eps) if self.prioritized else None
        timeline.told, timeline.priorities = self._told, self._priorities

    @property
    def _per_row(self) -> int:
        return 1 + self.additional_goals

    def _steps_of(self, rows: Array) -> Array:
        """The records of the steps in rows of the timeline, a view."""
        place = {name: offset for name, (_, offset, *_) in (rows.dtype.fields or {}).items()}["action"]
        parts: Any = {"names": ["step"], "formats": [self._step], "offsets": [place], "itemsize": rows.dtype.itemsize}
        steps: Array = rows.view(np.dtype(parts))["step"]
        return steps

    def add(self, **fields: Any) -> None:
        """Store one step of the open episode, or n of them: fields of (shape) or (n, shape); strange ones are passed over.

        Raises KeyError for a missing field, and ValueError for a wrong shape, for numbers that an integer dtype cannot hold
        and for more steps than max_episode_len; nothing is stored then.
        """
        names = self._step.names or ()
        missing = [name for name in names if name not in fields]
        if missing:
            raise MissingFieldError(f"add was given {', '.join(fields) or 'nothing'}, but {', '.join(missing)} is missing")
        values = {name: as_steps(name, fields[name], self._step[name]) for name in names}
        count = max(map(len, values.values()))
        for name, value in values.items():
            if len(value) not in (1, count):
                raise ShapeError(f"{name} has {len(value)} steps, but another field has {count}: give as many of each")
        stop = self._open_steps + count
        if stop > self.max_episode_len:
            raise EpisodeTooLongError(
                f"Exceed Max Episode Length: this makes {stop} steps, but max_episode_len is {self.max_episode_len}: raise "
                f"it, or call on_episode_end first"
            )
        for name, value in values.items():
            self._open[name][self._open_steps : stop] = value
        self._open_steps = stop

    def on_episode_end(self, goal: Any) -> None:
        """End the open episode, whose goal was `goal`, (goal_shape) or one per step, and draw its extra goals.

        Without a step nothing happens. Raises ValueError where a function returns what cannot be used, or where the episode
        with its extra goals takes more than `size`; it is open then as before.
        """
        count = self._open_steps
        if not count:
            return
        if count * self._per_row > self._size:
            raise EpisodeTooLongError(
                f"{count} steps with {self.additional_goals} extra goals each take {count * self._per_row} places, but "
                f"size is {self._size}: raise it"
            )
        steps = self._open[:count]
        states = np.array(steps[self.next_state])
        achieved = self._as_goals(states if self.goal_func is None else self.goal_func(states), count)
        asked = self._as_asked(goal, count)
        self._timeline.append(
            Episode(
                observation=np.zeros((count + 1, 0), np.uint8),
                achieved_goal=np.concatenate([achieved[:1], achieved]),
                desired_goal=np.concatenate([asked, asked[-1:]]),
                action=steps.view(np.uint8).reshape(count, -1),
                reward=self._reward(steps, asked),
            )
        )
        self._open_steps = 0

    def _as_asked(self, goal: Any, count: int) -> Array:
        """The goal that was asked, for each of so many steps, (count, goal_shape)."""
        array = as_array("goal", goal)
        try:
            return cast("goal", np.broadcast_to(array, (count, *self.goal_shape)), self._goal_dtype)
        except CastError:
            raise
        except ValueError:
            raise ShapeError(f"goal has shape {array.shape}, but {self.goal_shape}, or one per step, is needed") from None

    def _as_goals(self, goals: Any, count: int) -> Array:
        """What goal_func returned for so many states, (count, goal_shape)."""
        array, shape = as_array("what goal_func returned", goals), (count, *self.goal_shape)
        if array.shape[:1] != (count,) or array.size != math.prod(shape):
            raise ShapeError(
                f"goals have shape {array.shape} for {count} states, but {shape} is needed: give their goal_shape"
            )
        return cast("goal_func", array.reshape(shape), self._goal_dtype)

    def _reward(self, steps: Array, goal: Array) -> Array:
        """What T steps pay under T goals, (T,); the function works on copies."""
        paid = np.asarray(self.reward_func(np.array(steps[self.next_state]), np.array(steps[self.action]), np.array(goal)))
        if paid.shape not in ((len(steps),), (len(steps), 1)) or paid.dtype.kind not in NUMBERS:
            raise GoalEnvError(
                f"reward_func returned shape {paid.shape} of {paid.dtype} for {len(steps)} steps, but ({len(steps)},) or "
                f"({len(steps)}, 1) numbers are needed: vectorise it"
            )
        if not np.isfinite(paid).all():
            raise GoalEnvError("reward_func returned NaN or infinity: the reward must be finite for every goal")
        return cast("reward_func", paid.reshape(len(steps)), self._reward_dtype)

    def _judge(self, rows: Array, entries: Array) -> None:
        """What the extra goals pay, all of the episode for one extra goal at a time."""
        steps = self._steps_of(rows)[:-1]
        for i in range(self.additional_goals):
            entries["reward"][:, i] = self._reward(steps, entries["goal"][:, i])

    def sample(self, batch_size: float, beta: float = 0.4) -> dict[str, Array]:
        """Transitions drawn at random: {name: (B, shape)} of env_dict's fields, rew (B, 1) and goal.

        With priorities also weights, (B,) float32, which are (N * share)^-beta over the largest of all that is stored, and
        indexes, (B,) uint64. beta: at least 0, read with priorities only. Raises NothingToSampleError if all is empty.
        """
        size = as_count("batch_size", batch_size, 1)
        if not 0 <= beta < np.inf:
            raise OptionError(f"beta is {beta}, but it must be at least 0 (no weights), and is at most 1 as a rule")
        if not self._timeline.num_transitions:
            raise NothingToSampleError("there is nothing to sample yet: no episode was ended, see on_episode_end")
        if self._priorities is None:
            row, u = self._chance.rows(size), self._chance.numbers(size)
            return self._transitions(row, (u * self._per_row).astype(np.int64))
        index = self._priorities.draw(self._chance.shares(size, size))
        batch = self._transitions(*divmod(index, self._per_row))
        return batch | {"weights": self._priorities.weights(index, beta), "indexes": index.astype(np.uint64)}

    def get_all_transitions(self, shuffle: bool = False) -> dict[str, Array]:
        """All that is stored, from the oldest episode on: its steps under the goal asked, then under each extra goal."""
        timeline, k = self._timeline, self._per_row
        row = timeline.live_rows()
        row = np.roll(row, -int(np.searchsorted(row, timeline.oldest)))
        done, length = timeline.steps_done[row], timeline.steps_done[row] + timeline.steps_left[row]
        first = k * (np.arange(len(row)) - done)
        place = (first + done)[:, None] + np.arange(k) * length[:, None]  # (rows, k)
        order = np.empty(len(row) * k, np.int64)
        order[place.ravel()] = np.arange(len(order))
        if shuffle:
            order = order[np.argsort(self._chance.numbers(len(order)))]
        return self._transitions(row[order // k], order % k)

    def _transitions(self, row: Array, entry: Array) -> dict[str, Array]:
        """Fresh arrays of stored transitions. entry: 0 under the goal that was asked, n under the n-th extra one."""
        rows, extra = take_records(self._timeline.rows, row), np.flatnonzero(entry)
        steps, entries = self._steps_of(rows), self._told.of(row[extra], entry[extra] - 1)
        reward, goal = rows["reward"].astype(self._reward_dtype), rows["desired_goal"].astype(self._goal_dtype)
        reward[extra], goal[extra] = entries["reward"], entries["goal"]
        batch = {name: np.array(steps[name]) for name in self._step.names or ()}
        return batch | {"rew": reward[:, None], "goal": goal}

    def update_priorities(self, indexes: Any, priorities: Any) -> None:
        """Say how wrong the values of sampled transitions were: two array-likes of as many numbers.

        Raises TypeError for None, and ValueError for NaN, infinity and negative numbers, for indexes of nothing, and where
        there are no priorities; nothing is changed then.
        """
        store = self._needed_priorities()
        if indexes is None or priorities is None:
            raise NothingGivenError("indexes or priorities are None: give those of a sample, and a number for each")
        index, error = as_array("indexes", indexes).ravel(), as_array("priorities", priorities).ravel()
        if index.size or error.size:
            store.update(index, error)

    def get_max_priority(self) -> float:
        """The largest priority so far, 1 at first: that of new transitions. Raises ValueError without priorities."""
        return self._needed_priorities().largest_error

    def _needed_priorities(self) -> ByErrorOfAll:
        if self._priorities is None:
            raise InputError("Buffer is constructed without PER: make it with prioritized=True")
        return self._priorities

    def get_stored_size(self) -> int:
        """Transitions stored, extra goals counted: 0 until the first episode has ended."""
        return self._per_row * len(self._timeline)

    def get_buffer_size(self) -> int:
        """`size`."""
        return self._size

    def clear(self) -> None:
        """Forget all transitions, the open episode and the priorities; chance goes on."""
        state = self._chance.state
        self._timeline, self._open_steps = self._make_timeline(), 0
        self._chance = Chance(self._timeline, 0)
        self._chance.load(state)
        self._fill_timeline()

    def save_transitions(self, file: str | Path | BinaryIO) -> None:
        """Write all but the functions as NumPy's .npz, without pickle: to a path, atomically, or to an open binary file.

        From it `load_transitions` goes on to the same bytes, the open episode and chance included.
        """
        arrays = self._timeline.state() | self._told.state(self._timeline.high_water)
        arrays |= {"random_state": self._chance.state, "open_steps": self._open[: self._open_steps].view(np.uint8)}
        if self._priorities is not None:
            arrays |= self._priorities.state(self._timeline.high_water)
        save_arrays(file, KIND, arrays, self._settings())

    def load_transitions(self, file: str | Path | BinaryIO) -> None:
        """Take the contents of another buffer of the same settings. Reading runs no code.

        Raises FileError, naming what differs or is damaged, and leaves the buffer as it was.
        """
        arrays, settings = load_arrays(file, KIND)
        mine = self._settings()
        differences = [
            f"{name} {mine[name]!r} against {settings.get(name)!r}" for name in mine if mine[name] != settings.get(name)
        ]
        if differences:
            raise FileError(f"the stored buffer is of another kind: {'; '.join(differences)}")
        try:
            self._check(arrays)
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise FileError(f"the stored buffer is malformed ({problem}): it is not ours, or damaged") from None
        self._timeline.load(arrays)
        self._told.load(arrays)
        if self._priorities is not None:
            self._priorities.load(arrays)
        self._chance.load(arrays["random_state"])
        steps = arrays["open_steps"].view(self._step)
        self._open[: len(steps)], self._open_steps = steps, len(steps)

    def _settings(self) -> dict[str, Any]:
        """What must agree between a file and the buffer that takes it, as JSON."""
        names = ("max_episode_len", "additional_goals", "strategy", "prioritized", "state", "action", "next_state")
        dtypes = {"fields": str(self._step), "goal": str(self._goal_dtype), "reward": str(self._reward_dtype)}
        numbers = {
            "size": self._size,
            "goal_shape": list(self.goal_shape),
            "alpha": float(self._alpha),
            "eps": float(self._eps),
        }
        return {name: getattr(self, name) for name in names} | dtypes | numbers

    def _check(self, arrays: Mapping[str, Array]) -> None:
        """Raise FileError, or what broken arrays cause, unless `arrays` are those of such a buffer."""
        self._timeline.check(arrays)
        rows = arrays["rows"].reshape(-1).view(self._timeline.rows.dtype)
        self._told.check(arrays, len(rows))
        if self._priorities is not None:
            self._priorities.check(arrays, rows["steps_left"])
        check_state(arrays["random_state"])
        steps = arrays["open_steps"]
        if steps.dtype != np.uint8 or steps.ndim != 1 or len(steps.view(self._step)) > self.max_episode_len:
            raise FileError(f"the open episode is {steps.shape} of {steps.dtype}, which is not one of this buffer")


class ByErrorOfAll(ByError):
    """Priorities whose weights are measured against the least of all that is stored, as cpprb does, not of the batch.

    The least is counted, so that it is looked for again only once the last of those that had it is gone.
    """

    names = "index", 'the "indexes" of a sample'

    def __init__(self, n_rows: int, alpha: float, per_row: int, smallest_error: float) -> None:
        if not 0 < smallest_error < np.inf:
            raise OptionError(f"eps is {smallest_error}, but a number above 0 is needed: else some are never drawn again")
        super().__init__(n_rows, alpha, per_row, smallest_error)
        self._least, self._n_least = np.inf, 0

    def set(self, rows: Array, values: Array) -> None:
        """As `Priorities.set`."""
        self._n_least -= int(np.count_nonzero(self.of(rows) == self._least))
        super().set(rows, values)
        values = self.of(rows)  # where one comes twice, the last
        lowest = float(values.min(where=values > 0, initial=np.inf))
        if lowest < self._least:
            self._least, self._n_least = lowest, 0
        if lowest == self._least:
            self._n_least += len(np.unique(rows[values == lowest]))

    def load(self, state: Mapping[str, Array]) -> None:
        """As `Priorities.load`."""
        self._least, self._n_least = np.inf, 0
        super().load(state)

    def weights(self, rows: Array, beta: float) -> Array:
        """(N * p / total)^-beta over the largest of all, (B,) float32: N and total cancel out."""
        if self._n_least <= 0:
            numbers = self._tree[0, : self.n_numbers]
            self._least = float(numbers.min(where=numbers > 0, initial=np.inf))
            self._n_least = int(np.count_nonzero(numbers == self._least))
        weights: Array = ((self._least / self.of(rows)) ** beta).astype(np.float32)
        return weights


def _refuse(options: Mapping[str, Any]) -> None:
    """Raise OptionError for what cpprb takes and this cannot do rightly."""
    reasons = {
        "next_of": "next states are kept as they were given: leave it out, and give them to add",
        "Nstep": "an extra goal is kept with the reward of one step: use hindsight.HindsightBuffer(n_steps=...) for more",
        "mmap_prefix": "all is kept in memory: leave it out",
    }
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name} is {value!r}, but {reasons[name]}")
