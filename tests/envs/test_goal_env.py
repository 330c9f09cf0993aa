"""Making goal environments, by id too, rendering them, reading their task, and comparing resets."""

import importlib
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from line_env import Costly, Line, Scalar, near

from hindsight_rl.envs.goal_env import (
    PIP_MUJOCO,
    change_of,
    make_by_id,
    make_goal_env,
    prepare_rendering,
    read_spec,
    resets_exactly,
    time_limit,
)
from hindsight_rl.envs.goal_functions import reward_function
from hindsight_rl.envs.small_tasks import PointReach
from hindsight_rl.errors import GoalEnvError, MissingExtraError, OptionError, UnknownNameError


def test_an_id_a_class_a_function_and_an_object_all_make_an_environment():
    env = Line()
    assert make_goal_env(env) is env
    assert make_goal_env("PointReach-v0", env_options={"max_steps": 7}).unwrapped.max_steps == 7
    assert make_goal_env(PointReach, "rgb_array", {"max_steps": 7}).render_mode == "rgb_array"
    assert isinstance(make_goal_env(lambda: Line()), Line)
    assert make_goal_env(Line(render_mode="rgb_array"), "rgb_array").render().shape == (8, 8, 3)


@pytest.mark.parametrize(
    ("source", "render_mode", "options", "message"),
    [
        (Line(), None, {"shift": 1.0}, r"env_options \['shift'\] need an id or a function"),
        (Line(), "rgb_array", None, "render_mode must be 'rgb_array', but Line has None"),
        (lambda: Line(), "rgb_array", None, "render_mode must be 'rgb_array', but Line has None"),
        (7, None, None, "got 7"),
    ],
)
def test_wrong_arguments_are_errors(source, render_mode, options, message):
    with pytest.raises(OptionError, match=message):
        make_goal_env(source, render_mode, options)


def spaced(**parts):
    env = Line()
    env.observation_space = spaces.Dict({**env.observation_space.spaces, **parts})
    return env


def without_keys():
    env = Line()
    env.observation_space = spaces.Dict({"observation": env.observation_space["observation"]})
    return env


def without_reward():
    env = Line()
    env.compute_reward = None
    return env


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: gymnasium.make("CartPole-v1"), "CartPole-v1 is not a goal environment.*Dict observation space"),
        (without_keys, "achieved_goal, desired_goal are missing"),
        (without_reward, "no compute_reward"),
        (
            lambda: spaced(desired_goal=spaces.Dict({"kettle": spaces.Discrete(2)})),
            "desired_goal, got a Dict space.*FlattenGoalEnv",
        ),
        (
            lambda: spaced(achieved_goal=spaces.Tuple([spaces.Discrete(2)])),
            "achieved_goal, got a Tuple space",
        ),
        (lambda: spaced(desired_goal=spaces.Box(-1, 1, (3,))), "they must be the same"),
        (lambda: "no environment", "must return a gymnasium.Env, got str"),
    ],
)
def test_other_environments_are_errors(source, message):
    with pytest.raises(GoalEnvError, match=message):
        make_goal_env(source)


def test_the_task_is_read():
    spec = read_spec(gymnasium.make("PointReach-v0", max_steps=33), {"max_steps": 33})
    assert (spec.observation.shape, spec.goal.shape, spec.action.shape) == ((4,), (2,), (2,))
    assert (spec.goal.dtype, spec.goal.low, spec.action.high) == ("float32", (-1.0,), (1.0,))
    assert (spec.max_episode_steps, spec.reward_low, spec.reward_high, spec.env_id) == (33, -1, 0, "PointReach-v0")
    assert read_spec(Line()).env_id is None


def rewarding(compute):
    return type("Changed", (Line,), {"compute_reward": lambda self, a, d, info: compute(np.linalg.norm(a - d, axis=-1))})()


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda d: (d < 0.5) * 1.0, (0, 1)),
        (lambda d: np.where(d < 0.5, 10.0, -0.5), (-0.5, 10)),
        (lambda d: -d, (-np.inf, np.inf)),
        (lambda d: np.exp(-d), (-np.inf, np.inf)),
        (lambda d: 0 * d, (-np.inf, np.inf)),
        (lambda d: np.select([d < 0.5, d < 50], [0.0, -1.0], -5.0), (-np.inf, np.inf)),
        (lambda d: 1 / 0, (-np.inf, np.inf)),
    ],
    ids=["0/1", "-0.5/10", "dense", "exponential", "constant", "three values", "fails"],
)
def test_the_reward_range_is_known_if_there_are_exactly_two_values(compute, expected):
    spec = read_spec(rewarding(compute))
    assert (spec.reward_low, spec.reward_high) == expected


