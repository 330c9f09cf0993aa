"""The group that symmetry generators make, and what it does to rows."""

import numpy as np
import pytest

from hindsight_rl import Episode, GoalSpec
from hindsight_rl.errors import OptionError
from hindsight_rl.records import ArraySpec
from hindsight_rl.task_structure.subgoals import Subgoal
from hindsight_rl.task_structure.symmetries import SymmetryGroup

FLAT = ArraySpec((2,), "float32")
SPEC = GoalSpec(ArraySpec((3,), "float32"), FLAT, FLAT)
QUARTER = "o0=-o1 o1=o0 g0=-g1 g1=g0 a0=-a1 a1=a0"
MIRROR = "o0=-o0 g0=-g0 a0=-a0"


@pytest.mark.parametrize(
    ("generators", "order"),
    [((), 1), ((MIRROR,), 2), ((QUARTER,), 4), ((QUARTER, MIRROR), 8), ((MIRROR, "o2=1-o2"), 4), (("o0=o1 o1=o0",), 2)],
)
def test_the_group_is_closed_and_of_the_right_order(generators, order):
    group = SymmetryGroup(generators, SPEC)
    assert len(group) == order
    rows = np.random.default_rng(0).standard_normal((5, 3))
    observed = [group.transformed("observation", rows, element) for element in range(order)]
    assert np.array_equal(observed[0], rows)
    for first in observed:
        for element in range(order):
            again = group.transformed("observation", first, element)
            assert sum(np.allclose(again, one) for one in observed) == 1


def test_a_rotation_by_90_degrees_by_hand():
    group, row = SymmetryGroup((QUARTER,), SPEC), np.array([[1.0, 2.0, 3.0]], np.float32)
    assert [group.transformed("observation", row, e).tolist() for e in range(4)] == [
        [[1, 2, 3]],
        [[-2, 1, 3]],
        [[-1, -2, 3]],
        [[2, -1, 3]],
    ]
    assert group.transformed("action", row[:, :2], 1).tolist() == [[-2, 1]]
    assert group.transformed("goal", row[:, :2], 1).dtype == np.float32


def test_a_mirror_may_have_an_offset():
    group, row = SymmetryGroup(("o1=1.5-o1", "g0=2-g1 g1=-1+g0"), SPEC), np.array([[1.0, 2.0, 3.0]])
    assert len(group) == 8  # a mirror at 0.75, and a rotation of the goals by 90 degrees around (1.5, 0.5)
    assert group.transformed("observation", row, 1).tolist() == [[1, -0.5, 3]]
    around = [g for g in range(8) if np.allclose(group.transformed("goal", np.array([[1.5, 0.5]]), g), [[1.5, 0.5]])]
    assert len(around) == 8


@pytest.mark.parametrize("unit", ["", "e-9", "e9"])
def test_offsets_are_compared_beside_the_largest_one(unit):
    """Two mirrors at different places make a shift, which never returns to the identity, in any unit of length."""
    with pytest.raises(OptionError, match="more than 64 maps"):
        SymmetryGroup((f"o0=1{unit}-o0", f"o0=3{unit}-o0"), SPEC)
    assert len(SymmetryGroup((f"o0=1{unit}-o0", f"o0=1.0000001{unit}-o0"), SPEC)) == 2


def test_columns_of_different_units_are_exchanged():
    group = SymmetryGroup(("o0=3-2.5*o1 o1=1.2-0.4*o0",), SPEC)
    assert len(group) == 2
    assert group.transformed("observation", np.array([[1.0, 2.0, 3.0]]), 1).tolist() == [pytest.approx([-2, 0.8, 3])]


def test_an_augmented_episode():
    generator = np.random.default_rng(0)
    rows = [generator.standard_normal((3, n)).astype(np.float32) for n in (3, 2, 2)]
    episode = Episode(*rows, rows[1][:2], np.zeros(2), number=7)
    was, mirrored = SymmetryGroup((MIRROR,), SPEC).augmented(episode)
    assert was is episode
    assert mirrored.number == 7
    for name in ("observation", "achieved_goal", "desired_goal", "action"):
        before, after = getattr(episode, name), getattr(mirrored, name)
        assert after.tolist() == (before * [-1, 1, 1][: before.shape[1]]).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("o0=-p0", "has the entry 'o0=-p0'. Write column=column"),
        ("o0=g0", "both of one array"),
        ("o0=2o0", "Write column=column"),
        ("o3=-o3", "the observation has 3 columns"),
        ("a0=a2", "the action has 2 columns"),
        ("g0=g1", "uses a column twice"),
        ("g0=-g0 g0=g0", "maps g0 twice"),
        ("o0=1+o0", "more than 64 maps"),
    ],
)
def test_an_invalid_symmetry_is_refused(text, message):
    with pytest.raises(OptionError, match=message):
        SymmetryGroup((text,), SPEC)


def test_symmetries_need_flat_arrays_of_floats():
    bits = GoalSpec(FLAT, ArraySpec((2,), "int8", (0.0,), (1.0,)), FLAT)
    with pytest.raises(OptionError, match=r"shape \(2,\) and dtype int8 for the goal"):
        SymmetryGroup((MIRROR,), bits)
    assert len(SymmetryGroup((), bits)) == 1


@pytest.mark.parametrize(
    ("achieved", "differing"),
    [("0", None), ("1-o2", None), ("1+o2", None), ("1-o3", (1,)), ("1-0.5*o2", None), ("2*o1-o2", (1,))],
)
def test_a_place_less_a_gap_changes_as_goals_if_the_gap_changes_its_sign_with_them(achieved, differing):
    """A mirror at 2: o0 and o1 are places, o2 is a gap between them, o3 has another mirror."""
    spec = GoalSpec(ArraySpec((4,), "float32"), ArraySpec((1,), "float32"), ArraySpec((1,), "float32", (-1.0,), (1.0,)))
    group = SymmetryGroup(["o0=4-o0 o1=4-o1 o2=-o2 o3=1-o3 g0=4-g0 a0=-a0"], spec)
    subgoal = Subgoal.parse(f"reach achieved={achieved} goal=1 tolerance=1 switch_distance=1")
    assert group.differing_columns(subgoal) == differing
