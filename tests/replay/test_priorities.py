"""Rows are sampled in proportion to their priorities. Chi-square tests at one in a million."""

from collections import Counter

import numpy as np
import pytest
import slow_kernels
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tiny import compute_reward, make_buffer, make_episode, place

from distributions import RARE
from hindsight_rl import Episode, HindsightBuffer
from hindsight_rl.errors import FileError, InputError, OptionError
from hindsight_rl.replay import priorities
from hindsight_rl.replay.priorities import LARGEST_PRIORITY, LEAST_FRACTION, SMALLEST_ERROR, Priorities

values = st.sampled_from([0.0, 0.0, 1e-6, 0.1, 1.0, 3.7, 1e12])


def held(lengths, capacity=60, seed=0, **options):
    """A buffer with episodes of these lengths, and its tree."""
    buffer = make_buffer(capacity, seed=seed, **({"prioritized": True} | options))
    for number, steps in enumerate(lengths, start=1):
        buffer.add_episode(make_episode(number, steps))
    return buffer, buffer.timeline.priorities


def leaves(buffer):
    return buffer.timeline.priorities.values(np.arange(len(buffer.timeline.rows)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from([1, 2, 15, 16, 17, 255, 256, 257, 300]))
def test_the_tree_equals_plain_sums(data, n_rows):
    tree, plain = Priorities(n_rows), np.zeros(n_rows)
    starts = priorities.tree_starts(n_rows)
    slow = np.zeros((2, starts[-1]))
    for _ in range(data.draw(st.integers(1, 5))):
        rows = np.array(data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=40)))
        new = np.array(data.draw(st.lists(values, min_size=len(rows), max_size=len(rows))))
        tree.set(rows, new)
        slow_kernels.set_leaves(slow, starts, rows, new)
        for row, value in zip(rows, new, strict=True):
            plain[row] = value
        assert (tree.values(np.arange(n_rows)) == plain).all()
        assert tree._tree.tobytes() == slow.tobytes()
        assert tree.total == pytest.approx(plain.sum(), rel=1e-12)
    if plain.any():
        u = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=40)))  # 1 itself, as rounding may give it
        drawn, slowly = tree.draw(u), np.zeros(len(u), np.int64)
        slow_kernels.draw_leaves(slow, starts, u, slowly)
        assert drawn.tolist() == slowly.tolist()
        assert (plain[drawn] > 0).all()
        end, room = plain.cumsum()[drawn], 1e-9 * plain.sum()
        assert (u * plain.sum() <= end + room).all()
        assert (u * plain.sum() >= end - plain[drawn] - room).all()


def test_fractions_of_the_sum_by_hand():
    tree = Priorities(40)
    tree.set(np.array([3, 17, 39]), np.array([1.0, 2.0, 1.0]))
    assert tree.total == 4.0
    assert tree.draw(np.array([0.0, 0.249, 0.25, 0.749, 0.75, 0.999])).tolist() == [3, 3, 17, 17, 39, 39]


def test_sums_do_not_accumulate_rounding_errors():
    tree, rng = Priorities(1000), np.random.default_rng(0)
    for _ in range(200):
        tree.set(rng.integers(1000, size=64), 10.0 ** rng.integers(-6, 12, 64))
    tree.set(np.arange(1000), np.full(1000, 0.5))
    assert tree.total == 500.0


@pytest.mark.parametrize("many", [False, True])
def test_rows_are_sampled_in_proportion_to_their_priorities(many):
    buffer, tree = held([5, 9, 1, 4], alpha=1.0)
    live = np.flatnonzero(leaves(buffer))
    buffer.update_priorities(live, np.random.default_rng(1).uniform(0.1, 5, len(live)))
    rows = buffer.sample_many(1000, 20).row if many else np.stack([buffer.sample(20).row for _ in range(1000)])
    counts = Counter(rows.ravel().tolist())
    assert set(counts) == set(live.tolist())
    expected = tree.values(live) / tree.total * rows.size
    seen = [counts[row] for row in live.tolist()]
    assert stats.chisquare(seen, expected * sum(seen) / expected.sum()).pvalue > RARE
    assert (np.diff(rows, axis=1) >= 0).all()
    for row, fraction in zip(
        live, tree.values(live) / tree.total, strict=True
    ):  # stratified: at most one or two samples off
        assert (np.abs((rows == row).sum(axis=1) - 20 * fraction) < 2).all()


