"""Prioritized replay in the cpprb adapter: frequencies, weights, updates."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from tiny_cpprb import ENV, P_VALUE, check_distribution, check_weights, distance, filled, make, play, prioritized_buffer

from hindsight.errors import OptionError


def test_weights_and_frequencies_by_hand():
    buffer, index = prioritized_buffer(alpha=0.5, eps=0.25)
    priority = np.arange(18.0)
    buffer.update_priorities(index, priority)
    p = (priority + 0.25) ** 0.5
    by_hand = (18 * p / p.sum()) ** -0.7
    by_hand /= by_hand.max()
    counts = Counter()
    for _ in range(2000):
        sample = buffer.sample(18, 0.7)
        place = np.searchsorted(index, sample["indexes"])
        assert sample["weights"] == pytest.approx(by_hand[place], rel=1e-6)
        counts.update(place.tolist())
    assert (sample["weights"].dtype, sample["indexes"].dtype) == (np.float32, np.uint64)
    check_distribution(counts, dict(enumerate(p / p.sum())))
    assert buffer.get_max_priority() == 17.0


def test_weights_are_measured_against_the_lowest_value_of_all():
    """It is the one that a search finds, also after updates, evictions and repeated indexes. Errors grow, so it changes."""
    rng, buffer = np.random.default_rng(0), make(60, additional_goals=1)
    for number in range(200):
        play(buffer, number, int(rng.integers(1, 6)))
        sample = buffer.sample(8)
        buffer.update_priorities(np.repeat(sample["indexes"], 2), rng.integers(0, 3, 16) + number // 4)
        check_weights(buffer)


def test_repeated_indexes_count_once_for_the_lowest_value():
    buffer, index = prioritized_buffer()
    for indexes, priorities in [
        (index[[0, 0]], [0, 0]),
        (index[:1], [5.0]),
        (index[[1, 1, 1]], [0, 0, 4]),
        (index, np.ones(18)),
    ]:
        buffer.update_priorities(indexes, priorities)
        check_weights(buffer)


def test_new_transitions_have_the_largest_priority_so_far():
    buffer, index = prioritized_buffer(alpha=1.0)
    assert buffer.get_max_priority() == 1.0
    buffer.update_priorities(index[:2], [5.0, 2.0])
    buffer.update_priorities(index[:1], [0.5])
    assert buffer.get_max_priority() == 5.0
    play(buffer, 3, 1)
    assert np.unique(buffer._priorities._tree.leaves.round(4)).tolist() == pytest.approx(
        [0.0, 0.5001, 1.0001, 2.0001, 5.0001]
    )
    buffer.clear()
    assert buffer.get_max_priority() == 1.0


def test_weights_and_priorities_are_those_of_cpprb():
    cpprb = pytest.importorskip("cpprb")
    theirs = cpprb.HindsightReplayBuffer(100, ENV, 6, distance, additional_goals=2)
    ours, index = prioritized_buffer()
    for number in (1, 2):
        play(theirs, number, 3)
    assert theirs.get_max_priority() == ours.get_max_priority()
    priority = np.random.default_rng(1).exponential(size=18)
    ours.update_priorities(index, priority)
    theirs.update_priorities(np.arange(18), priority)
    weight = [np.zeros(18), np.zeros(18)]
    counts = np.zeros((2, 18))
    for _ in range(500):
        for i, buffer in enumerate((ours, theirs)):
            sample = buffer.sample(36, beta=0.6)
            place = np.searchsorted(index, sample["indexes"]) if i == 0 else sample["indexes"].astype(int)
            weight[i][place] = sample["weights"]
            counts[i] += np.bincount(place, minlength=18)
    assert weight[0] == pytest.approx(weight[1], rel=1e-5)
    assert stats.chi2_contingency(counts).pvalue > P_VALUE
    assert ours.get_max_priority() == pytest.approx(theirs.get_max_priority(), rel=1e-6)


@pytest.mark.parametrize(
    ("indexes", "priorities", "words"),
    [
        ([0, 1], [1.0, np.nan], "must be between 0 and 1e.100, got nan"),
        ([0, 1], [1.0, np.inf], "got inf"),
        ([0, 1], [1.0, -1.0], r"got -1\.0"),
        ([0, 10**9], [1.0, 1.0], '`indexes` holds 1000000000, which no sample had. Give the "indexes" of a sample'),
        ([-1], [1.0], "holds -1, which no sample had"),
        ([30], [1.0], "holds 30, which no sample had"),
        ([0.5], [1.0], r"got \(1,\) of float64"),
        ([0, 1], [1.0], r"as many numbers for `priorities`, got \(2,\) .* \(1,\)"),
        ([], [1.0], "as many numbers"),
        (None, [1.0], "None"),
        ([1], None, "None"),
    ],
)
def test_invalid_priorities_change_nothing(indexes, priorities, words):
    buffer = filled([6])
    before = buffer._priorities._tree.leaves.copy()
    with pytest.raises(TypeError if "None" in words else ValueError, match=words):
        buffer.update_priorities(indexes, priorities)
    assert (buffer._priorities._tree.leaves == before).all()
    assert buffer.get_max_priority() == 1.0
    buffer.sample(5)


def test_priorities_are_any_array_like():
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    buffer.update_priorities([], [])
    buffer.update_priorities(index[:2].tolist(), (4, 3))
    buffer.update_priorities(index[1:3, None], np.float32([[2], [1]]))
    assert buffer._priorities._tree.leaves[:3].tolist() == [4.0001, 2.0001, 1.0001]


def test_updates_of_removed_transitions_are_skipped():
    """A learner that prefetches samples once more before it updates the priorities of the sample before."""
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    play(buffer, 9, 3)
    buffer.sample(5)
    before = buffer._priorities._tree.leaves.copy()
    buffer.update_priorities(index[:9], np.full(9, 9.0))
    assert (buffer._priorities._tree.leaves == before).all()
    assert set(buffer.sample(50)["obs"][:, 0].tolist()) == {2, 9}
    buffer.clear()
    play(buffer, 1, 3)
    buffer.update_priorities(index, np.full(18, 9.0))
    assert buffer.get_max_priority() == 1.0


def test_without_priorities():
    buffer = filled([4], prioritized=False)
    assert list(buffer.sample(3)) == ["obs", "act", "next_obs", "rew", "goal"]
    for call in (lambda: buffer.update_priorities([], []), buffer.get_max_priority):
        with pytest.raises(ValueError, match="Buffer is constructed without PER"):
            call()


def test_beta():
    with pytest.raises(OptionError, match=r"`beta` must be at least 0, .* got -0\.1"):
        filled([3]).sample(4, beta=-0.1)
    assert filled([3]).sample(4, 1.0000001)["weights"].tolist() == [1.0] * 4
