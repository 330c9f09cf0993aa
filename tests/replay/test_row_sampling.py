"""Random numbers and live rows, all from one random state."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from tiny import SPEC, make_episode

from hindsight_rl import Timeline
from hindsight_rl.replay.sampler import RandomNumbers, RowSampler


def make_rows(lengths, capacity=200, seed=0):
    timeline = Timeline(SPEC, capacity, episode_length=3)
    for number, steps in enumerate(lengths, start=1):
        timeline.append(make_episode(number, steps))
    return RowSampler(timeline, RandomNumbers(seed))


@pytest.mark.parametrize(("lengths", "capacity"), [([3, 1, 4], 200), ([1] * 60, 200), ([2, 3, 2, 3], 6), ([180, 2], 180)])
def test_every_live_row_is_equally_likely(lengths, capacity):
    rows = make_rows(lengths, capacity)
    live = rows.timeline.live_rows().tolist()
    counts = Counter(rows.uniform_rows(20_000).tolist())
    assert set(counts) == set(live)
    assert len(live) == 1 or stats.chisquare([counts[row] for row in live]).pvalue > 1e-6


def test_few_live_rows_are_chosen_from_the_exact_list():
    rows = make_rows([180, 2], 180)
    assert rows.count_proposals(8) == 0
    assert set(rows.uniform_rows(100).tolist()) == set(rows.timeline.live_rows().tolist())


def test_stratified_numbers_are_one_per_interval_in_each_batch():
    u = RandomNumbers(0).stratified(12, 4).reshape(3, 4)
    assert np.floor(u * 4).tolist() == [[0, 1, 2, 3]] * 3
    assert len(np.unique(u * 4 % 1)) == 12
