"""Episodes that seek one place after another."""

import numpy as np

from hindsight.records.waypoints import GOAL, Waypoints
from hindsight.rollout.roaming import BEYOND, STILL, RoamingActor

PLACES = np.array([[0.0], [1.0], [10.0]], np.float32)
WAYPOINTS = Waypoints(PLACES, np.array([[GOAL, 1, 1], [0, GOAL, GOAL], [GOAL, GOAL, GOAL]], np.int16))


def sought(achieved_goal, steps=2_000):
    observation = {"achieved_goal": np.array([achieved_goal]), "desired_goal": np.array([7.0])}
    actor = RoamingActor(lambda seen: seen["desired_goal"], WAYPOINTS, np.random.default_rng(0), roams=True)
    return np.array([actor(observation)[0] for _ in range(steps)])


def test_places_are_sought_near_those_that_a_known_way_leads_to():
    places = sought(0.1)
    assert -BEYOND <= places.min() < -1
    assert 2 < places.max() <= 1 + BEYOND


def test_another_place_is_sought_after_a_while_near_one():
    changes = np.flatnonzero(np.diff(sought(9.0)))
    assert np.diff(changes).max() <= STILL + 1
    assert np.median(np.diff(changes)) == STILL


def test_one_spot_is_no_error():
    unknown = Waypoints.unknown(3, 1)
    observation = {"achieved_goal": np.array([2.0]), "desired_goal": np.array([7.0])}
    actor = RoamingActor(lambda seen: seen["desired_goal"], unknown, np.random.default_rng(0), roams=True)
    assert actor(observation) == 0


def test_an_episode_that_gets_stuck_roams():
    actor = RoamingActor(lambda seen: seen["desired_goal"], WAYPOINTS, np.random.default_rng(0), roams=False)
    at_goal = {"achieved_goal": np.array([0.2]), "desired_goal": np.array([0.3])}
    stuck = {"achieved_goal": np.array([0.2]), "desired_goal": np.array([9.0])}
    assert all(actor(at_goal) == 0.3 for _ in range(STILL))  # it stays at its goal
    assert all(actor({**stuck, "achieved_goal": np.array([(k + 1) % 2 + 0.1])}) == 9.0 for k in range(STILL))  # it moves
    assert not actor.roams
    assert [actor(stuck)[0] == 9.0 for _ in range(STILL + 1)] == [True] * (STILL - 1) + [False] * 2
    assert actor.roams
