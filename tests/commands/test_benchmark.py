import csv
import json
import re
import signal
import subprocess
import sys
import time

import pytest

from hindsight_rl.cli import main
from hindsight_rl.commands import benchmark
from hindsight_rl.commands.benchmark import Benchmark, parse_seeds
from hindsight_rl.errors import MissingExtraError, OptionError, UnknownNameError
from hindsight_rl.recipes.files import Entry, Suite
from hindsight_rl.training.run_folder import Ending, read_ending

POINT = Entry(environment="PointReach-v0", recipe="default")
TINY = ["steps=300", "hidden=[8]", "batch_size=16", "updates_per_step=0.5"]
TINY += ["eval_every=150", "eval_episodes=2", "workers=0"]


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [3]), ("0-4", [0, 1, 2, 3, 4]), ("0,2,5", [0, 2, 5]), ("4, 0-2, 1", [4, 0, 1, 2])]
)
def test_seeds_are_numbers_and_ranges(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "3-", "-3", "4-1", "1,,2", "0-1000", "1.5"])
def test_other_seeds_are_refused(text):
    with pytest.raises(OptionError, match="--seeds"):
        parse_seeds(text)


def test_a_plan_is_every_task_with_every_seed(tmp_path):
    options = {"symmetric": {}, "smaller": {"hidden": [8]}, "plain": {"symmetries": []}}
    entries = tuple(Entry(environment="PointReach-v0", name=name, options=each) for name, each in options.items())
    planned = Benchmark(Suite(name="mine", entries=entries), [0, 7], tmp_path).plan()
    assert [run.folder.relative_to(tmp_path).as_posix() for run in planned] == [
        f"PointReach-v0-{name}/td3-seed{seed}" for seed in (0, 7) for name in options
    ]
    assert [run.task.settings.variant for run in planned[:3]] == ["declared", "declared", "none"]


def test_options_become_arguments(tmp_path):
    options = {
        "env_options": ["n_bits=3"],
        "symmetries": [],
        "dueling": False,
        "prioritized": True,
        "hidden": [8, 9],
        "max_episode_steps": 4,
    }
    entry = Entry(environment="BitFlipping-v0", options=options)
    [run] = Benchmark(Suite(name="mine", entries=(entry,)), [2], tmp_path, {"tau": 0.5}).plan()
    assert str(run) == "BitFlipping-v0 (n_bits=3), dqn, seed 2"
    first = [
        "--seed",
        "2",
        "--folder",
        str(tmp_path / "BitFlipping-v0_n_bits=3" / "dqn-seed2"),
        "--resume",
        "--agent",
        "dqn",
    ]
    words = "--env-options n_bits=3 --no-symmetries --no-dueling --prioritized --hidden 8 9 --max-episode-steps 4 --tau 0.5"
    assert run.command == [sys.executable, "-P", "-m", "hindsight_rl", "train", "BitFlipping-v0", *first, *words.split()]


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        ([{"taus": 1}], UnknownNameError, "suite 'mine', PointReach-v0: There is no option `taus`"),
        ([{"tau": "fast"}], OptionError, "`tau` must be a valid number, got 'fast'"),
        ([{"seed": 1}], OptionError, "--seeds"),
        ([{}, {"tau": 0.5}], OptionError, "a task twice"),
    ],
)
def test_options_that_are_not_valid_are_refused_before_anything_runs(tmp_path, entries, error, message):
    suite = Suite(name="mine", entries=tuple(Entry(environment="PointReach-v0", options=options) for options in entries))
    with pytest.raises(error, match=message):
        Benchmark(suite, [0], tmp_path).plan()


def test_a_task_that_cannot_run_is_reported_and_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def absent(*arguments, **options):
        raise MissingExtraError('It needs a simulator: pip install "hindsight-rl[robotics]"')

    fails = [sys.executable, "-c", "import sys; sys.exit('it needs a simulator')"]
    monkeypatch.setattr(benchmark, "make_goal_env", absent)
    monkeypatch.setattr(benchmark.PlannedRun, "command", fails)
    assert Benchmark(Suite(name="mine", entries=(POINT,)), [0, 1], tmp_path).run(jobs=1) == 1
    output = capsys.readouterr().out
    assert "[2/2] PointReach-v0, td3, seed 1: it needs a simulator" in output
    assert "- PointReach-v0, td3, seed 0: it needs" in (tmp_path / "results.md").read_text()


