import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.numpy

from hindsight_rl import HER, cli
from hindsight_rl.cli import main
from hindsight_rl.commands.train import TrainDisplay
from hindsight_rl.storage import load_arrays

COMMAND = [sys.executable, "-P", "-c", "import sys; from hindsight_rl.cli import main; sys.exit(main())"]
SHORT = ["--steps", "1000", "--eval-every", "500", "--eval-episodes", "5"]
SHORT += ["--checkpoint-every", "200", "--log-every", "200"]
SMALL = ["--hidden", "16", "16", "--batch-size", "32", "--updates-per-step", "0.25"]
SMALL += ["--solved-evaluations", "0", "--workers", "0"]


class Result(NamedTuple):
    status: int
    out: str
    error: str


@pytest.fixture
def hindsight(empty_folder, monkeypatch, capsys):
    """Return a function that runs a command in an empty folder. Modules of the folder are forgotten after each command."""

    def run(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [place for place in sys.path if place])
            status = main([*map(str, arguments)])
        empty_folder()
        return Result(status, *capsys.readouterr())

    return run


def weights_of(folder):
    """Return every array of the checkpoint."""
    return load_arrays(folder / "checkpoint.safetensors", "checkpoint")[0]


def assert_same_run(folder, other):
    mine, theirs = weights_of(folder), weights_of(other)
    assert set(mine) == set(theirs)
    for name in mine:
        assert mine[name].tobytes() == theirs[name].tobytes(), name
    for name in ("best", "latest"):
        assert policy(folder, name) == policy(other, name)
    assert (folder / "evaluations.jsonl").read_bytes() == (other / "evaluations.jsonl").read_bytes()
    assert timeless(folder) == timeless(other)


def policy(folder, name):
    arrays = safetensors.numpy.load_file(folder / "policies" / f"{name}.safetensors")
    return {k: v.tobytes() for k, v in arrays.items()}


def timeless(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if "seconds" not in k} for line in lines]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert main(["train", "PointReach-v0", "--folder", str(folder), *SHORT, *SMALL]) == 0
    return folder


def test_train_leaves_a_run_folder_that_others_can_read(run_folder):
    settings = json.loads((run_folder / "settings.json").read_text())
    assert settings["options"]["batch_size"] == 32
    assert settings["spec"]["env_id"] == "PointReach-v0"
    assert {"python", "versions", "cores"} <= set(settings["machine"])
    records = timeless(run_folder)
    assert records[-1]["env_steps"] == 1000
    assert {"updates", "train/critic_loss", "train/success_rate", "test/success_rate"} <= set(records[-1])
    table = (run_folder / "progress.csv").read_text().splitlines()
    assert len(table) == len(records) + 1
    assert table[-1].split(",")[table[0].split(",").index("env_steps")] == "1000"
    outcomes = [json.loads(line) for line in (run_folder / "evaluations.jsonl").read_text().splitlines()]
    assert [o["env_steps"] for o in outcomes] == [500] * 5 + [1000] * 5
    assert len({o["seed"] for o in outcomes}) == 10
    assert isinstance(HER.load(run_folder).predict(observation())[0], np.ndarray)


def observation():
    return {"observation": np.zeros(4), "achieved_goal": np.zeros(2), "desired_goal": np.ones(2)}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2])
@pytest.mark.parametrize("policy_lag", [1])
def test_workers_give_the_same_bytes(tmp_path, workers, policy_lag):
    alone, helped = tmp_path / "alone", tmp_path / "helped"
    arguments = ["train", "PointReach-v0", *SHORT, *SMALL, "--policy-lag", str(policy_lag)]
    assert main([*arguments, "--folder", str(alone)]) == 0
    assert main([*arguments, "--folder", str(helped), "--workers", str(workers)]) == 0
    assert_same_run(alone, helped)


@pytest.mark.faults
def test_a_killed_run_continues_to_the_same_bytes(run_folder, tmp_path, hindsight):
    folder = tmp_path / "killed"
    arguments = ["train", "PointReach-v0", "--folder", folder, *SHORT, *SMALL, "--workers", "1"]
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL)
    metrics = folder / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") >= 3):
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert timeless(folder)[-1]["env_steps"] < 1000
    resumed = hindsight(*arguments, "--resume")
    assert resumed.status == 0, resumed.error
    assert "resuming" in resumed.out
    assert_same_run(run_folder, folder)


