"""Each compiled loop equals its slow model in slow_kernels, on rows of many shapes."""

import numpy as np
import pytest
import slow_kernels
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hindsight_rl import GoalSpec
from hindsight_rl.options.replay import GOAL_SOURCES, STRATEGIES, Relabel
from hindsight_rl.records import OBSERVATION_KEYS, ArraySpec
from hindsight_rl.replay import kernels
from hindsight_rl.replay.rows import row_dtype
from hindsight_rl.replay.sampler import source_table

MIXTURES = (Relabel(future=0.25, random=0.25, desired=0.125), Relabel(episode=0.5, final=0.5), Relabel())
exactly = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def rows_of_episodes(draw):
    """A ring with random bytes, whole episodes and dead rows between them, for some row dtype. And a random generator."""
    observation = draw(st.sampled_from([spaces.Box(0, 255, (3,), np.uint8), spaces.Box(-9, 9, (5,)), spaces.Discrete(7)]))
    goal = draw(st.sampled_from([spaces.Box(-9, 9, (2,), np.float64), spaces.MultiBinary(3)]))
    action = draw(st.sampled_from([spaces.Discrete(4), spaces.Box(-1, 1, (2, 2), np.float64)]))
    space = spaces.Dict(observation=observation, achieved_goal=goal, desired_goal=goal)
    info_keys, widest = draw(st.sampled_from([(), ("wind",), ("force[3]",)])), draw(st.sampled_from(["float32", "float64"]))
    row = row_dtype(GoalSpec.from_spaces(space, action), info_keys, widest, draw(st.sampled_from([0, 3])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=9))
    rows = rng.integers(0, 256, (sum(lengths) + len(lengths)) * row.itemsize, np.uint8).view(row)
    rows["steps_done"] = np.concatenate([np.arange(n + 1) for n in lengths])
    rows["steps_left"] = np.concatenate([np.arange(n, -1, -1) for n in lengths])
    return rows, rng


def live_rows(rows, rng, size):
    return rng.choice(np.append(np.flatnonzero(rows["steps_left"]), 0), size)


def test_uniform_is_splitmix64():
    """The first words from seed 0, as the reference implementation in C prints them."""
    words = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    for fill in (slow_kernels.fill_uniform, kernels.fill_uniform):
        state, u = np.zeros(1, np.uint64), np.zeros(3)
        fill(state, u)
        assert u.tolist() == [(word >> 11) / 2**53 for word in words]
        assert int(state[0]) == 3 * 0x9E3779B97F4A7C15 % 2**64


@exactly
@given(st.integers(0, 2**64 - 1), st.integers(1, 50))
def test_fill_uniform(seed, size):
    states, numbers = [np.array([seed], np.uint64) for _ in range(2)], [np.zeros(size) for _ in range(2)]
    for _ in range(2):
        slow_kernels.fill_uniform(states[0], numbers[0])
        kernels.fill_uniform(states[1], numbers[1])
        assert states[0] == states[1]
        assert numbers[0].tolist() == numbers[1].tolist()


def test_uniform_numbers_are_uniform():
    u = np.zeros(100_000)
    kernels.fill_uniform(np.array([7], np.uint64), u)
    assert 0 <= u.min() < u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02


@exactly
@given(rows_of_episodes(), st.integers(1, 20), st.integers(0, 60))
def test_draw_rows(ring, size, n_proposals):
    rows, rng = ring
    u, layout = rng.random(n_proposals), kernels.row_layout(rows.dtype)
    found, row = [], []
    for draw in (slow_kernels.draw_rows, kernels.draw_rows):
        row.append(np.full(size, -1))
        found.append(draw(rows.view(np.int32), layout, u, len(rows), row[-1]))
    assert found[0] == found[1]
    assert row[0].tolist() == row[1].tolist()
    assert (rows["steps_left"][row[0][: found[0]]] > 0).all()


