"""Subgoals of several objects: for which object the policy acts, and with which goals."""

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

SPEC = GoalSpec(ArraySpec((4,), "float32"), ArraySpec((3,), "float32"), ArraySpec((1,), "float32"))


def reach(column, number):
    """The tool is column 0; an object in `column` is number `number` of the goal."""
    return f"reach achieved=0 goal={column} tolerance=0.5 switch_distance=2 dimensions={number} placed=0.25"


TWO = GoalSpec(ArraySpec((3,), "float32"), ArraySpec((2,), "float32"), ArraySpec((1,), "float32"))
SEQUENCE = Subgoals((reach(1, 0), reach(2, 1)), TWO)
GOAL = np.array([5.0, 9.0], np.float32)


@pytest.mark.parametrize(
    ("row", "number", "achieved", "goal"),  # row: places of the tool and the two objects
    [
        ([0, 4, 8], 1, [0, 9], [4, 9]),  # the tool is far from the first object: reach it
        ([3, 4, 8], 3, [4, 9], [5, 9]),  # near: place the first object, wherever the other is
        ([3, 5, 8], 2, [5, 3], [5, 8]),  # the first is placed: reach the other
        ([3, 5.25, 8], 2, [5.25, 3], [5, 8]),  # and leave the first where it is
        ([7, 5, 8], TASK, [5, 8], [5, 9]),
        ([0, 5, 9], TASK, [5, 9], [5, 9]),  # all are placed
        ([0, 4, 9], 1, [0, 9], [4, 9]),  # the first was knocked off
    ],
)
def test_the_policy_acts_for_the_first_object_that_is_not_placed(row, number, achieved, goal):
    row = np.array(row, np.float32)
    found = SEQUENCE.acting_goal(row, row[1:], GOAL, is_guided=False)
    assert [np.asarray(part).tolist() for part in found] == [number, achieved, goal]


def test_a_guided_policy_goes_on_until_the_subgoal_is_met():
    row = np.array([3.25, 4, 8], np.float32)
    assert SEQUENCE.acting_goal(row, row[1:], GOAL, is_guided=True)[0] == 1
    assert SEQUENCE.acting_goal(np.array([3.75, 4, 8]), row[1:], GOAL, is_guided=True)[0] == 3


@pytest.mark.parametrize(
    ("subgoal", "expected"),
    [
        (0, [1, 3, 2, 0]),
        (1, [1, 1, 1, 1]),  # a row that leads to an object acts for it
        (2, [2, 2, 2, 2]),
        (3, [1, 3, 3, 3]),  # a row that asks for the first object does not consider the other
    ],
)
def test_rows_of_subgoals(subgoal, expected):
    rows = np.array([[0, 4, 8], [3, 4, 8], [3, 5, 8], [7, 5, 8]], np.float32)
    acting, _, _ = SEQUENCE.acting_goals(rows, rows[:, 1:], np.tile(GOAL, (4, 1)), np.full(4, subgoal))
    assert acting.tolist() == expected


def test_what_is_no_object_is_placed_last():
    subgoals = Subgoals((reach(1, 0),), TWO)  # the second dimension of the goal is the tool's
    for tool, index in ((0, 1), (3, 2)):
        row = np.array([tool, 4, 0], np.float32)
        found = subgoals.acting_goal(row, np.array([4, tool], np.float32), GOAL, is_guided=False)
        expected = {1: ([tool, 9], [4, 9]), 2: ([4, 9], [5, 9])}[index]
        assert [np.asarray(part).tolist() for part in found] == [index, *expected]
    assert subgoals.acting_goal(row, np.array([5, 3], np.float32), GOAL, is_guided=False)[0] == TASK
    assert subgoals.n_indices == 2


def test_goals_of_the_first_objects():
    three = Subgoals((reach(1, 2), reach(2, 0), reach(3, 1)), SPEC)
    achieved, goal = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    assert three.of_first(1, achieved, goal).tolist() == [4, 5, 3]
    assert three.of_first(2, achieved, goal).tolist() == [1, 5, 3]
    assert three.n_indices == 5
    assert Subgoals((), SPEC).n_indices == 0


