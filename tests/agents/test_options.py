import dataclasses
import math

import pytest

from hindsight.agents.options import AGENT_OPTIONS, AgentOptions, DDPGOptions, SACOptions, TD3Options
from hindsight.errors import OptionError


def test_defaults_differ_only_where_the_algorithms_do():
    assert (DDPGOptions().n_critics, TD3Options().n_critics, SACOptions().n_critics) == (1, 2, 2)
    assert (TD3Options().policy_period, TD3Options().target_noise, TD3Options().target_noise_clip) == (2, 0.2, 0.5)
    assert (SACOptions().noise, SACOptions().random_eps) == (0.0, 0.0)
    assert {"ddpg": DDPGOptions, "td3": TD3Options, "sac": SACOptions} == AGENT_OPTIONS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", (64, 0)),
        ("hidden", (64.0,)),
        ("hidden", 64),
        ("hidden", "64"),
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


def test_values_at_the_edge_are_taken():
    options = TD3Options(hidden=[], tau=1.0, n_critics=5, n_target_critics=5, random_eps=1.0, gradient_clip=1, noise=0)
    assert options.hidden == ()  # a list, as TOML gives it, becomes a tuple
    assert SACOptions(entropy_learning_rate=0.0, target_entropy=-1.5).target_entropy == -1.5


def test_options_are_frozen_and_every_one_has_a_comment():
    with pytest.raises(dataclasses.FrozenInstanceError):
        AgentOptions().tau = 1.0
    from pathlib import Path

    from hindsight.agents import options

    lines = Path(options.__file__).read_text(encoding="utf-8").splitlines()
    for option in dataclasses.fields(AgentOptions):
        assert any(line.startswith(f"    {option.name}: ") and "  # " in line for line in lines), option.name
