"""Whether what moves keeps its speed."""

import numpy as np
import pytest

from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.structure import compare_ranges, infer_structure, split_by_scale
from hindsight_rl.structure.random_actions import ActionRange, measure_inertia
from hindsight_rl.structure.steps import Steps

ACTION = ArraySpec((3,), "float64", (-1.0, -1.0, 0.0), (1.0, 1.0, 4.0))  # the middle eighth of the last: 1.75 to 2.25


def steps_of(kept, distance):
    """Steps along a line with random pushes; `kept` of the speed remains after a step. Goals lie at `distance`."""
    rng = np.random.default_rng(0)
    speed, positions = 0.0, [0.0]
    for push in rng.uniform(-1, 1, 2_000):
        speed = kept * speed + push
        positions.append(positions[-1] + speed)
    position = np.array(positions)[:, None]
    goal = position[:1] + np.full((2_000, 1), distance)
    return Steps(position[:-1], np.zeros((2_000, 1)), position[1:], position[:-1], position[1:], goal, np.zeros(2_000, int))


def test_what_keeps_its_speed_on_a_long_path():
    inertia = measure_inertia(steps_of(kept=0.97, distance=400.0))
    assert inertia.correlation == pytest.approx(0.97, abs=0.02)
    assert inertia.steps_to_goal > 40
    assert inertia.keeps_speed
    assert inertia.is_far
    assert "correlate with 0.9" in inertia.evidence()


def test_a_wind_that_differs_between_episodes_is_no_inertia():
    """Ten episodes drift by up to 10 per step. Random actions move by up to 1, independently."""
    rng = np.random.default_rng(0)
    episode = np.repeat(np.arange(10), 100)
    moves = (np.linspace(-10, 10, 10)[episode] + rng.uniform(-1, 1, 1_000))[:, None]
    position = moves.cumsum(0) - moves
    steps = Steps(position, moves, position + moves, position, position + moves, position + 1_000, episode)
    assert measure_inertia(steps).correlation == pytest.approx(0, abs=0.1)


def test_the_correlation_is_at_most_1():
    """In each episode the speed grows: the last displacement of an episode is the largest."""
    moves, episode = np.tile([[1.0], [2.0], [3.0], [10.0]], (5, 1)), np.repeat(np.arange(5), 4)
    position = moves.cumsum(0) - moves
    steps = Steps(position, moves, position + moves, position, position + moves, position + 100, episode)
    now, before = np.array([-2.0, -1, 6]), np.array([-3.0, -2, -1])  # without the mean, 4
    expected = now @ before / np.sqrt((now @ now) * (before @ before))
    assert measure_inertia(steps).correlation == pytest.approx(expected)
    still = Steps(position, moves, position, position, position, position + 100, episode)
    assert measure_inertia(still).correlation == 0


@pytest.mark.parametrize(("kept", "distance"), [(0.97, 20.0), (0.5, 400.0)])
def test_a_short_path_or_little_inertia(kept, distance):
    inertia = measure_inertia(steps_of(kept, distance))
    assert not (inertia.keeps_speed and inertia.is_far)


def test_the_slowest_dimension_of_the_goal_counts():
    """Moves are 0.1 along the first axis, where goals are 2 away, and 1 along the second, where they are 3 away."""
    moves = np.tile([[0.1, 1.0], [-0.1, -1.0]], (50, 1))
    position = np.concatenate([[[0.0, 0.0]], moves.cumsum(0)])
    goal = np.tile([2.0, 3.0], (100, 1))
    steps = Steps(position[:-1], moves, position[1:], position[:-1], position[1:], goal, np.zeros(100, int))
    assert measure_inertia(steps).steps_to_goal == pytest.approx(20)


def test_what_nothing_moved_yet_is_as_many_steps_away_as_were_made():
    still = np.zeros((100, 1))
    steps = Steps(still, still, still, still, still, still + 3, np.zeros(100, int))
    assert measure_inertia(steps).steps_to_goal == pytest.approx(100)


@pytest.mark.parametrize(("height", "expected"), [(0.0, 20), (0.001, 20), (3.0, 100)])
def test_a_dimension_that_need_not_change_is_not_far(height, expected):
    """Goals are 2 away along an axis, with moves of 0.1, and `height` above what never rises."""
    position = np.zeros((101, 2))
    position[1::2, 0] = 0.1
    moves, goal = np.diff(position[:, :1], axis=0), np.tile([2.0, height], (100, 1))
    steps = Steps(position[:-1], moves, position[1:], position[:-1], position[1:], goal, np.zeros(100, int))
    assert measure_inertia(steps).steps_to_goal == pytest.approx(expected)


