import json
import os
import subprocess
import sys
import types
from contextlib import closing

import pytest

from hindsight_rl import callbacks
from hindsight_rl.callbacks import Trackers, refuse_missing
from hindsight_rl.cli import main
from hindsight_rl.errors import MissingExtraError

RUN = ["train", "PointReach-v0", "--steps", "200", "--random-steps", "100", "--log-every", "100", "--hidden", "8"]
RUN += ["--updates-per-step", "0.1", "--eval-every", "100", "--eval-episodes", "2"]
RUN += ["--solved-evaluations", "0", "--workers", "0"]


class Notebook:
    """A tracker that keeps its records, and fails at a given one."""

    def __init__(self, fails_at=None):
        self.records, self.fails_at, self.is_closed = [], fails_at, False

    def log(self, step, metrics):
        if step == self.fails_at:
            raise ConnectionError("the cable came off")
        self.records.append((step, metrics))

    def close(self):
        self.is_closed = True


def test_records_go_to_all_and_only_finite_numbers(monkeypatch, tmp_path):
    one, other = Notebook(), Notebook()
    monkeypatch.setattr(callbacks, "TRACKERS", {"one": lambda *_: one, "other": lambda *_: other})
    with closing(Trackers(["one", "other"], tmp_path, {})) as both:
        both.log({"env_steps": 10, "train/return": -3.0, "train/critic_loss": float("nan")})
    assert one.records == other.records == [(10, {"env_steps": 10, "train/return": -3.0})]
    assert one.is_closed


def test_a_tracker_that_fails_is_reported_once_and_left_out(monkeypatch, tmp_path, capsys):
    good, bad = Notebook(), Notebook(fails_at=20)

    def refuse(*_):
        raise OSError("no route")

    monkeypatch.setattr(callbacks, "TRACKERS", {"good": lambda *_: good, "bad": lambda *_: bad, "never": refuse})
    with closing(Trackers(["good", "bad", "never"], tmp_path, {})) as all_three:
        for step in (10, 20, 30):
            all_three.log({"env_steps": step})
    assert [step for step, _ in good.records] == [10, 20, 30]
    assert [step for step, _ in bad.records] == [10]
    said = capsys.readouterr().err
    assert said.count("bad failed (ConnectionError: the cable came off); training goes on without it") == 1
    assert said.count("never failed") == 1


def test_weights_and_biases_gets_steps_that_never_decrease(monkeypatch, tmp_path):
    steps = []

    class Run:
        def log(self, metrics, step):
            steps.append((step, metrics["env_steps"]))

        def finish(self):
            pass

    settings = types.SimpleNamespace(project=None)
    fake = types.SimpleNamespace(Settings=lambda **_: settings, init=lambda **_: Run())
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with closing(Trackers(["wandb"], tmp_path, {})) as tracking:
        for env_steps in (10, 40, 30, 50):  # the evaluation at 30 is complete after the record at 40
            tracking.log({"env_steps": env_steps})
    assert steps == [(10, 10), (40, 40), (40, 30), (50, 50)]


def test_a_missing_package_is_named_before_a_run_begins(monkeypatch):
    monkeypatch.setattr(callbacks, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[wandb\]"):
        refuse_missing(["wandb"])


def records_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_holds_the_metrics(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert main([*RUN, "--folder", str(tmp_path), "--tensorboard"]) == 0
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("test/success_rate")
    expected = [(r["env_steps"], r["test/success_rate"]) for r in records_of(tmp_path) if "test/success_rate" in r]
    assert [(event.step, event.value) for event in events] == expected


@pytest.mark.slow
def test_weights_and_biases_offline_keeps_a_run(tmp_path):
    pytest.importorskip("wandb")
    record = {"env_steps": 100, "test/success_rate": 0.5, "eval/mean_success_rate": 0.5}
    program = (
        "from pathlib import Path; from hindsight_rl.callbacks import Trackers\n"
        f"trackers = Trackers(['wandb'], Path.cwd(), {{}}); trackers.log({record}); trackers.close()"
    )
    variables = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    command = [sys.executable, "-c", program]  # in a process of its own, because it starts threads
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = file.read_bytes()
    assert b"test/success_rate" in content
    assert b"eval/mean_success_rate" in content
    assert (tmp_path / "wandb-id").read_text() in file.name


def test_a_run_goes_on_where_the_tracker_cannot(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    (tmp_path / "tensorboard").write_text("a file where the folder should be")
    assert main([*RUN, "--folder", str(tmp_path), "--tensorboard"]) == 0
    assert "tensorboard failed" in capsys.readouterr().err
    assert records_of(tmp_path)[-1]["env_steps"] == 200
