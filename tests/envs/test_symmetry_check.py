"""Declared symmetries are checked: right ones hold, wrong ones are reported."""

import numpy as np
import pytest
from line_env import Line

from hindsight import PointReach
from hindsight.envs.check import check_goal_env
from hindsight.recipes import find_recipe

MIRROR = "o0=-o0 o2=-o2 g0=-g0 a0=-a0"


def found(env, symmetries):
    report = check_goal_env(env, symmetries=symmetries)
    return {f.name: (f.level, f.sentence) for f in report.findings if f.name.startswith("symmetric")}


def test_point_reach_has_the_symmetries_of_its_recipe():
    results = found("PointReach-v0", find_recipe("PointReach-v0").options["symmetries"])
    assert results == {
        "symmetric rewards": ("ok", "1400 rewards are the same under the 8 elements of the group"),
        "symmetric steps": ("ok", "transformed actions lead to transformed observations in 441 steps"),
    }


def test_without_symmetries_nothing_is_reported():
    assert found("PointReach-v0", ()) == {}


def test_a_missing_action_shows_in_the_steps_only():
    results = found("PointReach-v0", ("o0=-o0 o2=-o2 g0=-g0",))
    assert results["symmetric rewards"][0] == "ok"
    level, sentence = results["symmetric steps"]
    assert level == "warning"
    assert "does not have these symmetries" in sentence


class Uphill(PointReach):
    """Rewards goals on the right only, so that it has no mirror symmetry."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        reward = super().compute_reward(achieved_goal, desired_goal, info)
        return np.where(np.asarray(desired_goal)[..., 0] > 0, reward, np.float32(-1)).astype(np.float32)


def test_a_reward_that_differs_left_and_right_is_an_error():
    level, sentence = found(Uphill, (MIRROR,))["symmetric rewards"]
    assert level == "error"
    assert "Correct or remove the symmetries" in sentence


def test_a_symmetry_of_other_columns_is_an_error_in_the_report():
    results = found("PointReach-v0", ("o9=-o9",))
    assert results["symmetric rewards"][0] == "error"
    assert "the observation has 4 columns" in results["symmetric rewards"][1]


def test_steps_that_cannot_be_checked_are_reported():
    line = found(Line(), ("o0=-o0 g0=-g0 a0=-a0",))
    assert line["symmetric steps"] == (
        "not seen",
        "an episode cannot start at a given place: reset needs the options start and goal",
    )


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "package", "size"),
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
def test_rewards_of_simulators_have_the_symmetries_of_their_recipe(name, package, size):
    pytest.importorskip(package)
    results = found(name, find_recipe(name).options["symmetries"])
    assert results["symmetric rewards"][0] == "ok"
    assert results["symmetric rewards"][1].endswith(f"under the {size} elements of the group")
    assert results["symmetric steps"][0] == "not seen"