@exactly
@given(rows_of_episodes(), st.integers(0, 20), st.sampled_from([0.0, 0.5, 0.8]), st.sampled_from([*STRATEGIES, *MIXTURES]))
def test_choose_goals(ring, size, probability, strategy):
    rows, rng = ring
    sources = source_table(strategy, probability)
    if strategy == "random" and "stored_goals" in rows.dtype.names:
        sources[0, 0] = kernels.STORED
    row, other, u = live_rows(rows, rng, size), live_rows(rows, rng, size), rng.random(size)
    results = []
    for choose in (slow_kernels.choose_goals, kernels.choose_goals):
        is_relabelled, goal_at = np.zeros(size, bool), np.zeros(size, np.int64)
        layout = kernels.row_layout(rows.dtype)
        choose(rows.view(np.int32), layout, u, sources, row, other, is_relabelled, goal_at)
        results.append((is_relabelled.tolist(), goal_at.tolist()))
    assert results[0] == results[1]


@given(st.lists(st.floats(0, 1), min_size=5, max_size=5), st.floats(0, 1, exclude_max=True), st.integers(1, 50))
def test_no_mixture_leaves_the_episode_by_rounding(parts, u, steps):
    total = max(sum(parts), 1.0)
    relabel = Relabel(**{name: part / total for name, part in zip(GOAL_SOURCES, parts, strict=True)})
    ends = np.cumsum(list(relabel.fractions().values()))
    u = np.clip([u, *np.nextafter(ends, 0), *ends], 0, np.nextafter(1.0, 0.0))
    part = ArraySpec((1,), "uint8")
    rows = np.zeros(steps + 1, row_dtype(GoalSpec(part, part, part)))
    rows["steps_left"] = np.arange(steps, -1, -1)
    row, goal_at = np.zeros(len(u), np.int64), np.zeros(len(u), np.int64)
    layout, sources = kernels.row_layout(rows.dtype), source_table(relabel, 0.0)
    kernels.choose_goals(rows.view(np.int32), layout, u, sources, row, row, np.zeros(len(u), bool), goal_at)
    assert (goal_at >= 0).all()
    assert (goal_at < rows.nbytes).all()


def plan_of(row, size):
    """Goal, observation, and the next row's whole, one after the other with gaps."""
    parts = [
        (-1, row["achieved_goal"].itemsize),
        (0, row["observation"].itemsize),
        (row.fields["action"][1], row["action"].itemsize),
        (row.itemsize, row.fields["desired_goal"][1]),
    ]
    starts = np.cumsum([8 * size, *(size * n + 3 for _, n in parts)])  # behind the row numbers
    return np.array([(*part, at) for part, at in zip(parts, starts, strict=False)], np.int64), int(starts[-1])


@exactly
@given(rows_of_episodes(), st.integers(0, 60))
def test_gather(ring, size):
    rows, rng = ring
    rows = np.append(rows, rows[:1])  # so that every row has a next one
    chosen = rng.integers(0, len(rows) - 1, size)
    goal_at = rng.integers(0, len(rows), size) * rows.itemsize + rows.dtype.fields["achieved_goal"][1]
    plan, end = plan_of(rows.dtype, size)
    blocks = [np.zeros(end, np.uint8) for _ in range(2)]
    for gather, block in zip((slow_kernels.gather, kernels.gather), blocks, strict=True):
        row = block[: 8 * size].view(np.int64)
        row[:] = chosen
        gather(rows.view(np.uint8), rows.itemsize, row, goal_at, plan)
    assert blocks[0].tolist() == blocks[1].tolist()


@pytest.mark.parametrize("width", range(20))
def test_gather_copies_fields_of_every_size(width):
    ring = np.arange(90, dtype=np.uint8)
    plan = np.array([(-1, width, 24), (2, width, 24 + 3 * width)])  # a goal of each sample, then a field behind 2 bytes
    block = np.zeros(24 + 6 * width, np.uint8)
    row = block[:24].view(np.int64)
    row[:] = 0, 2, 1
    kernels.gather(ring, 30, row, np.array([5, 50, 7]), plan)
    starts = [5, 50, 7, 2, 62, 32]
    assert block[24:].tolist() == [start + i for start in starts for i in range(width)]


