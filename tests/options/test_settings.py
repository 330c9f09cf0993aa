import pytest

from hindsight_rl.errors import OptionError
from hindsight_rl.options import RolloutOptions, named_values


def test_values_are_read_as_toml():
    entries = (
        "n_bits=30",
        "continuous = true",
        'reward_type="a=b"',
        "sizes=[1, 2]",
        "config={ duration = 10, deep = { x = 0.5 } }",
    )
    assert named_values("env_options", entries) == {
        "n_bits": 30,
        "continuous": True,
        "reward_type": "a=b",
        "sizes": [1, 2],
        "config": {"duration": 10, "deep": {"x": 0.5}},
    }
    assert RolloutOptions(env_options=("n_bits=30",)).env_arguments == {"n_bits": 30}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (("n_bits",), "must be name=value"),
        (("=3",), "must be name=value"),
        (("n_bits=",), "must be name=value"),
        (("a.b=3",), "must be name=value"),
        (("deep=" + "[" * 3000,), "must be name=value"),
        (("large=" + "9" * 5000,), "must be name=value"),
        (("n_bits=1", "n_bits=2"), "must name 'n_bits' once"),
        (("reward=dense",), "must be name=value with a value in TOML.*'reward=\"text\"'"),
        (("n_bits=1\nseed=2",), "must be name=value"),
    ],
)
def test_an_entry_of_another_form_is_refused(entries, message):
    with pytest.raises(OptionError, match=f"`env_options` {message}"):
        RolloutOptions(env_options=entries)


@pytest.mark.parametrize(("low", "high"), [((0.0,), ()), ((0.0, 0.0), (1.0,)), ((1.0,), (1.0,)), ((2.0,), (1.0,))])
def test_a_range_that_is_none_is_refused(low, high):
    with pytest.raises(OptionError, match="need as many numbers as the goal has, each lowest one below the highest"):
        RolloutOptions(lowest_achieved=low, highest_achieved=high)


def test_rest_needs_a_range():
    with pytest.raises(OptionError, match="`rest_displacement` needs the range outside of which episodes end"):
        RolloutOptions(rest_displacement=0.1)


@pytest.mark.parametrize(
    "options",
    [{"workers": -1}, {"episodes_per_job": 0}, {"policy_lag": -1}, {"max_episode_steps": 0}, {"engine": "threads"}],
)
def test_values_out_of_range_are_refused(options):
    with pytest.raises(OptionError, match=f"`{next(iter(options))}` must be"):
        RolloutOptions(**options)
