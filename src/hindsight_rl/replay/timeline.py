"""Timeline: a ring buffer of steps, one row per step. Whole episodes enter and leave, the oldest first.

An episode of T steps takes T + 1 adjacent rows. A row starts a transition exactly if its `steps_left` is above 0. It is 0
in the last row of an episode, which holds the last next_observation, and in unwritten and evicted rows. The ring therefore
needs no mask and no scan.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import EpisodeTooLongError, FileError, InputError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from ..records.info_keys import info_shapes
from ..records.statistics import LARGEST_GOAL
from ..storage import free_memory
from .kernels import finish_rows, float_table, row_layout
from .priorities import Priorities
from .rows import INFO_PREFIX, Fields, Limits, check_stored, limits_of, row_dtype, select, whole_number

USUAL_EPISODE_LENGTH = 20  # steps, assumed without episode_length: each episode takes one row more than it has steps
MAX_WRAPS = 2**31  # beyond it, write positions would overflow
ALWAYS_ALLOWED = 64 << 20  # bytes, for which the limits of memory are not read
PRECISE = (np.array([-LARGEST_GOAL]), np.array([LARGEST_GOAL]))  # goals that float32 stores precisely enough


class Timeline:
    """A ring that holds up to `capacity` transitions of one task.

    capacity: number of transitions.
    episode_length: usual number of steps of an episode. `capacity` transitions of such episodes fit exactly. With other
        lengths, as many as fit are kept.
    info_keys: entries of the info that the reward needs; "force[3]" is an array of three numbers.
    dtype: widest float that is stored, "float32" or "float64". None: "float64" if the bounds of float64 goals exceed 2048.
    n_stored_goals: goals that `draw_goals` draws for each row.

    rows: the structured array itself. numbers: the same as int32, flat. layout: see `kernels.row_layout`.
    cursor: row of the next episode. wraps: how often it has wrapped. high_water: no row from it on was ever written.
    limits: of the actions, see `limits_of`.
    priorities: of the rows, None for uniform sampling. draw_goals: called with the first row and the steps of each new
        episode, fills its stored goals. Both are set while the timeline is empty.
    """

    def __init__(
        self,
        spec: GoalSpec,
        capacity: int,
        episode_length: int | None = None,
        info_keys: Sequence[str] = (),
        dtype: str | None = None,
        n_stored_goals: int = 0,
    ) -> None:
        self.spec, self.capacity, self.info_keys = spec, whole_number("capacity", capacity, 1), tuple(info_keys)
        self.n_stored_goals = n_stored_goals
        self.episode_length = None if episode_length is None else whole_number("episode_length", episode_length, 1)
        self.info_shapes = info_shapes(self.info_keys)
        row = row_dtype(spec, info_keys, dtype or _default_dtype(spec), n_stored_goals)
        last_rows = -(-self.capacity // (self.episode_length or USUAL_EPISODE_LENGTH))
        self.rows = zero_rows(self.capacity + last_rows, row)
        self.steps_done: Array = self.rows["steps_done"]
        self.steps_left: Array = self.rows["steps_left"]
        self._bytes = self.rows.view(np.uint8).reshape(len(self.rows), row.itemsize)
        self.numbers: Array = self.rows.view(np.int32)
        # The episode that is being validated, as rows and as int32. Episodes of the same length reuse it.
        self._scratch = self._scratch_numbers = np.zeros(0, row)
        self._fields = Fields({})
        self.layout = row_layout(row)
        self.limits: Limits = {"action": limits_of(spec.action)}
        watched = OBSERVATION_KEYS[1:] if spec.goal.dtype == "float64" and row["reward"] == np.float32 else ()
        self._floats = float_table(row, {**self.limits, **dict.fromkeys(watched, PRECISE)})
        self._large_goal = 0.0  # the first goal that float32 stores coarsely, until the warning
        self._starts: deque[int] = deque()  # the first row of each stored episode, the oldest first
        self.num_transitions = self.high_water = self.cursor = self.wraps = 0
        self._live: Array | None = None
        self.priorities: Priorities | None = None
        self.draw_goals: Callable[[int, int], None] | None = None

    def __len__(self) -> int:
        """Number of live transitions."""
        return self.num_transitions

    @property
    def num_episodes(self) -> int:
        """Number of stored episodes."""
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """Memory in bytes, priorities included."""
        return self.rows.nbytes + (0 if self.priorities is None else self.priorities.nbytes)

    def live_rows(self) -> Array:
        """Return all rows that start a transition, in order. The list is cached until the next change."""
        if self._live is None:
            self._live = np.flatnonzero(self.steps_left[: self.high_water])
        return self._live

    def append(self, episode: Episode) -> None:
        """Add a whole episode.

        Raises EpisodeTooLongError, ShapeError, NonFiniteError, CastError, MissingKeyError or InputError. Nothing is stored
        then.
        """
        if not isinstance(episode, Episode):
            raise InputError(f"Expected a hindsight_rl.records.Episode, got {episode!r}.")
        steps = len(episode)
        if steps == 0:
            raise InputError("An episode must have at least 1 step, got 0.")
        self.check_length(steps)
        if len(self._scratch) != steps + 1:
            self._make_scratch(steps)
        rows = self._scratch
        info = select(episode.info, tuple(self.info_shapes), "the info of the episode") if self.info_keys else ()
        observations = (episode.observation, episode.achieved_goal, episode.desired_goal)
        values = (*observations, episode.action, episode.reward, *info)
        self._fields.write(values)
        rows["terminated"][steps - 1] = episode.terminated
        if not finish_rows(self._scratch_numbers, self.layout, self._floats):
            self._fields.refuse(values)
            self._note_large_goal(rows)
        self._write(self._scratch_numbers)
        self.warn_of_goals()

    def episodes(self, most: int | None = None) -> list[Episode]:
        """Return copies of the stored episodes, the oldest first, as far as rows hold them: without success and number.

        most: not more than so many; None: all.
        """
        return [_episode(rows, tuple(self.info_shapes)) for rows in self._episode_rows()[:most]]

    def paths(self) -> list[Array]:
        """Return the achieved goals of each stored episode, (T+1, *goal), views, the oldest first."""
        return [rows["achieved_goal"] for rows in self._episode_rows()]

    def first_rows(self) -> Array:
        """Return the first row of each stored episode, the oldest first."""
        return np.array(self._starts, np.int64)

    def _episode_rows(self) -> list[Array]:
        return [self.rows[row : row + self.steps_left[row] + 1] for row in self.first_rows()]

    def append_rows(self, episodes: Sequence[Array]) -> None:
        """Add episodes, all or none: T + 1 records of finite numbers each. Their step counts are filled in.

        The caller calls `warn_of_goals` once its own work is done. Raises EpisodeTooLongError.
        """
        all_numbers = [rows.view(np.int32) for rows in episodes]
        for rows, numbers in zip(episodes, all_numbers, strict=True):
            self.check_length(len(rows) - 1)
            if not finish_rows(numbers, self.layout, self._floats):
                self._note_large_goal(rows)
        for numbers in all_numbers:
            self._write(numbers)

    def holds(self, row: Array) -> Array:
        """Return whether each is a row of a stored episode, its last row included. row: (B,) integers, any."""
        is_row = (row >= 0) & (row < self.high_water)
        place = np.where(is_row, row, 0)
        is_held: Array = is_row & (self.steps_left[place] + self.steps_done[place] > 0)
        return is_held

    def positions(self, row: Array) -> Array:
        """Return the write positions of live rows: row + len(rows) * wraps when it was written. They never repeat."""
        return row + len(self.rows) * (self.wraps - (row >= self.cursor)) if self.wraps else row

    def live_positions(self) -> tuple[int, int]:
        """Return the range of write positions that are stored: that of the oldest episode, and that of the cursor."""
        stop = len(self.rows) * self.wraps + self.cursor
        if not self._starts:
            return stop, stop
        is_before_wrap = self._starts[0] >= self.cursor
        return len(self.rows) * (self.wraps - is_before_wrap) + self._starts[0], stop

    def _note_large_goal(self, rows: Array) -> None:
        self._large_goal = _coarse_goal(rows)
        self._floats = float_table(rows.dtype, self.limits)

    def warn_of_goals(self) -> None:
        """Warn once if float64 goals were stored that lose precision in float32."""
        if self._large_goal:
            largest, self._large_goal = np.float32(self._large_goal), 0.0
            warnings.warn(
                f"Goals up to {largest:g} lose precision in float32 (spacing {np.spacing(largest):.1g}). If the reward "
                f'threshold is finer, give the goal space finite bounds, or set the option dtype="float64".',
                stacklevel=4,
            )

    def _make_scratch(self, steps: int) -> None:
        """Allocate rows for an episode of `steps` steps. The last row has no action, reward and info."""
        rows = self._scratch = np.zeros(steps + 1, self.rows.dtype)
        self._scratch_numbers = rows.view(np.int32)
        names = ("action", "reward", *(INFO_PREFIX + key for key in self.info_shapes))
        arrays = {key: rows[key] for key in OBSERVATION_KEYS} | {name: rows[name][:-1] for name in names}
        self._fields = Fields(arrays, self.limits)

    def _write(self, numbers: Array) -> None:
        """Copy finished rows, int32, into the ring. The oldest episodes make room."""
        width = self.rows.itemsize // 4
        steps = len(numbers) // width - 1
        start = self._make_room(steps)
        stop = start + steps + 1
        self.numbers[start * width : stop * width] = numbers
        self.cursor, self.high_water = stop, max(self.high_water, stop)
        self._starts.append(start)
        self.num_transitions += steps
        self._live = None
        if self.priorities is not None:
            self.priorities.enter(start, self.rows[start:stop])
        if self.draw_goals is not None:
            self.draw_goals(start, steps)

    def check_length(self, steps: int) -> None:
        """Raise EpisodeTooLongError if an episode of `steps` steps can never fit."""
        if steps > self.capacity:
            sizes = f"Episode has {steps} steps, but capacity is {self.capacity} transitions"
            raise EpisodeTooLongError(f"{sizes}. Increase capacity, or limit the length of episodes.")

    def _make_room(self, steps: int) -> int:
        """Evict episodes until one of `steps` steps can be written. Return its first row."""
        wraps = self.cursor + steps + 1 > len(self.rows)
        start = 0 if wraps else self.cursor
        self.wraps += wraps
        while self._starts and self._must_evict(start, steps):
            self._evict_oldest()
        return start

    def _must_evict(self, start: int, steps: int) -> bool:
        """Return whether the oldest episode must leave: for its rows, for capacity, or because the cursor wraps past it."""
        is_passed = start < self.cursor <= self._starts[0]
        is_overwritten = start <= self._starts[0] <= start + steps
        return is_passed or is_overwritten or self.num_transitions + steps > self.capacity

    def _evict_oldest(self) -> None:
        oldest = self._starts.popleft()
        steps = int(self.steps_left[oldest])
        if self.priorities is not None:
            self.priorities.leave(oldest, steps)
        self.steps_left[oldest : oldest + steps + 1] = 0
        self.steps_done[oldest : oldest + steps + 1] = 0
        self.num_transitions -= steps

    def state(self) -> dict[str, Array]:
        """Return what `load` needs, without a copy: the written rows as bytes, `cursor` and `wraps`, the priorities."""
        state = {"rows": self._bytes[: self.high_water], "cursor": np.array([self.cursor, self.wraps])}
        return state if self.priorities is None else state | self.priorities.state(self.high_water)

    def check(self, state: Mapping[str, Array]) -> None:
        """Raise FileError unless `state` is that of a timeline with the same rows and priorities.

        The step counts must describe whole adjacent episodes, because the compiled loops rely on them.
        """
        rows = state["rows"]
        if rows.dtype != np.uint8 or rows.shape[1:] != self._bytes.shape[1:] or len(rows) > len(self.rows):
            got = f"{rows.shape} of {rows.dtype}"
            raise FileError(f"The stored rows must be at most {self._bytes.shape} of uint8, got {got}.")
        check_stored("cursor", state["cursor"], (2,), np.int64)
        records = np.ascontiguousarray(rows).view(self.rows.dtype).reshape(-1)
        _find_episodes(records["steps_done"], records["steps_left"], *state["cursor"].tolist())
        if self.priorities is not None:
            self.priorities.check(state, records["steps_left"])

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the contents of another timeline from a checked state."""
        rows, (self.cursor, self.wraps) = state["rows"], state["cursor"].tolist()
        for counts in (self.steps_done, self.steps_left):
            counts[len(rows) : self.high_water] = 0
        self._bytes[: len(rows)] = rows
        self.high_water, self._live = len(rows), None
        done, left = self.steps_done[: len(rows)], self.steps_left[: len(rows)]
        self._starts = deque(_find_episodes(done, left, self.cursor, self.wraps).tolist())
        self.num_transitions = int(np.count_nonzero(self.steps_left))
        if self.priorities is not None:
            self.priorities.load(state)


