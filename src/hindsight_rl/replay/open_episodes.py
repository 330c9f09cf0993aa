"""OpenEpisodes: the steps of episodes that have not ended yet, one row of memory per environment, outside the ring."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FileError, InputError, MissingKeyError, OptionError
from ..records import OBSERVATION_KEYS, Array
from ..storage import free_memory
from .kernels import ENDED, FRESH, NEEDS_CARE, OPEN, REFUSED, add_steps, float_table
from .rows import INFO_PREFIX, Fields, as_bytes, select_observation, whole_number
from .timeline import Timeline, zero_rows

SHORT_BREAKS = 3  # episodes of one step that were cut by a break, at which a warning is given
OVERLAP_WORK = 10_000  # candidate solutions of NumPy's search for a common byte; slices need fewer than ten
FIRST_ROOM = 64  # rows per environment at first, doubled when an episode needs more
DISABLED, NEXT_STEP, SAME_STEP = AUTORESET_MODES = ("disabled", "next_step", "same_step")


def check_autoreset(autoreset: Any, n_envs: int) -> str:
    """Return the name of an autoreset mode: a name, Gymnasium's AutoresetMode, or None for one environment.

    "disabled": the caller resets after an end.
    "next_step": the step after an end is the reset. It is skipped.
    "same_step": the environment resets in the step that ends; the last observation is in info["final_obs"].
    Raises OptionError for other values, and for None with several environments.
    """
    modes = ", ".join(map(repr, AUTORESET_MODES))
    if autoreset is None and n_envs == 1:
        return DISABLED
    if autoreset is None:
        raise OptionError(f'autoreset must be one of {modes}, got None. Pass env.metadata["autoreset_mode"].')
    name = str(getattr(autoreset, "value", autoreset)).lower().replace("nextstep", NEXT_STEP).replace("samestep", SAME_STEP)
    if name not in AUTORESET_MODES:
        raise OptionError(f"autoreset must be one of {modes}, got {autoreset!r}.")
    return name


class OpenEpisodes:
    """Collect the steps of `n_envs` environments and append each episode to the timeline when it ends.

    autoreset: see `check_autoreset`.
    rows, steps: `rows[i, : steps[i]]` is the open episode of environment i, and `rows[i, steps[i]]` holds its last
        observation.
    phase: FRESH before the first step or after a known reset, OPEN inside an episode, ENDED right after one.
    closed: (environment, steps) of every episode that the last call appended, in that order.
    breaks: how many steps did not start from the last next_observation, without a known reset.
    """

    def __init__(self, timeline: Timeline, n_envs: int, autoreset: Any = None) -> None:
        self.timeline, self.n_envs = timeline, whole_number("n_envs", n_envs, 1)
        self.autoreset = check_autoreset(autoreset, n_envs)
        row, room = timeline.rows.dtype, min(FIRST_ROOM, timeline.capacity + 1)
        rows = zero_rows(n_envs * room, row).reshape(n_envs, room)
        self.steps = np.zeros(n_envs, np.int64)
        self.phase = np.zeros(n_envs, np.int64)
        self.closed: list[tuple[int, int]] = []
        self.breaks = self._short_breaks = 0
        self._is_checked, self._needs_info = False, bool(timeline.info_keys) or self.autoreset == SAME_STEP
        self._incoming = np.zeros((2, n_envs), row)  # one step of each environment: before, after
        self._truncated = np.zeros(n_envs, np.bool_)
        self._fields = self._bare_fields = _fields_of(self._incoming[0], self._incoming[1], self._truncated, timeline)
        if n_envs == 1:
            before, after = (rows.reshape(()) for rows in self._incoming)
            self._bare_fields = _fields_of(before, after, self._truncated.reshape(()), timeline)
        self._set_rows(rows)
        self._bare_dimensions = len(timeline.spec.observation.shape)

    def add(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        terminated: Any,
        truncated: Any,
        info: Any,
    ) -> None:
        """Add one step of every environment, see `HindsightBuffer.add`. All checks come before anything is written."""
        self.closed.clear()
        before = select_observation(observation, "observation")
        after = select_observation(next_observation, "next_observation")
        is_bare = self.n_envs == 1 and np.ndim(before[0]) == self._bare_dimensions
        fields = self._bare_fields if is_bare else self._fields
        values = (*before, *after, action, reward, terminated, truncated)
        if not self._is_checked:
            _refuse_shared_memory(before, after)
            self._is_checked = True
        fields.write(values)
        if info or self._needs_info:
            self._read_info(info)
        code = add_steps(*self._arguments)
        if code == REFUSED:
            self._refuse(fields, values)
        if code == NEEDS_CARE:
            self._make_way(before, after)
            code = add_steps(*self._arguments)
        if code:
            self._close(np.flatnonzero((self.phase == ENDED) & (self.steps > 0)), ENDED)
            self.timeline.warn_of_goals()

    def close_all(self) -> None:
        """Append every open episode as truncated, and let the next step of every environment start an episode."""
        self.closed.clear()
        self._close(np.flatnonzero(self.steps), FRESH)
        self.phase[:] = FRESH
        self.timeline.warn_of_goals()

    def as_truncated(self) -> Timeline:
        """Return a timeline with copies of the open episodes, as if they were truncated now."""
        mine, steps = self.timeline, max(1, int(self.steps.sum()))
        copy = Timeline(mine.spec, steps, 1, mine.info_keys, mine.rows["reward"].dtype.name, mine.n_stored_goals)
        copy.append_rows([self.rows[i, : self.steps[i] + 1].copy() for i in np.flatnonzero(self.steps)])
        return copy

    def _set_rows(self, rows: Array) -> None:
        """Use `rows` as memory of the open episodes."""
        self.rows = rows
        layouts = (self.timeline.layout, float_table(rows.dtype, self.timeline.limits))
        state = (self.steps, self.phase, self._truncated, self.autoreset == NEXT_STEP)
        self._arguments = (as_bytes(self._incoming), as_bytes(rows), *layouts, *state)

    def _make_way(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Close the episodes that the incoming step does not continue. Enlarge the memory if an episode needs it."""
        continues = self._continues()
        is_break = ~continues & ((self.phase == OPEN) | (self.phase == ENDED) & (self.autoreset == NEXT_STEP))
        if is_break.any():
            _refuse_shared_memory(before, after)
        longest = int(self.steps[continues].max(initial=0)) + 1
        self.timeline.check_length(longest)
        self._count_breaks(is_break)
        self._close(np.flatnonzero(is_break & (self.phase == OPEN)), FRESH)
        self.phase[is_break] = FRESH
        if longest >= self.rows.shape[1]:
            more = np.zeros((self.n_envs, min(2 * longest, self.timeline.capacity + 1)), self.rows.dtype)
            more[:, : self.rows.shape[1]] = self.rows
            self._set_rows(more)

    def _continues(self) -> Array:
        """Return which steps start from the last next_observation, (n_envs,). Their bytes become equal: 0.0 is -0.0."""
        incoming, last = self._incoming[0], self.rows[np.arange(self.n_envs), self.steps]
        keys = OBSERVATION_KEYS[:2]
        is_same = [(incoming[key] == last[key]).reshape(self.n_envs, -1).all(axis=1) for key in keys]
        continues: Array = is_same[0] & is_same[1]
        for key in keys:
            incoming[key][continues] = last[key][continues]
        return continues

    def _count_breaks(self, is_break: Array) -> None:
        """Count the steps that do not start from the last next_observation. Warn once if they cut episodes to one step."""
        was_short = self._short_breaks < SHORT_BREAKS
        self.breaks += int(is_break.sum())
        self._short_breaks += int((is_break & (self.steps == 1)).sum())
        if was_short and self._short_breaks >= SHORT_BREAKS:
            warnings.warn(
                f"{self._short_breaks} episodes were closed as truncated after 1 step, because the next observation was "
                f"not their next_observation. Pass what the step returned, without new noise or normalization.",
                stacklevel=5,
            )

    def _close(self, envs: Array, phase: int) -> None:
        """Append the open episodes of these environments to the timeline, all or none."""
        episodes = [self.rows[i, : self.steps[i] + 1] for i in envs]
        self.timeline.append_rows(episodes)
        self.closed += zip(envs.tolist(), self.steps[envs].tolist(), strict=True)
        for i, rows in zip(envs, episodes, strict=True):
            self.rows[i, 0] = rows[-1]
        self.steps[envs], self.phase[envs] = 0, phase

    def _read_info(self, info: Any) -> None:
        """Write the final observations of autoreset "same_step" and the info values that the reward needs."""
        if self.autoreset == SAME_STEP:
            finals = _final_observations(info, self.n_envs)
            for i in np.flatnonzero(self._truncated | self._incoming[0]["terminated"]).tolist():
                self._write_final(i, finals[i])
        elif any("final_obs" in each for each in _infos(info)):
            raise InputError(f"info has final_obs, so autoreset must be 'same_step', but it is {self.autoreset!r}.")
        for key, shape in self.timeline.info_shapes.items():
            field = Fields({f"info[{key!r}]": self._incoming[0][INFO_PREFIX + key]})
            try:
                column = _info_column(info, key, (self.n_envs, *shape))
            except ValueError as problem:
                expected = f"numbers of shape {shape} in each of {self.n_envs} environments"
                raise InputError(f"info[{key!r}] must have {expected} ({problem}). Correct `info_keys`.") from None
            field.write([column])

    def _write_final(self, i: int, final: Any) -> None:
        if final is None:
            raise MissingKeyError(f"autoreset is 'same_step', but info has no final_obs for environment {i}, which ended.")
        after = self._incoming[1, i : i + 1].reshape(())
        fields = Fields({f"final_obs[{i}][{key!r}]": after[key] for key in OBSERVATION_KEYS})
        values = select_observation(final, "final_obs")
        fields.write(values)
        fields.refuse(values)

    def _refuse(self, fields: Fields, values: Sequence[Any]) -> None:
        """Raise for what cannot be stored: a value of the step, or an info value that is not finite."""
        fields.refuse(values)
        for key, shape in self.timeline.info_shapes.items():
            is_bad = ~np.isfinite(self._incoming[0][INFO_PREFIX + key]).reshape(self.n_envs, -1).all(1)
            if is_bad.any():
                expected = f"{shape} finite numbers" if shape else "a finite number"
                raise MissingKeyError(f"info[{key!r}] must be {expected} in environment {np.argmax(is_bad)}.")

    def state(self) -> dict[str, Array]:
        """Return what `load` needs: the rows of all open episodes, one after the other, each with its last observation."""
        held = [as_bytes(self.rows[i, : steps + 1]) for i, steps in enumerate(self.steps)]
        rows = np.concatenate(held).reshape(-1, self.rows.itemsize)
        return {"open_rows": rows, "open_steps": self.steps.copy(), "open_phase": self.phase.copy()}

    def check(self, state: Mapping[str, Array]) -> None:
        """Raise FileError unless `state` is that of open episodes of the same task and number of environments."""
        rows, steps, phase = (state[key] for key in ("open_rows", "open_steps", "open_phase"))
        is_sound = (
            steps.shape == phase.shape == (self.n_envs,)
            and steps.dtype == phase.dtype == np.int64
            and ((steps >= 0) & (steps <= self.timeline.capacity)).all()
            and np.isin(phase, (FRESH, OPEN, ENDED)).all()
            and ((phase == OPEN) == (steps > 0)).all()
            and rows.dtype == np.uint8
            and rows.shape == (int(steps.sum()) + self.n_envs, self.rows.itemsize)
            and self.n_envs * (int(steps.max()) + 1) * self.rows.itemsize <= free_memory()
        )
        if not is_sound:
            raise FileError(f"The stored open episodes do not fit {self.n_envs} environments of this task.")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the open episodes of another buffer from a checked state."""
        counts = state["open_steps"] + 1
        rows = np.zeros((self.n_envs, max(self.rows.shape[1], int(counts.max()))), self.rows.dtype)
        for i, held in enumerate(np.split(state["open_rows"], np.cumsum(counts)[:-1])):
            as_bytes(rows[i, : counts[i]])[:] = held.reshape(-1)
        self._set_rows(rows)
        self.steps[:], self.phase[:] = state["open_steps"], state["open_phase"]


def _fields_of(before: Array, after: Array, truncated: Array, timeline: Timeline) -> Fields:
    """Return the fields of the values of a step, in the order in which `OpenEpisodes.add` has them."""
    arrays = {f"observation[{key!r}]": before[key] for key in OBSERVATION_KEYS}
    arrays |= {f"next_observation[{key!r}]": after[key] for key in OBSERVATION_KEYS}
    arrays |= {key: before[key] for key in ("action", "reward", "terminated")} | {"truncated": truncated}
    return Fields(arrays, timeline.limits)


def _refuse_shared_memory(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Raise InputError if an observation is in the memory of its next_observation: then both show the same step."""
    for key, one, other in zip(OBSERVATION_KEYS[:2], before, after, strict=False):
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and _overlap(one, other):
            raise InputError(f"{key} of observation and next_observation must not share memory. Copy before env.step().")


