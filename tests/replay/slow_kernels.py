"""The slow model: each compiled loop of hindsight_rl.replay.kernels as a plain NumPy function."""

from itertools import pairwise

import numpy as np

from hindsight_rl.options.replay import GOAL_SOURCES
from hindsight_rl.replay.kernels import (
    DESIRED,
    ENDED,
    FRESH,
    GOLDEN,
    MIXERS,
    NEEDS_CARE,
    OPEN,
    REFUSED,
    STORED,
    float_order,
)
from hindsight_rl.replay.priorities import FAN
from hindsight_rl.replay.strategies import goal_rows


def fill_uniform(state, u):
    counters = state + GOLDEN * np.arange(1, len(u) + 1, dtype=np.uint64)
    state[:] = counters[-1:]
    mixed = (counters ^ (counters >> 30)) * MIXERS[0]
    mixed = (mixed ^ (mixed >> 27)) * MIXERS[1]
    u[:] = ((mixed ^ (mixed >> 31)) >> 11) * 2.0**-53


def draw_rows(counts, layout, u, high_water, row):
    row_ints, _, left_at, *_ = layout.tolist()
    proposed = (u * high_water).astype(np.int64)
    live = proposed[counts[proposed * row_ints + left_at] > 0][: len(row)]
    row[: len(live)] = live
    return len(live)


def choose_goals(counts, layout, u, sources, row, other_row, is_relabelled, goal_at):
    row_ints, done_at, left_at, row_bytes, achieved_at, desired_at, _, goal_bytes, n_stored, _ = layout.tolist()
    is_relabelled[:] = False
    goal_at[:] = row * row_bytes + desired_at
    for source, start, size in sources.tolist():
        here = np.flatnonzero((u >= start) & (u < start + size))
        is_relabelled[here] = True
        rest = np.minimum((u[here] - start) / size, np.nextafter(1.0, 0.0))
        if source == STORED:
            goal_at[here] += (1 + (rest * n_stored).astype(int)) * goal_bytes
        elif source == DESIRED:
            goal_at[here] = other_row[here] * row_bytes + desired_at
        else:
            done, left = (counts[row[here] * row_ints + at] for at in (done_at, left_at))
            goal_row = goal_rows(GOAL_SOURCES[int(source)], row[here], done, left, rest, other_row[here])
            goal_at[here] = goal_row * row_bytes + achieved_at


def gather(ring, row_bytes, row, goal_at, plan):
    """row: a view of the first bytes of the memory of the batch."""
    for f, (start, size, into) in enumerate(plan.tolist()):
        first = row * row_bytes + start if f else goal_at
        row.base[into : into + len(row) * size] = ring[first[:, None] + np.arange(size)].ravel()


def write_rewards(recomputed, reward, is_relabelled):
    reward[is_relabelled] = recomputed[is_relabelled]
    return bool(np.isfinite(reward[is_relabelled]).all())


def apply_symmetry(values, element, source, sign, offset):
    values[:] = sign[element] * np.take_along_axis(values, source[element], 1) + offset[element]


def finish_rows(numbers, layout, floats):
    rows = numbers.reshape(-1, layout[0])
    rows[:, layout[1]], rows[:, layout[2]] = np.arange(len(rows)), np.arange(len(rows))[::-1]
    return not (_has_bad(rows[:-1], floats) or _has_bad(rows[-1:], floats[: layout[9]]))


def _has_bad(rows, floats):
    for first, stop, step, low, high in floats:
        numbers = np.ascontiguousarray(rows[:, first:stop:step])
        order = float_order(numbers.reshape(-1).view(np.float32))
        if ((order < low) | (order > high)).any():
            return True
    return False


def add_steps(incoming, open_rows, layout, floats, steps, phase, truncated, skips_resets):
    _, _, _, row_bytes, achieved_at, _, terminated_at, goal_bytes, _, n_seen = layout.tolist()
    before, after = incoming.reshape(2, len(steps), row_bytes)
    rows, env = open_rows.reshape(len(steps), -1, row_bytes), np.arange(len(steps))
    is_same = rows[env, steps] == before
    ends = truncated | before[:, terminated_at].astype(np.bool_)
    is_reset = skips_resets & (phase == ENDED)
    for part, lines in ((before, floats), (after, floats[:n_seen])):
        if _has_bad(part[~is_reset].view(np.int32), lines):
            return REFUSED
    is_break = ((phase == OPEN) | is_reset) & ~is_same[:, : achieved_at + goal_bytes].all(axis=1)
    if (is_break | ((phase == OPEN) & (steps + 2 > rows.shape[1]))).any():
        return NEEDS_CARE
    real = env[~is_reset]
    rows[real, steps[real]], rows[real, steps[real] + 1] = before[real], after[real]
    steps[real] += 1
    phase[:] = np.where(is_reset, FRESH, np.where(ends, ENDED, OPEN))
    return int(np.count_nonzero(ends & ~is_reset))


def set_leaves(tree, starts, row, value):
    numbers, sums = tree
    last = dict(zip(row.tolist(), value.tolist(), strict=True))
    numbers[list(last)] = list(last.values())
    node = row
    for level, above in pairwise(starts[:-1].tolist()):
        node = node // FAN
        block = level + FAN * node[:, None] + np.arange(FAN)
        sums[block] = numbers[block].cumsum(axis=1)
        numbers[above + node] = sums[block[:, -1]]


def draw_leaves(tree, starts, u, row):
    *levels, root = starts[:-1].tolist()
    row[:], rest = 0, u * tree[0, root]
    for level in reversed(levels):
        sums = tree[1, level + FAN * row[:, None] + np.arange(FAN)]
        is_behind = rest >= sums[:, -1]  # by rounding: the last child that is not 0
        child = np.where(is_behind, (sums < sums[:, -1:]).sum(axis=1), (sums <= rest[:, None]).sum(axis=1))
        rest = rest - np.where(child > 0, sums[np.arange(len(row)), child - 1], 0.0)
        row[:] = FAN * row + child


def find_rows(leaves, position, error, first, stop, largest, row):
    is_stored = (first <= position) & (position < stop)
    row[:] = np.where(is_stored, position % len(leaves), 0)
    return bool((is_stored & (leaves[row] > 0) & (error >= 0) & (error <= largest)).all())
