"""The loops that run for every batch and every step, each beside the plain NumPy function that it must equal.

Rows are seen as bytes, and as 32-bit integers where step counts are read, so that one loop serves every task. Compiled at
the first call, once per machine. What costs is reaching memory: a random place takes far longer than what is done there,
so the places are asked for ahead (prefetch).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ..options.relabel import STRATEGIES
from ..records import OBSERVATION_KEYS, Array
from .goals import goal_rows

FUTURE, FINAL, EPISODE, RANDOM = range(len(STRATEGIES))
FRESH, OPEN, ENDED = range(3)  # phases of an environment: before a first step; inside an episode; right after one
NOT_FINITE, NEEDS_CARE = -1, -2
AHEAD = 16  # samples
CACHE_LINE = 64  # bytes
FAN = 16  # children of a node of the tree of sums: two cache lines
GOLDEN, MIXERS = np.uint64(0x9E3779B97F4A7C15), (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

compiled = njit(cache=True, nogil=True, error_model="numpy")
_pointer = ir.PointerType(ir.IntType(8))


def _code_of_prefetch(_: Any, address: Any) -> Any:
    """Ask for the cache line at `address` without waiting for it; any address will do."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_pointer], kind)
        read, second_level, data = number(0), number(2), number(1)  # the first level takes fewer at a time
        builder.call(function, [builder.inttoptr(arguments[0], _pointer), read, second_level, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _code_of_copy(_: Any, into: Any, start: Any, size: Any) -> Any:
    """Copy `size` bytes from the address `start` to the address `into`."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        length, flag = ir.IntType(64), ir.IntType(1)
        kind = ir.FunctionType(ir.VoidType(), [_pointer, _pointer, length, flag])
        function = builder.module.declare_intrinsic("llvm.memcpy", [_pointer, _pointer, length], kind)
        into, start, size = arguments
        builder.call(function, [builder.inttoptr(into, _pointer), builder.inttoptr(start, _pointer), size, flag(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


_prefetch: Any = intrinsic(_code_of_prefetch)
_copy: Any = intrinsic(_code_of_copy)


@compiled
def _fetch(start: int, size: int) -> None:
    for address in range(start & -CACHE_LINE, start + size, CACHE_LINE):
        _prefetch(address)


def uniform_plain(state: Array, u: Array) -> None:
    """Fill `u` with numbers uniform in [0, 1), 53 bits each, and advance `state`, one uint64.

    SplitMix64 (Steele, Lea and Flood 2014): a counter and a mixing function, so that the numbers come side by side.
    """
    counters = state + GOLDEN * np.arange(1, len(u) + 1, dtype=np.uint64)
    state[:] = counters[-1:]
    mixed = (counters ^ (counters >> 30)) * MIXERS[0]
    mixed = (mixed ^ (mixed >> 27)) * MIXERS[1]
    u[:] = ((mixed ^ (mixed >> 31)) >> 11) * 2.0**-53


@compiled
def uniform(state: Array, u: Array) -> None:
    """`uniform_plain`, compiled."""
    for i in range(len(u)):
        mixed = state[0] + GOLDEN * np.uint64(i + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * MIXERS[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIXERS[1]
        u[i] = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
    state[0] += GOLDEN * np.uint64(len(u))


def row_layout(row: np.dtype[Any]) -> Array:
    """Where drawing looks: int32 per row, steps_done and steps_left (in int32), bytes per row, the two goals (in bytes)."""
    at = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
    ints = [row.itemsize // 4, at["steps_done"] // 4, at["steps_left"] // 4]
    return np.array([*ints, row.itemsize, at["achieved_goal"], at["desired_goal"]], np.int64)


def draw_rows_plain(counts: Array, layout: Array, u: Array, high_water: int, row: Array) -> int:
    """Fill `row` with live rows, each equally likely; returns how many were found, fewer than wanted if `u` is too short.

    counts: the ring as int32, flat. layout: see `row_layout`. u: numbers in [0, 1); each proposes a row below
    high_water, which is kept if it is live.
    """
    row_ints, _, left_at, *_ = layout.tolist()
    proposed = (u * high_water).astype(np.int64)
    live = proposed[counts[proposed * row_ints + left_at] > 0][: len(row)]
    row[: len(live)] = live
    return len(live)


@compiled
def draw_rows(counts: Array, layout: Array, u: Array, high_water: int, row: Array) -> int:
    """`draw_rows_plain`, compiled: all places are asked for before the first is looked at."""
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

    u: (B,) in [0, 1); below `probability` it asks for a hindsight goal, and what is left of it, again uniform in [0, 1),
    says which. strategy: a place in STRATEGIES. row, other_row: (B,) live rows; RANDOM alone reads the second.
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
    """`choose_goals_plain`, compiled."""
    row_ints, done_at, left_at, row_bytes, achieved_at, desired_at = layout
    for i in range(len(row)):
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
        is_relabelled[i] = u[i] < probability
        asked, told = row[i] * row_bytes + desired_at, goal_row * row_bytes + achieved_at
        goal_at[i] = told if is_relabelled[i] else asked


def gather_plain(ring: Array, row_bytes: int, row: Array, goal_at: Array, plan: Array, block: Array) -> None:
    """Copy the fields of every sample into `block`.

    ring: the rows as bytes, flat. plan: (F, 3), a line per field: where it starts, counted from the first byte of the
    sample's row (the next row lies row_bytes further), its bytes, and where in `block` that of the first sample goes, the
    others' following. The first line is the goal's, which starts at goal_at instead.
    """
    for f, (start, size, into) in enumerate(plan.tolist()):
        first = row * row_bytes + start if f else goal_at
        block[into : into + len(row) * size] = ring[first[:, None] + np.arange(size)].ravel()


@compiled
def gather(ring: Array, row_bytes: int, row: Array, goal_at: Array, plan: Array, block: Array) -> None:
    """`gather_plain`, compiled: sample by sample, with the places of the sample AHEAD further on asked for meanwhile."""
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


@compiled
def sample(
    ring: Array,
    layout: Array,
    state: Array,
    u: Array,
    n_proposals: int,
    high_water: int,
    probability: float,
    strategy: int,
    row: Array,
    is_relabelled: Array,
    goal_at: Array,
    plan: Array,
    block: Array,
) -> bool:
    """`uniform`, `draw_rows`, `choose_goals` and `gather` in one; False where too few live rows were found.

    u: room for n_proposals + B numbers. RANDOM is not served, since it draws rows twice.
    """
    counts, n_numbers = ring.view(np.int32), n_proposals + len(row)
    uniform(state, u[:n_numbers])
    if draw_rows(counts, layout, u[:n_proposals], high_water, row) < len(row):
        return False
    choose_goals(counts, layout, u[n_proposals:n_numbers], probability, strategy, row, row, is_relabelled, goal_at)
    gather(ring, layout[3], row, goal_at, plan, block)
    return True


def merge_plain(judged: Array, reward: Array, is_relabelled: Array) -> bool:
    """Write `judged` into `reward` where relabelled; returns whether all that was written is finite. (B,) each."""
    reward[is_relabelled] = judged[is_relabelled]
    return bool(np.isfinite(reward[is_relabelled]).all())


@compiled
def merge(judged: Array, reward: Array, is_relabelled: Array) -> bool:
    """`merge_plain`, compiled."""
    is_finite = True
    for i in range(len(reward)):
        if is_relabelled[i]:
            reward[i] = judged[i]
            is_finite &= np.isfinite(reward[i])
    return is_finite


def turn_plain(values: Array, element: Array, source: Array, sign: Array, offset: Array) -> None:
    """See every row of `values` from the side `element`: row becomes sign * row[source] + offset, in place.

    values: (B, n) floats. element: (B,), which of the G maps. source, sign, offset: (G, n), see `symmetries`.
    """
    values[:] = sign[element] * np.take_along_axis(values, source[element], 1) + offset[element]


@compiled
def turn(values: Array, element: Array, source: Array, sign: Array, offset: Array) -> None:
    """`turn_plain`, compiled. Element 0, which changes nothing, is passed over."""
    row = np.empty(values.shape[1], values.dtype)
    for i in range(len(values)):
        g = element[i]
        if g:
            row[:] = values[i]
            for j in range(len(row)):
                values[i, j] = sign[g, j] * row[source[g, j]] + offset[g, j]


def pick_entries_plain(
    entries: Array,
    parts: Array,
    k: int,
    share: float,
    u: Array,
    row: Array,
    is_relabelled: Array,
    into: tuple[Array, Array, Array],
) -> None:
    """Fill is_relabelled, and put into each sample that is one of the k entries of its row, each equally likely.

    u: (B,) in [0, 1); below `share` it asks for an entry, and what is left of it says which. entries: those of all rows as
    bytes, flat. parts: (F, 3), a line per field: where it starts in an entry, its bytes, and the bytes of a whole entry.
    into: for each field the bytes of its values in the batch, flat.
    """
    is_relabelled[:] = u < share
    told = np.flatnonzero(is_relabelled)
    entry = row[told] * k + np.minimum((u[told] / share * k).astype(np.int64), k - 1)
    for (start, size, whole), array in zip(parts.tolist(), into, strict=True):
        array.reshape(-1, size)[told] = entries[(entry * whole + start)[:, None] + np.arange(size)]


@compiled
def pick_entries(
    entries: Array,
    parts: Array,
    k: int,
    share: float,
    u: Array,
    row: Array,
    is_relabelled: Array,
    into: tuple[Array, Array, Array],
) -> None:
    """`pick_entries_plain`, compiled: all entries are asked for before the first is copied."""
    start, whole = entries.ctypes.data, parts[0, 2]
    for i in range(len(row)):
        is_relabelled[i] = u[i] < share
        if is_relabelled[i]:
            entry = row[i] * k + min(np.int64(u[i] / share * k), k - 1)
            _prefetch(start + entry * whole)
    for i in range(len(row)):
        if is_relabelled[i]:
            entry = row[i] * k + min(np.int64(u[i] / share * k), k - 1)
            for f in range(len(into)):
                _copy(into[f].ctypes.data + i * parts[f, 1], start + entry * whole + parts[f, 0], parts[f, 1])


def float_table(row: np.dtype[Any], watched: tuple[str, ...] = (), largest: float = np.inf) -> Array:
    """Where `row` has floats, those that are seen first: (F, 5), a line per field, for what must stay below a power of two.

    In int32: the first number that holds an exponent, the place behind the last, the step between them, the bits of the
    exponent, and from which exponent on a float is bad: that of NaN and infinity; that of `largest` in float32 fields that
    are watched.
    """
    lines = []
    for name, (dtype, place, *_) in (row.fields or {}).items():
        if dtype.base.kind == "f":
            step, bits = (1, 0x7F800000) if dtype.base.itemsize == 4 else (2, 0x7FF00000)
            limit = int(np.float32(largest).view(np.int32)) if name in watched and step == 1 else bits
            lines.append((place // 4 + step - 1, (place + dtype.itemsize) // 4, step, bits, limit))
    return np.array(lines, np.int64)


def seal_plain(numbers: Array, layout: Array, floats: Array) -> bool:
    """Fill in the step counts of the T + 1 rows of an episode; returns whether none of its floats is bad.

    numbers: the rows as int32, flat. layout: see `row_layout`. floats: see `float_table`.
    """
    rows = numbers.reshape(-1, layout[0])
    rows[:, layout[1]], rows[:, layout[2]] = np.arange(len(rows)), np.arange(len(rows))[::-1]
    return not _has_bad(rows, floats)


def _has_bad(rows: Array, floats: Array) -> bool:
    return any(((rows[:, first:stop:step] & bits) >= limit).any() for first, stop, step, bits, limit in floats)


@compiled
def seal(numbers: Array, layout: Array, floats: Array) -> bool:
    """`seal_plain`, compiled."""
    n, row_ints, n_bad = len(numbers) // layout[0], layout[0], 0
    for i in range(n):
        numbers[i * row_ints + layout[1]], numbers[i * row_ints + layout[2]] = i, n - 1 - i
        n_bad += _count_bad(numbers, i * row_ints, floats)
    return n_bad == 0


def open_layout(row: np.dtype[Any]) -> Array:
    """Where staging looks, in bytes: the ends of a row, of its head (observation, achieved_goal), of desired_goal; where
    reward starts and ends; terminated. And how many of the observation's parts are floats."""
    fields = {name: (place, dtype) for name, (dtype, place, *_) in (row.fields or {}).items()}
    ends = {name: place + dtype.itemsize for name, (place, dtype) in fields.items()}
    n_seen = sum(fields[name][1].base.kind == "f" for name in OBSERVATION_KEYS)
    reward = (fields["reward"][0], ends["reward"])
    return np.array(
        [row.itemsize, ends["achieved_goal"], ends["desired_goal"], *reward, fields["terminated"][0], n_seen], np.int64
    )


def add_steps_plain(
    incoming: Array, open_rows: Array, layout: Array, floats: Array, steps: Array, phase: Array, truncated: Array
) -> int:
    """Write one step of every environment into its open episode; returns how many of these episodes ended by it.

    incoming: two rows per environment as bytes, flat: all before the step, then all after it. open_rows: the open episodes
    as bytes, flat. layout, floats: see `open_layout` and `float_table`. steps, phase: (n,), how long they are, and FRESH,
    OPEN or ENDED. A step right after an end that starts from what was seen last, with reward 0, is the reset of an
    environment that resets itself: it is skipped, and the environment is FRESH. Returns NOT_FINITE for NaN or infinity,
    NEEDS_CARE where an open episode does not go on or has no room: nothing is written then.
    """
    row_bytes, head, seen, paid_at, paid_to, terminated_at, n_seen = layout.tolist()
    before, after = incoming.reshape(2, len(steps), row_bytes)
    rows, env = open_rows.reshape(len(steps), -1, row_bytes), np.arange(len(steps))
    is_same = rows[env, steps] == before
    ends = truncated | before[:, terminated_at].astype(np.bool_)
    is_reset = (phase == ENDED) & is_same[:, :seen].all(axis=1) & ~ends & ~before[:, paid_at:paid_to].any(axis=1)
    for part, lines in ((before, floats), (after, floats[:n_seen])):
        if _has_bad(part[~is_reset].view(np.int32), lines):
            return NOT_FINITE
    if ((phase == OPEN) & (~is_same[:, :head].all(axis=1) | (steps + 2 > rows.shape[1]))).any():
        return NEEDS_CARE
    told = env[~is_reset]
    rows[told, steps[told]], rows[told, steps[told] + 1] = before[told], after[told]
    steps[told] += 1
    phase[:] = np.where(is_reset, FRESH, np.where(ends, ENDED, OPEN))
    return int(np.count_nonzero(ends))


@compiled
def add_steps(
    incoming: Array, open_rows: Array, layout: Array, floats: Array, steps: Array, phase: Array, truncated: Array
) -> int:
    """`add_steps_plain`, compiled: one look to refuse, one to write."""
    row_bytes, head, seen, paid_at, paid_to, terminated_at, n_seen = layout
    n, numbers = len(steps), incoming.view(np.int32)
    room, needs_care, n_ended = len(open_rows) // (n * row_bytes), False, 0
    is_reset = np.zeros(n, np.bool_)
    for i in range(n):
        before, last = i * row_bytes, (i * room + steps[i]) * row_bytes
        if phase[i] == ENDED and not (truncated[i] or incoming[before + terminated_at]):
            is_paid = incoming[before + paid_at : before + paid_to].any()
            is_reset[i] = not is_paid and _is_same(incoming, before, open_rows, last, seen)
        if not is_reset[i]:
            n_bad = _count_bad(numbers, before // 4, floats)
            n_bad += _count_bad(numbers, (before + n * row_bytes) // 4, floats[:n_seen])
            if n_bad:
                return NOT_FINITE
            if phase[i] == OPEN and (steps[i] + 2 > room or not _is_same(incoming, before, open_rows, last, head)):
                needs_care = True
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
def _count_bad(numbers: Array, start: int, floats: Array) -> int:
    """How many floats of the row that starts at `start` are bad."""
    n_bad = 0
    for f in range(len(floats)):
        first, stop, step, bits, limit = floats[f]
        for i in range(start + first, start + stop, step):
            n_bad += (numbers[i] & bits) >= limit
    return n_bad


def tree_starts(n_leaves: int) -> Array:
    """Where the levels of a tree over so many leaves start, the leaves first, and at last its length.

    Above the leaves stands one number per FAN below. Levels are filled up to whole blocks of FAN, but for the last, which
    is the one sum of all.
    """
    starts, count = [0], n_leaves
    while len(starts) < 2 or count > 1:
        starts.append(starts[-1] - -count // FAN * FAN)
        count = -(-count // FAN)
    return np.array([*starts, starts[-1] + 1], np.int64)


def set_leaves_plain(tree: Array, starts: Array, row: Array, value: Array) -> None:
    """Write `value` into the leaves `row`, the last where one is repeated, and sum up again all that stands above them.

    tree: (2, length), the numbers of all levels, and beside each the sum of its block so far. starts: see `tree_starts`.
    Sums are taken from the left, and never corrected by a difference: nothing drifts, and equal leaves have equal sums.
    """
    numbers, sums = tree
    last = dict(zip(row.tolist(), value.tolist(), strict=True))
    numbers[list(last)] = list(last.values())
    node = row
    for level, above in pairwise(starts[:-1].tolist()):
        node = node // FAN
        block = level + FAN * node[:, None] + np.arange(FAN)
        sums[block] = numbers[block].cumsum(axis=1)
        numbers[above + node] = sums[block[:, -1]]


@compiled
def set_leaves(tree: Array, starts: Array, row: Array, value: Array) -> None:
    """`set_leaves_plain`, compiled: level by level for all rows, neighbours of one block once."""
    numbers, sums = tree[0], tree[1]
    for i in range(len(row)):
        _fetch(numbers.ctypes.data + 8 * FAN * (row[i] // FAN), 8 * FAN)
        _fetch(sums.ctypes.data + 8 * FAN * (row[i] // FAN), 8 * FAN)
    for i in range(len(row)):
        numbers[row[i]] = value[i]
    size = 1
    for level in range(len(starts) - 2):
        size, last = size * FAN, -1
        for i in range(len(row)):
            node = row[i] // size
            if node != last:
                first, total, last = starts[level] + FAN * node, 0.0, node
                for j in range(FAN):
                    total += numbers[first + j]
                    sums[first + j] = total
                numbers[starts[level + 1] + node] = total


def draw_leaves_plain(tree: Array, starts: Array, u: Array, row: Array) -> None:
    """Fill `row` with the leaves into which the shares `u` in [0, 1) of the whole sum fall: never one that holds 0.

    tree, starts: see `set_leaves_plain`. The sum of all must be above 0.
    """
    *levels, root = starts[:-1].tolist()
    row[:], rest = 0, u * tree[0, root]
    for level in reversed(levels):
        sums = tree[1, level + FAN * row[:, None] + np.arange(FAN)]
        is_behind = rest >= sums[:, -1]  # by rounding: the last child that holds anything is meant
        child = np.where(is_behind, (sums < sums[:, -1:]).sum(axis=1), (sums <= rest[:, None]).sum(axis=1))
        rest = rest - np.where(child > 0, sums[np.arange(len(row)), child - 1], 0.0)
        row[:] = FAN * row + child


@compiled
def draw_leaves(tree: Array, starts: Array, u: Array, row: Array) -> None:
    """`draw_leaves_plain`, compiled: level by level for all shares, the blocks of the next level asked for meanwhile.

    Blocks are searched by halves, by sums instead of branches, which would be guessed wrong half of the time.
    """
    sums, root = tree[1], len(starts) - 2
    rest = u * tree[0, starts[root]]
    row[:] = 0
    for level in range(root - 1, -1, -1):
        for i in range(len(row)):
            first = starts[level] + FAN * row[i]
            at, share, total = first, rest[i], sums[first + FAN - 1]
            if share < total:
                at += 8 * (sums[at + 7] <= share)
                at += 4 * (sums[at + 3] <= share)
                at += 2 * (sums[at + 1] <= share)
                at += sums[at] <= share
            else:
                while sums[at] < total:
                    at += 1
            rest[i] = share - (sums[at - 1] if at > first else 0.0)
            row[i] = FAN * row[i] + at - first
            if level:
                _fetch(sums.ctypes.data + 8 * (starts[level - 1] + FAN * row[i]), 8 * FAN)


def are_errors_plain(numbers: Array, n_rows: int, row: Array, error: Array, largest: float) -> bool:
    """Whether each of `row` is below n_rows and holds a number above 0, and each error lies between 0 and `largest`."""
    is_row = (row >= 0) & (row < n_rows)
    return bool(is_row.all() and numbers[row].all() and ((error >= 0) & (error <= largest)).all())


@compiled
def are_errors(numbers: Array, n_rows: int, row: Array, error: Array, largest: float) -> bool:
    """`are_errors_plain`, compiled."""
    is_good = True
    for i in range(len(row)):
        is_row = 0 <= row[i] < n_rows
        is_good &= is_row and numbers[row[i] if is_row else 0] > 0 and 0 <= error[i] <= largest
    return is_good
