"""In which units columns show a tool that is beside objects when they begin to move."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.columns import Units
from hindsight_rl.structure.controlled import find_controlled_columns
from hindsight_rl.structure.parts import find_parts
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.tool_units import find_tool_units


def steps_with_contacts(n_episodes, reach=0.05):
    """Episodes of 30 steps. The tool goes to the object, pushes it in its 15th to 18th step, and goes on.

    Columns: height of the tool in the units of the goal, its position along x times 100 plus 7, that along y times -2, and
    the object. The goal: x, y and height of the object, which is 0.
    """
    rng, episodes = np.random.default_rng(0), []
    for k in range(n_episodes):
        meets, place, first = 15 + k % 4, np.array([*rng.uniform(-1, 1, 2), 0.0]), rng.uniform(-1, 1, 3)
        push = rng.normal(size=3) * (1, 1, 0)
        push /= np.linalg.norm(push)
        way = np.arange(31)[:, None] / meets + rng.uniform(-0.02, 0.02, (31, 1)) * (np.arange(31)[:, None] != meets)
        tool = first + way * (place - reach * push - first)
        achieved = np.where(np.arange(31)[:, None] < meets, place, place + 0.1 * push)
        seen, goal = np.column_stack([tool[:, 2], 100 * tool[:, 0] + 7, -2 * tool[:, 1], achieved]), rng.uniform(-1, 1, 3)
        goals = np.tile(goal * (1, 1, 0), (31, 1))
        episodes.append(Episode(seen, achieved, goals, np.diff(tool, axis=0), np.full(30, -1.0)))
    return Steps.from_episodes(episodes)


def units_of(steps):
    units = Units.same(steps.n_columns)
    return find_tool_units(steps, find_parts(steps), find_controlled_columns(steps), units)


def test_a_tool_has_the_units_in_which_it_is_where_objects_begin_to_move():
    units = units_of(steps_with_contacts(20))
    assert units.by_contact == (0, 1, 2)
    assert units.factor[1:] == pytest.approx([0.01, -0.5, 1, 1, 1])  # the direction of the push explains the distance
    assert units.offset[1:] == pytest.approx([-0.07, 0, 0, 0, 0])
    assert 0.01 < units.factor[0] < 0.5  # one height shows no factor: it is between those of the others
    assert units.offset[0] == pytest.approx(0)


def test_ten_contacts_are_needed_and_they_must_be_near():
    assert units_of(steps_with_contacts(9)) is None
    assert units_of(steps_with_contacts(20, reach=2.0)) is None


def test_what_an_object_carries_is_no_tool():
    steps = steps_with_contacts(20)
    carried, next_carried = (5 * goals[:, :2] + 1 for goals in (steps.achieved_goal, steps.next_achieved_goal))
    seen, later = np.hstack([steps.observation, carried]), np.hstack([steps.next_observation, next_carried])
    steps, controlled = replace(steps, observation=seen, next_observation=later), find_controlled_columns(steps)
    moved = replace(controlled, columns=(*controlled.columns, 6, 7))  # they follow actions while something pushes it
    units = find_tool_units(steps, find_parts(steps), moved, Units.same(steps.n_columns))
    assert units.by_contact == (0, 1, 2)