def test_every_position_in_a_batch_is_relabelled_with_the_same_probability():
    buffer, _ = held([5, 9, 1, 4])
    is_relabelled = buffer.sample_many(4000, 8).is_relabelled
    assert stats.chisquare(is_relabelled.sum(axis=0)).pvalue > RARE
    assert stats.binomtest(int(is_relabelled.sum()), is_relabelled.size, 0.8).pvalue > RARE
    both = (is_relabelled[:, :-1] & is_relabelled[:, 1:]).sum()
    assert (
        stats.binomtest(int(both), is_relabelled[:, 1:].size, 0.64).pvalue > RARE / 1000
    )  # neighbours, not quite independent


def test_goals_are_of_the_same_episode():
    for strategy in ("future", "random"):
        buffer, _ = held([5, 9, 1, 4], strategy=strategy)
        batch = buffer.sample(200)
        is_relabelled = batch.is_relabelled
        same = np.floor(batch.goal[is_relabelled, 0] / 1000) == batch.observation[is_relabelled, 0]
        assert same.all() if strategy == "future" else 0 < same.sum() < is_relabelled.sum()
        assert (
            batch.reward[is_relabelled] == compute_reward(batch.next_achieved_goal, batch.goal, {})[is_relabelled]
        ).all()


def test_weights_by_hand():
    buffer, _ = held([2], alpha=0.5, beta=1.0)
    buffer.update_priorities(np.array([0, 1]), np.array([4.0, 1.0]) - SMALLEST_ERROR)
    assert leaves(buffer)[:3].tolist() == pytest.approx([2.0, 1.0, 0.0])
    batch = buffer.sample(300)
    assert (batch.row == 0).sum() == 200
    n, p = 2, np.array([2.0, 1.0]) / 3
    by_hand = (n * p) ** -1.0
    assert batch.weight.dtype == np.float32
    assert batch.weight.tolist() == pytest.approx((by_hand / by_hand.max())[batch.row].tolist())
    buffer.beta = 0.5
    many = buffer.sample_many(2, 3)
    assert many.weight.shape == (2, 3)
    assert sorted(set(many.weight.ravel().round(6).tolist())) == pytest.approx([0.5**0.5, 1.0], abs=1e-6)
    assert many[1].weight.tolist() == many.weight[1].tolist()
    buffer.beta = 0.0
    assert (buffer.sample(5, out=buffer.sample(5)).weight == 1).all()


def test_new_transitions_have_the_largest_priority_so_far():
    buffer, _ = held([2], alpha=1.0)
    assert leaves(buffer)[:3].tolist() == [1.0 + SMALLEST_ERROR, 1.0 + SMALLEST_ERROR, 0.0]
    buffer.update_priorities([0], [7.0])
    buffer.update_priorities([0, 1], [0.5, 0.25])
    buffer.add_episode(make_episode(2, 1))
    assert leaves(buffer)[:5].tolist() == pytest.approx([0.5, 0.25, 0.0, 7.0, 0.0], abs=1e-5)


def test_the_last_of_repeated_rows_counts():
    buffer, _ = held([3], alpha=1.0)
    buffer.update_priorities([[0, 1], [0, 1]], [[5.0, 2.0], [0.0, 3.0]])
    assert leaves(buffer)[:3].tolist() == [SMALLEST_ERROR, 3.0 + SMALLEST_ERROR, 1.0 + SMALLEST_ERROR]


