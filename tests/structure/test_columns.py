"""Exact linear relations between columns and the achieved goal."""

import dataclasses

import numpy as np
import pytest

from hindsight_rl.structure.columns import find_delayed_columns, find_differences, find_goal_copies, find_units
from hindsight_rl.structure.steps import Steps, standardize


def steps_of(make_columns):
    """Steps with an object and a tool along one axis; make_columns(object, tool, rng) -> columns of the observation."""
    rng = np.random.default_rng(0)
    puck, tool = rng.uniform(-1, 1, (2, 41))
    seen, goal = np.stack(make_columns(puck, tool, rng), 1), puck[:, None]
    episode = np.repeat(np.arange(4), 10)
    return Steps(seen[:-1], np.zeros((40, 1)), seen[1:], goal[:-1], goal[1:], goal[:-1], episode)


def test_a_column_that_is_the_goal_gives_its_units_to_all():
    units = find_units(steps_of(lambda puck, tool, rng: (3 * tool, puck)))
    assert units.is_known.all()
    assert units.of((0, 1)).factor == (1.0, 1.0)
    assert units.evidence() == ""


def test_scaled_and_flipped_columns():
    steps = steps_of(lambda puck, tool, rng: (-2 * tool, rng.normal(size=41), 4 * puck + 1, 5 * (puck - tool)))
    units = find_units(steps)
    assert units.is_known.tolist() == [True, False, True, True]
    assert units.of((0, 2, 3)).factor == pytest.approx((-0.5, 0.25, 0.2))
    assert units.apply(steps).observation[:, 2] == pytest.approx(steps.achieved_goal[:, 0])
    assert units.evidence() == "; -0.5*o0, 0.25*o2-0.25, 0.2*o3 have the units of the goal, by exact linear relations"


def test_a_relation_that_is_not_exact_is_none():
    units = find_units(steps_of(lambda puck, tool, rng: (tool, 4 * puck + 1e-4 * rng.normal(size=41))))
    assert units.is_known.all()  # nothing is known of the goal, so there is nothing to compare with


def test_few_values_of_the_goal_are_no_evidence():
    steps = steps_of(lambda puck, tool, rng: (np.where(puck > 0, 2.0, 5.0), tool))
    goal = np.where(steps.observation[:, :1] == 2.0, 0.0, 1.0)
    after = np.where(steps.next_observation[:, :1] == 2.0, 0.0, 1.0)
    steps = dataclasses.replace(steps, achieved_goal=goal, next_achieved_goal=after)
    assert find_units(steps).of((0,)).factor == (1.0,)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_columns_are_compared_beside_the_size_of_their_numbers(unit):
    """Columns: nearly the goal, the goal as float32, the tool, and the gap between goal and tool."""

    def make_columns(puck, tool, rng):
        return puck + 1e-4, puck.astype(np.float32), tool, (puck.astype(np.float32) - tool.astype(np.float32))

    steps = steps_of(make_columns)
    arrays = ("observation", "next_observation", "achieved_goal", "next_achieved_goal", "desired_goal")
    steps = dataclasses.replace(steps, **{name: getattr(steps, name) * unit for name in arrays})
    assert find_goal_copies(steps).columns == (1,)
    assert [(each.column, each.left, each.right) for each in find_differences(steps)] == [(2, 1, 3)]


def test_one_scale_of_all_dimensions_is_that_of_other_positions_too():
    """Columns: the tool and the puck in two dimensions, divided by 2 and moved by 3, and a velocity around 0."""
    rng = np.random.default_rng(0)
    tool, puck = rng.uniform(-1, 1, (2, 41, 2))
    seen = np.column_stack([tool / 2 + 3, puck / 2 + 3, rng.uniform(-0.1, 0.1, 41)])
    steps = Steps(seen[:-1], np.zeros((40, 1)), seen[1:], puck[:-1], puck[1:], puck[:-1], np.repeat(np.arange(4), 10))
    units = find_units(steps)
    assert units.is_known.tolist() == [True] * 4 + [False]
    assert units.factor[:4] == pytest.approx(2)
    assert units.offset[:4] == pytest.approx(-6)
    height = np.full((40, 1), 0.4)  # of all goals
    goals = {
        name: np.hstack([getattr(steps, name), height]) for name in ("achieved_goal", "next_achieved_goal", "desired_goal")
    }
    assert find_units(dataclasses.replace(steps, **goals)).is_known.tolist() == [True] * 4 + [False]


