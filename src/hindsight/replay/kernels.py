"""The loops that run for every batch and every step, each beside the plain NumPy function that it must equal.

Rows are seen as bytes, and as 32-bit integers where step counts are read, so that one loop serves every task. Compiled at
the first call, once per machine. What costs is reaching memory: a random place takes far longer than what is done there,
so the places are asked for ahead (prefetch).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ..records import OBSERVATION_KEYS, Array
from .goals import STRATEGIES, goal_rows

FUTURE, FINAL, EPISODE, RANDOM = range(len(STRATEGIES))
FRESH, OPEN, ENDED = range(3)  # where an environment is: nothing seen, or a known reset; in an episode; right after one
NOT_FINITE, NEEDS_CARE = -1, -2
AHEAD = 8  # samples
CACHE_LINE = 64  # bytes

compiled = njit(cache=True, nogil=True, error_model="numpy")
_pointer = ir.PointerType(ir.IntType(8))


@intrinsic
def _prefetch(_: Any, address: Any) -> Any:
    """Ask for the cache line at `address` without waiting for it; any address will do."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_pointer], kind)
        read, into_all_caches, data = number(0), number(3), number(1)
        builder.call(function, [builder.inttoptr(arguments[0], _pointer), read, into_all_caches, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _copy(_: Any, into: Any, start: Any, size: Any) -> Any:
    """Copy `size` bytes from the address `start` to the address `into`."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        length, flag = ir.IntType(64), ir.IntType(1)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, _pointer, length, flag])
        function = builder.module.declare_intrinsic("llvm.memcpy", [_pointer, _pointer, length], kind)
        into, start, size = arguments
        builder.call(function, [builder.inttoptr(into, _pointer), builder.inttoptr(start, _pointer), size, flag(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled
def _fetch(start: int, size: int) -> None:
    for address in range(start & -CACHE_LINE, start + size, CACHE_LINE):
        _prefetch(address)


def row_layout(row: np.dtype[Any]) -> Array:
    """Where drawing looks: int32 per row, steps_done and steps_left (in int32), bytes per row, the two goals (in bytes)."""
    at = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
    ints = [row.itemsize // 4, at["steps_done"] // 4, at["steps_left"] // 4]
    return np.array([*ints, row.itemsize, at["achieved_goal"], at["desired_goal"]], np.int64)


def draw_rows_plain(counts: Array, layout: Array, u: Array, high_water: int, row: Array) -> int:
    """Fill `row` with live rows, each equally likely, and return how many were found: fewer than wanted if `u` is too short.

    counts: the ring as int32, flat. layout: see `row_layout`. u: numbers in [0, 1); each proposes a row below high_water,
    which is kept if it is live.
    """
    row_ints, _, left_at, *_ = layout.tolist()
    proposed = (u * high_water).astype(np.int64)
    live = proposed[counts[proposed * row_ints + left_at] > 0][: len(row)]
    row[: len(live)] = live
    return len(live)


@compiled
def draw_rows(counts: Array, layout: Array, u: Array, high_water: int, row: Array) -> int:
    row_ints, left_at = layout[0], layout[2]
    for i in range(len(u)):
        _prefetch(counts.ctypes.data + 4 * (np.int64(u[i] * high_water) * row_ints + left_at))
    found = 0
    for i in range(len(u)):
        proposed = np.int64(u[i] * high_water)
        if found < len(row) and counts[proposed * row_ints + left_at] > 0:
            row[found] = proposed
            found += 1
    return found


def choose_goals_plain(
    counts: Array,
    layout: Array,
    u: Array,
    probability: float,
    strategy: int,
    row: Array,
    other_row: Array,
    is_relabelled: Array,
    goal_at: Array,
) -> None:
    """Fill is_relabelled and goal_at, the byte of the ring at which the goal of each sample stands.

    u: (B,) in [0, 1); below `probability` it asks for a hindsight goal, and what is left of it, again uniform in [0, 1), says
    which. strategy: a place in STRATEGIES. row, other_row: (B,) live rows; RANDOM alone reads the second.
    """
    row_ints, done_at, left_at, row_bytes, achieved_at, desired_at = layout.tolist()
    is_relabelled[:] = u < probability
    goal_at[:] = row * row_bytes + desired_at
    told = np.flatnonzero(is_relabelled)
    done, left = (counts[row[told] * row_ints + at] for at in (done_at, left_at))
    goal_row = goal_rows(STRATEGIES[strategy], row[told], done, left, u[told] / probability, other_row[told])
    goal_at[told] = goal_row * row_bytes + achieved_at


@compiled
def choose_goals(
    counts: Array,
    layout: Array,
    u: Array,
    probability: float,
    strategy: int,
    row: Array,
    other_row: Array,
    is_relabelled: Array,
    goal_at: Array,
) -> None:
    row_ints, done_at, left_at, row_bytes, achieved_at, desired_at = layout
    for i in range(len(row)):
        is_relabelled[i] = u[i] < probability
        goal_at[i] = row[i] * row_bytes + desired_at
        if is_relabelled[i]:
            rest, first = u[i] / probability, row[i] * row_ints
            done, left = counts[first + done_at], counts[first + left_at]
            if strategy == FUTURE:
                goal_row = row[i] + 1 + np.int64(rest * left)
            elif strategy == FINAL:
                goal_row = row[i] + left
            elif strategy == EPISODE:
                goal_row = row[i] - done + 1 + np.int64(rest * (done + left))
            else:
                goal_row = other_row[i] + 1
            goal_at[i] = goal_row * row_bytes + achieved_at


def gather_plain(ring: Array, row_bytes: int, row: Array, goal_at: Array, plan: Array, block: Array) -> None:
    """Copy the fields of every sample into `block`.

    ring: the rows as bytes, flat. plan: (F, 3), a line per field: where it starts, counted from the first byte of the sample's
    row (the next row lies row_bytes further), its bytes, and where in `block` that of the first sample goes, the others'
    following. The first line is the goal's, which starts at goal_at instead.
    """
    for f, (start, size, into) in enumerate(plan.tolist()):
        first = row * row_bytes + start if f else goal_at
        block[into : into + len(row) * size] = ring[first[:, None] + np.arange(size)].ravel()


@compiled
def gather(ring: Array, row_bytes: int, row: Array, goal_at: Array, plan: Array, block: Array) -> None:
    start, into = ring.ctypes.data, block.ctypes.data
    for i in range(-AHEAD, len(row)):
        if i + AHEAD < len(row):
            _fetch(start + row[i + AHEAD] * row_bytes, 2 * row_bytes)
            _fetch(start + goal_at[i + AHEAD], plan[0, 1])
        if i >= 0:
            _copy(into + plan[0, 2] + i * plan[0, 1], start + goal_at[i], plan[0, 1])
            first = start + row[i] * row_bytes
            for f in range(1, len(plan)):
                _copy(into + plan[f, 2] + i * plan[f, 1], first + plan[f, 0], plan[f, 1])


def merge_plain(judged: Array, reward: Array, is_relabelled: Array) -> bool:
    """Write `judged` into `reward` where relabelled; returns whether all that was written is finite. (B,) each."""
    reward[is_relabelled] = judged[is_relabelled]
    return bool(np.isfinite(reward[is_relabelled]).all())


@compiled
def merge(judged: Array, reward: Array, is_relabelled: Array) -> bool:
    is_finite = True
    for i in range(len(reward)):
        if is_relabelled[i]:
            reward[i] = judged[i]
            is_finite &= np.isfinite(reward[i])
    return is_finite


def stage_table(row: np.dtype[Any]) -> Array:
    """Where staging looks, in a row: its bytes; where the head (observation, achieved_goal) ends, and desired_goal; reward and
    its bytes; terminated; how many of the fields are floats that are seen, and how many floats at all; and of each such field,
    in int32: the first and the last that hold an exponent, the step between them, and the bits of the exponent."""
    fields = {name: (place, dtype) for name, (dtype, place, *_) in (row.fields or {}).items()}
    ends = [fields[name][0] + fields[name][1].itemsize for name in OBSERVATION_KEYS[1:]]
    floats = []
    for place, dtype in fields.values():
        if dtype.base.kind == "f":
            step, bits = (1, 0x7F800000) if dtype.base.itemsize == 4 else (2, 0x7FF00000)
            floats.append((place // 4 + step - 1, (place + dtype.itemsize) // 4, step, bits))
    n_seen = sum(fields[name][1].base.kind == "f" for name in OBSERVATION_KEYS)
    (reward_at, reward), (terminated_at, _) = fields["reward"], fields["terminated"]
    facts = [row.itemsize, *ends, reward_at, reward.itemsize, terminated_at, n_seen, len(floats)]
    return np.array([*facts, *(number for line in floats for number in line)], np.int64)


def stage_plain(incoming: Array, staged: Array, table: Array, steps: Array, phase: Array, truncated: Array) -> int:
    """Write one step of every environment into its open episode; returns how many of these episodes ended by it.

    incoming: two rows per environment as bytes, flat: all before the step, then all after it. staged: the open episodes as
    bytes, flat. table: see `stage_table`. steps, phase: (n,), how long they are, and FRESH, OPEN or ENDED. A step that only
    repeats what was seen last, right after an end, with reward 0, is the reset of an environment that resets itself: it is
    skipped, and the environment is FRESH. Returns NOT_FINITE for NaN or infinity, NEEDS_CARE where an open episode does not go
    on or has no room: nothing is written then.
    """
    row_bytes, head, seen, reward_at, reward_bytes, terminated_at, n_seen, n_floats = table[:8].tolist()
    before, after = incoming.reshape(2, len(steps), row_bytes)
    rows, env = staged.reshape(len(steps), -1, row_bytes), np.arange(len(steps))
    is_same = rows[env, steps] == before
    ends = truncated | before[:, terminated_at].astype(np.bool_)
    is_paid = before[:, reward_at : reward_at + reward_bytes].any(axis=1)
    is_reset = (phase == ENDED) & is_same[:, :seen].all(axis=1) & ~ends & ~is_paid
    for part, count in ((before, n_floats), (after, n_seen)):
        for first, last, step, bits in table[8:].reshape(-1, 4)[:count].tolist():
            exponents = part[~is_reset].view(np.int32)[:, first:last:step] & bits
            if (exponents == bits).any():
                return NOT_FINITE
    if ((phase == OPEN) & (~is_same[:, :head].all(axis=1) | (steps + 2 > rows.shape[1]))).any():
        return NEEDS_CARE
    told = env[~is_reset]
    rows[told, steps[told]], rows[told, steps[told] + 1] = before[told], after[told]
    steps[told] += 1
    phase[:] = np.where(is_reset, FRESH, np.where(ends, ENDED, OPEN))
    return int(np.count_nonzero(ends))


@compiled
def stage(incoming: Array, staged: Array, table: Array, steps: Array, phase: Array, truncated: Array) -> int:
    row_bytes, head, seen, reward_at, reward_bytes, terminated_at, n_seen, n_floats = table[:8]
    n, floats, numbers = len(steps), table[8:].reshape(-1, 4), incoming.view(np.int32)
    room, needs_care, n_ended = len(staged) // (n * row_bytes), False, 0
    is_reset = np.zeros(n, np.bool_)
    for i in range(n):
        before, last = i * row_bytes, (i * room + steps[i]) * row_bytes
        if phase[i] == ENDED and not (truncated[i] or incoming[before + terminated_at]):
            is_paid = incoming[before + reward_at : before + reward_at + reward_bytes].any()
            is_reset[i] = not is_paid and _is_same(incoming, before, staged, last, seen)
        if is_reset[i]:
            continue
        if not _is_finite(numbers, before // 4, floats[:n_floats]):
            return NOT_FINITE
        if not _is_finite(numbers, before // 4 + n * row_bytes // 4, floats[:n_seen]):
            return NOT_FINITE
        if phase[i] == OPEN and (steps[i] + 2 > room or not _is_same(incoming, before, staged, last, head)):
            needs_care = True
    if needs_care:
        return NEEDS_CARE
    for i in range(n):
        phase[i] = FRESH
        if not is_reset[i]:
            before, last = i * row_bytes, (i * room + steps[i]) * row_bytes
            after = before + n * row_bytes
            staged[last : last + row_bytes] = incoming[before : before + row_bytes]
            staged[last + row_bytes : last + 2 * row_bytes] = incoming[after : after + row_bytes]
            steps[i] += 1
            ends = truncated[i] or incoming[before + terminated_at]
            phase[i] = ENDED if ends else OPEN
            n_ended += ends
    return n_ended


@compiled
def _is_same(these: Array, start: int, those: Array, other_start: int, size: int) -> bool:
    difference = np.uint8(0)
    for i in range(size):
        difference |= these[start + i] ^ those[other_start + i]
    return difference == 0


@compiled
def _is_finite(numbers: Array, start: int, floats: Array) -> bool:
    n_bad = 0
    for first, last, step, bits in floats:
        for i in range(start + first, start + last, step):
            n_bad += (numbers[i] & bits) == bits
    return n_bad == 0
