import io
import json
from functools import partial

import numpy as np
import pytest
from short_runs import CHOICES, her, same_bytes, short

from hindsight_rl import HER, BitFlipping
from hindsight_rl.commands.export import export_torchscript
from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.storage import load_arrays, save_arrays
from hindsight_rl.training.run_folder import RunFolder
from hindsight_rl.training.saved_model import POLICY_KIND, SavedModel, refuse_other_settings


@pytest.fixture(scope="module")
def content():
    """Return the arrays and the data of a policy file."""
    file = io.BytesIO()
    with her() as model:
        model.save(file)
    file.seek(0)
    return load_arrays(file, POLICY_KIND)


def write(path, arrays, data):
    save_arrays(path, POLICY_KIND, arrays, data)
    return path


def test_a_model_is_read_as_it_was_written(content, tmp_path):
    saved = SavedModel.read(write(tmp_path / "model", *content))
    saved.write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_the_best_policy_of_a_run_folder_is_preferred(content, tmp_path):
    arrays, data = content
    for name in ("latest", "best"):
        write(tmp_path / "policies" / f"{name}.safetensors", arrays, data | {"facts": {"name": name}})
        assert SavedModel.read(tmp_path).facts == {"name": name}


def test_the_run_folders_in_a_folder_are_named(tmp_path):
    (tmp_path / "run" / "policies").mkdir(parents=True)
    (tmp_path / "run" / "policies" / "latest.safetensors").touch()
    with pytest.raises(FileError, match=r"It contains these run folders: .*/run$"):
        SavedModel.read(tmp_path)


def test_a_file_of_another_kind_is_named(tmp_path):
    (tmp_path / "train.log").write_text("evaluation at 250 steps")
    with pytest.raises(FileError, match="It is not a policy file"):
        SavedModel.read(tmp_path / "train.log")


def test_a_folder_without_a_policy_is_named(tmp_path):
    with pytest.raises(FileError, match="neither a policy file nor a run folder"):
        SavedModel.read(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {}},
        {"settings": {"agent": "td3", "recipe": "x", "options": {"tau": "x"}}},
        {"spec": {}},
        {"spec": []},
        {"facts": 3},
        {"facts": {"env_steps": "x"}},
        {"settings": {"agent": "td3", "recipe": "x", "options": {"threads": 10**6}}},
    ],
)
def test_a_malformed_model_is_refused(content, tmp_path, change):
    arrays, data = content
    with pytest.raises(FileError, match="malformed"):
        SavedModel.read(write(tmp_path / "model", arrays, data | change))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(content, tmp_path, value):
    arrays, data = content
    flat = arrays["policy/flat"].copy()
    flat[3] = value
    with pytest.raises(FileError, match="NaN or infinite"):
        SavedModel.read(write(tmp_path / "model", arrays | {"policy/flat": flat}, data))


def test_every_other_setting_is_named():
    found = {"agent": "td3", "options": {"tau": 0.1, "seed": 1, "steps": 5}}
    wanted = {"agent": "sac", "options": {"tau": 0.2, "seed": 1, "steps": 9}}
    with pytest.raises(OptionError, match=r"agent was 'td3' and is now 'sac'; tau was 0.1 and is now 0.2$"):
        refuse_other_settings(found, wanted, frozenset({"steps"}))
    refuse_other_settings(json.loads(json.dumps(wanted)), wanted, frozenset())


def last(row, steps_done, steps_left, u):
    """A strategy of the user: the last row of the episode."""
    return row + steps_left


STRATEGIES = pytest.mark.parametrize("strategy", [last, partial(last), lambda *rows: last(*rows)])


@STRATEGIES
def test_a_policy_that_was_trained_with_a_function_as_strategy_acts_without_it_and_learns_with_it(tmp_path, strategy):
    with her(strategy=strategy) as model:
        model.learn(40)
        model.save(tmp_path / "policy")
        success = model.evaluate(3)
    with HER.load(tmp_path / "policy", short) as loaded:
        assert loaded.evaluate(3) == success
        loaded.save(tmp_path / "again")
        with pytest.raises(
            OptionError, match=r"`strategy` of the run was the function .*HER.load.path, strategy=my_strategy"
        ):
            loaded.learn(10)
    with HER.load(tmp_path / "again", short, strategy=strategy) as loaded:
        assert loaded.learn(40).trainer.buffer.strategy is strategy


@STRATEGIES
def test_a_run_with_a_function_as_strategy_resumes_with_the_function(tmp_path, strategy):
    with her(strategy=strategy) as model:
        model.learn(40, folder=tmp_path)
        state = model.agent.state_dict()
    assert SavedModel.read(tmp_path).settings.replay.strategy.name.startswith(("test_saved_model.", "functools."))
    with (
        her() as other,
        RunFolder(tmp_path, other.settings, other.spec) as folder,
        pytest.raises(OptionError, match=r"strategy was 'function .*No file holds a function: give the option strategy"),
    ):
        folder.resume(other.trainer)
    with her(strategy=strategy) as other, RunFolder(tmp_path, other.settings, other.spec) as folder:
        folder.resume(other.trainer)
        assert same_bytes(other.agent.state_dict(), state)
        other.trainer.learn_from_next_job()


def test_a_saved_policy_plans_over_the_states_that_it_has_visited(tmp_path):
    with her(lambda: BitFlipping(3), agent="dqn", plan_states=True, **CHOICES) as model:
        model.learn(200).save(tmp_path / "policy")
        rows = np.array([[i >> k & 1 for k in range(3)] for i in range(8)])
        observations = {"observation": rows, "achieved_goal": rows, "desired_goal": rows[::-1]}
        expected, _ = model.predict(observations)
        loaded = HER.load(tmp_path / "policy")
        assert loaded.policy.planner is not None
        np.testing.assert_array_equal(loaded.predict(observations)[0], expected)
        assert same_bytes(loaded.agent.state_dict(), model.agent.state_dict())
        with pytest.raises(OptionError, match="no-plan-states"):
            export_torchscript(tmp_path / "policy", tmp_path / "policy.pt")
