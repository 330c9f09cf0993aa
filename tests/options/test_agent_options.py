import dataclasses
import math

import pytest

from hindsight.errors import OptionError
from hindsight.options import (
    AGENT_OPTIONS,
    CONTINUOUS_AGENTS,
    DISCRETE_AGENTS,
    AgentOptions,
    DDPGOptions,
    DQNOptions,
    QRDQNOptions,
    SACOptions,
    TD3Options,
    TQCOptions,
)


def test_defaults_differ_only_where_the_algorithms_do():
    assert (DDPGOptions().n_critics, TD3Options().n_critics, SACOptions().n_critics) == (1, 2, 2)
    assert (TD3Options().policy_period, TD3Options().target_noise, TD3Options().target_noise_clip) == (2, 0.2, 0.5)
    assert (SACOptions().noise, SACOptions().random_eps) == (0.0, 0.0)
    assert (DQNOptions().double, DQNOptions().dueling, QRDQNOptions().double) == (True, False, False)
    assert (TQCOptions().n_quantiles, TQCOptions().top_quantiles_to_drop_per_net) == (25, 2)


def test_every_agent_acts_in_one_kind_of_space():
    assert CONTINUOUS_AGENTS == ("ddpg", "td3", "sac", "tqc")
    assert DISCRETE_AGENTS == ("dqn", "qrdqn")
    assert set(AGENT_OPTIONS) == set(CONTINUOUS_AGENTS) | set(DISCRETE_AGENTS)


def test_random_actions_grow_fewer_in_a_straight_line():
    options = DQNOptions(initial_eps=1.0, random_eps=0.2, eps_steps=100)
    assert [options.eps_at(steps) for steps in (0, 25, 100, 999)] == pytest.approx([1.0, 0.8, 0.2, 0.2])
    assert DQNOptions(random_eps=0.3).eps_at(0) == 0.3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", (64, 0)),
        ("hidden", (64.0,)),
        ("hidden", 64),
        ("hidden", "64"),
        ("image_channels", (16, 0)),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("learning_rate", "fast"),
        ("actor_learning_rate", -1e-3),
        ("discount", 0.0),
        ("discount", 1.0),
        ("discount", 1.5),
        ("tau", 0.0),
        ("tau", 1.01),
        ("target_period", 0),
        ("target_period", 2.0),
        ("n_critics", 0),
        ("n_critics", True),
        ("n_target_critics", 0),
        ("n_target_critics", 3),
        ("critic_layer_norm", 1),
        ("action_l2", -0.1),
        ("clip_targets", None),
        ("gradient_clip", 0.0),
        ("random_eps", 1.1),
        ("noise", -0.1),
        ("noise", math.inf),
        ("normalizer_clip", 0.5),
        ("normalizer_eps", 0.0),
        ("device", "gpu"),
        ("policy_period", 0),
        ("target_noise", -1.0),
        ("target_noise_clip", math.nan),
        ("goal_features", "distance"),
        ("observe_achieved_goal", "no"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(OptionError, match=name) as caught:
        TD3Options(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("entropy_coefficient", 0.0),
        ("entropy_learning_rate", -1.0),
        ("target_entropy", math.inf),
        ("target_entropy", "low"),
    ],
)
def test_sac_refuses_what_only_it_has(name, value):
    with pytest.raises(OptionError, match=name):
        SACOptions(**{name: value})


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (DQNOptions, "initial_eps", 1.5),
        (DQNOptions, "eps_steps", -1),
        (DQNOptions, "double", 1),
        (DQNOptions, "dueling", "yes"),
        (DQNOptions, "critic_error", "absolute"),
        (QRDQNOptions, "n_quantiles", 0),
        (TQCOptions, "n_quantiles", 2.0),
        (TQCOptions, "top_quantiles_to_drop_per_net", 25),
        (TQCOptions, "top_quantiles_to_drop_per_net", -1),
    ],
)
def test_the_other_agents_refuse_what_only_they_have(options, name, value):
    with pytest.raises(OptionError, match=name):
        options(**{name: value})


def test_values_at_the_edge_are_taken():
    options = TD3Options(hidden=[], tau=1.0, n_critics=5, n_target_critics=5, random_eps=1.0, gradient_clip=1, noise=0)
    assert options.hidden == ()  # a list, as TOML gives it, becomes a tuple
    assert SACOptions(entropy_learning_rate=0.0, target_entropy=-1.5).target_entropy == -1.5


def test_options_are_frozen_and_every_one_has_a_comment():
    with pytest.raises(dataclasses.FrozenInstanceError):
        AgentOptions().tau = 1.0
    from pathlib import Path

    from hindsight.options import agent

    lines = Path(agent.__file__).read_text(encoding="utf-8").splitlines()
    for option in {field.name for record in AGENT_OPTIONS.values() for field in dataclasses.fields(record)}:
        assert all("  # " in line for line in lines if line.startswith(f"    {option}: ")), option