@pytest.mark.parametrize(
    ("row", "priority", "said"),
    [
        ([0, 1], [1.0, np.nan], "nan"),
        ([0, 1], np.float32([1.0, np.inf]), "inf"),
        ([0, 1], [1.0, 2 * LARGEST_PRIORITY], "2e"),
        ([0, 1], [1.0, -1e-9], "-1e-09"),
        ([0, 1], [1.0], r"\(2,\).*\(1,\)"),
        ([0, 1], 1.0, r"\(2,\).*\(\)"),
        ([0.0, 1.0], [1.0, 1.0], "float64"),
        ([0, 1], ["1", "1"], "<U1"),
        ([0, -1], [1.0, 1.0], "row -1 starts no"),
        ([0, 10**6], [1.0, 1.0], "row 1000000 starts no"),
        (np.array([0, 2**64 - 1], np.uint64), [1.0, 1.0], "row -1 starts no"),
        ([0, 2], [1.0, 1.0], "row 2 starts no transition"),  # a last row
        ([0, 30], [1.0, 1.0], "row 30 starts no transition"),  # never written
    ],
)
def test_refused_updates_change_nothing(row, priority, said):
    buffer, tree = held([2, 3])
    buffer.sample(4)
    before = tree._tree.tobytes()
    with pytest.raises(InputError, match=said):
        buffer.update_priorities(row, priority)
    assert tree._tree.tobytes() == before
    buffer.add_episode(make_episode(3, 59))  # evicts both: only their rows are ignored
    if "starts no" not in said:
        with pytest.raises(InputError, match=said):
            buffer.update_priorities(row, priority)


@pytest.mark.parametrize("bad", [None, (4, 1.0), (-1, 1.0), (19, 1.0), (12, 1.0), (6, np.nan), (6, np.inf), (6, 2.5)])
@pytest.mark.parametrize(("first", "stop"), [(5, 13), (9, 18), (0, 9)])
def test_the_compiled_search_for_rows_equals_the_slow_one(bad, first, stop):
    """A ring of 9 rows that was wrapped once. Row 3, position 12, is the last of an episode."""
    leaves, position, error = np.ones(9), np.arange(max(first, 5), max(first, 5) + 4), np.linspace(0, 2, 4)
    leaves[3] = 0
    if bad:
        position[2], error[2] = bad
    rows = [np.zeros(4, np.int64), np.zeros(4, np.int64)]
    answers = [
        find(leaves, position, error, first, stop, 2.0, row)
        for find, row in zip((slow_kernels.find_rows, priorities.find_rows), rows, strict=True)
    ]
    assert answers[0] is answers[1]
    assert rows[0].tolist() == rows[1].tolist()


def test_refused_settings():
    with pytest.raises(OptionError, match="`prioritized` and `energy_priority`"):
        held([], energy_priority=True)
    for name, value in (("alpha", -0.1), ("alpha", 1.1), ("beta", 2.0), ("beta", np.nan)):
        with pytest.raises(OptionError, match=name):
            held([], **{name: value})
    for options in ({"prioritized": False}, {"prioritized": False, "energy_priority": True}):
        buffer, _ = held([2], **options)
        assert buffer.sample(4).weight is None
        with pytest.raises(InputError, match="prioritized=True"):
            buffer.update_priorities([0], [1.0])


def test_updates_of_evicted_rows_are_ignored():
    buffer, _ = held([4, 4], capacity=8, alpha=1.0, episode_length=4)
    row = buffer.sample(8).row
    assert sorted(set(row.tolist())) == [0, 1, 2, 3, 5, 6, 7, 8]
    buffer.add_episode(make_episode(3, 2))  # over rows 0 to 2; row 3 of the evicted episode stays empty
    buffer.update_priorities([0, 3, 5, 1], [9.0, 9.0, 3.0, 9.0])
    assert leaves(buffer).tolist() == pytest.approx([1, 1, 0, 0, 0, 3, 1, 1, 1, 0], abs=1e-5)
    row = buffer.sample(8).row
    assert sorted(set(row.tolist())) == [5, 6, 7, 8, 10, 11]  # rows 0 and 1 were written again
    buffer.update_priorities([10], [2.0])
    assert leaves(buffer)[0] == pytest.approx(2.0, abs=1e-5)
    for unknown in (12, 13, 10**9):
        with pytest.raises(InputError, match=f"row {unknown} starts no transition"):
            buffer.update_priorities([unknown], [1.0])


