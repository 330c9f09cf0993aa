"""OpenEpisodes: the steps of episodes that have not ended yet, apart for each environment and outside the ring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FileError, MissingKeyError
from ..records import OBSERVATION_KEYS, Array
from .kernels import ENDED, FRESH, NEEDS_CARE, NOT_FINITE, OPEN, add_steps, float_table, open_layout
from .rows import INFO_PREFIX, Place, look, put, refuse_non_finite
from .timeline import Timeline, machine_memory

FIRST_ROOM = 64  # rows per environment at first; doubled whenever an episode needs more


class OpenEpisodes:
    """Stages the steps of `n_envs` environments, and hands each episode to the timeline when it ends.

    Of environment i, `rows[i, : steps[i]]` is the open episode and `rows[i, steps[i]]` holds what was seen last.
    phase: FRESH where nothing was seen, or a reset is known; OPEN inside an episode; ENDED right after one.
    closed: the environment and the steps of every episode that the last call handed over, in that order.
    """

    def __init__(self, timeline: Timeline, n_envs: int) -> None:
        self.timeline, self.n_envs = timeline, n_envs
        row = timeline.rows.dtype
        self.steps = np.zeros(n_envs, np.int64)
        self.phase = np.zeros(n_envs, np.int64)
        self.closed: list[tuple[int, int]] = []
        self._incoming = np.zeros((2, n_envs), row)  # one step of each: before, after
        self._truncated = np.zeros(n_envs, np.bool_)
        self._set_rows(np.zeros((n_envs, min(FIRST_ROOM, timeline.capacity + 1)), row))
        self._places = _places(self._incoming[0], self._incoming[1], self._truncated)
        self._bare_places = self._places
        if n_envs == 1:
            before, after = (rows.reshape(()) for rows in self._incoming)
            self._bare_places = _places(before, after, self._truncated.reshape(()))
        self._bare_dimensions = len(timeline.spec.observation.shape)

    @property
    def nbytes(self) -> int:
        """All memory that is held for open episodes."""
        return sum(a.nbytes for a in (self.rows, self.steps, self.phase, self._incoming, self._truncated))

    def add(self, observation: Any, next_observation: Any, values: tuple[Any, Any, Any, Any], info: Any) -> None:
        """Take one step of every environment; values: action, reward, terminated, truncated.

        Every check comes before anything is written; see `HindsightBuffer.add`.
        """
        self.closed.clear()
        before, after = look(observation, "observation"), look(next_observation, "next_observation")
        is_bare = self.n_envs == 1 and np.ndim(before[0]) == self._bare_dimensions
        places = self._bare_places if is_bare else self._places
        put(places, (*before, *after, *values))
        if info or self.timeline.info_keys:
            self._read_info(info)
        code, kept = self._add_steps()
        if code == NOT_FINITE:
            self._refuse(places, (*before, *after, *values))
        if code == NEEDS_CARE:
            self._make_way()
            code, kept = self._add_steps()
        if code:
            self._close_ended(kept)
            self.timeline.warn_of_goals()

    def close_all(self) -> None:
        """Close every open episode as truncated, after resets that nobody reported."""
        self.closed.clear()
        self._close(np.flatnonzero(self.steps), FRESH)
        self.phase[:] = FRESH
        self.timeline.warn_of_goals()

    def forget_ends(self) -> None:
        """Let the next step of every ended environment start an episode, whatever it shows: its reset is known."""
        self.phase[self.phase == ENDED] = FRESH

    def as_ended(self) -> Timeline:
        """A timeline of copies of the open episodes, as if they had been cut off now."""
        mine, steps = self.timeline, max(1, int(self.steps.sum()))
        cut = Timeline(mine.spec, steps, 1, mine.info_keys, mine.rows["reward"].dtype.name)
        cut.append_rows([self.rows[i, : self.steps[i] + 1].copy() for i in np.flatnonzero(self.steps)])
        return cut

    def _set_rows(self, rows: Array) -> None:
        """Let `rows` hold the open episodes, and prepare what the kernel is called with."""
        self.rows = rows
        incoming, open_rows = (each.reshape(-1).view(np.uint8) for each in (self._incoming, rows))
        layouts = (open_layout(rows.dtype), float_table(rows.dtype))
        self._arguments = (incoming, open_rows, *layouts, self.steps, self.phase, self._truncated)

    def _make_way(self) -> None:
        """Close the episodes that the incoming step does not go on from, and grow where there is no room for it."""
        incoming, open_rows, layout, *_ = self._arguments
        env, (row_bytes, head, *_) = np.arange(self.n_envs), layout
        seen = open_rows.reshape(self.n_envs, -1, row_bytes)[env, self.steps, :head]
        goes_on = (incoming.reshape(2, self.n_envs, row_bytes)[0, :, :head] == seen).all(axis=1)
        longest = int(self.steps[goes_on].max(initial=0)) + 1
        self.timeline.check_length(longest)
        self._close(np.flatnonzero((self.phase == OPEN) & ~goes_on), FRESH)
        if longest >= self.rows.shape[1]:
            more = np.zeros((self.n_envs, min(2 * longest, self.timeline.capacity + 1)), self.rows.dtype)
            more[:, : self.rows.shape[1]] = self.rows
            self._set_rows(more)

    def _close(self, envs: Array, phase: int) -> None:
        """Hand the open episodes of these environments to the timeline, all or none."""
        episodes = [self.rows[i, : self.steps[i] + 1] for i in envs]
        self.timeline.append_rows(episodes)
        self.closed += zip(envs.tolist(), self.steps[envs].tolist(), strict=True)
        for i, rows in zip(envs, episodes, strict=True):
            self.rows[i, 0] = rows[-1]
        self.steps[envs], self.phase[envs] = 0, phase

    def _add_steps(self) -> tuple[int, tuple[Array, Array, Array] | None]:
        """The code of `add_steps`, and what it changes, as it was: goals that are drawn at an end may yet refuse the step."""
        kept = None
        if self.timeline.told is not None:
            kept = self.steps.copy(), self.phase.copy(), self.rows[np.arange(self.n_envs), self.steps]
        return add_steps(*self._arguments), kept

    def _close_ended(self, kept: tuple[Array, Array, Array] | None) -> None:
        """Hand over what the last step ended; where that is refused, be as before the step, as `kept` has it."""
        try:
            self._close(np.flatnonzero((self.phase == ENDED) & (self.steps > 0)), ENDED)
        except Exception:
            if kept is not None:
                self.steps[:], self.phase[:] = kept[0], kept[1]
                self.rows[np.arange(self.n_envs), self.steps] = kept[2]
            raise

    def _read_info(self, info: Any) -> None:
        """Put the final observations, where an environment resets itself in the same step, and the declared info keys."""
        for i, final in _final_observations(info):
            after = self._incoming[1, i : i + 1].reshape(())
            places = [Place.of(f"final_obs[{i}][{key!r}]", after[key]) for key in OBSERVATION_KEYS]
            values = look(final, "final_obs")
            put(places, values)
            refuse_non_finite(places, values)
        for key in self.timeline.info_keys:
            place = Place.of(f"info[{key!r}]", self._incoming[0][INFO_PREFIX + key])
            put([place], [_info_column(info, key, self.n_envs)])

    def _refuse(self, places: Sequence[Place], values: Sequence[Any]) -> None:
        """Say what is not finite: a value of the step, or a number of the info."""
        refuse_non_finite(places, values)
        for key in self.timeline.info_keys:
            is_bad = ~np.isfinite(self._incoming[0][INFO_PREFIX + key])
            if is_bad.any():
                raise MissingKeyError(
                    f"info[{key!r}] is missing or not finite for environment {np.argmax(is_bad)}, but the reward needs it "
                    f"(info_keys)"
                )

    def state(self) -> dict[str, Array]:
        """All that `load` needs: the steps so far of every environment, one after the other, with what was seen last."""
        seen = [self.rows[i, : steps + 1].view(np.uint8) for i, steps in enumerate(self.steps)]
        rows = np.concatenate(seen).reshape(-1, self.rows.itemsize)
        return {"open_rows": rows, "open_steps": self.steps.copy(), "open_phase": self.phase.copy()}

    def check(self, state: Mapping[str, Array]) -> None:
        """Raise FileError unless `state` is that of open episodes of as many environments, of the same task."""
        rows, steps, phase = (state[key] for key in ("open_rows", "open_steps", "open_phase"))
        is_sound = (
            steps.shape == phase.shape == (self.n_envs,)
            and steps.dtype == phase.dtype == np.int64
            and ((steps >= 0) & (steps <= self.timeline.capacity)).all()
            and np.isin(phase, (FRESH, OPEN, ENDED)).all()
            and ((phase == OPEN) == (steps > 0)).all()
            and rows.dtype == np.uint8
            and rows.shape == (int(steps.sum()) + self.n_envs, self.rows.itemsize)
            and self.n_envs * (int(steps.max()) + 1) * self.rows.itemsize <= machine_memory()
        )
        if not is_sound:
            raise FileError(f"the stored open episodes do not fit {self.n_envs} environments of this task")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the open episodes of another buffer, after `check`."""
        counts = state["open_steps"] + 1
        rows = np.zeros((self.n_envs, max(self.rows.shape[1], int(counts.max()))), self.rows.dtype)
        for i, seen in enumerate(np.split(state["open_rows"], np.cumsum(counts)[:-1])):
            rows[i, : counts[i]].view(np.uint8).reshape(seen.shape)[...] = seen
        self._set_rows(rows)
        self.steps[:], self.phase[:] = state["open_steps"], state["open_phase"]


