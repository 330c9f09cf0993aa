"""Ids: retired, misspelt, of missing packages. No simulator is needed here."""

import importlib
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import gymnasium
import pytest
from line_env import Line

from hindsight_rl.envs import goal_env as ids
from hindsight_rl.errors import GoalEnvError, MissingExtraError, OptionError, UnknownNameError


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
        ("FetchReach-v4", r'pip install .*\[robotics\]"'),
        ("PandaReach-v3", r'pip install .*\[panda\]"'),
        ("parking-v0", r'pip install .*\[parking\]"'),
        ("nowhere.at.all:Thing-v0", "nowhere.at.all"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(without_packages, env_id, command):
    with pytest.raises(MissingExtraError, match=command):
        ids.make_by_id(env_id, None, {})


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("3.2.7", '3.2.7 is installed, but 3.3 to 3.9 is needed. Try: pip install "mujoco>=3.3,<3.10"'),
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
        ("FetchReach-v1", "'FetchReach-v1' is not the newest version. Use 'FetchReach-v4'"),
        ("FetchReach-v5", "'FetchReach-v5' is not registered. Did you mean.*'FetchReach-v4'"),
        ("FetchReach", "Use 'FetchReach-v4'"),
        ("FetchRaech-v4", "'FetchRaech-v4' is not registered. Did you mean.*'FetchReach-v4'"),
    ],
)
def test_only_the_newest_version_of_a_simulators_id_is_accepted(registered, monkeypatch, given, message):
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    monkeypatch.setattr(metadata, "version", lambda name: "3.9.0")
    if "FetchReach-v4" not in gymnasium.registry:
        for version in (1, 4):
            registered(f"FetchReach-v{version}", entry_point="gymnasium_robotics:FetchReach")
    with pytest.raises(UnknownNameError, match=message):
        ids.make_by_id(given, None, {})


@pytest.mark.filterwarnings("ignore:.*HandMade-v0 is out of date")
def test_other_environments_may_have_several_versions_and_any_name(registered, without_packages):
    registered("HandMade-v0")
    registered("HandMade-v1")
    assert isinstance(ids.make_by_id("HandMade-v0", None, {}).unwrapped, Line)


@pytest.mark.parametrize("given", ["PointRaech-v0", "pointreach-v0", "PointReach-0"])
def test_a_misspelt_id_names_the_nearest(given):
    with pytest.raises(UnknownNameError, match=r"is not registered. Did you mean .*'PointReach-v0'"):
        ids.make_by_id(given, None, {})


def test_an_id_of_a_package_that_was_not_imported_names_the_form_that_imports_it():
    with pytest.raises(UnknownNameError, match="write PACKAGE:highway-v0"):
        ids.make_by_id("highway-v0", None, {})


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


def test_output_from_c_goes_to_stderr():
    code = (
        "import ctypes\nfrom hindsight_rl.envs.goal_env import _c_output_on_stderr\nlibrary = ctypes.CDLL(None)\n"
        "library.puts(b'before')\nlibrary.fflush(None)\nwith _c_output_on_stderr():\n    library.puts(b'from C')\n"
        "print('after')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("before\nafter\n", "from C\n")