@exactly
@given(rows_of_episodes(), st.integers(1, 20), st.sampled_from(range(3)))
def test_sample_equals_the_separate_loops(ring, size, strategy):
    rows, rng = ring
    state, layout, n_proposals = rng.integers(2**64, size=1, dtype=np.uint64), kernels.row_layout(rows.dtype), 3 * size
    u, state_2, u_2 = np.zeros(5 * size), state.copy(), np.zeros(4 * size)
    plan, end = plan_of(rows.dtype, size)
    ring, counts = rows.view(np.uint8), rows.view(np.int32)
    sources = np.array([(strategy, 0.0, 0.8)])
    is_relabelled, goal_at, block = np.zeros(size, bool), np.zeros(size, np.int64), np.zeros(end, np.uint8)
    row = block[: 8 * size].view(np.int64)
    numbers = (state, u, n_proposals)
    is_done = kernels.sample(ring, layout, *numbers, len(rows), sources, row, is_relabelled, goal_at, plan)
    slow_kernels.fill_uniform(state_2, u_2)
    assert state == state_2
    relabelled_2, goal_at_2, block_2 = (np.zeros_like(each) for each in (is_relabelled, goal_at, block))
    row_2 = block_2[: 8 * size].view(np.int64)
    assert is_done == (slow_kernels.draw_rows(counts, layout, u_2[:-size], len(rows), row_2) == size)
    if is_done:
        slow_kernels.choose_goals(counts, layout, u_2[-size:], sources, row_2, row_2, relabelled_2, goal_at_2)
        slow_kernels.gather(ring, rows.itemsize, row_2, goal_at_2, plan)
        for one, other in ((is_relabelled, relabelled_2), (goal_at, goal_at_2), (block, block_2)):
            assert one.tolist() == other.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf, 1e39])
def test_write_rewards(dtype, bad):
    rng = np.random.default_rng(3)
    recomputed, is_relabelled = rng.integers(0, 2, 50).astype(dtype), rng.random(50) < 0.5
    rewards = [np.full(50, 7, np.float32) for _ in range(2)]
    if bad is not None and dtype == np.float64:
        recomputed[[3, 4, 5]] = bad
    with np.errstate(over="ignore"):
        is_finite = [
            merge(recomputed, r, is_relabelled)
            for merge, r in zip((slow_kernels.write_rewards, kernels.write_rewards), rewards, strict=True)
        ]
    assert is_finite[0] == is_finite[1] == bool(np.isfinite(rewards[0]).all())
    assert np.array_equal(*rewards, equal_nan=True)
    assert (rewards[0][~is_relabelled] == 7).all()


def finite_rows(rows, rng):
    """The same rows with small numbers in every float, and sometimes a bad one."""
    for name in rows.dtype.names:
        rows[name] = rng.integers(0, 2, rows[name].shape)
    if rng.random() < 0.3:
        floats = [name for name in rows.dtype.names if rows.dtype[name].base.kind == "f"]
        place = rows[rng.choice(floats)].reshape(len(rows), -1)
        place[rng.integers(len(rows)), -1] = rng.choice([np.nan, np.inf, -np.inf])
    return rows


@exactly
@given(rows_of_episodes())
def test_finish_rows(ring):
    rows = [finite_rows(*ring)]
    rows.append(rows[0].view(np.uint8).copy().view(rows[0].dtype))  # with the padding
    layout, floats = kernels.row_layout(rows[0].dtype), kernels.float_table(rows[0].dtype)
    answers = [
        f(r.view(np.int32), layout, floats)
        for f, r in zip((slow_kernels.finish_rows, kernels.finish_rows), rows, strict=True)
    ]
    names = [name for name in rows[0].dtype.names if rows[0].dtype[name].base.kind == "f"]
    checked = {name: rows[0][name] if name in OBSERVATION_KEYS else rows[0][name][:-1] for name in names}
    assert answers[0] == answers[1] == all(np.isfinite(values).all() for values in checked.values())
    assert np.array_equal(*(each.view(np.uint8) for each in rows))
    assert rows[0]["steps_left"].tolist() == list(range(len(rows[0])))[::-1]