def _places(before: Array, after: Array, truncated: Array) -> tuple[Place, ...]:
    """Where each value of a step is put."""
    return (
        *(Place.of(f"observation[{key!r}]", before[key]) for key in OBSERVATION_KEYS),
        *(Place.of(f"next_observation[{key!r}]", after[key]) for key in OBSERVATION_KEYS),
        *(Place.of(key, before[key]) for key in ("action", "reward", "terminated")),
        Place.of("truncated", truncated),
    )


def _final_observations(info: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The last observations of episodes, where `next_observation` is already of the next one: (environment, dict)."""
    if isinstance(info, Mapping):
        finals = info.get("final_obs", ())
        finals = [finals] if isinstance(finals, Mapping) else finals
    else:
        finals = [each.get("final_obs") for each in info or ()]
    return ((i, final) for i, final in enumerate(finals) if final is not None)


def _info_column(info: Any, key: str, n_envs: int) -> Array:
    """One number per environment, NaN where there is none: from Gymnasium's dict of arrays or from a dict each."""
    if not isinstance(info, Mapping):
        return np.array([each.get(key, np.nan) for each in info or [{}] * n_envs], np.float64)
    column = np.full(n_envs, np.nan)
    if key in info:
        column = np.where(info.get(f"_{key}", True), np.asarray(info[key], np.float64), np.nan).reshape(n_envs)
    if "final_info" in info:
        final = _info_column(info["final_info"], key, n_envs)
        column = np.where(np.isnan(final), column, final)
    return column
