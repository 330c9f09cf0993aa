"""Definitions that training and report share."""

import math

import pytest

from hindsight_rl.records.statistics import return_range


@pytest.mark.parametrize(
    ("reward_range", "expected"),
    [
        ((-1.0, 0.0), (-50.0, 0.0)),  # sparse
        ((0.0, 1.0), (0.0, 50.0)),
        ((1.0, 2.0), (1.0, 100.0)),  # an episode may end after one reward of 1
        ((-2.0, -1.0), (-100.0, -1.0)),
        ((-math.inf, 0.0), (-math.inf, 0.0)),
        ((-math.inf, math.inf), (-math.inf, math.inf)),
    ],
)
def test_return_range(reward_range, expected):
    assert return_range(*reward_range, discount=0.98) == pytest.approx(expected)
