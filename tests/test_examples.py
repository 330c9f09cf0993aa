"""Every example runs to its end with a small budget."""

import re
import runpy
import sys
from pathlib import Path

import gymnasium
import pytest

from hindsight_rl.cli import main
from hindsight_rl.envs.goal_env import make_goal_env
from hindsight_rl.rollout.collect import play_episode

FOLDER = Path(__file__).parents[1] / "examples"
LONGEST = 90  # lines


@pytest.fixture(autouse=True)
def forget_environments():
    """Remove the environments that an example registers."""
    before = dict(gymnasium.registry)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs an example in an empty folder and returns its output."""

    def run_example(example, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [example, *arguments])
        runpy.run_path(str(FOLDER / example), run_name="__main__")
        return capsys.readouterr().out

    return run_example


@pytest.fixture
def needs_sb3():
    pytest.importorskip("stable_baselines3")


@pytest.mark.simulator
@pytest.mark.usefixtures("needs_sb3")
def test_sb3_fetch_reach(run):
    assert "success rate over 2 unseen episodes: " in run("sb3_fetch_reach.py", "--steps", "120", "--episodes", "2")


@pytest.mark.usefixtures("needs_sb3")
def test_sb3_td3(run):
    assert "return of 2 episodes: -" in run("sb3_td3.py", "--steps", "1050", "--episodes", "2")


@pytest.mark.usefixtures("needs_sb3")
@pytest.mark.parametrize("algorithm", ["DQN", "SAC"])
def test_sb3_bit_flipping(run, tmp_path, algorithm):
    output = run("sb3_bit_flipping.py", "--algorithm", algorithm, "--steps", "150", "--bits", "4")
    reached, episodes = map(int, re.search(r"(\d+) of (\d+) episodes reached their goal", output).groups())
    assert 25 <= episodes <= 100
    assert reached <= episodes
    assert (tmp_path / "bits.zip").exists()


@pytest.mark.usefixtures("needs_sb3")
def test_sb3_strategies(run):
    output = run("sb3_strategies.py", "--steps", "120", "--episodes", "2").splitlines()
    assert [line.split()[0] for line in output[1:]] == ["future", "final", "episode", "random"]
    assert all(-50 <= float(line.split()[1]) <= 0 for line in output[1:])


@pytest.mark.usefixtures("needs_sb3")
def test_custom_goal_env(run):
    assert "return of 20 episodes: -" in run("custom_goal_env.py", "--steps", "120")


def test_the_custom_goal_env_passes_the_check(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    assert main(["check", "custom_goal_env:Corner-v0"]) == 0
    assert "errors 0, warnings 0" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sb3")
def test_sb3_success_rate(run, tmp_path):
    pytest.importorskip("tensorboard")
    output = run("sb3_success_rate.py", "--steps", "200", "--every", "100", "--folder", "curves")
    assert len(re.findall(r"\d+%", output)) == 2
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curves = EventAccumulator(str(next(tmp_path.glob("curves/*")))).Reload()
    for name in ("eval/success_rate", "eval/mean_success_rate"):
        assert [event.step for event in curves.Scalars(name)] == [100, 200]


def test_cpprb_style_dqn(run, tmp_path):
    pytest.importorskip("tensorboard")
    output = run("cpprb_style_dqn.py", "--steps", "200", "--bits", "3", "--folder", "curves")
    assert re.fullmatch(r"step 100: \d+% of 20 episodes\nstep 200: \d+% of 20 episodes\n", output)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    curves = EventAccumulator(str(tmp_path / "curves")).Reload()
    assert [event.step for event in curves.Scalars("success_rate")] == [100, 200]
    assert [event.step for event in curves.Scalars("loss")] == list(range(curves.Scalars("loss")[0].step, 201))


@pytest.mark.slow
def test_ddpg_from_parts(run, tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    monkeypatch.syspath_prepend(str(FOLDER))  # for curves.py
    assert "success " in run("ddpg_from_parts.py", "--episodes", "41")  # one more than the episodes before the first update
    page = (tmp_path / "ddpg_from_parts.html").read_text()
    assert all(name in page for name in ("final distance", "critic loss", "mean Q", "gradient_clip"))


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(1, marks=pytest.mark.simulator),
        2,
        3,
        5,
        8,
        *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 6, 7)),
    ],
)
def test_her_in_a_few_lines(run, tmp_path, monkeypatch, number):
    monkeypatch.syspath_prepend(str(FOLDER))  # for the environment of the fifth
    output = run("her_in_a_few_lines.py", str(number), "--steps", "60")
    assert output.count("success ") >= 1 or output.count("return ") == 4
    assert (tmp_path / {6: "watched", 7: "bits-prioritized"}.get(number, ".")).is_dir()


def test_examples_are_short():
    assert [p.name for p in FOLDER.glob("*.py") if len(p.read_text().splitlines()) >= LONGEST] == []


def test_every_example_is_run_here():
    tests = Path(__file__).read_text()
    assert [p.name for p in FOLDER.glob("*.py") if p.name not in tests and p.stem not in tests] == []


def success_rate(controller, environment):
    act = runpy.run_path(str(FOLDER / "scripted_controllers.py"))[controller]
    env = make_goal_env(environment)
    successes = [play_episode(env, act, seed).success for seed in range(10)]
    env.close()
    return sum(successes) / len(successes)


def test_the_scripted_controller_of_point_reach():
    assert success_rate("point_reach", "PointReach-v0") == 1


@pytest.mark.simulator
def test_the_scripted_controllers_of_fetch():
    assert success_rate("pick_and_place", "FetchPickAndPlace-v4") == 1
    assert success_rate("push", "FetchPush-v4") == 1
