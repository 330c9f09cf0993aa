"""Data sets of somebody else: their files are checked before Minari reads them."""

import copy
import json
import warnings

import gymnasium
import numpy as np
import pytest
from recorded import episode

from hindsight_rl import PointReach
from hindsight_rl.envs import minari_data
from hindsight_rl.envs.goal_env import read_spec
from hindsight_rl.envs.minari_data import read_episodes, write_episodes
from hindsight_rl.errors import FileError, OptionError

h5py = pytest.importorskip("h5py")
minari = pytest.importorskip("minari")
NAME = "demo/point-v0"


@pytest.fixture
def written(env, tmp_path):
    """The folder of the files of a data set, and a function that reads it."""
    write_episodes(NAME, env, [episode(env, number=0), episode(env, 1, number=1)], "a test")
    return tmp_path / NAME / "data", lambda: read_episodes(NAME, read_spec(env), ("load",))


def describe(folder, **changes):
    """Change the description of a data set. None removes an entry."""
    path = folder / "metadata.json"
    description = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in description.items() if value is not None}))


def change(folder, edit):
    """Change the HDF5 file of a data set, and remove the checksum, as in a data set of somebody else."""
    with h5py.File(folder / "main_data.hdf5", "a") as file:
        edit(file)
    describe(folder, hindsight_rl=None)


@pytest.mark.parametrize("name", ["observation", "achieved_goal", "desired_goal", "action", "reward"])
def test_a_value_that_was_changed_is_found_by_the_checksum(env, written, name):
    folder, read = written
    content = (folder / "main_data.hdf5").read_bytes()
    values = getattr(episode(env, 1), name).tobytes()
    assert content.count(values) == (2 if name == "reward" else 1)  # both episodes have these rewards
    place = content.rindex(values) + 3
    flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    (folder / "main_data.hdf5").write_bytes(flipped)
    with pytest.raises(FileError, match="'demo/point-v0' is damaged: its SHA-256 differs"):
        read()


def test_a_data_set_without_a_checksum_is_read(written):
    folder, read = written
    describe(folder, hindsight_rl=None)
    assert [each.number for each in read()] == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total_steps": 7}, "has 6 steps, but its description has other numbers"),
        ({"total_episodes": 1}, "SHA-256|1 episodes"),
        ({"total_episodes": 10**12, "total_steps": 10**12}, "1,000,000,000,000 episodes cannot be in files of"),
        ({"total_steps": "many"}, "has 2 episodes and 'many' steps"),
        ({"hindsight_rl": {"sha256": "0"}}, "SHA-256"),
        ({"hindsight_rl": 3}, "SHA-256"),
        ({"hindsight_rl": {}}, "SHA-256"),
        ({"data_format": "x"}, "KeyError"),
        ({"observation_space": "{"}, "JSONDecodeError"),
        ({"minari_version": "99.0"}, "does not support"),
    ],
)
def test_a_wrong_description_is_refused(written, changes, message):
    folder, read = written
    describe(folder, **changes)
    with pytest.raises(FileError, match=message):
        read()


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b"\xff", b"{}"])
def test_a_description_that_is_none_is_named(written, content):
    folder, read = written
    (folder / "metadata.json").write_bytes(content)
    with pytest.raises(FileError, match=r"metadata\.json"):
        read()


def test_the_environment_that_a_file_names_is_not_made(written, tmp_path):
    folder, read = written
    spec = copy.deepcopy(gymnasium.spec("CartPole-v1"))
    spec.entry_point, spec.kwargs = "os:mkdir", {"path": str(tmp_path / "made")}
    describe(folder, action_space=None, env_spec=spec.to_json())
    with pytest.raises(FileError, match="has no action_space: Minari would make the environment that the file names"):
        read()
    assert not (tmp_path / "made").exists()


def with_array(**options):
    """Return an edit that replaces the rewards of the second episode."""

    def edit(file):
        del file["episode_1/rewards"]
        file["episode_1"].create_dataset("rewards", **options)

    return edit


def virtual(file):
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource("other.hdf5", "x", (3,))
    del file["episode_1/rewards"]
    file["episode_1"].create_virtual_dataset("rewards", layout)


def linked(link):
    def edit(file):
        del file["episode_1/rewards"]
        file["episode_1/rewards"] = link

    return edit


def repeated(file):
    group = file
    for depth in range(30):  # each group is twice in the one above it: 2 ** 30 paths
        inner = group.create_group(f"a{depth}")
        group[f"b{depth}"] = inner
        group = inner
    group["x"] = np.zeros(3)


