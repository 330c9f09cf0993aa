"""Whether small actions suffice."""

import numpy as np
import pytest

from hindsight_rl.records import ArraySpec, Episode
from hindsight_rl.structure import measure_effort, split_by_scale
from hindsight_rl.structure.effort import Effort

ACTION = ArraySpec((3,), "float64", (-1.0, -1.0, 0.0), (1.0, 1.0, 4.0))  # the middle eighth of the last: 1.75 to 2.25


def walk(scale, strength, seed=0, steps=40):
    """An episode of random actions of this part of the range. Moves are proportional to the action, up to a limit of 1."""
    unit_action = np.random.default_rng(seed).uniform(-scale, scale, (steps, 3))
    moves = np.clip(strength * unit_action[:, :2], -1, 1)
    places = np.concatenate([np.zeros((1, 2)), moves.cumsum(0)])
    action = unit_action * [1, 1, 2] + [0, 0, 2]
    return Episode(places, places, np.tile([9.0, 9.0], (steps + 1, 1)), action, np.zeros(steps))


@pytest.mark.parametrize("wind", [0.0, 5.0])
def test_the_ratio_of_two_ways_by_hand_whatever_moves_the_goal_all_the_time(wind):
    def back_and_forth(*speed):
        steps = np.arange(81)
        places = np.outer(np.abs(steps % 40 - 20), speed) + wind * steps[:, None]
        return Episode(places, places, places, np.zeros((80, 3)), np.zeros(80))

    effort = measure_effort([back_and_forth(1.0, 2.0)], [back_and_forth(4.0, 4.0), back_and_forth(2.0, 4.0)])
    assert effort.ratio == pytest.approx(1 / 3)  # the first number: 1 against 3; the second: 2 against 4


@pytest.mark.parametrize(("strength", "low", "high"), [(1.0, 0.1, 0.16), (20.0, 0.5, 1.0)])
def test_action_range_suffice_where_larger_ones_only_meet_a_limit(strength, low, high):
    small, whole = ([walk(scale, strength, seed) for seed in range(20)] for scale in (0.125, 1.0))
    effort = measure_effort(small, whole)
    assert low < effort.ratio < high
    assert effort.small_suffices == (strength > 1)


def test_episodes_are_told_apart_by_their_actions_and_short_ones_are_left_out():
    small, whole = walk(0.125, 1.0), walk(1.0, 1.0)
    assert split_by_scale([whole, small, walk(1.0, 1.0, steps=10)], ACTION) == ([small], [whole])


def test_the_options_of_a_body_that_is_too_strong():
    assert Effort(0.2).options() == {}
    options = Effort(0.5).options()
    assert (options["action_scale"], options["random_action_repeat"]) == (0.125, 20)
    assert "0.125 of the range move the achieved goal 0.50 times as far" in Effort(0.5).evidence()