NUMBERS = hnp.arrays(np.float32, (6, 7), elements=st.floats(-4, 4, width=16).map(lambda x: round(2 * x) / 2))


@given(NUMBERS, st.booleans())
def test_rows_one_observation_and_tensors_agree(numbers, is_guided):
    subgoals = Subgoals((reach(1, 2), reach(2, 0), reach(3, 1)), SPEC)
    rows, goal = numbers[:, :4], numbers[:, 4:]
    achieved = rows[:, [2, 3, 1]]
    expected = subgoals.acting_goals(rows, achieved, goal, np.full(6, TASK), is_guided)
    for i in range(6):
        found = subgoals.acting_goal(rows[i], achieved[i], goal[i], is_guided)
        assert [np.asarray(part).tolist() for part in found] == [part[i].tolist() for part in expected]
    tensors = (torch.tensor(part) for part in (rows, achieved, goal, np.full(6, TASK)))
    found = subgoals.acting_goals(*tensors, is_guided, xp=TensorFunctions)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def shared(column, number, columns):
    return f"{reach(column, number)} columns={columns}"


# columns: the tool, then place and speed of each object
SPEEDS = GoalSpec(ArraySpec((7,), "float32"), ArraySpec((3,), "float32"), ArraySpec((1,), "float32"))
SHARED = Subgoals((shared(1, 2, "1,4"), shared(2, 0, "2,5"), shared(3, 1, "3,6")), SPEEDS)


# the order of the columns with each object in the first place, and of the dimensions of the goal
FIRST, SECOND, THIRD = (
    ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2]),
    ([0, 2, 1, 3, 5, 4, 6], [2, 1, 0]),
    ([0, 3, 2, 1, 6, 5, 4], [0, 2, 1]),
)


def check_seen(subgoals, number, row, achieved, goal, expected):
    """Compare one observation, rows and tensors with the expected parts."""
    wanted = [np.asarray(part).tolist() for part in expected]
    assert [part.tolist() for part in subgoals.seen(number, row, achieved, goal)] == wanted
    rows = subgoals.seen(np.full(2, number), *(np.tile(x, (2, 1)) for x in (row, achieved, goal)))
    assert [part.tolist() for part in rows] == [[part] * 2 for part in wanted]
    tensors = (torch.tensor(x)[None] for x in (row, achieved, goal))
    found = subgoals.seen(torch.full((1,), float(number)), *tensors, xp=TensorFunctions)
    assert [part.tolist() for part in found] == [[part] for part in wanted]


@pytest.mark.parametrize(
    ("number", "expected"), [(1, FIRST), (4, FIRST), (2, SECOND), (5, SECOND), (3, THIRD), (TASK, THIRD)]
)
def test_the_object_that_is_acted_for_is_seen_in_the_place_of_the_first_one(number, expected):
    """Dimensions 2, 0 and 1 of the goal are the positions of the objects."""
    row, achieved, (columns, dimensions) = np.arange(7.0), np.array([2.0, 3.0, 1.0]), expected
    goal = achieved + 1
    check_seen(SHARED, number, row, achieved, goal, [row[columns], achieved[dimensions], goal[dimensions]])


@pytest.mark.parametrize(
    ("number", "errors"),  # that networks see, of dimensions 2, 0 and 1
    [
        (1, [0.25, 0.25, 0.5]),
        (2, [0, 0.25, 0.5]),
        (3, [0, 0, 0.5]),
        (4, [0.25, 0.25, 0.5]),
        (5, [0, 0.25, 0.5]),
        (TASK, [0, 0, 0.5]),
    ],
)
def test_objects_that_are_placed_before_count_as_reached(number, errors):
    subgoals = Subgoals((reach(1, 2), reach(2, 0), reach(3, 1)), SPEEDS)
    row, achieved = np.arange(7.0), np.array([2.0, 3.0, 1.0])
    goal, seen = achieved.copy(), achieved.copy()
    goal[[2, 0, 1]] += [0.25, 0.25, 0.5]
    seen[[2, 0, 1]] += errors
    check_seen(subgoals, number, row, achieved, goal, [row, achieved, seen])


