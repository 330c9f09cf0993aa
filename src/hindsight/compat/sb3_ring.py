"""Ring: where Stable-Baselines3 would have put every step, so that its arrays can be made when somebody asks for them.

SB3 writes the step that the n-th call of `add` brings from environment i to [n % size, i]. A timeline keeps episodes in the
order in which they ended, so one number for each of them is all there is to remember.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileError
from ..records import Array
from ..replay.buffer import HindsightBuffer
from ..replay.timeline import Timeline


class Ring:
    """Follows the episodes of a buffer of `n_envs` environments, `size` steps of each.

    n_added: how many calls of `add` there were. Step t of the episode that started with call n has the number
    (n + t) * n_envs + environment; the steps of episodes that no call of `add` brought have numbers below 0.
    """

    def __init__(self, size: int, n_envs: int) -> None:
        self.size, self.n_envs, self.n_added = size, n_envs, 0
        self._starts = [0] * n_envs  # the call with which the current episode of each environment started
        self._firsts: deque[int] = deque()  # the number of the first step of each finished episode, the oldest first
        self._lengths: deque[int] = deque()
        self._n_foreign = 0  # steps that no call of `add` brought

    def numbers(self) -> Array:
        """The numbers of the steps that the next call of `add` brings, (n_envs,)."""
        return self.n_added * self.n_envs + np.arange(self.n_envs)

    def follow(self, store: HindsightBuffer) -> list[int]:
        """After a change of `store`: note the episodes that ended; returns the numbers of the steps that were evicted."""
        for env, steps in store.open_episodes.closed:
            self._firsts.append(self._starts[env] * self.n_envs + env)
            self._lengths.append(steps)
            self._starts[env] += steps
        evicted: list[int] = []
        while len(self._firsts) > store.num_episodes:
            evicted += self._numbers_of(self._firsts.popleft(), self._lengths.popleft())
        return evicted

    def numbers_of_whole(self, steps: int) -> list[int]:
        """The numbers of the steps of an episode of so many that would come whole.

        With one environment they stand in the ring as if `add` had brought them; else it has no place for them.
        """
        first = self.n_added if self.n_envs == 1 else -(self._n_foreign + steps) * self.n_envs
        return self._numbers_of(first, steps)

    def insert(self, steps: int) -> None:
        """Note an episode of so many steps that came whole."""
        self._firsts.append(self.numbers_of_whole(steps)[0])
        self._lengths.append(steps)
        if self.n_envs == 1:
            self.n_added += steps
            self._starts[0] += steps
        else:
            self._n_foreign += steps

    def _numbers_of(self, first: int, steps: int) -> list[int]:
        return list(range(first, first + steps * self.n_envs, self.n_envs))

    def positions(self) -> Array:
        """Where the current episode of each environment starts, (n_envs,)."""
        return np.array(self._starts) % self.size

    def column(self, store: HindsightBuffer, field: str, after: int = 0) -> Array:
        """A field of every kept step, or of what came after it (1): the finished episodes, the oldest first, then the open.

        The order is that of `lay_out`.
        """
        open_episodes = store.open_episodes
        row = self._rows(store)[0] + after
        parts = [open_episodes.rows[field][i, after : after + n] for i, n in enumerate(open_episodes.steps)]
        return np.concatenate([store.timeline.rows[field][row], *parts])

    def lengths(self, store: HindsightBuffer) -> tuple[Array, Array]:
        """Of every kept step, in the order of `column`: the length of its episode, 0 while open, and the steps left."""
        row, length, _ = self._rows(store)
        is_open = np.zeros(int(store.open_episodes.steps.sum()), np.int64)
        return np.append(length, is_open), np.append(store.timeline.steps_left[row], is_open)

    def starts(self, store: HindsightBuffer) -> Array:
        """Of every kept step, in the order of `column`: the position at which its episode started."""
        first = self._rows(store)[2]
        return np.append(first // self.n_envs, np.repeat(self._starts, store.open_episodes.steps)) % self.size

    def lay_out(self, store: HindsightBuffer, values: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """`values` as SB3 lays them out: (size, n_envs, *shape), read-only; 0 where nothing is kept."""
        row, _, first = self._rows(store)
        n_open = store.open_episodes.steps
        call = first // self.n_envs + store.timeline.steps_done[row]
        open_call = [np.arange(start, start + n) for start, n in zip(self._starts, n_open, strict=True)]
        call = np.concatenate([call, *open_call])
        env = np.append(first % self.n_envs, np.repeat(np.arange(self.n_envs), n_open))
        is_shown = call >= max(0, self.n_added - self.size)
        out = np.zeros((self.size, self.n_envs, *shape), dtype)
        out[call[is_shown] % self.size, env[is_shown]] = values[is_shown].reshape(-1, *shape)
        out.flags.writeable = False
        return out

    def _rows(self, store: HindsightBuffer) -> tuple[Array, Array, Array]:
        """Of every step of finished episodes: its row, its episode's length, the number of its episode's first step."""
        first_row = _first_rows(store.timeline)
        length = store.timeline.steps_left[first_row].astype(np.int64)
        step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        first = np.array(self._firsts, np.int64)
        return np.repeat(first_row, length) + step, np.repeat(length, length), np.repeat(first, length)

    def state(self) -> dict[str, Array]:
        """All that `load` needs."""
        counters = np.array([self.n_added, self._n_foreign, *self._starts], np.int64)
        return {"ring": counters, "ring_firsts": np.array(self._firsts, np.int64)}

    def load(self, state: Mapping[str, Array], store: HindsightBuffer) -> None:
        """Take the state that goes with the contents of `store`; raises FileError where the two disagree."""
        counters, firsts = state["ring"], state["ring_firsts"]
        n_added, n_foreign, *starts = counters.tolist() if counters.shape == (2 + self.n_envs,) else [-1, -1]
        n_open = store.open_episodes.steps.tolist()
        if firsts.shape != (store.num_episodes,) or [n_added - n for n in n_open] != starts:
            raise FileError("the places of the stored episodes disagree with them: the file is not ours, or damaged")
        self.n_added, self._n_foreign, self._starts = n_added, n_foreign, starts
        self._firsts = deque(firsts.tolist())
        self._lengths = deque(store.timeline.steps_left[_first_rows(store.timeline)].tolist())


def _first_rows(timeline: Timeline) -> Array:
    """The first row of every live episode, the oldest first."""
    left, done = timeline.steps_left[: timeline.high_water], timeline.steps_done[: timeline.high_water]
    rows = np.flatnonzero((left > 0) & (done == 0))
    return np.roll(rows, -int(np.searchsorted(rows, timeline.oldest)))
