"""StorageArrays: the storage of a HindsightBuffer in the layout of Stable-Baselines3's replay buffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import FileError
from ..records import OBSERVATION_KEYS, Array
from ..replay.buffer import HindsightBuffer

# Array: its values for an episode with T + 1 rows, of length 0 while open.
VALUES: dict[str, Callable[[Array, int], Any]] = {
    "observations": lambda rows, length: rows[:-1],
    "next_observations": lambda rows, length: rows[1:],
    "actions": lambda rows, length: rows["action"][:-1],
    "rewards": lambda rows, length: rows["reward"][:-1],
    "dones": lambda rows, length: np.arange(1, len(rows)) == length,
    "timeouts": lambda rows, length: (np.arange(1, len(rows)) == length) & ~rows["terminated"][:-1],
    "ep_length": lambda rows, length: np.int64(length),
}


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
        """Return (size, n_envs, ...). name: of VALUES. key: of an observation, else as name."""
        shape, dtype = self._types.get(key, ((), np.float32))
        out = np.zeros((self._size, self._n_envs, *shape), dtype)
        for numbers, rows, length in self._stored_episodes():
            call, env = np.divmod(numbers, self._n_envs)
            is_shown, values = call >= max(0, self.n_added - self._size), VALUES[name](rows, length)
            values = np.broadcast_to(values[key] if key in OBSERVATION_KEYS else values, (len(call), *shape))
            out[call[is_shown] % self._size, env[is_shown]] = values[is_shown]
        out.flags.writeable = False
        return out

    def _stored_episodes(self) -> Iterator[tuple[Array, Array, int]]:
        """Yield step numbers, rows and length of the finished episodes, the oldest first, then of the open ones."""
        timeline, open_episodes = self._buffer.timeline, self._buffer.open_episodes
        for numbers, row in zip(self._episodes, self._first_rows(), strict=True):
            yield np.array(numbers), timeline.rows[row : row + len(numbers) + 1], len(numbers)
        for env, steps in enumerate(open_episodes.steps.tolist()):
            numbers = self._numbers(self.starts[env] * self._n_envs + env, steps)
            yield np.array(numbers, np.int64), open_episodes.rows[env, : steps + 1], 0

    def _first_rows(self) -> Array:
        """Return the first row of each finished episode, the oldest first."""
        timeline = self._buffer.timeline
        rows = timeline.live_rows()
        rows = rows[timeline.steps_done[rows] == 0]
        return np.roll(rows, -int(np.searchsorted(rows, timeline.oldest)))

    def state(self) -> dict[str, Array]:
        """Return what `load` needs beside the buffer's own state."""
        counters = np.array([self.n_added, *self.starts], np.int64)
        return {"sb3_counters": counters, "sb3_numbers": np.array([numbers[0] for numbers in self._episodes], np.int64)}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take over the state that belongs to the contents of the buffer. Raises FileError if the two disagree."""
        self.n_added, *self.starts = state["sb3_counters"].tolist()
        first_numbers, steps_left = state["sb3_numbers"].tolist(), self._buffer.timeline.steps_left
        expected = [self.n_added - steps for steps in self._buffer.open_episodes.steps.tolist()]
        if self.starts != expected or len(first_numbers) != self._buffer.num_episodes:
            raise FileError("The positions of the stored episodes do not fit them: the file is damaged.")
        lengths = steps_left[self._first_rows()].tolist()
        self._episodes = deque(map(self._numbers, first_numbers, lengths))