def test_a_reward_that_rejects_made_up_goals_has_an_unknown_range():
    class Picky(Line):
        def compute_reward(self, achieved_goal, desired_goal, info):
            known = [*Line.reset(Line(), seed=0)[0].values(), self.observe()["achieved_goal"]]
            assert all(any(np.array_equal(a, k) for k in known) for a in np.atleast_2d(achieved_goal))
            return -np.linalg.norm(achieved_goal - desired_goal, axis=-1)

    assert reward_function(env := Picky()).form.goals == "batch"
    assert read_spec(env).reward_low == -np.inf


def test_a_cost_that_the_info_adds_makes_the_reward_range_unknown():
    assert read_spec(Costly()).reward_low == -np.inf


def test_a_reward_that_reads_the_info_may_still_have_two_values():
    class Reading(Costly):
        def compute_reward(self, achieved_goal, desired_goal, info):
            return near(achieved_goal, desired_goal) * 1.0 + 0.0 * np.asarray(info["cost"])

    spec = read_spec(Reading())
    assert (spec.reward_low, spec.reward_high) == (0, 1)


def test_reading_the_task_does_not_warn_and_keeps_the_random_state():
    env, other = Scalar(), Scalar()
    env.reset(seed=3)
    other.reset(seed=3)
    assert read_spec(env).reward_low == -1
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])


def test_combinations_of_actions_are_numbered():
    class Levers(Line):
        def __init__(self):
            super().__init__()
            self.action_space = spaces.MultiDiscrete([3, 2])

        def step(self, action):
            assert self.action_space.contains(action)
            return super().step(action[:1] - 1)

    env = make_goal_env(Levers)
    assert read_spec(env).action.n_values == 6
    env.reset(seed=0)
    env.step(np.int64(5))


def test_integer_goals_are_tried_with_goals_that_can_occur():
    tried = []

    class Bits(Line):
        def __init__(self):
            super().__init__()
            bits = spaces.MultiBinary(6)
            self.observation_space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), bits))

        def observe(self):
            return {
                "observation": np.zeros(6, np.int8),
                "achieved_goal": np.zeros(6, np.int8),
                "desired_goal": np.ones(6, np.int8),
            }

        def info(self, observation):
            return {}

        def reward(self, observation, info):
            return -1.0

        def compute_reward(self, achieved_goal, desired_goal, info):
            tried.append(np.unique(achieved_goal).tolist())
            return (achieved_goal == desired_goal).all(-1) - 1.0

    spec = read_spec(Bits())
    assert (spec.reward_low, spec.reward_high) == (-1, 0)
    assert all(set(values) <= {0, 1} for values in tried)


class HighwayLike(Line):
    """Its limit is in seconds of simulated time."""

    max_steps = None
    config = {"duration": 20, "policy_frequency": 5}  # noqa: RUF012


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (Line(), 10),
        (gymnasium.wrappers.TimeLimit(Line(), 7), 7),
        (gymnasium.wrappers.TimeLimit(Line(), 70), 10),
        (HighwayLike(), 100),
        (gymnasium.make("CartPole-v1"), 500),
        (type("Endless", (Line,), {"max_steps": None})(), None),
    ],
)
def test_the_time_limit_is_the_smallest_of_all_layers(env, expected):
    assert time_limit(env) == expected


class Forgetful(Line):
    """A reset depends on the episode before, as the contacts in panda-gym do."""

    used = 0.0

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.place += self.used
        return self.observe(), info

    def step(self, action):
        self.used = 1e-6
        return super().step(action)


def test_resets_are_exact_if_a_used_environment_equals_a_new_one_bit_by_bit():
    assert resets_exactly(PointReach())
    assert resets_exactly(Line(shift=1.0))
    assert not resets_exactly(Forgetful())


