"""Calls of older libraries are answered with the new call."""

import enum

import pytest

from hindsight_rl import HER
from hindsight_rl.errors import OptionError


class DDPG:
    """Stands for the class of another library."""


class Goals(enum.Enum):
    FUTURE = 0


@pytest.mark.parametrize(
    ("arguments", "options", "call"),
    [
        (
            ("MlpPolicy", "PointReach-v0", DDPG),
            {"n_sampled_goal": 4, "goal_selection_strategy": Goals.FUTURE, "gamma": 0.95, "verbose": 1},
            "HER(env, agent='ddpg', n_sampled_goal=4, strategy='future', discount=0.95). Without an equivalent: verbose.",
        ),
        (
            ("MlpPolicy", "PointReach-v0"),
            {"model_class": DDPG, "online_sampling": False, "policy_kwargs": {"net_arch": [64, 64]}, "gradient_steps": 2},
            "HER(env, agent='ddpg', relabel_at='episode_end', hidden=(64, 64), updates_per_step=2).",
        ),
        (("PointReach-v0", DDPG), {}, "HER(env, agent='ddpg')."),
        (("MlpPolicy",), {}, "HER(env)."),
    ],
)
def test_an_old_call_is_answered_with_the_new_one(arguments, options, call):
    with pytest.raises(OptionError) as problem:
        HER(*arguments, **options)
    assert call in str(problem.value)


def test_old_names_of_the_package_are_answered():
    with pytest.raises(ImportError, match="observations stay dictionaries"):
        from hindsight_rl import HERGoalEnvWrapper  # noqa: F401
