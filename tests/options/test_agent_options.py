import math

import pytest

from hindsight_rl.errors import OptionError
from hindsight_rl.options import AGENT_OPTIONS, CONTINUOUS_AGENTS, DISCRETE_AGENTS
from hindsight_rl.options.agent import DDPGOptions, DQNOptions, QRDQNOptions, SACOptions, TD3Options, TQCOptions


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


def test_random_actions_decrease_linearly():
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
        ("hidden_goal", (-1,)),
        ("column_differences", (3,)),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(OptionError, match=f"`{name}` must be") as caught:
        TD3Options(**{name: value})
    assert f"{value!r}." in str(caught.value)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (SACOptions, "entropy_coefficient", 0.0),
        (SACOptions, "entropy_learning_rate", -1.0),
        (SACOptions, "target_entropy", math.inf),
        (SACOptions, "target_entropy", "low"),
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
def test_options_of_one_agent_are_validated_too(options, name, value):
    with pytest.raises(OptionError, match=f"`{name}` must be"):
        options(**{name: value})


def test_values_at_the_bounds_are_accepted():
    options = TD3Options(hidden=[], tau=1.0, n_critics=5, n_target_critics=5, random_eps=1.0, gradient_clip=1, noise=0)
    assert options.hidden == ()
    assert SACOptions(entropy_learning_rate=0.0, target_entropy=-1.5).target_entropy == -1.5


@pytest.mark.parametrize("options", [{"exploration_decay": 0.5}, {"exploration_decay_start": 10}])
def test_exploration_decay_needs_a_start(options):
    with pytest.raises(OptionError, match="Give both or neither"):
        TD3Options(**options)


def test_updates_run_on_the_cpu_by_default():
    assert {options().device for options in AGENT_OPTIONS.values()} == {"cpu"}