class Shaped(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward - 1.0


@pytest.mark.parametrize(
    ("wrap", "change"),
    [
        (lambda env: env, None),
        (lambda env: gymnasium.wrappers.TimeLimit(gymnasium.wrappers.RecordEpisodeStatistics(env), 7), None),
        (Shaped, "Shaped"),
        (
            lambda env: gymnasium.wrappers.TimeLimit(
                gymnasium.wrappers.RescaleAction(env, np.float32(-2), np.float32(2)), 7
            ),
            "RescaleAction",
        ),
    ],
)
def test_an_id_holds_for_an_environment_only_if_no_wrapper_may_change_its_task(wrap, change):
    env = wrap(gymnasium.make("PointReach-v0", render_mode="rgb_array"))
    assert change_of(env, {}) == change
    assert read_spec(env).env_id == (None if change else "PointReach-v0")


def test_an_id_holds_for_an_environment_only_if_its_arguments_are_known():
    env = gymnasium.make("PointReach-v0", max_steps=33)
    assert change_of(env, {}) == "max_steps=33"
    assert (read_spec(env).env_id, read_spec(env, {"max_steps": 33}).env_id) == (None, "PointReach-v0")


def test_wrappers_inside_a_registered_environment_belong_to_it():
    gymnasium.register("Shaped-v0", lambda: Shaped(PointReach()))
    try:
        assert read_spec(gymnasium.make("Shaped-v0")).env_id == "Shaped-v0"
    finally:
        del gymnasium.registry["Shaped-v0"]


def test_a_vector_environment_is_refused_with_the_advice_to_pass_one():
    with pytest.raises(OptionError, match="Pass one environment, its id, or a function that makes one"):
        make_goal_env(gymnasium.make_vec("PointReach-v0", num_envs=2))


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
    env = make_by_id("Line-v0", "rgb_array", {"shift": 2.0})
    assert (env.unwrapped.shift, env.render_mode) == (2.0, "rgb_array")


@pytest.mark.parametrize(
    ("env_id", "command"),
    [
        ("FetchReach-v4", r'pip install .*\[robotics\]"'),
        ("PandaReach-v3", r'pip install .*\[panda\]"'),
        ("parking-v0", r'pip install .*\[parking\]"'),
        ("nowhere.at.all:Task-v0", "nowhere.at.all"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(without_packages, env_id, command):
    with pytest.raises(MissingExtraError, match=command):
        make_by_id(env_id, None, {})


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
        make_by_id("FetchReach-v4", None, {})


def test_the_range_of_mujoco_is_the_one_of_the_project():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert PIP_MUJOCO.split('"')[1] in project["project"]["optional-dependencies"]["robotics"]


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
        make_by_id(given, None, {})


@pytest.mark.filterwarnings("ignore:.*HandMade-v0 is out of date")
def test_other_environments_may_have_several_versions_and_any_name(registered, without_packages):
    registered("HandMade-v0")
    registered("HandMade-v1")
    assert isinstance(make_by_id("HandMade-v0", None, {}).unwrapped, Line)


@pytest.mark.parametrize("given", ["PointRaech-v0", "pointreach-v0", "PointReach-0"])
def test_a_misspelt_id_names_the_nearest(given):
    with pytest.raises(UnknownNameError, match=r"is not registered. Did you mean .*'PointReach-v0'"):
        make_by_id(given, None, {})


def test_an_id_without_its_namespace_names_the_whole_id(registered):
    registered("lines/Line-v0")
    with pytest.raises(UnknownNameError, match=r"is not registered. Did you mean 'line_env:lines/Line-v0'\?"):
        make_by_id("line_env:Line-v0", None, {})


def test_an_id_of_a_package_that_was_not_imported_names_the_form_that_imports_it():
    with pytest.raises(UnknownNameError, match="write PACKAGE:highway-v0"):
        make_by_id("highway-v0", None, {})


def test_an_error_of_the_constructor_is_reported_with_the_options(registered):
    registered("Line-v0")
    with pytest.raises(GoalEnvError, match=r"Line-v0 cannot be made with the options \{'shfit': 1\}.*shfit"):
        make_by_id("Line-v0", None, {"shfit": 1})
    with pytest.raises(OptionError, match="dt of PointReach"):
        make_by_id("PointReach-v0", None, {"dt": -1})


def test_an_error_of_the_constructor_names_the_line(registered):
    def make(render_mode=None):
        raise RuntimeError("no table")

    registered("Line-v0", make)
    line = r"\(RuntimeError: no table, in .*test_goal_env.py:\d+: raise RuntimeError\(\"no table\"\)\)\."
    with pytest.raises(GoalEnvError, match=f"^Line-v0 cannot be made {line}"):
        make_by_id("Line-v0", None, {})
    with pytest.raises(GoalEnvError, match=f"failed to make an environment {line}"):
        make_goal_env(make)


@pytest.mark.parametrize(("given", "suggested"), [("Line", "Line-v0"), ("Line-v2", "Line-v2")])
def test_the_error_for_a_module_that_does_not_register_the_environment_says_how(given, suggested):
    with pytest.raises(UnknownNameError) as raised:
        make_by_id(f"line_env:{given}", None, {})
    assert str(raised.value).endswith(
        f"The module line_env must register it, as with "
        f'gymnasium.register("{suggested}", entry_point="line_env:Line", max_episode_steps=100).'
    )


def test_an_import_that_fails_without_opengl_names_the_libraries(monkeypatch):
    def import_module(name):
        raise AttributeError("'NoneType' object has no attribute 'glGetError'")

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(metadata, "version", lambda name: "3.9.0")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    with pytest.raises(MissingExtraError, match=r"MUJOCO_GL=egl .*apt-get install -y libegl1"):
        make_by_id("FetchReach-v4", None, {})
    monkeypatch.delenv("MUJOCO_GL")
    with pytest.raises(GoalEnvError, match=r"gymnasium_robotics cannot be imported \(AttributeError: .*test_goal_env.py"):
        make_by_id("FetchReach-v4", None, {})


def test_a_missing_dependency_of_the_environment_is_a_missing_extra(registered):
    def make():
        raise gymnasium.error.DependencyNotInstalled("no physics")

    registered("Line-v0", make)
    with pytest.raises(MissingExtraError, match="no physics"):
        make_by_id("Line-v0", None, {})


def test_a_module_before_the_id_is_imported_first(registered, monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: registered("Line-v0") if name == "line_env" else None)
    assert isinstance(make_by_id("line_env:Line-v0", None, {}).unwrapped, Line)


def test_output_from_c_goes_to_stderr():
    code = (
        "import ctypes\nfrom hindsight_rl.envs.goal_env import _c_output_on_stderr\nlibrary = ctypes.CDLL(None)\n"
        "library.puts(b'before')\nlibrary.fflush(None)\nwith _c_output_on_stderr():\n    library.puts(b'from C')\n"
        "print('after')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("before\nafter\n", "from C\n")


@pytest.mark.parametrize(
    ("display", "chosen", "render_mode", "expected"),
    [
        (None, None, "rgb_array", "egl"),
        (None, "osmesa", "rgb_array", "osmesa"),
        (":0", None, "rgb_array", None),
        (None, None, None, None),
    ],
)
def test_egl_is_selected_without_a_display(monkeypatch, display, chosen, render_mode, expected):
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in {"DISPLAY": display, "MUJOCO_GL": chosen, "WAYLAND_DISPLAY": None}.items():
        monkeypatch.setenv(name, value or "")
        if value is None:
            monkeypatch.delenv(name)
    prepare_rendering(render_mode)
    assert os.environ.get("MUJOCO_GL") == expected


def test_a_window_without_a_display_is_an_error(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(GoalEnvError, match="rgb_array"):
        prepare_rendering("human")


class Blind(Line):
    def render(self):
        raise RuntimeError("no OpenGL")


def test_an_environment_that_cannot_be_rendered_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.delitem(sys.modules, "mujoco")
    with pytest.raises(GoalEnvError, match=r"Blind cannot be rendered .*no OpenGL"):
        make_goal_env(Blind, "rgb_array")
    with pytest.raises(GoalEnvError, match=r"cannot be rendered .*returned None"):
        make_goal_env(type("Empty", (Line,), {"render": lambda self: None}), "rgb_array")
    monkeypatch.setitem(sys.modules, "mujoco", sys)
    with pytest.raises(MissingExtraError, match="apt-get install -y libegl1 libgl1-mesa-dri"):
        make_goal_env(Blind, "rgb_array")


def test_rendering_once_keeps_the_random_state():
    env, other = Line(render_mode="rgb_array"), Line()
    env.reset(seed=3)
    other.reset(seed=3)
    make_goal_env(env, "rgb_array")
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])
