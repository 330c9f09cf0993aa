"""Subgoals whose place is no position in the goal, such as the handle of a drawer: they add dimensions to goals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hindsight_rl import GoalSpec
from hindsight_rl.commands.export import TensorFunctions
from hindsight_rl.errors import OptionError
from hindsight_rl.records import ArraySpec
from hindsight_rl.task_structure.subgoals import TASK, Subgoals

# columns: the tool, how far a drawer is open, and an object
SPEC = GoalSpec(ArraySpec((5,), "float32"), ArraySpec((3,), "float32"), ArraySpec((1,), "float32"))
HANDLE = "reach achieved=0,1 goal=o2+1,0*o0+4 tolerance=0.5 switch_distance=2 dimensions=0 placed=0.25"
OBJECT = "reach achieved=0,1 goal=3,4 tolerance=0.5 switch_distance=2 dimensions=1,2 placed=0.25"
BOTH = Subgoals((HANDLE, OBJECT), SPEC)
GOAL = np.array([2.0, 6.0, 7.0], np.float32)


@pytest.mark.parametrize(
    ("row", "number", "achieved", "goal"),  # row: the tool at x, y, the opening, the object at x, y
    [
        ([0, 0, 1, 6, 6], 1, [2, 6, 7, 0, 0], [2, 6, 7, 2, 4]),  # the tool is far from the handle: reach it
        ([2, 3, 1, 6, 6], 3, [1, 6, 7, 0, 0], [2, 6, 7, 0, 0]),  # near: open the drawer, wherever the object is
        ([2, 3, 2, 6, 6], 2, [2, 2, 3, 0, 0], [2, 6, 6, 0, 0]),  # it is open: reach the object
        ([6, 5, 2, 6, 6], TASK, [2, 6, 6, 0, 0], [2, 6, 7, 0, 0]),
    ],
)
def test_the_policy_acts_for_the_handle_first(row, number, achieved, goal):
    row = np.array(row, np.float32)
    found = BOTH.acting_goal(row, row[2:], GOAL, is_guided=False)
    assert [np.asarray(part).tolist() for part in found] == [number, achieved, goal]


NUMBERS = hnp.arrays(np.float32, (6, 8), elements=st.floats(-4, 8, width=16).map(lambda x: round(2 * x) / 2))


@given(NUMBERS, st.booleans())
def test_rows_one_observation_and_tensors_agree(numbers, is_guided):
    rows, goal = numbers[:, :5], numbers[:, 5:]
    expected = BOTH.acting_goals(rows, rows[:, 2:], goal, np.full(6, TASK), is_guided)
    for i in range(6):
        found = BOTH.acting_goal(rows[i], rows[i, 2:], goal[i], is_guided)
        assert [np.asarray(part).tolist() for part in found] == [part[i].tolist() for part in expected]
    tensors = (torch.tensor(part) for part in (rows, rows[:, 2:], goal, np.full(6, TASK)))
    found = BOTH.acting_goals(*tensors, is_guided, xp=TensorFunctions)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_the_tool_achieves_the_place_in_rows_of_its_subgoal_alone():
    row, achieved = np.array([[3.0, 5, 1, 6, 6]] * 3), np.array([[1.0, 6, 6]] * 3)
    goal = np.array([[1.0, 6, 6, 2, 4], [1, 6, 6, 0, 0], [1, 6, 6, 0, 0]])  # as batches have it, with the place
    _, seen, wanted = BOTH.seen(np.array([1, 2, TASK]), row, achieved, goal)
    assert seen.tolist() == [[1, 6, 6, 3, 5], [1, 6, 6, 0, 0], [1, 6, 6, 0, 0]]
    assert wanted.tolist() == goal.tolist()


def test_all_goals_of_an_episode_have_the_same_dimensions():
    row, achieved, goal = np.array([[3.0, 5, 1, 6, 6]]), np.array([[1.0, 6, 6]]), np.array([[2.0, 6, 7]])
    assert [each.tolist() for each in BOTH.all_goals(row, achieved, goal)] == [
        [[1, 6, 6, 3, 5]],  # the tool, so that zeros do not count
        [[2, 6, 7, 3, 5]],
        [[1, 6, 6, 3, 5]],  # of the first subgoal: what it achieves, and its goal
        [[1, 6, 6, 2, 4]],
        [[1, 3, 5, 0, 0]],
        [[1, 6, 6, 0, 0]],
    ]


def test_goals_are_as_they_are_if_places_are_positions():
    subgoals = Subgoals((OBJECT,), SPEC)
    assert subgoals.n_added == 0
    assert subgoals.widen(GOAL) is GOAL


def test_they_are_written_as_they_are_read():
    assert [each.text() for each in BOTH] == [HANDLE, OBJECT]


def test_places_of_several_tools_are_refused():
    other = "reach achieved=0,1,4 goal=2,3,4 tolerance=0.5 switch_distance=2 dimensions=1 placed=0.25"
    with pytest.raises(OptionError, match="All of them are places of one tool"):
        Subgoals((HANDLE, other), SPEC)


def test_without_dimensions_a_place_of_another_size_is_refused():
    with pytest.raises(OptionError, match="3 columns of the observation"):
        Subgoals(("reach achieved=0,1 goal=2,3 tolerance=0.5 switch_distance=2",), SPEC)
