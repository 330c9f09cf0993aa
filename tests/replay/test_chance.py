"""Chance: numbers and live rows, from one state."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from tiny import SPEC, make_episode

from hindsight import Timeline
from hindsight.errors import FileError
from hindsight.replay.chance import Chance, check_state


def make_chance(lengths, capacity=200, seed=0):
    timeline = Timeline(SPEC, capacity, episode_length=3)
    for number, steps in enumerate(lengths, start=1):
        timeline.append(make_episode(number, steps))
    return Chance(timeline, seed)


@pytest.mark.parametrize(("lengths", "capacity"), [([3, 1, 4], 200), ([1] * 60, 200), ([2, 3, 2, 3], 6), ([180, 2], 180)])
def test_every_live_row_is_as_likely(lengths, capacity):
    chance = make_chance(lengths, capacity)
    live = chance.timeline.live_rows().tolist()
    counts = Counter(chance.rows(20_000).tolist())
    assert set(counts) == set(live)
    assert len(live) == 1 or stats.chisquare([counts[row] for row in live]).pvalue > 1e-6


def test_few_live_rows_are_taken_from_the_list():
    chance = make_chance([180, 2], 180)
    assert chance.count_proposals(8) == 0
    assert set(chance.rows(100).tolist()) == set(chance.timeline.live_rows().tolist())


def test_shares_come_one_from_each_part_of_each_batch():
    shares = make_chance([]).shares(12, 4).reshape(3, 4)
    assert np.floor(shares * 4).tolist() == [[0, 1, 2, 3]] * 3
    assert len(np.unique(shares * 4 % 1)) == 12


def test_a_state_goes_on_where_it_was_taken():
    one, other = make_chance([5], seed=3), make_chance([5], seed=4)
    one.numbers(7)
    check_state(one.state)
    other.load(one.state)
    assert one.numbers(5).tolist() == other.numbers(5).tolist()
    for bad in (np.zeros(2, np.uint64), np.zeros(1)):
        with pytest.raises(FileError, match="not one uint64"):
            check_state(bad)
