"""Paths through visited positions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsight_rl.task_structure.waypoints import Waypoints, shortest_paths


def u_shape(n_steps=120):
    """A path around a wall: up along x = 0, across, and down along x = 2."""
    corners = np.array([[0.0, 0.0], [0.0, 4.0], [2.0, 4.0], [2.0, 0.0]])
    at = np.linspace(0, 3, n_steps)
    return np.stack([np.interp(at, np.arange(4), corners[:, k]) for k in range(2)], 1)


def test_a_goal_behind_a_wall_is_reached_around_it():
    waypoints = Waypoints.plan([u_shape()], n_waypoints=40)
    place, goal = np.array([0.0, 0.0]), np.array([2.0, 0.0])
    visited = []
    while not np.array_equal(toward := waypoints.toward(place, goal), goal):
        visited.append(toward)
        place = toward
    assert 3 <= len(visited) <= 20
    assert max(y for _, y in visited) > 3.5  # over the end of the wall
    assert all(abs(x) < 0.1 or abs(x - 2) < 0.1 or y > 3.9 for x, y in visited)


def test_near_goals_and_goals_in_sight_are_sought_directly():
    waypoints = Waypoints.plan([u_shape()], n_waypoints=40)
    place, goal = np.array([0.0, 1.0]), np.array([0.0, 1.3])
    np.testing.assert_array_equal(waypoints.toward(place, goal), goal)


@pytest.mark.parametrize(("distances", "low", "high"), [((1.0, 1.0), 2.0, 2.5), ((0.1, 1.0), 1.4, 2.0)])
def test_what_counts_as_reached_is_no_waypoint(distances, low, high):
    waypoints = Waypoints.plan([u_shape()], n_waypoints=40, success_distances=distances)
    toward = waypoints.toward(np.array([0.0, 0.0]), np.array([2.0, 0.0]))
    assert toward[0] == 0
    assert low <= toward[1] < high


def test_a_way_back_is_tried_where_none_is_known():
    waypoints = Waypoints.plan([u_shape()], n_waypoints=40)
    toward = waypoints.toward(np.array([2.0, 0.0]), np.array([0.0, 0.0]))
    assert toward[1] > 0.3
    assert toward[0] > 1.9


def test_places_that_no_path_joins_are_sought_directly():
    left, right = np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[5.0, 0.0], [5.0, 1.0]])
    waypoints = Waypoints.plan([left, right], n_waypoints=4)
    goal = np.array([5.0, 0.9])
    np.testing.assert_array_equal(waypoints.toward(np.array([0.0, 0.1]), goal), goal)
    known, cut_off = waypoints.split(waypoints.nearest(left[0]))
    assert sorted(known.tolist()) == left.tolist()
    assert sorted(cut_off.tolist()) == right.tolist()


def test_fewer_places_than_asked_for():
    waypoints = Waypoints.plan([np.array([[1.0], [1.0], [2.0]])], n_waypoints=5)
    assert waypoints.waypoints.shape == (5, 1)
    assert waypoints.next_waypoint.shape == (5, 5)
    np.testing.assert_array_equal(waypoints.toward(np.array([1.1]), np.array([2.2])), [2.2])
    still = Waypoints.plan([np.zeros((4, 2))], n_waypoints=3)
    np.testing.assert_array_equal(still.toward(np.zeros(2), np.array([2.0, 1.0])), [2.0, 1.0])


def test_places_that_few_episodes_have_visited_come_first():
    waypoints = Waypoints.plan([np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [2.0], [2.0]]), np.array([[0.0]])], 3)
    np.testing.assert_array_equal(waypoints.waypoints, [[1.0], [2.0], [0.0]])


@settings(max_examples=50)
@given(st.integers(0, 10_000))
def testshortest_paths_are_those_of_a_slow_search(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    length = np.where(rng.random((n, n)) < 0.4, rng.uniform(0.1, 1, (n, n)), np.inf)
    np.fill_diagonal(length, 0)
    following = shortest_paths(length)
    for start in range(n):
        best = np.where(np.arange(n) == start, 0.0, np.inf)
        for _ in range(n):  # Bellman and Ford
            best = np.minimum(best, (best[:, None] + length).min(0))
        for end in range(n):
            place, way = start, 0.0
            while place != end and following[place, end] >= 0:
                way, place = way + length[place, following[place, end]], following[place, end]
            assert np.isclose(way, best[end]) if place == end else np.isinf(best[end])
