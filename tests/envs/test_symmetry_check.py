"""Declared symmetries are checked on rewards: right ones hold, wrong ones are reported."""

from pathlib import Path

import numpy as np
import pytest

from hindsight_rl import PointReach
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.recipes import find_recipe, load_recipe

RECIPES = Path(__file__).parents[2] / "benchmarks" / "recipes"  # no part of the package
APART = {
    "FetchPush-v4": "fetch_push",
    "FetchPickAndPlace-v4": "fetch_pick_and_place",
    "PandaPush-v3": "panda_push",
    "PointMaze_UMaze-v3": "point_maze",
}


def found(env, symmetries):
    """The findings about symmetries, as (level, sentence)."""
    report = check_goal_env(env, symmetries=symmetries)
    return [(f.level, f.sentence) for f in report.findings if f.name == "symmetries"]


def test_point_reach_has_the_symmetries_of_its_recipe():
    results = found("PointReach-v0", find_recipe("PointReach-v0").options["symmetries"])
    assert results == [
        ("ok", "1400 rewards are the same under the 8 elements of the group; observations and actions were not checked")
    ]


def test_without_symmetries_nothing_is_reported():
    assert found("PointReach-v0", ()) == []


class Uphill(PointReach):
    """Rewards goals on the right only, so that it has no mirror symmetry."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        reward = super().compute_reward(achieved_goal, desired_goal, info)
        return np.where(np.asarray(desired_goal)[..., 0] > 0, reward, np.float32(-1)).astype(np.float32)


def test_a_reward_that_differs_left_and_right_is_an_error():
    ((level, sentence),) = found(Uphill, ("o0=-o0 o2=-o2 g0=-g0 a0=-a0",))
    assert level == "error"
    assert "Correct or remove the symmetries" in sentence


def test_a_symmetry_of_other_columns_is_an_error_in_the_report():
    ((level, sentence),) = found("PointReach-v0", ("o9=-o9",))
    assert level == "error"
    assert "the observation has 4 columns" in sentence


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
    recipe = load_recipe(str(RECIPES / f"{APART[name]}.toml")) if name in APART else find_recipe(name)
    ((level, sentence),) = found(name, recipe.options["symmetries"])
    assert level == "ok"
    assert f"under the {size} elements of the group" in sentence