def test_a_position_in_the_units_of_the_goal_shows_those_of_the_tool_beside_a_valve_in_percent():
    """Columns: the tool, the crate, and a valve in parts of 1. The goal: the valve in percent, and the crate."""
    tool, crate, valve = np.split(np.random.default_rng(0).uniform(-1, 1, (41, 5)), (2, 4), axis=1)
    seen, goal = np.hstack([tool, crate, valve]), np.hstack([100 * valve, crate])
    steps = Steps(seen[:-1], np.zeros((40, 1)), seen[1:], goal[:-1], goal[1:], goal[:-1], np.repeat(np.arange(4), 10))
    units = find_units(steps)
    assert units.is_known.all()
    assert units.factor.tolist() == pytest.approx([1, 1, 1, 1, 100])
    one_copy = dataclasses.replace(steps, achieved_goal=goal[:-1, :2], next_achieved_goal=goal[1:, :2])
    assert find_units(dataclasses.replace(one_copy, desired_goal=goal[:-1, :2])).is_known.tolist() == [0, 0, 1, 0, 1]


def test_neighbouring_constants_that_equal_a_goal_which_nothing_moved_are_its_copies():
    """Columns: the tool, a constant that equals one dimension of the goal, and two that equal both."""
    tool = np.linspace(0, 1, 21)
    seen = np.stack([tool, *np.broadcast_to([[0.5], [0.2], [0.5]], (3, 21))], 1)
    goal = np.broadcast_to([0.2, 0.5], (21, 2))
    steps = Steps(seen[:-1], np.zeros((20, 1)), seen[1:], goal[:-1], goal[1:], goal[:-1], np.repeat([0, 1], 10))
    assert find_goal_copies(steps).columns == (2, 3)
    rounded = dataclasses.replace(
        steps, observation=seen[:-1].astype(np.float32), next_observation=seen[1:].astype(np.float32)
    )
    assert find_goal_copies(rounded).columns == (2, 3)
    moved = dataclasses.replace(steps, next_achieved_goal=goal[1:] + tool[1:, None])
    assert find_goal_copies(moved).columns == (None, None)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_columns_are_standardized_in_any_unit_and_rounding_is_no_signal(unit):
    values = unit * np.array([[1.0, 3.0, 0.0], [3.0, 3.0 + 1e-7, 0.0]])
    assert standardize(values)[:, 0] == pytest.approx([-1, 1], abs=1e-5)
    assert np.abs(standardize(values)[:, 1:]).max() < 0.05


def test_columns_that_show_what_others_showed_one_step_before():
    """Columns: the tool, the tool one step before, the tool one step before in other units, and a constant."""

    def make_columns(puck, tool, rng):
        before = np.append(tool[:1], tool[:-1])
        return tool, before, 2 * before, np.ones(41)

    assert find_delayed_columns(steps_of(make_columns)) == {1: 0}
    in_other_order = steps_of(lambda puck, tool, rng: (np.append(9.0, tool[:-1]), tool, puck))
    assert find_delayed_columns(in_other_order) == {0: 1}
    assert find_delayed_columns(steps_of(lambda puck, tool, rng: (tool, tool, puck))) == {}


@pytest.mark.parametrize(("height", "is_known"), [(0.4, True), (None, False)])
def test_the_height_of_what_lies_on_a_table_has_the_units_of_the_axes_before_it(height, is_known):
    """Columns: a tool and an object in decimetres from (0.1, 0.2, 0.3); the height of the object, or a number at random."""
    rng = np.random.default_rng(0)
    puck, tool = (np.column_stack([rng.uniform(-1, 1, (41, 2)), np.full(41, 0.4)]) for _ in range(2))
    seen = np.hstack([(each - [0.1, 0.2, 0.3]) * 10 for each in (tool, puck)])
    seen[:, 5] = rng.uniform(size=41) if height is None else seen[:, 5]
    goals = rng.uniform(-1, 1, (40, 3))
    units = find_units(
        Steps(seen[:-1], np.zeros((40, 1)), seen[1:], puck[:-1], puck[1:], goals, np.repeat(np.arange(4), 10))
    )
    if is_known:
        assert units.origin == pytest.approx((0.1, 0.2, 0.3))
        assert np.flatnonzero(units.is_known).tolist() == [3, 4, 5]
        assert units.factor[3:] == pytest.approx([0.1] * 3)
    else:
        assert units.of((3, 4)).factor == (1.0, 1.0)  # as nothing is known, no column has other units