def status_and_error(arguments, capsys):
    status = main(["benchmark", *arguments])
    return status, capsys.readouterr().err


def test_a_finished_run_is_kept_and_other_settings_are_refused(tmp_path, capsys, request):
    suite = tmp_path / "mine.toml"
    suite.write_text('[[entry]]\nenvironment = "PointReach-v0"\nname = "tiny"\n')
    command = [str(suite), "--seeds", "4", "--folder", str(tmp_path / "runs"), "--set", *TINY]
    assert main(["benchmark", *command]) == 0
    run = tmp_path / "runs" / "PointReach-v0-tiny" / "td3-seed4"
    assert read_ending(run) == Ending("steps", 300)
    output = capsys.readouterr().out
    assert "mine: 1 runs, 0 finished, in " in output
    assert "tiny, td3, seed 4: not solved in 612 environment steps (300 of training, 312 before it)" in output
    assert "tiny, td3 on PointReach-v0, declared\n" in output
    assert json.loads((run / "settings.json").read_text())["name"] == "tiny"
    assert "tiny, td3, declared" in (tmp_path / "runs" / "comparison.html").read_text()
    pictures = [path.name for path in (tmp_path / "runs" / "comparison-pictures").iterdir()]
    assert {f"PointReach-v0-success-rate-against-steps.{kind}" for kind in ("svg", "png")} <= set(pictures)
    [line] = csv.DictReader((tmp_path / "runs" / "results.csv").read_text().splitlines())
    assert (line["seed"], line["name"], line["variant"]) == ("4", "tiny", "declared")
    assert line["folder"] == "PointReach-v0-tiny/td3-seed4"
    log = (run.parent / "td3-seed4.log").read_text()
    assert "-m hindsight_rl train PointReach-v0 --seed 4" in log

    request.getfixturevalue("no_pictures")  # from here on: they take seconds
    began = json.loads((run / "settings.json").read_text())["begun"]
    assert main(["benchmark", *command]) == 0
    assert "1 runs, 1 finished, in" in capsys.readouterr().out
    assert json.loads((run / "settings.json").read_text())["begun"] == began
    for seed in ("4", "5"):  # the second would have a folder beside the first
        status, error = status_and_error([*command, "tau=0.5", "--seeds", seed], capsys)
        assert (status, "tau" in error, "0.05" in error, "another --folder" in error) == (1, True, True, True)
    status, error = status_and_error(["bits", "--folder", str(tmp_path / "runs")], capsys)
    assert (status, "is not a run of suite 'bits'" in error) == (1, True)
    assert main(["compare", str(tmp_path / "runs")]) == 0
    assert "td3 on PointReach-v0, declared" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["quik"], 2, "'quick'"),
        (["quick", "--seeds", "x"], 1, "whole numbers"),
        (["quick", "--jobs", "0"], 2, "at least 1"),
    ],
)
def test_errors_are_one_sentence(arguments, status, message, capsys):
    found, error = status_and_error(arguments, capsys)
    assert found == status
    assert message in error


@pytest.mark.learning
@pytest.mark.usefixtures("default_signal_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_continues(tmp_path, number):
    tiny = ["steps=1500", *TINY[1:], "solved_evaluations=0", "checkpoint_every=0", "log_every=50"]
    command = [sys.executable, "-m", "hindsight_rl", "benchmark", "quick", "--seeds", "0", "--jobs", "2"]
    command += ["--folder", str(tmp_path), "--set", *tiny]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    metrics = tmp_path / "PointReach-v0" / "td3-seed0" / "metrics.jsonl"
    while not metrics.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 128 + number
    assert "The same command continues" in output
    stopped = read_ending(metrics.parent)
    assert stopped.why == "stopped"
    whole = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    solved_line = r"PointReach-v0, td3, seed 0: not solved in [\d,]+ environment steps \(1,500 of training, "
    assert re.search(solved_line, whole.stdout)
    assert "resuming PointReach-v0" in (metrics.parents[1] / "td3-seed0.log").read_text()
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 3
