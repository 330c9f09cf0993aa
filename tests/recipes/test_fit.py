import numpy as np
import pytest
from gymnasium import spaces

from hindsight.her import HER
from hindsight.recipes import Recipe, load_recipe
from hindsight.recipes.fit import fit
from hindsight.records import GoalSpec
from hindsight.training.settings import resolve_settings

DEFAULT = load_recipe("default")


def task(observation=10, goal=3, action=4, limit=50, goal_space=None):
    goals = goal_space or spaces.Box(-np.inf, np.inf, (goal,), np.float64)
    seen = spaces.Dict(observation=spaces.Box(-1, 1, (observation,)), achieved_goal=goals, desired_goal=goals)
    return GoalSpec.from_spaces(seen, spaces.Box(-1, 1, (action,)), limit)


def test_the_settings_of_a_task_of_each_size_worked_by_hand():
    small, middle, large = (fit(DEFAULT, task(n)).options for n in (10, 25, 105))
    assert [o["hidden"] for o in (small, middle, large)] == [[64, 64], [128, 128], [256, 256]]
    assert [o["updates_per_step"] for o in (small, middle, large)] == [4, 2, 1]
    assert [o["critic_layer_norm"] for o in (small, middle, large)] == [True, True, False]


@pytest.mark.parametrize(
    ("limit", "discount", "steps"),
    [(50, 0.98, 500), (5, 0.9, 200), (700, 0.99, 1000), (15, 0.933, 200), (None, 0.98, 1000)],
)
def test_the_time_limit_says_how_far_to_look_and_how_to_start(limit, discount, steps):
    options = fit(DEFAULT, task(limit=limit)).options
    assert (options["discount"], options["random_steps"]) == (discount, steps)


@pytest.mark.parametrize(
    ("goals", "features"),
    [
        (spaces.Box(-1, 1, (2,)), "relative"),
        (spaces.MultiBinary(6), "agreement"),
        (spaces.Discrete(5), "agreement"),
        (spaces.Box(0, 255, (16, 16, 3), np.uint8), None),
    ],
)
def test_goals_are_compared_as_their_kind_allows(goals, features):
    assert fit(DEFAULT, task(goal_space=goals)).options.get("goal_features") == features


def test_what_a_recipe_says_stands_and_one_that_does_not_ask_is_left_alone():
    own = Recipe("mine", (), "td3", {"hidden": [7]}, {}, from_spec=True)
    assert fit(own, task()).options["hidden"] == [7]
    tuned = load_recipe("fetch_push")
    assert fit(tuned, task()) is tuned


def test_a_model_of_an_unknown_task_has_them_and_says_why():
    with HER("PointReach-v0", recipe="default", tau=0.5) as model:
        assert model.settings.agent_options.hidden == (64, 64)
        assert model.settings.agent_options.tau == 0.5
        assert "discount 0.98 for episodes of 50 steps" in model.settings.reasons
        assert model.settings.from_recipe["updates_per_step"] == 4


def test_nothing_is_given_a_reason_that_was_chosen_otherwise():
    own = fit(Recipe("mine", (), "td3", {"discount": 0.5}, {}, from_spec=True), task())
    said = resolve_settings(own, None, {"hidden": (7,), "random_steps": 500}).reasons
    assert said == ("4 updates per step", "500 random steps first", "networks also see goal - achieved_goal")
    assert "networks also see" not in "".join(resolve_settings(own, None, {"goal_features": "none"}).reasons)


def test_a_discrete_space_counts_each_of_its_values():
    options = fit(DEFAULT, task(observation=5, goal_space=spaces.Discrete(50))).options
    assert options["hidden"] == [256, 256]