@pytest.mark.usefixtures("default_signal_handlers")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_a_checkpoint_and_the_run_continues(run_folder, tmp_path, hindsight, monkeypatch, number, code):
    class Interrupted(TrainDisplay):
        def show(self, trainer, event):
            super().show(trainer, event)
            if trainer.counts.env_steps >= 300:
                signal.raise_signal(number)

    folder = tmp_path / "stopped"
    arguments = ["train", "PointReach-v0", "--folder", folder, *SHORT, *SMALL, "--checkpoint-every", "0"]
    with monkeypatch.context() as patch:
        patch.setattr("hindsight_rl.commands.train.TrainDisplay", Interrupted)
        stopped = hindsight(*arguments)
    assert stopped.status == code
    assert "with --resume continues" in stopped.out
    assert weights_of(folder)
    if number == signal.SIGINT:  # the others leave the same checkpoint
        resumed = hindsight(*arguments, "--resume", "--checkpoint-every", "200")
        assert resumed.status == 0, resumed.error
        assert_same_run(run_folder, folder)


def test_a_finished_run_resumes_to_itself(run_folder, hindsight):
    before = weights_of(run_folder)
    again = hindsight("train", "PointReach-v0", "--folder", run_folder, *SHORT, *SMALL, "--resume")
    assert again.status == 0, again.error
    assert "There is no run to resume" not in again.out
    assert all(before[k].tobytes() == v.tobytes() for k, v in weights_of(run_folder).items())


@pytest.mark.slow
def test_a_solved_run_says_how_to_train_on_and_does(tmp_path, hindsight):
    arguments = ["train", "BitFlipping-v0", "--env-options", "n_bits=2", "--folder", tmp_path / "run", *SMALL, "--resume"]
    arguments += ["--random-steps", "20", "--eval-every", "50", "--eval-episodes", "10", "--solved-at", "0.2"]
    solved = hindsight(*arguments, "--steps", "500", "--solved-evaluations", "1")
    found = re.search(r"solved at (\d+) environment steps \((\d+) of training, (\d+) before it\)", solved.out)
    assert found, solved.out
    in_all, steps, checked = map(int, found.groups())
    assert in_all == steps + checked
    again = hindsight(*arguments, "--steps", "800", "--solved-evaluations", "1")
    assert "already solved. To train on, add --solved-evaluations 0" in again.out
    longer = hindsight(*arguments, "--steps", "800", "--solved-evaluations", "0")
    assert longer.status == 0, longer.error
    found = re.search(rf"stopped after \d+ environment steps \((\d+) of training, {checked} before it\)", longer.out)
    assert found, longer.out
    assert 800 <= int(found[1]) < 802  # an episode has at most two steps


def test_a_folder_with_a_run_is_not_written_over(run_folder, hindsight):
    again = hindsight("train", "PointReach-v0", "--folder", run_folder, *SHORT, *SMALL)
    assert again.status == 1
    assert "--resume" in again.error


def test_a_run_does_not_continue_with_other_settings(run_folder, hindsight):
    again = hindsight("train", "PointReach-v0", "--folder", run_folder, *SHORT, *SMALL, "--tau", "0.5", "--resume")
    assert again.status == 1
    assert "tau" in again.error
    assert "0.05" in again.error


def test_a_folder_in_use_names_its_holder(run_folder, hindsight):
    from hindsight_rl.training.run_folder import RunFolder

    model = HER.load(run_folder)
    with RunFolder(run_folder, model.settings, model.spec):
        other = hindsight("train", "PointReach-v0", "--folder", run_folder, *SHORT, *SMALL, "--resume")
    assert other.status == 1
    assert f"process {os.getpid()}" in other.error


