"""Whether something stops a body between other positions."""

from dataclasses import replace

import numpy as np

from hindsight_rl.records import Episode
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.walls import count_stopped


def steps_of(world, n_episodes=30):
    """Episodes of 40 steps in which actions, each repeated for four steps, move a body in a square from -1 to 1."""
    rng, episodes = np.random.default_rng(0), []
    for _ in range(n_episodes):
        actions = np.repeat(rng.uniform(-1, 1, (10, 2)), 4, axis=0)
        places, heading = [rng.uniform(-1, 1, 2)], 0.0
        for action in actions:
            heading += action[1]
            places.append(np.clip(world(places[-1], action, heading), -1, 1))
        seen, goals = np.array(places), np.tile(rng.uniform(-1, 1, 2), (41, 1))
        episodes.append(Episode(seen, seen, goals, actions, np.full(40, -1.0)))
    return Steps.from_episodes(episodes)


def free(place, action, heading):
    return place + 0.2 * action


def between_rooms(place, action, heading):
    """A wall along x = 0 has a door from y = 0.5 to 1."""
    then = free(place, action, heading)
    return np.array([place[0], then[1]]) if place[0] * then[0] < 0 and then[1] < 0.5 else then


def turning(place, action, heading):
    """A car: actions are its speed and how it turns."""
    return place + 0.2 * action[0] * np.array([np.cos(heading), np.sin(heading)])


def test_walls_inside_stop_a_body_and_those_around_the_task_do_not_count():
    walls, none = (count_stopped(steps_of(world), steps_of(world)) for world in (between_rooms, free))
    assert none == (0, 30)
    assert walls is not None
    assert (walls[0] > 0, walls[1]) == (True, 30)
    assert walls.are_walls
    assert not none.are_walls


def test_what_stops_a_body_is_unknown_where_actions_do_not_explain_displacements():
    assert count_stopped(steps_of(turning), steps_of(turning)) is None


def test_a_policy_that_presses_against_walls_does_not_hide_them():
    pressing = steps_of(lambda place, action, heading: between_rooms(place, np.array([-np.sign(place[0]), 0]), heading))
    pressing = replace(pressing, action=np.sign(-pressing.achieved_goal) * (1, 0))
    assert count_stopped(pressing, steps_of(between_rooms)).are_walls
    assert count_stopped(pressing, pressing) is None


def test_a_body_that_rests_is_not_stopped():
    steps = steps_of(lambda place, action, heading: place)
    assert count_stopped(steps, steps) is None