def test_late_updates_never_change_new_episodes():
    """A learner that prefetches: it updates a batch after further draws and evictions."""
    buffer, _ = held([4, 4], capacity=8, alpha=1.0, episode_length=4)
    old = buffer.sample(8).row
    for number in (3, 4):
        buffer.add_episode(make_episode(number, 4))
        buffer.sample(8)
    before = leaves(buffer)
    buffer.update_priorities(old, np.full(8, 9.0))
    assert (leaves(buffer) == before).all()
    buffer.update_priorities(buffer.sample(8).row, np.full(8, 9.0))
    assert (leaves(buffer)[buffer.timeline.live_rows()] == 9.0 + SMALLEST_ERROR).all()


def least(number):
    """What is added to the path of episode `number`, whose goal is -number."""
    return LEAST_FRACTION * (place(number, 0) + number)


def test_energy_is_how_far_the_achieved_goal_moved():
    buffer, tree = held([2, 4, 1], prioritized=False, energy_priority=True)
    counts = [2 + least(1)] * 2 + [0] + [4 + least(2)] * 4 + [0] + [1 + least(3)]
    assert leaves(buffer)[:9].tolist() == pytest.approx(counts, rel=1e-12)
    rows = buffer.sample_many(500, 20).row.ravel()
    live = np.flatnonzero(leaves(buffer))
    assert stats.chisquare([(rows == r).sum() for r in live], tree.values(live) / tree.total * rows.size).pvalue > RARE


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_energy_is_the_same_in_any_unit_of_length(unit):
    probabilities = []
    for factor in (1.0, unit):
        buffer, tree = held([], prioritized=False, energy_priority=True)
        for number, moves in enumerate([[0, 0, 0], [0, 1, 3]]):
            places = np.array(moves, np.float32)[:, None] * factor
            goal, seen = np.full((3, 1), 5.0) * factor, np.zeros((3, 2))
            buffer.add_episode(Episode(seen, places, goal, np.zeros((2, 1)), np.zeros(2), number=number))
        probabilities.append(leaves(buffer) / tree.total)
    np.testing.assert_allclose(*probabilities, rtol=1e-6)
    assert 0 < probabilities[0][0] < 0.01  # an episode without movement


def test_an_episode_that_rests_at_its_goal_has_the_smallest_priority():
    buffer, _ = held([], prioritized=False, energy_priority=True)
    places = np.ones((3, 1))
    buffer.add_episode(Episode(np.zeros((3, 2)), places, places, np.zeros((2, 1)), np.zeros(2)))
    assert 0 < leaves(buffer)[0] < 1e-100
    assert set(buffer.sample(50).row.tolist()) <= {0, 1}


def test_energy_is_capped():
    buffer, _ = held([2, 4, 1], prioritized=False, energy_priority=True, energy_cap=1.5)
    counts = [1.5 + least(1)] * 2 + [0] + [1.5 + least(2)] * 4 + [0] + [1 + least(3)]
    assert leaves(buffer)[:9].tolist() == pytest.approx(counts, rel=1e-12)
    for options in ({"energy_priority": True, "energy_cap": 0.0}, {"energy_cap": 1.0}):
        with pytest.raises(OptionError, match=r"`energy_cap` (must be|needs)"):
            held([], prioritized=False, **options)


def test_remaining_energy_counts_the_path_from_each_step_on():
    buffer, _ = held([3, 1], prioritized=False, energy_priority=True, energy_remaining=True)  # every step moves by 1
    assert (leaves(buffer)[:3] - least(1)).tolist() == pytest.approx([3.3, 2.3, 1.3])
    assert leaves(buffer)[3:5].tolist() == pytest.approx([0, 1.1 + least(2)])
    buffer, _ = held([3], prioritized=False, energy_priority=True, energy_remaining=True, energy_cap=1.5)
    assert (leaves(buffer)[:3] - least(1)).tolist() == pytest.approx([1.65, 1.65, 1.15])
    with pytest.raises(OptionError, match="`energy_remaining` needs energy_priority=True"):
        held([], prioritized=False, energy_remaining=True)


