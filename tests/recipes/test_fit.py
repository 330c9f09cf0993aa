import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl.recipes import FITTED, FITTED_DISCRETE, fit
from hindsight_rl.records import GoalSpec


def choices(limit):
    """Return what is chosen for a task with this time limit, by option."""
    seen = spaces.Dict({key: spaces.Box(-1, 1, (3,)) for key in ("observation", "achieved_goal", "desired_goal")})
    return {choice.option: choice for choice in fit(GoalSpec.from_spaces(seen, spaces.Box(-1, 1, (2,)), limit))}


def options(observation=10, goal=3, action=4, limit=50, goal_space=None, action_space=None):
    """Return what is chosen for a task of these sizes, by option."""
    goals = goal_space or spaces.Box(-np.inf, np.inf, (goal,), np.float64)
    seen = spaces.Dict(observation=spaces.Box(-1, 1, (observation,)), achieved_goal=goals, desired_goal=goals)
    spec = GoalSpec.from_spaces(seen, action_space or spaces.Box(-1, 1, (action,)), limit)
    return {choice.option: choice.value for choice in fit(spec)}


def test_networks_by_size_worked_out_by_hand():
    small, medium, large = (options(n) for n in (10, 25, 105))  # 10 + 2 * 3 + 4 = 20 inputs and outputs, 35, 115
    assert [o["hidden"] for o in (small, medium, large)] == [(128, 128), (128, 128), (256, 256)]
    assert [o["updates_per_step"] for o in (small, medium, large)] == [4, 4, 1]
    assert [o["critic_layer_norm"] for o in (small, medium, large)] == [True, True, False]
    assert set(small) == set(FITTED) - set(FITTED_DISCRETE)


@pytest.mark.parametrize(
    ("limit", "discount", "steps"),
    [(50, 0.95, 250), (5, 0.9, 200), (700, 0.99, 500), (30, 0.917, 200), (None, 0.98, 500)],
)
def test_discount_and_random_steps_by_time_limit(limit, discount, steps):
    chosen = options(limit=limit)
    assert (chosen["discount"], chosen["random_steps"]) == (discount, steps)


@pytest.mark.parametrize(
    ("limit", "random_steps", "eval_every"),
    [
        (50, (250, "about 5 episodes"), (2500, "about 50 episodes")),
        (12, (200, "about 17 episodes"), (600, "about 50 episodes")),
        (400, (500, "about 1 episode"), (5000, "about 12 episodes")),
        (9000, (500, "less than one episode"), (5000, "about 1 episode")),
    ],
)
def test_reasons_count_the_episodes_of_the_steps(limit, random_steps, eval_every):
    chosen = choices(limit)
    assert (chosen["random_steps"].value, chosen["random_steps"].reason) == (
        random_steps[0],
        f"{random_steps[1]}, for the normalizer",
    )
    assert (chosen["eval_every"].value, chosen["eval_every"].reason) == eval_every


@pytest.mark.parametrize(
    ("goals", "features"),
    [
        (spaces.Box(-1, 1, (2,)), "relative"),
        (spaces.MultiBinary(6), "agreement"),
        (spaces.Discrete(5), "agreement"),
        (spaces.Box(0, 255, (16, 16, 3), np.uint8), None),
    ],
)
def test_goal_features_by_kind_of_goal(goals, features):
    assert options(goal_space=goals).get("goal_features") == features


@pytest.mark.parametrize(("limit", "discount"), [(50, 0.98), (5, 0.9), (15, 0.933), (700, 0.99)])
def test_discrete_actions_look_as_far_as_the_time_limit(limit, discount):
    assert options(limit=limit, action_space=spaces.Discrete(5))["discount"] == discount


def test_each_value_of_a_discrete_space_counts():
    assert options(observation=5, goal_space=spaces.Discrete(50))["hidden"] == (256, 256)


def test_discrete_actions_explore_for_80_episodes_and_sample_by_energy():
    chosen = options(limit=40, action_space=spaces.Discrete(5))
    assert set(chosen) == set(FITTED)
    assert (chosen["eps_steps"], chosen["updates_per_step"]) == (3_200, 4)
    assert chosen["energy_priority"]
    assert options(limit=5_000, action_space=spaces.Discrete(5))["eps_steps"] == 50_000


def test_bits_and_indices_have_no_energy_and_fewer_updates():
    for goals in (spaces.MultiBinary(6), spaces.Discrete(5)):
        chosen = options(goal_space=goals, action_space=spaces.Discrete(5))
        assert "energy_priority" not in chosen
        assert chosen["updates_per_step"] == 2
