"""Prioritized replay in the cpprb adapter: frequencies, weights, updates."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from tiny_cpprb import ENV, distance, filled, play, priorities_of, prioritized_buffer

from distributions import RARE, assert_distribution
from hindsight_rl.errors import OptionError


def test_weights_and_frequencies_by_hand():
    buffer, index = prioritized_buffer(alpha=0.5, eps=0.25)
    priority = np.arange(18.0)
    buffer.update_priorities(index, priority)
    p = (priority + 0.25) ** 0.5
    by_hand = (18 * p / p.sum()) ** -0.7
    counts = Counter()
    for _ in range(2000):
        sample = buffer.sample(18, 0.7)
        place = np.searchsorted(index, sample["indexes"])
        assert sample["weights"] == pytest.approx(
            by_hand[place] / by_hand.max(), rel=1e-5
        )  # the maximum of all, not of the batch
        counts.update(place.tolist())
    assert (sample["weights"].dtype, sample["indexes"].dtype) == (np.float32, np.uint64)
    assert_distribution(counts, dict(enumerate(p / p.sum())))
    assert buffer.get_max_priority() == pytest.approx(17.0)


def test_new_transitions_have_the_largest_priority_so_far():
    buffer, index = prioritized_buffer(alpha=1.0)
    assert buffer.get_max_priority() == pytest.approx(1.0)
    buffer.update_priorities(index[:2], [5.0, 2.0])
    buffer.update_priorities(index[:1], [0.5])
    assert buffer.get_max_priority() == pytest.approx(5.0)
    play(buffer, 3, 1)
    assert np.unique(priorities_of(buffer).round(4)).tolist() == pytest.approx([0.5001, 1.0001, 2.0001, 5.0001])
    buffer.clear()
    assert buffer.get_max_priority() == pytest.approx(1.0)


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
    weight, counts = np.zeros(18), np.zeros((2, 18))
    for _ in range(500):
        sample = theirs.sample(36, beta=0.6)
        place = sample["indexes"].astype(int)
        weight[place] = sample["weights"]
        counts[1] += np.bincount(place, minlength=18)
    for _ in range(500):
        sample = ours.sample(36, beta=0.6)
        place = np.searchsorted(index, sample["indexes"])
        assert sample["weights"] == pytest.approx(weight[place], rel=1e-5)
        counts[0] += np.bincount(place, minlength=18)
    assert stats.chi2_contingency(counts).pvalue > RARE
    assert ours.get_max_priority() == pytest.approx(theirs.get_max_priority(), rel=1e-6)


@pytest.mark.parametrize(
    ("indexes", "priorities", "words"),
    [
        ([0, 1], [1.0, np.nan], "must be between 0 and 1e.100, got nan"),
        ([0, 1], [1.0, np.inf], "got inf"),
        ([0, 1], [1.0, -1.0], r"`priorities` must be at least 0, got -1\.0"),
        ([0, 10**9], [1.0, 1.0], "1000000000 starts no transition"),
        ([-1], [1.0], "-1 starts no transition"),
        ([30], [1.0], "30 starts no transition"),
        ([0.5], [1.0], r"got \(1,\) of float64"),
        ([0, 1], [1.0], "a number for each of the `indexes`, got 1 and 2"),
        ([], [1.0], "got 1 and 0"),
        (None, [1.0], "got .* of object"),
        ([1], None, "NoneType"),
    ],
)
def test_invalid_priorities_change_nothing(indexes, priorities, words):
    buffer = filled([6])
    before = priorities_of(buffer).copy()
    with pytest.raises(TypeError if priorities is None else ValueError, match=words):
        buffer.update_priorities(indexes, priorities)
    assert (priorities_of(buffer) == before).all()
    assert buffer.get_max_priority() == pytest.approx(1.0)
    buffer.sample(5)


def test_priorities_are_any_array_like():
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    buffer.update_priorities([], [])
    buffer.update_priorities(index[:2].tolist(), (4, 3))
    buffer.update_priorities(index[1:3, None], np.float32([[2], [1]]))
    assert priorities_of(buffer)[:3].tolist() == pytest.approx([4.0001, 2.0001, 1.0001])


def test_updates_of_removed_transitions_are_skipped():
    """A learner that prefetches samples once more before it updates the priorities of the sample before."""
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    play(buffer, 9, 3)
    buffer.sample(5)
    before = priorities_of(buffer).copy()
    buffer.update_priorities(index[:9], np.full(9, 9.0))
    assert (priorities_of(buffer) == before).all()
    assert set(buffer.sample(50)["obs"][:, 0].tolist()) == {2, 9}


def test_without_priorities():
    buffer = filled([4], prioritized=False)
    assert list(buffer.sample(3)) == ["obs", "act", "next_obs", "rew", "goal"]
    for call in (lambda: buffer.update_priorities([], []), buffer.get_max_priority):
        with pytest.raises(ValueError, match="Buffer is constructed without PER"):
            call()


def test_beta():
    with pytest.raises(OptionError, match=r"`beta` must be at least 0, got -0\.1"):
        filled([3]).sample(4, beta=-0.1)
    assert filled([3]).sample(4, 2.0)["weights"].tolist() == [1.0] * 4


def test_the_largest_weight_follows_updates_and_removals():
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    buffer.update_priorities(index, np.arange(2.0, 20.0))  # the first episode has 2 to 10, the second 11 to 19

    def lowest():
        sample = buffer.sample(40, beta=1.0)
        values = buffer._error_priorities().values(sample["indexes"].astype(int) % len(buffer._error_priorities().leaves))
        return np.unique((sample["weights"] * values).round(3)).tolist()

    assert lowest() == [2.0]
    buffer.update_priorities(index[:1], [30.0])
    assert lowest() == [3.0]
    buffer.update_priorities(index[5:6], [1.0])
    assert lowest() == [1.0]
    play(buffer, 3, 3)  # removes the first episode
    assert lowest() == [11.0]