@pytest.mark.parametrize(("unit", "has_speed"), [(1.0, True), (0.1, True), (-1.0, False)])
def test_a_dimension_of_the_goal_that_is_the_speed_of_another(unit, has_speed):
    """In which unit the speed is does not matter. What moves against it is no speed."""
    one = steps_of(kept=0.9, distance=400.0)
    speed = unit * (one.next_achieved_goal - one.achieved_goal)
    state, next_state = (
        np.column_stack([one.achieved_goal, np.roll(speed, 1)]),
        np.column_stack([one.next_achieved_goal, speed]),
    )
    goal = np.tile([400.0, 0.0], (len(one), 1))
    steps = Steps(state, one.action, next_state, state, next_state, goal, one.episode)
    assert measure_inertia(steps).has_speed == has_speed
    assert not measure_inertia(one).has_speed


def test_how_far_starts_are_apart():
    """Two episodes of one step start at 0 and at 6, with goals 4 and 2 away."""
    position, goal = np.array([[0.0], [6.0]]), np.array([[4.0], [8.0]])
    steps = Steps(position, np.ones((2, 1)), position + 1, position, position + 1, goal, np.array([0, 1]))
    assert measure_inertia(steps).starts_apart == pytest.approx(2.0)


def walk(scale, strength, seed=0, steps=40):
    """An episode of random actions of this part of the range. Moves are proportional to the action, up to a limit of 1."""
    unit_action = np.random.default_rng(seed).uniform(-scale, scale, (steps, 3))
    moves = np.clip(strength * unit_action[:, :2], -1, 1)
    positions = np.concatenate([np.zeros((1, 2)), moves.cumsum(0)])
    action = unit_action * [1, 1, 2] + [0, 0, 2]
    return Episode(positions, positions, np.tile([9.0, 9.0], (steps + 1, 1)), action, np.zeros(steps))


@pytest.mark.parametrize("wind", [0.0, 5.0])
def test_the_ratio_of_two_ways_by_hand_whatever_moves_the_goal_all_the_time(wind):
    def back_and_forth(*speed):
        steps = np.arange(81)
        positions = np.outer(np.abs(steps % 40 - 20), speed) + wind * steps[:, None]
        return Episode(positions, positions, positions, np.zeros((80, 3)), np.zeros(80))

    effort = compare_ranges([back_and_forth(1.0, 2.0)], [back_and_forth(4.0, 4.0), back_and_forth(2.0, 4.0)])
    assert effort.ratio == pytest.approx(1 / 3)  # the first number: 1 against 3; the second: 2 against 4


@pytest.mark.parametrize(("strength", "low", "high"), [(1.0, 0.1, 0.16), (20.0, 0.5, 1.0)])
def test_action_range_suffice_where_larger_ones_only_meet_a_limit(strength, low, high):
    small, whole = ([walk(scale, strength, seed) for seed in range(20)] for scale in (0.125, 1.0))
    effort = compare_ranges(small, whole)
    assert low < effort.ratio < high
    assert effort.small_suffices == (strength > 1)


def test_episodes_are_distinguished_by_their_actions_and_short_ones_are_left_out():
    small, whole = walk(0.125, 1.0), walk(1.0, 1.0)
    assert split_by_scale([whole, small, walk(1.0, 1.0, steps=10)], ACTION) == ([small], [whole])


def test_why_a_part_of_the_range_suffices():
    assert not ActionRange(0.2).small_suffices
    assert ActionRange(0.5).small_suffices
    assert "0.125 of the range move the achieved goal 0.50 times as far" in ActionRange(0.5).evidence()


@pytest.mark.parametrize(("highest", "broken"), [(0.0, 0.5), (np.inf, 0.0)])
def test_episodes_that_end_without_a_success_are_counted_if_rewards_have_two_values(highest, broken):
    spec = GoalSpec(*[ArraySpec((1,), "float64")] * 2, ArraySpec((1,), "float64", (-1.0,), (1.0,)), reward_high=highest)
    rng, episodes = np.random.default_rng(0), []
    for steps, terminated, reward in ((19, True, -1.0), (19, True, 0.0), (20, False, -1.0), (19, True, -1.0)):
        actions = rng.uniform(-1, 1, (steps, 1))
        places = np.concatenate([[[0.0]], actions.cumsum(0)])
        rewards = np.append(np.full(steps - 1, -1.0), reward)
        episodes.append(Episode(places, places, np.full((steps + 1, 1), 50.0), actions, rewards, terminated=terminated))
    inertia = infer_structure(episodes, spec).inertia
    assert inertia.broken == broken
    assert inertia.follows_paths == (broken == 0)
    assert ("50% of the random episodes end without a success" in inertia.evidence()) == (broken > 0)