def long_texts(file):
    texts = file["episode_1"].create_group("infos2").create_dataset("text", (1000,), h5py.string_dtype())
    texts[:] = ["x" * 10_000] * 1000


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (with_array(shape=(10**12,), dtype="f8", chunks=(10**6,)), "bytes more than the file holds"),
        (with_array(shape=(10**9,), dtype="f8", chunks=(10**6,), compression="gzip"), "bytes more than the file holds"),
        (with_array(shape=(3,), dtype="f8", external=[("/etc/hostname", 0, 24)]), "refers to another file in 'rewards'"),
        (virtual, "refers to another file in 'rewards'"),
        (linked(h5py.ExternalLink("other.hdf5", "/x")), "refers to another object in 'rewards'"),
        (linked(h5py.SoftLink("/episode_0/rewards")), "refers to another object in 'rewards'"),
        (repeated, "the same arrays many times"),
    ],
)
def test_a_forged_file_is_refused_before_it_is_read(written, edit, message):
    folder, read = written
    change(folder, edit)
    with pytest.raises(FileError, match=message):
        read()


def test_more_than_the_free_memory_is_refused(written, monkeypatch):
    folder, read = written
    change(folder, long_texts)
    monkeypatch.setattr(minari_data, "free_memory", lambda: 5_000_000)
    with pytest.raises(FileError, match="GB of memory are free"):
        read()


def replaced(name, values):
    def edit(file):
        del file[f"episode_1/{name}"]
        file[f"episode_1/{name}"] = values

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (replaced("rewards", np.zeros((3, 1))), r"reward has shape \(3, 1\) and dtype float64, expected numbers"),
        (replaced("rewards", np.array([b"a", b"b", b"c"])), "expected numbers"),
        (replaced("observations/observation", np.zeros((3, 4), "f4")), r"expected numbers of shape \(4, 4\)"),
        (replaced("observations/desired_goal", np.zeros((4, 3), "f4")), r"desired_goal has shape \(4, 3\)"),
        (replaced("actions", np.zeros((2, 2), "f4")), r"action has shape \(2, 2\)"),
        (replaced("truncations", np.array([0, 0.5, 1])), "truncations has 0 to 1, expected 0 and 1"),
        (replaced("terminations", np.zeros(4, bool)), "terminations has shape"),
        (replaced("infos/load", np.zeros(5)), "info load has 5 rows, expected 3, or one more"),
        (replaced("infos/is_success", np.array([0, 0, 0.5])), "is_success"),
        (lambda file: file["episode_1"].move("actions", "acts"), "KeyError"),
        (lambda file: file.move("episode_1", "episode_2"), "KeyError"),
    ],
)
def test_arrays_that_do_not_fit_the_task_are_named(written, edit, message):
    folder, read = written
    change(folder, edit)
    with pytest.raises(FileError, match=message) as caught:
        read()
    assert "demo/point-v0" in str(caught.value)


def test_values_outside_their_bounds_are_warned_of(written):
    folder, read = written
    change(folder, replaced("observations/achieved_goal", np.full((4, 2), 7, "f4")))
    with pytest.warns(UserWarning, match="outside the bounds of the spaces: achieved_goal"):
        read()
    change(folder, replaced("observations/achieved_goal", np.full((4, 2), 1.00001, "f4")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read()


class ClassEnv(PointReach):
    """A task that is registered by its class."""


@pytest.mark.parametrize("entry_point", [ClassEnv, lambda: ClassEnv(max_steps=3)])
def test_an_environment_that_was_registered_by_a_class_or_a_function_is_written(env, tmp_path, entry_point):
    gymnasium.register("ByClass-v0", entry_point)
    try:
        made = gymnasium.make("ByClass-v0")
        write_episodes(NAME, made, [episode(env)], "a test")
        assert len(read_episodes(NAME, read_spec(made))) == 1
        assert "env_spec" not in json.loads((tmp_path / NAME / "data/metadata.json").read_text())
    finally:
        del gymnasium.registry["ByClass-v0"]


def test_a_registered_environment_can_be_made_again_from_its_data_set(env):
    write_episodes(NAME, gymnasium.make("PointReach-v0"), [episode(env)], "a test")
    assert minari.load_dataset(NAME).env_spec.id == "PointReach-v0"


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), RuntimeError("h5py"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_data_set_that_could_not_be_written(env, tmp_path, monkeypatch, problem):
    def fail(*arguments):
        raise problem

    monkeypatch.setattr(minari_data, "mark_as_written", fail)
    wanted = FileError if isinstance(problem, RuntimeError) else type(problem)
    with pytest.raises(wanted):
        write_episodes(NAME, env, [episode(env)], "a test")
    assert not list(tmp_path.rglob("*.hdf5"))
    monkeypatch.undo()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    write_episodes(NAME, env, [episode(env)], "a test")


def test_spaces_that_cannot_be_stored_are_named_before_anything_is_played(env):
    env.action_space = gymnasium.spaces.Graph(gymnasium.spaces.Discrete(2), None)
    with pytest.raises(OptionError, match="The action_space cannot be stored"):
        minari_data.check_new(NAME, env)
