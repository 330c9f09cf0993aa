import numpy as np
from gymnasium import spaces

from hindsight_rl.records import GoalSpec
from hindsight_rl.training.contradictions import without_contradictions

GOAL = spaces.Box(-np.inf, np.inf, (2,), np.float64)
SEEN = spaces.Dict(observation=spaces.Box(-1, 1, (5,)), achieved_goal=GOAL, desired_goal=GOAL)
SPEC = GoalSpec.from_spaces(SEEN, spaces.Box(-1, 1, (2,)), 50)
REACH = "reach achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.3"
MIRROR_X = "o0=-o0 o2=-o2 g0=-g0 a0=-a0"
MIRROR_Y = "o1=-o1 g1=-g1 a1=-a1"  # not column 3, with which the subgoal compares column 1


def chosen(**values):
    return {name: (value, "found") for name, value in values.items()}


def test_nothing_is_dropped_without_a_contradiction():
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y), energy_priority=True, n_waypoints=4)
    assert without_contradictions(found, {"noise": 0.3}, SPEC) == (found, {})


def test_symmetries_that_keep_the_given_subgoals_stay():
    usable, dropped = without_contradictions(chosen(symmetries=(MIRROR_X, MIRROR_Y)), {"subgoals": [REACH]}, SPEC)
    assert usable == {"symmetries": ((MIRROR_X,), "found")}
    assert dropped["symmetries"][0] == (MIRROR_Y,)


def test_a_chain_of_given_subgoals_keeps_all_symmetries():
    chain = f"{REACH} numbers=0,1 placed=0.1"
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y))
    assert without_contradictions(found, {"subgoals": (chain,)}, SPEC) == (found, {})


def test_subgoals_that_given_symmetries_do_not_keep_are_dropped():
    for mirror, is_kept in ((MIRROR_X, True), (MIRROR_Y, False)):
        usable, dropped = without_contradictions(chosen(subgoals=(REACH,)), {"symmetries": (mirror,)}, SPEC)
        assert ("subgoals" in usable, "subgoals" in dropped) == (is_kept, not is_kept)


def test_columns_stay_visible_without_the_differences_that_replace_them():
    found = chosen(column_differences=("2-0", "3-1"), hidden_observation=(0, 1, 2, 3), symmetries=(MIRROR_X,))
    _, dropped = without_contradictions(found, {"column_differences": ("2-0",)}, SPEC)
    assert dropped.keys() == {"hidden_observation", "symmetries"}
    assert dropped["hidden_observation"][1] == "column_differences lacks 3-1"
    for given in ({"column_differences": ("3-1", "2-0", "4-0")}, {"column_differences": (), "hidden_observation": (0,)}):
        assert without_contradictions(found, given, SPEC)[1] == {}