AHEAD = {"prioritized": False, "energy_priority": True, "energy_remaining": True}


@pytest.mark.parametrize("options", [{"prioritized": True}, {"prioritized": False, "energy_priority": True}, AHEAD])
@pytest.mark.parametrize("capacity", [4, 7, 12])
def test_exactly_the_live_rows_have_priorities(options, capacity):
    rng = np.random.default_rng(capacity)
    buffer, tree = held([], capacity=capacity, episode_length=3, **options)
    for number in range(150):
        buffer.add_episode(make_episode(number, int(rng.integers(1, min(capacity, 5) + 1))))
        live = buffer.timeline.live_rows()
        assert np.flatnonzero(leaves(buffer)).tolist() == live.tolist()
        assert tree.total == pytest.approx(leaves(buffer).sum(), rel=1e-12)
        batch = buffer.sample(6)
        assert set(batch.row % len(buffer.timeline.rows)) <= set(live)
        if rng.random() < 0.5:
            buffer.add_episode(make_episode(1000 + number, 2))
        if options["prioritized"]:
            was_live, before = set(live.tolist()), leaves(buffer)
            buffer.update_priorities(batch.row, rng.exponential(size=6))
            assert set(np.flatnonzero(leaves(buffer) != before)) <= was_live
        assert tree.total == pytest.approx(leaves(buffer)[buffer.timeline.live_rows()].sum(), rel=1e-12)


@pytest.mark.parametrize("options", [{"prioritized": True}, {"prioritized": False, "energy_priority": True}])
def test_a_saved_buffer_continues_with_the_same_bytes(options, tmp_path):
    buffer, tree = held([5, 3, 4, 2], capacity=10, **options)
    if options["prioritized"]:
        buffer.update_priorities(buffer.sample(6).row, np.arange(6.0))
    buffer.beta = 0.7
    buffer.save(tmp_path / "b")
    other = HindsightBuffer.load(tmp_path / "b", compute_reward)
    assert (other.beta, other.timeline.priorities._tree.tobytes()) == (0.7, tree._tree.tobytes())
    for _ in range(3):
        mine, theirs = buffer.sample(9), other.sample(9)
        assert mine.row.tobytes() == theirs.row.tobytes()
        assert mine.goal.tobytes() == theirs.goal.tobytes()
        assert str(mine.weight) == str(theirs.weight)
        for each in (buffer, other):
            each.add_episode(make_episode(9, 3))


def test_an_empty_buffer_is_saved_too(tmp_path):
    buffer, _ = held([])
    buffer.save(tmp_path / "b")
    other = HindsightBuffer.load(tmp_path / "b", compute_reward)
    other.add_episode(make_episode(1, 2))
    assert leaves(other)[:3].tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-5)


def test_invalid_priorities_are_refused_when_loading():
    buffer, tree = held([5, 3])
    arrays, data = buffer.state_dict()
    values = arrays["priorities"]
    one_more, not_finite = values.copy(), values.copy()
    one_more[5], not_finite[0] = 1.0, np.inf
    bad = [{"priorities": values[:-1]}, {"priorities": values.astype(np.float32)}, {"priorities": one_more}]
    bad += [{"priorities": not_finite}, {"priorities": -values}, {"largest_error": np.zeros(1)}]
    before = tree._tree.tobytes()
    for change in bad:
        with pytest.raises(FileError, match="priorit"):
            buffer.load_state_dict(arrays | change, data)
    with pytest.raises(FileError, match="beta"):
        buffer.load_state_dict(arrays, data | {"beta": 3.0})
    with pytest.raises(FileError, match=r"alpha 0\.6 instead of 0\.3"):
        held([5, 3], alpha=0.3)[0].load_state_dict(arrays, data)
    assert tree._tree.tobytes() == before
