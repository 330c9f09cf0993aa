"""A declared symmetry is tried: true ones hold, wrong ones are told."""

import numpy as np
import pytest
from line_env import Line

from hindsight import PointReach
from hindsight.envs.goal_env import check_goal_env
from hindsight.recipes import find_recipe

MIRROR = "o0=-o0 o2=-o2 g0=-g0 a0=-a0"


def found(env, symmetries):
    report = check_goal_env(env, symmetries=symmetries)
    return {f.name: (f.level, f.sentence) for f in report.findings if f.name.startswith("turned")}


def test_point_reach_is_the_same_from_every_side_of_its_recipe():
    told = found("PointReach-v0", find_recipe("PointReach-v0").options["symmetries"])
    assert told == {
        "turned rewards": ("ok", "8 augmented, from which 1400 rewards are the same"),
        "turned steps": ("ok", "turned actions lead to turned observations in 441 steps, but for rounding"),
    }


def test_without_a_declaration_nothing_is_told():
    assert found("PointReach-v0", ()) == {}


def test_an_action_that_is_forgotten_shows_in_the_steps_alone():
    told = found("PointReach-v0", ("o0=-o0 o2=-o2 g0=-g0",))
    assert told["turned rewards"][0] == "ok"
    level, sentence = told["turned steps"]
    assert level == "warning"
    assert "the world is not the same from every side" in sentence


class Uphill(PointReach):
    """Pays for goals on the right alone, so that its mirror is another world."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        paid = super().compute_reward(achieved_goal, desired_goal, info)
        return np.where(np.asarray(desired_goal)[..., 0] > 0, paid, np.float32(-1)).astype(np.float32)


def test_a_reward_that_knows_left_from_right_is_an_error():
    level, sentence = found(Uphill, (MIRROR,))["turned rewards"]
    assert level == "error"
    assert "the declaration is not true" in sentence


def test_a_declaration_that_does_not_fit_is_an_error_in_the_report():
    told = found("PointReach-v0", ("o9=-o9",))
    assert told["turned rewards"][0] == "error"
    assert "the observation has 4 columns" in told["turned rewards"][1]


def test_where_steps_cannot_be_begun_elsewhere_that_is_said():
    line = found(Line(), ("o0=-o0 g0=-g0 a0=-a0",))
    assert line["turned steps"] == (
        "ok",
        "steps were not tried: it is not known how an episode is begun from another side here",
    )


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "package", "augmented"),
    [
        ("FetchPush-v4", "gymnasium_robotics", 8),
        ("FetchPickAndPlace-v4", "gymnasium_robotics", 4),
        ("FetchSlide-v4", "gymnasium_robotics", 2),
        ("PointMaze_UMaze-v3", "gymnasium_robotics", 2),
        ("PandaReach-v3", "panda_gym", 2),
        ("PandaPush-v3", "panda_gym", 2),
        ("parking-v0", "highway_env", 4),
    ],
)
def test_a_world_is_nearly_the_same_from_the_sides_of_its_recipe(name, package, augmented):
    pytest.importorskip(package)
    told = found(name, find_recipe(name).options["symmetries"])
    assert {level for level, _ in told.values()} == {"ok"}, told
    assert told["turned rewards"][1].startswith(f"{augmented} augmented")
    assert "not tried" not in told["turned steps"][1]


@pytest.mark.simulator
def test_a_turn_that_is_not_true_of_an_arm_is_found_out():
    pytest.importorskip("panda_gym")
    turn = "o0=0.0384-o1 o1=-0.0384+o0 o3=-o4 o4=o3 g0=0.0384-g1 g1=-0.0384+g0 a0=-a1 a1=a0"
    level, said = found("PandaReach-v3", (turn,))["turned steps"]
    assert level == "warning", said


@pytest.mark.simulator
def test_objects_whose_goal_is_no_single_place_are_not_moved():
    pytest.importorskip("panda_gym")
    assert "not tried" in found("PandaStack-v3", ("g1=-g1 g4=-g4 a1=-a1",))["turned steps"][1]
