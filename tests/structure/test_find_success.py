"""How far starts are from a success."""

import numpy as np
import pytest

from hindsight.records import Episode
from hindsight.structure.success import count_halvings


def start(place, goal):
    places = np.array([[place], [place + 9]])
    return Episode(places, places, np.array([[goal], [goal]]), np.zeros((1, 1)), np.zeros(1), info={"radius": np.ones(1)})


def near(achieved_goal, goal, info):
    return (np.abs(achieved_goal - goal)[:, 0] < info["radius"]) - 1.0


@pytest.mark.parametrize(
    ("distances", "halvings"),
    [
        ((0.5, 0.5, 9.0), 0),  # most starts are successes
        ((3.9, 3.9, 9.0), 2),  # a quarter is nearer than 1
        ((4.1, 3.9, 9.0), 3),  # of two of three: an eighth
        ((1e4, 1e4, 1e4), 0),  # too far
    ],
)
def test_halvings_until_most_starts_are_successes(distances, halvings):
    assert count_halvings(near, [start(1.0, 1.0 + distance) for distance in distances]) == halvings


def test_dense_rewards_need_none():
    assert count_halvings(lambda achieved, goal, info: -np.abs(achieved - goal)[:, 0], [start(0.0, 4.0)] * 3) == 0