def test_evaluate_prints_statistics_and_json(run_folder, capsys):
    assert main(["evaluate", str(run_folder), "--episodes", "4", "--seed", "5"]) == 0
    assert "of 4 episodes (95 % interval" in capsys.readouterr().out
    assert main(["evaluate", str(run_folder / "policies" / "latest.safetensors"), "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 4


def test_play_prints_each_episode_and_writes_a_video(run_folder, tmp_path, capsys):
    video = tmp_path / "played.gif"
    assert main(["play", str(run_folder), "--episodes", "2", "--video", str(video)]) == 0
    output = capsys.readouterr().out
    assert output.count("return") >= 3
    assert "episode 1:" in output
    from PIL import Image

    with Image.open(video) as picture:
        assert picture.n_frames > 10


@pytest.mark.usefixtures("no_pictures")
def test_train_writes_a_report_and_report_and_compare_write_it_again(run_folder, tmp_path, capsys):
    pytest.importorskip("plotly")
    assert "PointReach-v0" in (run_folder / "report.html").read_text()
    page = tmp_path / "page.html"
    assert main(["report", str(run_folder), "--output", str(page), "--standalone"]) == 0
    assert f"report: {page}" in capsys.readouterr().out
    assert page.stat().st_size > 1_000_000
    assert main(["compare", str(run_folder), "--output", str(page)]) == 0
    assert "td3 on PointReach-v0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "PointReech-v0"], "Did you mean 'PointReach-v0'"),
        (["train", "PointReach-v0", "--agent", "td4"], "Did you mean 'td3'"),
        (["train", "PointReach-v0", "--recipe", "point_rech"], "Did you mean 'point_reach'"),
        (["train", "PointReach-v0", "--tau", "x"], "`tau` must be a valid number"),
        (["train", "PointReach-v0", "--strategy", "futur"], "'future'"),
        (["play", "nowhere", "--episodes", "0"], "at least 1"),
        (["evaluate", "nowhere"], "nowhere does not exist"),
        (["report", "nowhere"], "nowhere"),
        (["compare"], "required: RUN"),
        (["export", "nowhere"], "--torchscript FILE"),
        (["export", "nowhere", "--onnx", "x"], "nowhere does not exist"),
    ],
)
def test_errors_name_what_was_meant(hindsight, arguments, message):
    result = hindsight(*arguments)
    assert result.status in (1, 2)
    assert message in result.error + result.out


