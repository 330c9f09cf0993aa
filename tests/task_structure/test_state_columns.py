"""Which columns a plan needs: a walk on a ring, with columns that count, repeat, or decide what an action does."""

import numpy as np
import pytest

from hindsight_rl.task_structure.state_columns import LEAST_MERGED, find_state_columns
from hindsight_rl.task_structure.tabular_model import TabularModel

RING = 6
GOAL = 2  # the number of the only goal column: the place


def onward(place, action, episode, rng):
    return (place + 2 * action - 1) % RING


def backward_in_odd_episodes(place, action, episode, rng):
    return onward(place, action ^ (episode % 2), episode, rng)


def anywhere(place, action, episode, rng):
    return int(rng.integers(RING))


def walked(observe, after=onward):
    """Return the columns that are kept. observe: (place, step, episode) -> two columns. after: where an action leads."""
    rng, model = np.random.default_rng(0), TabularModel(3, 1, 2)
    for episode in range(60):
        action, places = rng.integers(0, 2, 10), [int(rng.integers(RING))]
        for each in action:
            places.append(after(places[-1], each, episode, rng))
        rows = [[*observe(place, step, episode), place] for step, place in enumerate(places)]
        model.add(np.array(rows, np.int32), action)
    states, transitions, _ = model.arrays().values()
    return find_state_columns(states, transitions, 1)


def test_a_count_of_the_steps_and_the_number_of_the_episode_are_needless():
    assert walked(lambda place, step, episode: (step, episode)) == [GOAL]


def test_a_constant_column_is_needless_and_a_copy_of_the_goal_stays():
    assert walked(lambda place, step, episode: (7, place)) == [1, GOAL]


def test_a_column_that_decides_what_an_action_does_stays():
    assert walked(lambda place, step, episode: (episode % 2, step), backward_in_odd_episodes) == [0, GOAL]


def test_where_outcomes_are_random_all_columns_stay():
    assert walked(lambda place, step, episode: (step, episode), anywhere) == [0, 1, GOAL]


@pytest.mark.parametrize(("n", "expected"), [(LEAST_MERGED, [0, 1]), (LEAST_MERGED + 1, [1])])
def test_a_column_is_left_out_once_enough_transitions_become_equal(n, expected):
    """Each episode goes from place 0 to place 1, with another number: without it, n transitions are one."""
    states = np.array([[number, place] for number in range(n) for place in (0, 1)], np.int32)
    transitions = np.array([[2 * number, 0, 2 * number + 1, 1] for number in range(n)], np.int32)
    assert find_state_columns(states, transitions, 1) == expected
