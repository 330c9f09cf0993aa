"""Which columns hold the desired goal, and which dimensions of the achieved goal no column shows."""

import numpy as np

from hindsight_rl.envs.goal_columns import columns_with_goals, dimensions_not_shown
from hindsight_rl.envs.random_play import RandomEpisode
from hindsight_rl.records import OBSERVATION_KEYS


def started(observation, desired, achieved=(0.0, 0.0)):
    """An episode without a step."""
    episode = RandomEpisode(seed=0)
    values = zip(OBSERVATION_KEYS, (observation, achieved, desired), strict=True)
    episode.append({key: np.array(value, np.float32) for key, value in values})
    return episode


def held(episodes):
    return columns_with_goals([each.observations for each in episodes])


def test_a_column_that_equals_one_of_two_goals_of_zeros_and_ones_holds_no_goal():
    episodes = [started((1, 0), (0, 0)), started((0, 0), (0, 1)), started((0, 1), (1, 0)), started((0, 0), (0, 1))]
    assert held(episodes) == ()  # column 1 equals the first dimension, and no column equals the second


def test_columns_that_equal_all_goals_of_zeros_and_ones_hold_the_goal():
    goals = [(0, 0), (0, 1), (1, 0), (0, 1)]
    episodes = [started((*goal, place), goal) for goal, place in zip(goals, (3, 5, 5, 4), strict=True)]
    assert held(episodes) == (0, 1)


def test_a_column_that_follows_one_dimension_with_many_values_holds_the_goal():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1), (0.4, 0.2)]
    episodes = [started((7, 2 * goal[0] + 1), goal) for goal in goals]
    assert held(episodes) == (1,)


def test_a_column_of_an_object_that_rests_at_its_goal_holds_no_goal():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1), (0.4, 0.2)]
    resting = [started((goal[1] + 1e-7, 0), goal, (0.0, goal[1] + 1e-7)) for goal in goals]  # in dimension 1
    assert held(resting) == ()


def test_the_gap_between_another_column_and_the_goal_holds_the_goal_and_the_other_column_does_not():
    goals, hands = [(0.1, 3), (0.2, 9), (0.5, 1), (0.4, 2)], (0.31, 0.29, 0.3, 0.3)
    episodes = [started((hand, 2 * hand - goal[0], 7), goal) for goal, hand in zip(goals, hands, strict=True)]
    assert held(episodes) == (1,)


def test_two_columns_that_differ_by_a_constant_hold_no_goal():
    goals, hands = [(0.1, 3), (0.2, 9), (0.5, 1), (0.4, 2)], (0.31, 0.29, 0.3, 0.3)
    assert held([started((hand, hand - 0.5), goal) for goal, hand in zip(goals, hands, strict=True)]) == ()


def test_the_distance_of_both_goals_holds_the_goal():
    goals, achieved = [(3, 0.3), (0, 0.9), (6, 0.1), (9, 0.2)], [(0, 4.3), (5, 0.9), (6, 1.1), (3, 8.2)]
    distances = (5, 5, 1, 10)
    seen = [(distance, place[0]) for distance, place in zip(distances, achieved, strict=True)]
    assert held([started(*each) for each in zip(seen, goals, achieved, strict=True)]) == (0,)


def moved(observation, achieved):
    """Episodes of no step, with one observation and one achieved goal each."""
    return [started(seen, (0.0,) * len(goal), goal) for seen, goal in zip(observation, achieved, strict=True)]


def test_dimensions_that_no_column_shows_are_those_that_differ_from_each_column():
    goals = [(0.1, 0.3, 0.5), (0.2, 0.9, 0.5), (0.3, 0.1, 0.5)]
    assert dimensions_not_shown(moved([(7, 8), (9, 7), (8, 9)], goals)) == (0, 1, 2)
    assert dimensions_not_shown(moved([goal[1::-1] for goal in goals], goals)) == (2,)  # its constant height
    assert dimensions_not_shown(moved([(*goal, 0.0) for goal in goals], goals)) == ()


def test_a_column_with_little_noise_shows_a_dimension_and_one_with_much_does_not():
    goals = [(0.1,), (0.2,), (0.4,), (0.3,)]
    for noise, missing in ((0.005, ()), (0.05, (0,))):
        seen = [(goal[0] + sign * noise,) for goal, sign in zip(goals, (1, -1, -1, 1), strict=True)]
        assert dimensions_not_shown(moved(seen, goals)) == missing


def test_nothing_is_missing_where_a_column_shows_a_dimension_in_other_units():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1)]
    seen = [(100 * goal[0] + 7,) for goal in goals]
    assert dimensions_not_shown(moved(seen, goals)) == ()
    with_height = [started(one, (*goal, 0.5), (*goal, 0.5)) for one, goal in zip(seen, goals, strict=True)]
    assert dimensions_not_shown(with_height) == (2,)  # it is always the same


def test_whole_numbers_are_not_looked_for():
    observations = {key: np.array([1, 2]) for key in OBSERVATION_KEYS} | {"observation": np.array([3.0, 4.0])}
    episode = RandomEpisode(seed=0)
    episode.append(observations)
    assert dimensions_not_shown([episode]) == ()
