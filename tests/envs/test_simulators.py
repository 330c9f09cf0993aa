"""The simulators as they are. Needs MuJoCo and gymnasium-robotics."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_env import make_goal_env, read_spec, resets_exactly
from hindsight_rl.envs.goal_functions import read_success, reward_function, terminated_function
from hindsight_rl.envs.wrappers import FlattenGoalEnv
from hindsight_rl.errors import GoalEnvError, UnknownNameError

pytestmark = [
    pytest.mark.simulator,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:gymnasium_robotics"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:mujoco"),
]


@pytest.mark.parametrize(
    ("env_id", "shapes", "limit", "rewards"),
    [
        ("FetchReach-v4", (10, 3, 4), 50, (-1, 0)),
        ("FetchPush-v4", (25, 3, 4), 50, (-1, 0)),
        ("FetchReachDense-v4", (10, 3, 4), 50, (-np.inf, np.inf)),
        ("HandReach-v3", (63, 15, 20), 50, (-1, 0)),
        ("HandManipulateBlock-v1", (61, 7, 20), 100, (-1, 0)),
        ("PointMaze_UMaze-v3", (4, 2, 2), 300, (0, 1)),
        ("AntMaze_UMaze-v5", (105, 2, 8), 700, (0, 1)),
    ],
)
def test_the_task_and_the_rules_of_a_simulator(env_id, shapes, limit, rewards):
    env = make_goal_env(env_id)
    spec = read_spec(env)
    assert (spec.observation.shape, spec.goal.shape, spec.action.shape) == tuple((n,) for n in shapes)
    assert (spec.max_episode_steps, spec.reward_low, spec.reward_high, spec.env_id) == (limit, *rewards, env_id)
    assert reward_function(env).function == env.unwrapped.compute_reward
    assert terminated_function(env) is None
    report = check_goal_env(env)
    assert {f.level for f in report.findings} <= {"ok", "not seen"}, str(report)
    assert {f.name for f in report.of("not seen")} <= {"time limit"}
    assert report.facts.terminates_on_success is False
    is_shown = not env_id.startswith("AntMaze")  # the position of an ant is in the achieved goal alone
    assert [each.option for each in report.facts.choices()] == ([] if is_shown else ["observation_keys"])
    env.close()


@pytest.mark.parametrize(("env_id", "key"), [("FetchReach-v4", "is_success"), ("PointMaze_UMaze-v3", "success")])
def test_success_is_read_from_either_key(env_id, key):
    env = make_goal_env(env_id)
    env.reset(seed=0)
    info = env.step(env.action_space.sample())[4]
    assert key in info
    assert read_success(info) in (True, False)


def test_the_termination_of_a_maze_is_called_row_by_row():
    env = make_goal_env("PointMaze_UMaze-v3", env_options={"continuing_task": False})
    achieved, desired = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.1, 0.0], [3.0, 3.0]])
    assert env.unwrapped.compute_terminated(achieved, desired, {}) is False  # one value for both
    assert terminated_function(env)(achieved, desired, {}).tolist() == [True, False]
    report = check_goal_env(env)
    assert [f.name for f in report.of("warning")] == ["termination"]
    assert report.facts.terminates_on_success is True
    assert report.facts.choices() == []  # compute_terminated is right, if it is called for each goal


def test_the_pen_with_wrong_batches_is_called_row_by_row():
    env = make_goal_env("HandManipulatePen-v1")
    with pytest.warns(UserWarning, match="wrong for a batch"):
        reward = reward_function(env)
    goal = np.array([1.0, 0.9, 0.2, 1.0, 0.0, 0.0, 0.0])
    rotated = np.array([1.0, 0.9, 0.2, np.cos(0.5), 0.0, 0.0, np.sin(0.5)])  # about the axis that the reward ignores
    assert reward(np.stack([rotated] * 4), np.stack([goal] * 4), {}).tolist() == [0, 0, 0, 0]


def test_a_kitchen_with_nested_goals_is_an_error():
    with pytest.raises(GoalEnvError, match=r"FrankaKitchen-v1 is not a goal environment.*got a Dict space.*FlattenGoalEnv"):
        make_goal_env("FrankaKitchen-v1")


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("FetchReach-v1", "not the newest version. Use 'FetchReach-v4'"),
        ("FetchPush-v2", "not the newest version. Use 'FetchPush-v4'"),
        ("HandReach-v0", "not the newest version. Use 'HandReach-v3'"),
        ("AntMaze_UMaze-v3", "not the newest version. Use 'AntMaze_UMaze-v5'"),
        ("FetchRech-v4", "Did you mean .*'FetchReach-v4'"),
    ],
)
def test_retired_and_misspelt_ids_name_the_current_one(env_id, message):
    with pytest.raises(UnknownNameError, match=message):
        make_goal_env(env_id)


def test_the_nested_goals_of_a_kitchen_can_be_flattened():
    env = FlattenGoalEnv(gymnasium.make("FrankaKitchen-v1"))
    spec = read_spec(env)
    assert (spec.observation.shape, spec.goal.shape) == ((59,), (17,))
    observation, _ = env.reset(seed=0)
    assert all(observation[key] in env.observation_space[key] for key in ("achieved_goal", "desired_goal"))
    goals = np.stack([observation["desired_goal"]] * 3)
    assert env.compute_reward(goals, goals, {}).shape == (3,)


@pytest.mark.parametrize("name", ["PandaReach-v3", "PandaPush-v3"])
def test_panda_ends_at_success_and_so_do_relabelled_successes(name):
    pytest.importorskip("panda_gym")
    report = check_goal_env(name)
    assert not report.of("error"), str(report)
    assert [each.value for each in report.facts.choices() if each.option == "relabel_terminated"] == ["success"]


def test_the_resets_of_mujoco_are_exact():
    assert resets_exactly(make_goal_env("FetchPush-v4"))


def test_frames_are_rendered_without_a_display(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    env = make_goal_env("FetchReach-v4", "rgb_array")
    env.reset(seed=0)
    assert env.render().std() > 10
    env.close()


def test_a_machine_that_cannot_render_gets_the_command_to_install():
    code = "from hindsight_rl import make_goal_env; make_goal_env('FetchReach-v4', 'rgb_array')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"MUJOCO_GL": "osmesa"}, capture_output=True, text=True, check=False
    )
    assert "MissingExtraError" in done.stderr
    assert "apt-get install -y libegl1 libgl1-mesa-dri" in done.stderr