def test_bodies_are_placed_after_all_objects():
    goal = GoalSpec(SPEEDS.observation, ArraySpec((4,), "float32"), SPEEDS.action)
    subgoals = Subgoals((shared(1, 2, "1,4"), shared(2, 0, "2,5")), goal)
    row, achieved = np.arange(7.0), np.arange(4.0)
    check_seen(subgoals, TASK, row, achieved, achieved + 0.25, [row, achieved, [0, 1.25, 2, 3.25]])
    check_seen(subgoals, TASK, row, achieved, achieved + 1, [row, achieved, achieved + 1])


@pytest.mark.parametrize(("hidden", "columns"), [((4, 5), SECOND[0]), ((1, 2), SECOND[0]), ((5,), [0, 2, 1, 3, 4, 5, 6])])
def test_columns_of_which_only_one_is_hidden_stay_in_their_places(hidden, columns):
    subgoals = Subgoals([each.text() for each in SHARED], SPEEDS, hidden)
    row, achieved = np.arange(7.0), np.array([2.0, 3.0, 1.0])
    check_seen(subgoals, 2, row, achieved, achieved + 1, [row[columns], achieved[::-1], achieved[::-1] + 1])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("1,2", "0,1", "1,2,5"), ("3,4", "2,3", "4,3,6")),  # the position in another order
        (("1,2", "0,1", "1,5"), ("3,4", "2,3", "3,6")),  # a part of the position
        (("1,2", "0,1", "0,1,2"), ("3,4", "2,3", "6,3,4")),  # a column of the tool
    ],
)
def test_columns_that_lack_the_position_or_hold_the_tool_are_refused(first, second):
    spec = GoalSpec(ArraySpec((8,), "float32"), ArraySpec((4,), "float32"), ArraySpec((1,), "float32"))
    texts = [shared(*each).replace("achieved=0", "achieved=0,7") for each in (first, second)]
    with pytest.raises(OptionError, match=r"position of each object \(`goal`\) at the same places of them, and no column"):
        Subgoals(texts, spec)


def test_objects_of_other_sizes_are_not_exchanged():
    spec = GoalSpec(ArraySpec((8,), "float32"), ArraySpec((3,), "float32"), ArraySpec((1,), "float32"))
    texts = [shared("1,2", "0,1", "1,2").replace("achieved=0", "achieved=0,7"), shared(3, 2, "3,4")]
    with pytest.raises(OptionError, match="for objects with as many `dimensions`"):
        Subgoals(texts, spec)


def test_columns_of_objects_are_written_as_they_are_read():
    assert [each.text() for each in SHARED] == [shared(1, 2, "1,4"), shared(2, 0, "2,5"), shared(3, 1, "3,6")]


@pytest.mark.parametrize("columns", [("1,4", "2"), ("1,4", "4,5"), ("1,4", "2,7"), ("1,4", "")])
def test_columns_that_do_not_fit_are_refused(columns):
    texts = [reach(k + 1, k) + (f" columns={each}" if each else "") for k, each in enumerate(columns)]
    with pytest.raises(OptionError, match=r"`columns` of the subgoals are .* Expected as many of each object, each once"):
        Subgoals(texts, SPEEDS)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((reach(1, 0), reach(2, 0)), r"`dimensions` of the subgoals are \[0, 0\]. Each must occur once"),
        ((reach(1, 0), reach(2, 3)), "be below 3"),
        (
            (reach(1, 0), "reach achieved=0,1,2 goal=1,2,3 tolerance=1 switch_distance=1"),
            "and how near it is `placed`, or none",
        ),
        ((reach(1, 0).replace("placed=0.25", "placed=0"),), "placed must be above 0"),
        ((reach("1,2", 0),), r"`goal` of the subgoal reach is \(1, 2\). Expected 1 columns"),
        ((reach(1, "0,"),), "Cannot read"),
    ],
)
def test_an_invalid_sequence_is_refused(texts, message):
    with pytest.raises(OptionError, match=message):
        Subgoals(texts, SPEC)
