import numpy as np
import pytest

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import Relabel
from hindsight_rl.options.replay import GOAL_SOURCES, STRATEGIES, her_probability
from hindsight_rl.replay.strategies import (
    check_strategy,
    episode_rows,
    final_rows,
    future_rows,
    goal_rows,
    random_rows,
)

# an episode of 4 steps in rows 10 .. 14, seen from its first, third and last transition
ROW, DONE, LEFT = np.array([10, 12, 13]), np.array([0, 2, 3]), np.array([4, 2, 1])


def test_future_rows_are_later_rows_of_the_same_episode():
    row, steps_left = np.array([0, 0, 0, 3]), np.array([4, 4, 4, 1])
    u = np.array([0.0, 0.5, 0.999, 0.999])
    assert future_rows(row, steps_left, u).tolist() == [1, 3, 4, 4]


def test_the_largest_random_number_stays_in_the_episode():
    row, steps_left = np.zeros(64, np.int64), np.arange(1, 65)
    assert (future_rows(row, steps_left, np.nextafter(1.0, 0.0)) == steps_left).all()


def test_final_rows_are_the_last_rows():
    assert final_rows(ROW, LEFT).tolist() == [14, 14, 14]


def test_episode_rows_are_all_rows_but_the_first():
    for u, goal_row in ((0.0, 11), (0.25, 12), (0.5, 13), (0.999, 14)):
        assert episode_rows(ROW, DONE, LEFT, np.full(3, u)).tolist() == [goal_row] * 3


def test_random_rows_are_the_outcomes_of_other_transitions():
    assert random_rows(np.array([3, 40])).tolist() == [4, 41]


def test_strategies_are_known_by_name():
    u, other = np.full(3, 0.5), np.array([20, 21, 22])
    rows = {name: goal_rows(name, ROW, DONE, LEFT, u, other).tolist() for name in STRATEGIES}
    assert rows == {"future": [13, 14, 14], "final": [14] * 3, "episode": [13] * 3, "random": [21, 22, 23]}
    with pytest.raises(
        UnknownNameError, match="Expected one of future, final, episode, random as `strategy`, got 'nearest'"
    ):
        goal_rows("nearest", ROW, DONE, LEFT, u, other)


def test_each_named_strategy_is_a_source_of_mixtures_too():
    assert {*STRATEGIES, "desired"} == {*GOAL_SOURCES}


def test_an_unknown_strategy_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"strategy must be one of future, .*, got 'futur'.*Did you mean 'future'"):
        check_strategy("futur")
    with pytest.raises(OptionError, match="got 3"):
        check_strategy(3)


def test_the_fraction_of_relabelled_samples():
    assert [her_probability("future", k) for k in (None, 0, 1, 9)] == [0.8, 0.0, 0.5, 0.9]
    assert her_probability(Relabel(future=0.5, desired=0.25), None) == 0.75
