"""Subgoals: how they are written, and for which one the policy acts."""

import numpy as np
import pytest

from hindsight_rl import GoalSpec
from hindsight_rl.errors import OptionError
from hindsight_rl.records import ArraySpec
from hindsight_rl.task_structure.affine import AffineColumns
from hindsight_rl.task_structure.subgoals import TASK, Subgoal, Subgoals

SPEC = GoalSpec(ArraySpec((4,), "float32"), ArraySpec((1,), "float32"), ArraySpec((1,), "float32"))
NEAR = "near achieved=0 goal=1 tolerance=0.5 switch_distance=2"
THEN = "then achieved=2 goal=3 tolerance=0.5 switch_distance=1"


def test_a_subgoal_is_parsed_and_has_a_distance():
    subgoal = Subgoal.parse("reach achieved=0,1 goal=2,3 tolerance=0.03 switch_distance=1.5e-1")
    assert subgoal == Subgoal("reach", AffineColumns.plain((0, 1)), AffineColumns.plain((2, 3)), 0.03, 0.15)
    rows = np.array([[0.0, 0.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]])
    assert subgoal.distance(rows).tolist() == [5, 0]
    assert subgoal.distance(rows[0]) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reach", "Cannot read the subgoal 'reach'. Write it as in 'reach achieved"),
        ("reach achieved=0, goal=1 tolerance=1 switch_distance=1", "Cannot read"),
        ("reach achieved=0 goal=1 tolerance=1e switch_distance=1", "Cannot read"),
        ("reach achieved=0 goal=1 tolerance=2 switch_distance=1", "switch_distance at least tolerance"),
        ("reach achieved=0 goal=1 tolerance=0 switch_distance=1", "above 0"),
        (
            "reach achieved=0,1 goal=2 tolerance=1 switch_distance=1",
            r"`achieved` of the subgoal reach is \(0, 1\). Expected 1 columns",
        ),
        (
            "reach achieved=0 goal=4 tolerance=1 switch_distance=1",
            r"`goal` of the subgoal reach is \(4,\). Expected 1 columns of the observation, below 4",
        ),
    ],
)
def test_an_invalid_subgoal_is_refused(text, message):
    with pytest.raises(OptionError, match=message):
        Subgoals((text,), SPEC)


def test_subgoals_need_flat_arrays():
    image = GoalSpec(ArraySpec((2, 2), "float32"), SPEC.goal, SPEC.action)
    with pytest.raises(OptionError, match=r"flat.*\(2, 2\)"):
        Subgoals((NEAR,), image)
    assert len(Subgoals((), image)) == 0


# Distances of the subgoals are |column 0 - 1| and |column 2 - 3|. The task's achieved goal is 7, its desired goal 8.
ROWS = np.array([[0, 3, 0, 3], [0, 1, 0, 3], [0, 1, 0, 0.75], [0, 0.25, 0, 0.75], [0, 0.25, 0, 0.25]], np.float32)


@pytest.mark.parametrize(
    ("guided", "subgoal", "expected"),
    [
        (False, 0, [1, 2, 0, 0, 0]),  # farther than switch_distance
        (True, 0, [1, 1, 1, 2, 0]),  # farther than the tolerance
        (False, 1, [1, 1, 1, 1, 1]),  # rows of the first subgoal consider no other
        (True, 2, [1, 1, 1, 2, 2]),  # rows of the second subgoal consider the first
    ],
)
def test_acting_goals(guided, subgoal, expected):
    subgoals = Subgoals((NEAR, THEN), SPEC)
    own = np.full(5, subgoal)
    acting, achieved, goal = subgoals.acting_goals(ROWS, np.full((5, 1), 7.0), np.full((5, 1), 8.0), own, guided)
    assert acting.tolist() == expected
    for i, number in enumerate(expected):
        is_own = number == subgoal
        assert achieved[i, 0] == (7 if is_own else ROWS[i, 2 * number - 2])
        assert goal[i, 0] == (8 if is_own else ROWS[i, 2 * number - 1])
        one = subgoals.acting_goals(ROWS[i], np.array([7.0]), np.array([8.0]), np.array(subgoal), guided)
        assert [part.tolist() for part in one] == [acting[i].tolist(), achieved[i].tolist(), goal[i].tolist()]


@pytest.mark.parametrize("is_guided", [False, True])
def test_one_observation_has_the_acting_goal_of_its_row(is_guided):
    subgoals, goals = Subgoals((NEAR, THEN), SPEC), (np.array([7.0], np.float32), np.array([8.0], np.float32))
    for row in ROWS:
        expected = subgoals.acting_goals(row, *goals, np.full((), TASK), is_guided)
        assert [np.asarray(x).tolist() for x in subgoals.acting_goal(row, *goals, is_guided)] == [
            np.asarray(x).tolist() for x in expected
        ]


def test_a_subgoal_may_ask_for_some_dimensions_alone():
    """By hand: of a goal (position, angle) the subgoal asks for the position; the angle counts as reached."""
    spec = GoalSpec(ArraySpec((4,), "float32"), ArraySpec((2,), "float32"), ArraySpec((1,), "float32"))
    text = "reach achieved=0 goal=1 tolerance=0.5 switch_distance=2 dimensions=0"
    subgoals = Subgoals((text,), spec)
    assert subgoals.items[0].text() == text
    assert not subgoals.has_objects
    goals = np.array([7.0, 0.1]), np.array([8.0, 0.2])
    for row, expected in [([0, 3, 0, 0], (1, [0, 0.2], [3, 0.2])), ([0, 1, 0, 0], (TASK, [7, 0.1], [8, 0.2]))]:
        found = subgoals.acting_goal(np.array(row), *goals, is_guided=False)
        assert (found[0], found[1].tolist(), found[2].tolist()) == expected
        found = subgoals.acting_goals(np.array([row]), *(x[None] for x in goals), np.array([TASK]))
        assert [x[0].tolist() for x in found] == list(expected)
