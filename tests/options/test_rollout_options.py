import pytest

from hindsight.errors import OptionError
from hindsight.options import RolloutOptions, named_values


def test_values_are_read_as_toml_has_them():
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
    ("entries", "said"),
    [
        (("n_bits",), "'n_bits', but name=value is needed"),
        (("=3",), "name=value is needed"),
        (("n_bits=",), "name=value is needed"),
        (("a.b=3",), "name=value is needed"),
        (("n_bits=1", "n_bits=2"), "names 'n_bits' twice"),
        (("reward=dense",), "'dense' is no value of TOML.*in quotes"),
        (("n_bits=1\nseed=2",), "no value of TOML"),
    ],
)
def test_what_is_no_named_value_is_refused(entries, said):
    with pytest.raises(OptionError, match=f"env_options .*{said}"):
        RolloutOptions(env_options=entries)