def test_a_warning_of_this_package_is_one_line(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    main(["--version"])
    assert warnings.formatwarning("slow", UserWarning, cli.__file__, 3) == "warning: slow\n"
    assert warnings.formatwarning("slow", UserWarning, "/elsewhere.py", 3) == "/elsewhere.py:3: UserWarning: slow\n"


def test_help_imports_nothing_slow():
    commands = ("--help", "train --help", "train FetchPush-v4 --help-all", "play --help", "report --help", "doctor")
    slow = ("torch", "numba", "mujoco", "gymnasium_robotics", "rich", "plotly")
    code = (
        "import sys; from hindsight_rl.cli import main\n"
        f"for command in {commands}:\n"
        f"    main(command.split()); print('imported by', command, [name for name in {slow} if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout
    imported = [line for line in output.splitlines() if line.startswith("imported by")]
    assert imported == [f"imported by {command} []" for command in commands]


def test_a_reader_that_goes_away_ends_the_help_silently():
    with subprocess.Popen([*COMMAND, "train", "--help-all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert (process.returncode, error) == (141, b"")


def test_runs_are_numbered_and_the_newest_that_began_continues(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--steps", "100", "--seed", "3", "PointReach-v0", *SMALL, "--eval-every", "0"]
    assert main(arguments) == 0
    assert main([*arguments, "--strategy", "futur"]) == 1
    assert main(arguments) == 0
    base = tmp_path / "runs" / "PointReach-v0"
    assert sorted(p.name for p in base.iterdir()) == ["td3-seed3-1", "td3-seed3-2"]
    (base / "td3-seed3-7").mkdir()
    assert main([*arguments, "--resume", "--steps", "200"]) == 0
    assert timeless(base / "td3-seed3-2")[-1]["env_steps"] == 200
    assert main(arguments) == 0
    assert (base / "td3-seed3-8" / "settings.json").exists()


def test_play_plays_what_was_trained(tmp_path, capsys):
    folder = tmp_path / "cut 0.5"
    arguments = ["train", "PointReach-v0", "--folder", str(folder), "--max-episode-steps", "20", "--steps", "100"]
    assert main([*arguments, *SMALL, "--eval-every", "0"]) == 0
    assert f"hindsight-rl play '{folder}'" in capsys.readouterr().out
    assert main(["play", str(folder), "--episodes", "1"]) == 0
    assert "20 steps" in capsys.readouterr().out
    assert (folder / "play.gif").exists()


def test_an_environment_of_a_module_beside_you(tmp_path, hindsight):
    (tmp_path / "mine.py").write_text(
        "import gymnasium\nfrom hindsight_rl import PointReach\n"
        "gymnasium.register('Mine-v0', entry_point=lambda **o: PointReach(max_steps=10, **o))\n"
    )
    run = tmp_path / "run"
    lost = hindsight("check", "nowhere:Mine-v0")
    assert "No module named 'nowhere'" in lost.error
    assert "in the folder of nowhere.py, or set PYTHONPATH" in lost.error
    assert "importlib" not in lost.error
    arguments = ["train", "mine:Mine-v0", "--resume", "--folder", run, "--steps", "40", "--random-steps", "10", *SMALL]
    trained = hindsight(*arguments)
    assert trained.status == 0, trained.error
    assert "--trust-module" in trained.out
    assert f"There is no run to resume in {run}. A new one begins." in trained.out
    checked = hindsight("check", "mine:Mine-v0")
    assert checked.status == 0, checked.error
    evaluated = hindsight("evaluate", run, "--env", "mine:Mine-v0", "--episodes", "2")
    assert evaluated.status == 0, evaluated.error
    refused = hindsight("play", run, "--episodes", "1")
    assert refused.status == 1
    assert "add --trust-module. Or give --env mine:Mine-v0" in refused.error
    played = hindsight("play", run, "--episodes", "1", "--trust-module")
    assert played.status == 0, played.error


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero, in {file}:2: 1 / 0"),
        ("x = (\n", "(mine.py, line 1)"),
        ("from json import nothing\n", "in {file}:1: from json import nothing"),
    ],
)
def test_an_error_of_the_module_names_its_line_once(tmp_path, hindsight, code, message):
    file = tmp_path / "mine.py"
    file.write_text(code)
    failed = hindsight("check", "mine:Mine-v0")
    assert failed.status == 1
    assert "error    environment        mine cannot be imported (" in failed.out
    trained = hindsight("train", "mine:Mine-v0", "--folder", tmp_path / "run")
    assert trained.status == 1
    for text in (failed.out, trained.error):
        assert text.count(message.format(file=file)) == 1
        assert "Traceback" not in text
        assert "importlib" not in text


@pytest.mark.slow
def test_training_continues_without_a_reader(tmp_path):
    arguments = ["train", "PointReach-v0", "--folder", tmp_path / "run", *SHORT, *SMALL, "--steps", "300"]
    with subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=120)
    assert timeless(tmp_path / "run")[-1]["env_steps"] == 300


def test_an_error_of_the_environment_leaves_a_checkpoint(tmp_path, hindsight):
    (tmp_path / "crash.py").write_text(
        "import gymnasium\nfrom hindsight_rl import PointReach\n"
        "class Crash(PointReach):\n    steps = 0\n"
        "    def step(self, action):\n        Crash.steps += 1\n"
        "        if Crash.steps > 400: raise RuntimeError('the cable came off')\n        return super().step(action)\n"
        "gymnasium.register('Crash-v0', entry_point=Crash)\n"
    )
    arguments = ["train", "crash:Crash-v0", "--folder", tmp_path / "run", "--eval-every", "0", "--no-check", *SMALL]
    crashed = hindsight(*arguments)
    assert crashed.status == 1
    assert "the cable came off" in crashed.error
    assert "crash.py:7: if Crash.steps > 400: raise" in crashed.error
    assert "checkpoint.safetensors, after 200 steps. `hindsight-rl train` with the same environment" in crashed.error
    assert weights_of(tmp_path / "run")


def test_train_checks_the_environment_first(tmp_path, hindsight):
    (tmp_path / "wrong.py").write_text(
        "import gymnasium\nfrom hindsight_rl import PointReach\n"
        "class Wrong(PointReach):\n    def compute_reward(self, achieved_goal, desired_goal, info=None):\n"
        "        return -super().compute_reward(achieved_goal, desired_goal, info)\n"
        "gymnasium.register('Wrong-v0', entry_point=Wrong, max_episode_steps=50)\n"
    )
    arguments = ["train", "wrong:Wrong-v0", "--folder", tmp_path / "run", "--steps", "40", "--eval-every", "0", *SMALL]
    refused = hindsight(*arguments)
    assert refused.status == 1
    assert "Wrong-v0 is not ready for hindsight-rl" in refused.error
    assert not (tmp_path / "run").exists()
    trained = hindsight(*arguments, "--no-check")
    assert trained.status == 0, trained.error