@exactly
@given(rows_of_episodes(), st.integers(1, 4), st.booleans())
def test_add_steps(ring, n, skips):
    rows, rng = ring
    copies = [(np.zeros((n, 4), rows.dtype), np.zeros(n, np.int64), np.zeros(n, np.int64)) for _ in range(2)]
    layout, floats = kernels.row_layout(rows.dtype), kernels.float_table(rows.dtype)
    for _ in range(12):
        incoming = np.zeros((2, n), rows.dtype)
        incoming[:] = finite_rows(np.zeros(2 * n, rows.dtype), rng).reshape(2, n)
        for i in np.flatnonzero(rng.random(n) < 0.8):  # most steps start from the last observation
            for name in ("observation", "achieved_goal", "desired_goal"):
                incoming[0, i][name] = copies[0][0][i, copies[0][1][i]][name]
        truncated, codes = rng.random(n) < 0.2, []
        for f, (open_rows, steps, phase) in zip((slow_kernels.add_steps, kernels.add_steps), copies, strict=True):
            flat = (incoming.reshape(-1).view(np.uint8), open_rows.reshape(-1).view(np.uint8))
            codes.append(f(*flat, layout, floats, steps, phase, truncated, skips))
        assert codes[0] == codes[1]
        for one, other in zip(*copies, strict=True):
            assert np.array_equal(one.view(np.uint8), other.view(np.uint8))
        for _, steps, phase in copies:  # as the buffer does if an episode ended or does not continue
            is_over = (phase == kernels.ENDED) | (codes[0] == kernels.NEEDS_CARE)
            phase[is_over & ((phase == kernels.OPEN) | (codes[0] == kernels.NEEDS_CARE))] = kernels.FRESH
            steps[is_over] = 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_order(dtype):
    largest = np.finfo(dtype).max
    floats = np.array([-np.inf, -largest, -2.5, -1.0, -1e-30, 0.0, 1e-30, 1.0, 2.5, largest, np.inf, np.nan], dtype)
    assert (np.diff(kernels.float_order(floats)) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_outside_the_limits_are_refused(dtype):
    row = np.dtype([("goal", dtype, (2,)), ("action", dtype, (2,)), ("steps_done", np.int32), ("steps_left", np.int32)])
    n = row.itemsize // 4
    layout = np.array([n, n - 2, n - 1, 4 * n, 0, 0, 0, 0, 0, 1])
    limits = {"goal": (np.array([-2048.0]), np.array([2048.0])), "action": (np.array([1.0, -np.inf]), np.array([2.0, 5.0]))}
    floats = kernels.float_table(row, limits)
    assert len(floats) == 3
    for goal, action, is_good in [
        ([0, -2048], [1, -1e9], True),
        ([0, 2048.5], [1, 0], False),
        ([0, -2048.5], [1, 0], False),
        ([np.nan, 0], [1, 0], False),
        ([-np.nan, 0], [1, 0], False),
        ([0, 0], [0.9, 0], False),
        ([0, 0], [2, 5.1], False),
        ([0, 0], [2, -np.inf], False),
    ]:
        rows = np.zeros(2, row)
        rows["goal"][1], rows["action"][0] = goal, action
        for seal in (slow_kernels.finish_rows, kernels.finish_rows):
            assert seal(rows.view(np.int32), layout, floats) == is_good


def test_the_step_after_an_end_is_skipped_if_it_is_a_reset():
    space = spaces.Dict({key: spaces.Box(-9, 9, (1,)) for key in ("observation", "achieved_goal", "desired_goal")})
    row = row_dtype(GoalSpec.from_spaces(space, spaces.Discrete(2)))
    for skips, start, code, phase_after in [
        (True, 0.0, 0, kernels.FRESH),
        (True, 5.0, kernels.NEEDS_CARE, kernels.ENDED),
        (False, 0.0, 0, kernels.OPEN),
    ]:
        open_rows, steps, phase = np.zeros((1, 4), row), np.zeros(1, np.int64), np.full(1, kernels.ENDED)
        incoming, truncated = np.zeros((2, 1), row), np.zeros(1, bool)
        incoming["observation"][0] = start
        bytes_of = [each.reshape(-1).view(np.uint8) for each in (incoming, open_rows)]
        layouts = (kernels.row_layout(row), kernels.float_table(row))
        assert kernels.add_steps(*bytes_of, *layouts, steps, phase, truncated, skips) == code
        assert (phase[0], steps[0]) == (phase_after, int(phase_after == kernels.OPEN))


def test_strategies_have_their_codes():
    codes = (kernels.FUTURE, kernels.FINAL, kernels.EPISODE, kernels.RANDOM, kernels.DESIRED)
    assert [GOAL_SOURCES[code] for code in codes] == ["future", "final", "episode", "random", "desired"]