def _episode(rows: Array, info_names: Sequence[str]) -> Episode:
    return Episode(
        observation=rows["observation"].copy(),
        achieved_goal=rows["achieved_goal"].copy(),
        desired_goal=rows["desired_goal"].copy(),
        action=rows["action"][:-1].copy(),
        reward=rows["reward"][:-1].copy(),
        terminated=bool(rows["terminated"][-2]),
        info={key: rows[INFO_PREFIX + key][:-1].copy() for key in info_names},
    )


def _find_episodes(done: Array, left: Array, cursor: int, wraps: int) -> Array:
    """Return the first rows of the episodes, the oldest first.

    Raises FileError unless rows with these step counts are whole episodes that are adjacent from the oldest to the cursor.
    """
    starts = np.flatnonzero((left > 0) & (done == 0))
    lengths = left[starts].astype(np.int64) + 1
    stops = starts + lengths
    n_new = int(np.searchsorted(starts, cursor))  # episodes in front of the cursor; those behind it are older
    gaps, is_wrapped = starts[1:] - stops[:-1], n_new < len(starts)
    is_adjacent = gaps == 0
    is_adjacent[n_new - 1 : n_new] = gaps[n_new - 1 : n_new] >= 0  # between the newest and the oldest episode
    if not len(starts):
        is_sound = cursor == wraps == len(left) == 0
    elif n_new and is_adjacent.all() and stops[-1] <= len(left) and (starts[0] == 0 < wraps or not is_wrapped):
        step = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        expected = np.zeros((2, len(left)), np.int64)
        expected[:, np.repeat(starts, lengths) + step] = step, np.repeat(lengths - 1, lengths) - step
        is_sound = stops[n_new - 1] == cursor and np.array_equal(expected, (done, left))
    else:
        is_sound = False
    if not is_sound or not 0 <= wraps < MAX_WRAPS:
        raise FileError("The stored rows are not whole episodes, or do not fit the cursor. The file is damaged.")
    return np.roll(starts, -n_new)


def _coarse_goal(rows: Array) -> float:
    """Return the largest number of goals that float32 stores coarsely; 0 if they lie far apart too: their unit is small."""
    goals = np.concatenate([rows[key] for key in OBSERVATION_KEYS[1:]]).astype(np.float64)
    largest, extent = float(np.abs(goals).max()), float(np.ptp(goals, axis=0).max())
    return largest if largest > LARGEST_GOAL * extent else 0.0


def _default_dtype(spec: GoalSpec) -> str:
    """Return "float64" if the bounds of float64 goals show that float32 would store them coarsely, else "float32"."""
    bounds = np.abs([*spec.goal.low, *spec.goal.high])
    is_large = spec.goal.dtype == "float64" and (np.isfinite(bounds) & (bounds > LARGEST_GOAL)).any()
    return "float64" if is_large else "float32"


def zero_rows(length: int, row: np.dtype[Any]) -> Array:
    """Return `length` zero rows. Raises OptionError if they exceed the free memory."""
    needed = length * row.itemsize
    if needed > ALWAYS_ALLOWED and needed > (free := free_memory()):
        sizes = f"The rows take {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB of memory are free"
        raise OptionError(f"{sizes}. Lower capacity or n_envs, or end other programs.")
    return np.zeros(length, row)
