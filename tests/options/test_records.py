import copy
import pickle

import numpy as np
import pytest
from pydantic import ValidationError

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, ReplayOptions, TrainingOptions, option_fields, run_options
from hindsight_rl.options.agent import TD3Options


def test_an_error_says_what_was_expected_and_what_was_given():
    with pytest.raises(OptionError) as caught:
        TrainingOptions(batch_size=0)
    assert str(caught.value) == "`batch_size` must be at least 1, got 0."


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"tau": "x"}, "a valid number"),
        ({"gradient_clip": "x"}, "a valid number"),
        ({"hidden": "x"}, "a valid tuple"),
    ],
)
def test_a_value_of_another_kind_is_answered_with_the_values_that_are_allowed(options, allowed):
    with pytest.raises(OptionError, match=f"must be {allowed}, got 'x'"):
        TD3Options(**options)


def test_all_faults_are_listed_at_once():
    with pytest.raises(UnknownNameError) as caught:
        TrainingOptions(batch_size=0, steps=True, gamma=0.9)
    assert str(caught.value).splitlines() == [
        "3 options are wrong:",
        "  `steps` must be a valid integer, got True.",
        "  `batch_size` must be at least 1, got 0.",
        "  There is no option `gamma` (TrainingOptions). Names of other libraries: docs/migrating.md.",
    ]


def test_replace_returns_a_validated_copy():
    options = TrainingOptions(steps=10)
    assert (options.replace(steps=20).steps, options.steps) == (20, 10)
    with pytest.raises(OptionError, match="`steps` must be at least 1, got 0"):
        options.replace(steps=0)


def test_lists_become_tuples_and_integers_floats():
    options = TD3Options(hidden=[64, 32], tau=1)
    assert options.hidden == (64, 32)
    assert type(options.tau) is float


def test_numpy_numbers_become_plain_ones():
    options = TrainingOptions(steps=np.int64(5), solved_at=np.float32(0.5))
    assert (type(options.steps), type(options.solved_at)) == (int, float)
    with pytest.raises(OptionError, match="`steps` must be a valid integer"):
        TrainingOptions(steps=np.float64(5.0))


@pytest.mark.parametrize("record", [*AGENT_OPTIONS.values(), ReplayOptions, TrainingOptions])
def test_a_record_is_made_again_from_its_plain_data(record):
    options = record()
    assert record(**options.to_dict()) == options
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options


def test_records_are_frozen():
    with pytest.raises(ValidationError):
        TrainingOptions().steps = 3


def test_a_field_has_what_help_and_documents_need():
    fields = {field.name: field for field in option_fields(TD3Options)}
    assert fields["tau"] == (
        "tau",
        float,
        0.005,
        "Polyak rate of the target networks; 1 copies the online networks",
        "Updates",
    )
    assert (fields["target_noise"].group, fields["noise"].group) == ("TD3", "Exploration")


def test_a_changed_default_keeps_the_description():
    assert run_options("sac")["noise"].default == 0.0
    assert run_options("sac")["noise"].description == run_options("td3")["noise"].description


@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_every_option_is_described_and_belongs_to_a_group(agent):
    for option in run_options(agent).values():
        assert option.description, option.name
        assert option.group, option.name
