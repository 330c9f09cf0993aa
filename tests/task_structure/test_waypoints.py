"""The goal that a policy acts for on a long way."""

import numpy as np
import pytest

from hindsight_rl.task_structure.waypoints import GOAL, Waypoints

PLACES = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]], np.float32)
CONNECTED = Waypoints(PLACES, np.array([[0, 1, 1], [0, 1, 2], [1, 1, 2]], np.int16))


@pytest.mark.parametrize(
    ("achieved", "goal", "toward"),
    [
        ([0.4, 0.1], [2.3, 2.2], [2.0, 0.0]),  # from place 0 to place 2 over place 1
        ([1.8, 0.3], [2.3, 2.2], [2.3, 2.2]),  # the goal is near on a known path
        ([2.1, 1.9], [2.3, 2.2], [2.3, 2.2]),  # at the place of the goal
    ],
)
def test_the_table_names_the_next_place(achieved, goal, toward):
    achieved, goal = np.array(achieved), np.array(goal)
    np.testing.assert_array_equal(CONNECTED.toward(achieved, goal), toward)
    np.testing.assert_array_equal(CONNECTED.toward(achieved[None], goal[None]), [toward])


def test_before_any_episode_every_goal_is_sought_directly():
    unknown = Waypoints.unknown(3, 2)
    goals = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_array_equal(unknown.toward(-goals, goals), goals)


def test_positions_without_a_known_path_are_cut_off():
    table = np.array([[0, 1, 1, GOAL], [0, 1, GOAL, GOAL], [GOAL, GOAL, 2, GOAL], [GOAL] * 4], np.int16)
    two_parts = Waypoints(np.concatenate([PLACES, PLACES[:1]]), table)  # the last place only fills the table
    for start, known, cut_off in [(0, [0, 1], [2]), (1, [0, 1], [2]), (2, [2], [0, 1])]:
        for found, expected in zip(two_parts.split(start), (known, cut_off), strict=True):
            np.testing.assert_array_equal(found, PLACES[expected])
    assert two_parts.nearest(np.array([1.9, 1.2])) == 2
    assert two_parts.spacing() == 2.0


def test_equal_places_have_no_spacing():
    assert Waypoints.unknown(3, 2).spacing() == 0.0
