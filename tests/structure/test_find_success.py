"""How far starts are from a success."""

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.success import count_halvings, find_success_distance, ignores_exchange


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


TASKS = {0.0: 0, 4.0: 1}  # the only goals that there are


def by_table(achieved_goal, goal, info):
    return np.array([TASKS[a] == TASKS[g] for a, g in zip(achieved_goal[:, 0], goal[:, 0], strict=True)]) - 1.0


def test_rewards_that_cannot_answer_for_made_up_goals_are_not_graded():
    episodes = [start(0.0, 4.0), start(4.0, 0.0), start(0.0, 4.0)]
    assert count_halvings(by_table, episodes) == 0
    assert find_success_distance(by_table, episodes) is None
    pairs = (np.array([goal, goal]) for goal in ([0.0, 4.0], [4.0, 0.0]))
    two = [Episode(pair, pair, pair, np.zeros((1, 1)), np.zeros(1)) for pair in pairs]
    assert not ignores_exchange(by_table, two, 1)
