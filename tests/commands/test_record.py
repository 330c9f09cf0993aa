import gymnasium
import numpy as np
import pytest

from hindsight_rl import HER, PointReach
from hindsight_rl.cli import main
from hindsight_rl.envs.goal_env import make_goal_env, read_spec
from hindsight_rl.envs.minari_data import read_episodes

pytest.importorskip("h5py")
MinariStorage = pytest.importorskip("minari.dataset.minari_storage").MinariStorage
SCRIPT = """
import numpy as np

def towards_goal(observation):
    position, velocity = observation["observation"][:2], observation["observation"][2:]
    return np.clip(2 * (np.clip(4 * (observation["desired_goal"] - position), -1, 1) - velocity), -1, 1)

def too_large(observation):
    return [0.5, 2.0]

def levers(observation):
    return [1, 2]

def broken(observation):
    return observation["position"]
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty folder with a module of controllers, and an empty folder of data sets."""
    (tmp_path / "my_controllers.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "data"))
    return tmp_path


def record(*words):
    return main(["record", *words, "--episodes", "3"])


def test_a_function_is_recorded(capsys):
    command = ["my_controllers:towards_goal", "--env", "PointReach-v0", "--output", "demo/point-v0"]
    assert record(*command) == 0
    printed = capsys.readouterr().out
    assert "data set: demo/point-v0, 3 episodes, 3 of them successful" in printed
    assert "hindsight-rl train PointReach-v0 --demonstrations demo/point-v0" in printed
    episodes = read_episodes("demo/point-v0", read_spec(make_goal_env("PointReach-v0")))
    assert [episode.success for episode in episodes] == [True] * 3
    assert len({episode.desired_goal.tobytes() for episode in episodes}) == 3
    assert record(*command) == 1  # the data set exists


def test_env_options_reach_the_environment(capsys):
    words = ["--env", "PointReach-v0", "--env-options", "max_steps=7", "--output", "demo/point-v0"]
    assert record("my_controllers:towards_goal", *words) == 0
    assert len(read_episodes("demo/point-v0", read_spec(make_goal_env("PointReach-v0")))[0]) == 7
    command = "hindsight-rl train PointReach-v0 --demonstrations demo/point-v0 --env-options max_steps=7"
    assert command in capsys.readouterr().out


def test_a_policy_is_recorded(folder, capsys):
    with HER("PointReach-v0", hidden=(8,)) as model:
        model.save(folder / "policy.safetensors")
        assert record("policy.safetensors", "--output", "demo/point-v0") == 0
        episode = read_episodes("demo/point-v0", model.spec)[0]
        first = {key: getattr(episode, key)[0] for key in ("observation", "achieved_goal", "desired_goal")}
        np.testing.assert_array_equal(episode.action[0], model.predict(first)[0])


def test_the_command_to_train_names_the_module_of_the_environment(folder, capsys):
    (folder / "recorded_task.py").write_text(
        "import gymnasium\ngymnasium.register('RecordedReach-v0', 'hindsight_rl:PointReach', max_episode_steps=50)\n"
    )
    with HER("recorded_task:RecordedReach-v0", hidden=(8,)) as model:
        model.save(folder / "policy.safetensors")
    assert record("policy.safetensors", "--output", "demo/mine-v0", "--trust-module") == 0
    assert "hindsight-rl train recorded_task:RecordedReach-v0 --demonstrations demo/mine-v0" in capsys.readouterr().out


def test_the_command_to_train_appends_what_the_policy_saw(folder, capsys):
    with HER("PointReach-v0", hidden=(8,), observation_keys=("achieved_goal",)) as model:
        model.save(folder / "policy.safetensors")
    assert record("policy.safetensors", "--output", "demo/point-v0") == 0
    command = "train PointReach-v0 --demonstrations demo/point-v0 --observation-keys achieved_goal"
    assert f"hindsight-rl {command}" in capsys.readouterr().out
    assert main([*command.split(), "--steps", "60", "--eval-every", "0", "--hidden", "8"]) == 0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("my_controllers:too_large", "An action of my_controllers:too_large must be in Box"),
        ("my_controllers:broken", "my_controllers:broken failed (KeyError: 'position')"),
        ("my_controllers:towards", "has no function 'towards'"),
        ("no_module:towards", "cannot be imported: No module named 'no_module'"),
        ("no_run", "no_run does not exist"),
    ],
)
def test_what_cannot_be_recorded_is_named(source, message, capsys, folder):
    assert record(source, "--env", "PointReach-v0", "--output", "demo/point-v0") == 1
    assert message in capsys.readouterr().err
    assert not list(folder.glob("data/**/*.hdf5"))


def test_a_function_needs_an_environment(capsys):
    assert record("my_controllers:towards_goal", "--output", "demo/point-v0") == 1
    assert "Give --env ENV" in capsys.readouterr().err


def test_an_environment_that_was_registered_by_its_class_is_recorded(monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "ByClass-v0", gymnasium.envs.registration.EnvSpec("ByClass-v0", PointReach))
    assert record("my_controllers:towards_goal", "--env", "ByClass-v0", "--output", "demo/point-v0") == 0
    assert len(read_episodes("demo/point-v0", read_spec(make_goal_env("ByClass-v0")))) == 3


def test_a_function_returns_combinations_of_actions_and_their_numbers_are_recorded(monkeypatch):
    class Levers(gymnasium.ActionWrapper):
        def __init__(self):
            super().__init__(PointReach())
            self.action_space = gymnasium.spaces.MultiDiscrete([3, 3])

        def action(self, levers):
            assert self.action_space.contains(levers)
            return np.float32(levers - 1)

    monkeypatch.setitem(gymnasium.registry, "Levers-v0", gymnasium.envs.registration.EnvSpec("Levers-v0", Levers))
    assert record("my_controllers:levers", "--env", "Levers-v0", "--output", "demo/point-v0") == 0
    for episode in read_episodes("demo/point-v0", read_spec(make_goal_env("Levers-v0"))):
        assert episode.action.tolist() == [5] * len(episode)  # (1, 2)


def test_nothing_is_left_of_a_recording_that_fails(monkeypatch, folder):
    def fail(*arguments, **options):
        raise ValueError("no HDF5 today")

    with monkeypatch.context() as patch:
        patch.setattr(MinariStorage, "update_metadata", fail)  # one of the last steps of Minari
        words = ["my_controllers:towards_goal", "--env", "PointReach-v0", "--output", "demo/point-v0"]
        assert record(*words) == 1
    assert not list(folder.glob("data/**/*.hdf5"))
    assert record(*words) == 0