def _overlap(one: Array, other: Array) -> bool:
    """Return whether two arrays have a byte in common. Slices of one array may lie between each other without one."""
    try:
        return np.shares_memory(one, other, max_work=OVERLAP_WORK)  # type: ignore[arg-type]  # NumPy's stubs know two values
    except np.exceptions.TooHardError:  # strides that no slice of an ordinary array has
        return True


def _infos(info: Any) -> Sequence[Mapping[str, Any]]:
    """Return the info of a step as a sequence of dicts. Raises InputError for something else."""
    infos = (info,) if isinstance(info, Mapping) else () if info is None else info
    if not isinstance(infos, list | tuple) or not all(isinstance(each, Mapping) for each in infos):
        raise InputError(f"info must be a dict, or a list of one dict per environment, got {info!r}.")
    return infos


def _final_observations(info: Any, n_envs: int) -> list[Any]:
    """Return the final observation of each environment, None where the info has none."""
    if isinstance(info, Mapping):
        finals = info.get("final_obs", [None] * n_envs)
        finals = [finals] if isinstance(finals, Mapping) else list(finals)
    else:
        finals = [each.get("final_obs") for each in info or [{}] * n_envs]
    return finals + [None] * (n_envs - len(finals))


def _info_column(info: Any, key: str, shape: tuple[int, ...]) -> Array:
    """Return an entry of each environment, NaN where there is none, of Gymnasium's dict of arrays or of a list of dicts.

    shape: (number of environments, ...).
    """
    missing = np.full(shape, np.nan)
    if not isinstance(info, Mapping):
        values = [each.get(key, rest) for each, rest in zip(info or [{}] * len(missing), missing, strict=True)]
        return np.array(values, np.float64)
    column = missing
    if key in info:
        is_given = np.asarray(info.get(f"_{key}", True)).reshape(-1, *[1] * (len(shape) - 1))
        column = np.where(is_given, np.asarray(info[key], np.float64).reshape(shape), np.nan)
    if "final_info" in info:
        final = _info_column(info["final_info"], key, shape)
        column = np.where(np.isnan(final), column, final)
    return column
