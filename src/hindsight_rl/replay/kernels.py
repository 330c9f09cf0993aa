"""Compiled loops over rows, for every batch and every step. The tests hold a slow NumPy model of each.

Rows are passed as bytes, and as int32 where step counts are read, so one loop serves every task. The loops are compiled at
their first call and cached on disk. Memory latency dominates their cost: a random row takes far longer to reach than to
copy. The loops therefore prefetch the addresses that they need next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ..options.replay import GOAL_SOURCES
from ..records import OBSERVATION_KEYS, Array

FUTURE, FINAL, EPISODE, RANDOM, DESIRED, STORED = range(len(GOAL_SOURCES) + 1)  # STORED: a goal that is stored in the row
READS_OTHERS = (RANDOM, DESIRED)  # sources of goals that need rows of other episodes
LARGEST_U = math.nextafter(1.0, 0.0)
FRESH, OPEN, ENDED = range(3)  # phases of an environment: no open episode; inside an episode; an episode has just ended
REFUSED, NEEDS_CARE = -1, -2  # codes of `add_steps`
MAGNITUDE = 0x7FFFFFFF  # the bits of an int32 without its sign
EVERY_FLOAT = (np.array([-np.inf]), np.array([np.inf]))
PREFETCH_DISTANCE = 32  # samples between a prefetch and its use
CACHE_LINE = 64  # bytes
GOLDEN, MIXERS = np.uint64(0x9E3779B97F4A7C15), (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

compiled = njit(cache=True, nogil=True, error_model="numpy")
_pointer = ir.PointerType(ir.IntType(8))


def _code_of_prefetch(_: Any, address: Any) -> Any:
    """Request the cache line at `address` without waiting for it. Any address is allowed.

    Numba has no function for it. Without it, `sample(256)` of 300,000 transitions takes 1.5 times as long, and
    `sample_many(8, 256)` 1.9 times as long. Right after an update it makes no difference.
    """

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_pointer], kind)
        read, second_level, data = number(0), number(2), number(1)  # the first level takes fewer requests at a time
        builder.call(function, [builder.inttoptr(arguments[0], _pointer), read, second_level, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _code_of_copy(_: Any, into: Any, start: Any, size: Any) -> Any:
    """Copy `size` bytes from the address `start` to the address `into`.

    If slices are assigned instead, `sample(256)` of 300,000 transitions takes 2.1 times as long, and `sample_many(8, 256)`
    3.3 times as long. Right after an update it is 1.3 and 1.7 times as long.
    """

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        length, flag = ir.IntType(64), ir.IntType(1)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, _pointer, length, flag])
        function = builder.module.declare_intrinsic("llvm.memcpy", [_pointer, _pointer, length], kind)
        into, start, size = arguments
        builder.call(function, [builder.inttoptr(into, _pointer), builder.inttoptr(start, _pointer), size, flag(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


_prefetch: Any = intrinsic(_code_of_prefetch)
copy_bytes: Any = intrinsic(_code_of_copy)


@compiled
def prefetch_bytes(start: int, size: int) -> None:
    """Request `size` bytes from the address `start` on."""
    for address in range(start & -CACHE_LINE, start + size, CACHE_LINE):
        _prefetch(address)


@compiled
def _copy_field(into: int, start: int, size: int) -> None:
    """Do the same as `copy_bytes`. Up to 16 bytes are two moves, which may overlap, instead of a call."""
    if size > 16:
        copy_bytes(into, start, size)
    elif size >= 8:
        copy_bytes(into, start, 8)
        copy_bytes(into + size - 8, start + size - 8, 8)
    elif size >= 4:
        copy_bytes(into, start, 4)
        copy_bytes(into + size - 4, start + size - 4, 4)
    else:
        for i in range(size):
            copy_bytes(into + i, start + i, 1)


@compiled
def fill_uniform(state: Array, u: Array) -> None:
    """Fill `u` with numbers uniform in [0, 1), 53 bits each, and advance `state`, one uint64.

    SplitMix64 (Steele, Lea and Flood 2014): a counter and a mixing function, so the loop is vectorized.
    """
    for i in range(len(u)):
        mixed = state[0] + GOLDEN * np.uint64(i + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * MIXERS[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIXERS[1]
        u[i] = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
    state[0] += GOLDEN * np.uint64(len(u))


def row_layout(row: np.dtype[Any]) -> Array:
    """Return where the loops read, (10,) int64.

    In int32: the size of a row, the places of steps_done and steps_left. In bytes: the size of a row, the places of
    achieved_goal, desired_goal and terminated, the size of a goal. The number of stored goals, which follow the desired
    goal. The number of lines that a float table has for an observation.
    """
    at = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
    ints = [row.itemsize // 4, at["steps_done"] // 4, at["steps_left"] // 4]
    places = [at[name] for name in ("achieved_goal", "desired_goal", "terminated")]
    n_stored = row["stored_goals"].shape[0] if "stored_goals" in at else 0
    n_seen = sum(row[name].base.kind == "f" and row[name].itemsize > 0 for name in OBSERVATION_KEYS)
    return np.array([*ints, row.itemsize, *places, row["desired_goal"].itemsize, n_stored, n_seen], np.int64)


@compiled
def draw_rows(counts: Array, layout: Array, u: Array, high_water: int, row: Array) -> int:
    """Fill `row` with live rows, each equally likely. Return how many were found: fewer than wanted if `u` is too short.

    counts: the ring as int32, flat.
    layout: see `row_layout`.
    u: numbers in [0, 1). Each proposes a row below high_water, which is accepted if it is live.
    """
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


@compiled
def choose_goals(
    counts: Array,
    layout: Array,
    u: Array,
    sources: Array,
    row: Array,
    other_row: Array,
    is_relabelled: Array,
    goal_at: Array,
) -> None:
    """Fill is_relabelled and goal_at, the first byte of each sample's goal in the ring.

    u: (B,) in [0, 1). It chooses the source. Its place in the part of the source is uniform in [0, 1) again and chooses the
        goal. A number behind all parts keeps the desired goal.
    sources: (S, 3): an index of GOAL_SOURCES, or STORED; the start and the size of its part of [0, 1), without gaps.
    row, other_row: (B,) live rows. Only READS_OTHERS read `other_row`.
    """
    row_ints, done_at, left_at, row_bytes, achieved_at, desired_at, _, goal_bytes, n_stored, _ = layout
    n_sources, (source, start, size) = len(sources), sources[0]
    end = sources[-1, 1] + sources[-1, 2]
    for i in range(len(row)):
        if n_sources > 1:
            place = 0
            for s in range(n_sources - 1):
                place += u[i] >= sources[s + 1, 1]
            source, start, size = sources[place]
        is_relabelled[i] = u[i] < end
        rest, first = min((u[i] - start) / size, LARGEST_U), row[i] * row_ints
        done, left, desired = counts[first + done_at], counts[first + left_at], row[i] * row_bytes + desired_at
        if source == FUTURE:
            chosen = (row[i] + 1 + np.int64(rest * left)) * row_bytes + achieved_at
        elif source == FINAL:
            chosen = (row[i] + left) * row_bytes + achieved_at
        elif source == EPISODE:
            chosen = (row[i] - done + 1 + np.int64(rest * (done + left))) * row_bytes + achieved_at
        elif source == RANDOM:
            chosen = (other_row[i] + 1) * row_bytes + achieved_at
        elif source == DESIRED:
            chosen = other_row[i] * row_bytes + desired_at
        else:
            chosen = desired + (1 + np.int64(rest * n_stored)) * goal_bytes
        goal_at[i] = chosen if is_relabelled[i] else desired


@compiled
def gather(ring: Array, row_bytes: int, row: Array, goal_at: Array, plan: Array) -> None:
    """Copy the fields of every sample into the arrays of a batch.

    ring: the rows as bytes, flat.
    row: (B,) int64, itself an array of the batch.
    plan: (F, 3), one line per field: its first byte, counted from the sample's row (the next row starts at row_bytes); its
        size in bytes; the first byte of its array, counted from the first byte of `row`. The first line is that of the
        goal, which is read from goal_at.
    """
    start, into, stop = ring.ctypes.data, row.ctypes.data, plan[1, 0] + plan[1, 1]
    for f in range(2, len(plan)):  # Numba needs 0.6 s less for this loop than for a maximum of arrays
        stop = max(stop, plan[f, 0] + plan[f, 1])
    for i in range(-PREFETCH_DISTANCE, len(row)):
        if i + PREFETCH_DISTANCE < len(row):
            prefetch_bytes(start + row[i + PREFETCH_DISTANCE] * row_bytes, stop)
            prefetch_bytes(start + goal_at[i + PREFETCH_DISTANCE], plan[0, 1])
        if i >= 0:
            for f in range(len(plan)):
                place = row[i] * row_bytes + plan[f, 0] if f else goal_at[i]
                _copy_field(into + plan[f, 2] + i * plan[f, 1], start + place, plan[f, 1])


@compiled
def sample(
    ring: Array,
    layout: Array,
    state: Array,
    u: Array,
    n_proposals: int,
    high_water: int,
    sources: Array,
    row: Array,
    is_relabelled: Array,
    goal_at: Array,
    plan: Array,
) -> bool:
    """Run `fill_uniform`, `draw_rows`, `choose_goals` and `gather` in one call. Return False if rows are missing.

    u: memory for n_proposals + B numbers. READS_OTHERS are not supported, because they draw rows twice.
    """
    counts, n_numbers = ring.view(np.int32), n_proposals + len(row)
    fill_uniform(state, u[:n_numbers])
    if draw_rows(counts, layout, u[:n_proposals], high_water, row) < len(row):
        return False
    choose_goals(counts, layout, u[n_proposals:n_numbers], sources, row, row, is_relabelled, goal_at)
    gather(ring, layout[3], row, goal_at, plan)
    return True


@compiled
def write_rewards(recomputed: Array, reward: Array, is_relabelled: Array) -> bool:
    """Write `recomputed` into `reward` where relabelled, (B,) each. Return whether all written values are finite."""
    is_finite = True
    for i in range(len(reward)):
        if is_relabelled[i]:
            reward[i] = recomputed[i]
            is_finite &= np.isfinite(reward[i])
    return is_finite


def float_order(floats: Array) -> Array:
    """Return int32 numbers in the order of the floats, (n,) each. Of a float64 the upper half counts: 6 decimal places."""
    step = floats.itemsize // 4
    upper = floats.view(np.int32)[step - 1 :: step]
    return upper ^ ((upper >> 31) & MAGNITUDE)


def float_table(row: np.dtype[Any], limits: Mapping[str, tuple[Array, Array]] = MappingProxyType({})) -> Array:
    """Return where a row holds floats, (F, 5) int64, in the order of the fields: first those of an observation.

    In int32: the first number to compare, the end, the step between numbers; and the lowest and highest number that is
    not refused, in `float_order`. NaN and infinity are always refused.
    limits: lowest and highest value of a field: arrays of one number, or of one for each element of the field.
    """
    lines: list[tuple[Any, ...]] = []
    for name, (dtype, place, *_) in (row.fields or {}).items():
        if dtype.base.kind == "f" and dtype.itemsize:
            step, largest = dtype.base.itemsize // 4, np.finfo(dtype.base).max
            low, high = (np.clip(bound, -largest, largest) for bound in limits.get(name, EVERY_FLOAT))
            width = dtype.itemsize // 4 // len(low)
            starts = range(place // 4, (place + dtype.itemsize) // 4, width)
            orders = (float_order(bound.astype(dtype.base)) for bound in (low, high))
            lines += [(i + step - 1, i + width, step, *order) for i, *order in zip(starts, *orders, strict=True)]
    return np.array(lines, np.int64)


@compiled
def finish_rows(numbers: Array, layout: Array, floats: Array) -> bool:
    """Fill in the step counts of the T + 1 rows of an episode. Return whether no float is refused.

    numbers: the rows as int32, flat.
    layout: see `row_layout`.
    floats: see `float_table`. In the last row, only the observation counts.
    """
    n, row_ints, n_seen, n_bad = len(numbers) // layout[0], layout[0], layout[9], 0
    for i in range(n):
        numbers[i * row_ints + layout[1]], numbers[i * row_ints + layout[2]] = i, n - 1 - i
        n_bad += _count_refused(numbers, i * row_ints, floats, len(floats) if i < n - 1 else n_seen)
    return n_bad == 0


@compiled
def add_steps(
    incoming: Array,
    open_rows: Array,
    layout: Array,
    floats: Array,
    steps: Array,
    phase: Array,
    truncated: Array,
    skips_resets: bool,
) -> int:
    """Write one step of every environment into its open episode. Return how many of these episodes ended with it.

    incoming: two rows per environment as bytes, flat: all before the step, then all after it.
    open_rows: the open episodes as bytes, flat.
    layout, floats: see `row_layout` and `float_table`.
    steps, phase: (n,), the lengths of the open episodes, and FRESH, OPEN or ENDED.
    skips_resets: whether the step after an end is the reset of an environment with autoreset "next_step". It is skipped,
        and the environment becomes FRESH.
    Return REFUSED for a float that `floats` refuses, NEEDS_CARE if a step does not start from the last observation or an
    open episode has no room. Nothing is written then.
    """
    row_bytes, head, terminated_at, n_seen = layout[3], layout[4] + layout[7], layout[6], layout[9]
    n, numbers = len(steps), incoming.view(np.int32)
    room, needs_care, n_ended = len(open_rows) // (n * row_bytes), False, 0
    is_reset = np.zeros(n, np.bool_)
    for i in range(n):
        before, last = i * row_bytes, (i * room + steps[i]) * row_bytes
        is_reset[i] = skips_resets and phase[i] == ENDED
        if (phase[i] == OPEN or is_reset[i]) and not _is_same(incoming, before, open_rows, last, head):
            needs_care = True
        if not is_reset[i]:
            n_bad = _count_refused(numbers, before // 4, floats, len(floats))
            n_bad += _count_refused(numbers, (before + n * row_bytes) // 4, floats, n_seen)
            if n_bad:
                return REFUSED
            needs_care |= phase[i] == OPEN and steps[i] + 2 > room
    if needs_care:
        return NEEDS_CARE
    for i in range(n):
        phase[i] = FRESH
        if not is_reset[i]:
            before, last = i * row_bytes, (i * room + steps[i]) * row_bytes
            after = before + n * row_bytes
            open_rows[last : last + row_bytes] = incoming[before : before + row_bytes]
            open_rows[last + row_bytes : last + 2 * row_bytes] = incoming[after : after + row_bytes]
            steps[i] += 1
            is_end = truncated[i] or incoming[before + terminated_at]
            phase[i] = ENDED if is_end else OPEN
            n_ended += is_end
    return n_ended


@compiled
def _is_same(these: Array, start: int, those: Array, other_start: int, size: int) -> bool:
    difference = 0
    for i in range(size):
        difference |= these[start + i] ^ those[other_start + i]
    return difference == 0


@compiled
def _count_refused(numbers: Array, start: int, floats: Array, n_lines: int) -> int:
    """Return how many floats of the row that starts at `start` are refused by the first lines of a float table."""
    n_bad = 0
    for f in range(n_lines):
        first, stop, step, low, high = floats[f]
        if step == 1:  # the same loop: the compiler vectorizes it if it need not read the step
            for i in range(start + first, start + stop):
                order = numbers[i] ^ ((numbers[i] >> 31) & MAGNITUDE)
                n_bad += (order < low) | (order > high)
        else:
            for i in range(start + first, start + stop, step):
                order = numbers[i] ^ ((numbers[i] >> 31) & MAGNITUDE)
                n_bad += (order < low) | (order > high)
    return n_bad
