"""Ids: retired, misspelt, of missing packages. No simulator is needed here."""

import importlib
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import gymnasium
import pytest
from line_env import Line

from hindsight.envs import ids
from hindsight.errors import GoalEnvError, MissingExtraError, OptionError, UnknownNameError


@pytest.fixture
def registered():
    """Register ids for one test."""
    added = []

    def register(env_id, entry_point=Line, **options):
        gymnasium.register(env_id, entry_point=entry_point, **options)
        added.append(env_id)

    yield register
    for env_id in added:
        gymnasium.registry.pop(env_id)


@pytest.fixture
def without_packages(monkeypatch):
    """No simulator package can be imported."""

    def import_module(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(metadata, "version", lambda name: "3.9.0")


def test_an_id_is_made_with_its_options_and_render_mode(registered):
    registered("Line-v0")
    env = ids.make_by_id("Line-v0", "rgb_array", {"shift": 2.0})
    assert (env.unwrapped.shift, env.render_mode) == (2.0, "rgb_array")


@pytest.mark.parametrize(
    ("env_id", "command"),
    [
        ("FetchReach-v4", r'pip install "hindsight-rl\[robotics\]"'),
        ("PandaReach-v3", 'pip install "hindsight-rl\\[panda\\]"'),
        ("parking-v0", 'pip install "hindsight-rl\\[parking\\]"'),
        ("nowhere.at.all:Thing-v0", "nowhere.at.all"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(without_packages, env_id, command):
    with pytest.raises(MissingExtraError, match=command):
        ids.make_by_id(env_id, None, {})


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("3.2.7", '3.2.7 is installed. Try: pip install "mujoco>=3.3,<3.10"'),
        ("3.10.0", ': pip install "mujoco>=3.3,<3.10"'),
        ("4.0.1", "pip uninstall -y mujoco mujoco-core mujoco-studio && pip install"),
    ],
)
def test_a_mujoco_out_of_range_is_named_with_the_command_that_fixes_it(monkeypatch, found, message):
    monkeypatch.setattr(metadata, "version", lambda name: found)
    with pytest.raises(MissingExtraError, match=message):
        ids.make_by_id("FetchReach-v4", None, {})


def test_the_range_of_mujoco_is_the_one_of_the_project():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert ids.PIP_MUJOCO.split('"')[1] in project["project"]["optional-dependencies"]["robotics"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("FetchReach-v1", "retired. Use 'FetchReach-v4'"),
        ("FetchReach-v3", "retired. Use 'FetchReach-v4'"),
        ("FetchReach-v0", "retired. Use 'FetchReach-v4'"),
        ("FetchReach-v5", "not registered. The newest version installed is 'FetchReach-v4'"),
        ("FetchReach", "has no version. Use 'FetchReach-v4'"),
        ("FetchRaech-v4", "'FetchRaech-v4' is not registered. Did you mean 'FetchReach-v4'"),
    ],
)
def test_only_the_newest_version_of_a_simulators_id_is_accepted(registered, without_packages, given, message):
    if "FetchReach-v4" not in gymnasium.registry:
        registered("FetchReach-v1")
        registered("FetchReach-v4")
    with pytest.raises(UnknownNameError, match=message):
        ids.require_current(given, is_simulated=True)


@pytest.mark.filterwarnings("ignore:.*HandMade-v0 is out of date")
def test_other_environments_may_have_several_versions_and_any_name(registered, without_packages):
    registered("HandMade-v0")
    registered("HandMade-v1")
    assert isinstance(ids.make_by_id("HandMade-v0", None, {}).unwrapped, Line)
    with pytest.raises(UnknownNameError, match="The newest version installed is 'HandMade-v1'"):
        ids.require_current("HandMade-v2", is_simulated=False)


@pytest.mark.parametrize("given", ["PointRaech-v0", "pointreach-v0", "PointReach-0"])
def test_a_misspelt_id_names_the_nearest(without_packages, given):
    with pytest.raises(UnknownNameError, match="Did you mean 'PointReach-v0'"):
        ids.make_by_id(given, None, {})


def test_known_ids_are_the_newest_and_examples_of_absent_packages(registered, without_packages):
    registered("Line-v0")
    registered("Line-v1")
    known = ids.known_goal_ids()
    assert {"PointReach-v0", "Line-v1", "FetchReach-v4", "PandaReach-v3", "parking-v0"} <= set(known)
    assert not {"Line-v0", "CartPole-v1"} & set(known)


def test_a_broken_package_does_not_prevent_a_suggestion(monkeypatch):
    monkeypatch.setattr(ids, "_import_simulator", lambda simulator: 1 / 0)
    with pytest.raises(UnknownNameError, match="Did you mean 'PointReach-v0'"):
        ids.make_by_id("PointRaech-v0", None, {})


def test_an_error_of_the_constructor_is_reported_with_the_options(registered):
    registered("Line-v0")
    with pytest.raises(GoalEnvError, match=r"Line-v0 cannot be made with the options \{'shfit': 1\}.*shfit"):
        ids.make_by_id("Line-v0", None, {"shfit": 1})
    with pytest.raises(OptionError, match="dt of PointReach"):
        ids.make_by_id("PointReach-v0", None, {"dt": -1})


def test_an_import_that_fails_without_opengl_names_the_libraries(monkeypatch):
    def import_module(name):
        raise AttributeError("'NoneType' object has no attribute 'glGetError'")

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(metadata, "version", lambda name: "3.9.0")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    with pytest.raises(MissingExtraError, match=r"MUJOCO_GL=egl .*apt-get install -y libegl1"):
        ids.make_by_id("FetchReach-v4", None, {})
    monkeypatch.delenv("MUJOCO_GL")
    with pytest.raises(AttributeError):
        ids.make_by_id("FetchReach-v4", None, {})


def test_a_missing_dependency_of_the_environment_is_a_missing_extra(registered):
    def make():
        raise gymnasium.error.DependencyNotInstalled("no physics")

    registered("Line-v0", make)
    with pytest.raises(MissingExtraError, match="no physics"):
        ids.make_by_id("Line-v0", None, {})


def test_a_module_before_the_id_is_imported_first(registered, monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: registered("Line-v0") if name == "line_env" else None)
    assert isinstance(ids.make_by_id("line_env:Line-v0", None, {}).unwrapped, Line)


def test_output_from_c_is_discarded_and_does_not_appear_later():
    code = (
        "import ctypes\nfrom hindsight.envs.ids import _output_silenced\nlibrary = ctypes.CDLL(None)\n"
        "library.puts(b'before')\nwith _output_silenced():\n    library.puts(b'from C')\n    print('from Python')\n"
        "print('after')"
    )
    variables = {
        name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"
    }  # which changes the buffer of C too
    result = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("before\nafter\n", "")
