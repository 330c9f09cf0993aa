import json
import os

import numpy as np
import pytest
from run_files import change_settings, write_run

import hindsight_rl.report.run as run_module
from hindsight_rl.errors import FileError, RunFolderError
from hindsight_rl.report.run import find_runs, read_run, readable_path
from hindsight_rl.report.write import write_report


def test_a_run_is_read_as_columns(tmp_path):
    run = read_run(write_run(tmp_path / "a", seed=3))
    assert (run.environment, run.settings.agent, run.options.seed) == ("Task-v0", "td3", 3)
    assert run.title == "Task-v0 · td3 · seed 3"
    assert run.column("test/success_rate").tolist() == [0.0, 0.5, 1.0, 1.0]
    assert np.isnan(run.column("nothing")).all()
    assert run.last("env_steps") == 400
    assert run.at(150, "seconds") == 3.0
    assert len(run.evaluated) == 40
    assert sum(episode.success for episode in run.evaluated) == 25
    assert run.trained[0].final_goal == (0.2, -0.2, 0.425)
    assert run.evaluated[0].final_goal is None


def test_a_record_that_lacks_a_name_has_no_number_there(tmp_path):
    path = write_run(tmp_path / "a")
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 500, "train/new": 2.0, "train/q_mean": null, "train/loss": "inf"}\n')
    run = read_run(path)
    assert run.column("train/new")[-1] == 2.0
    assert np.isnan(run.column("train/new")[:-1]).all()
    assert run.last("test/success_rate") == 1.0
    assert run.last("train/q_mean") == -5.0
    assert run.last("train/loss") == np.inf


def test_goals_that_were_not_finite_are_missing_numbers(tmp_path, no_pictures):
    """JSON has no NaN: training writes null in its place."""
    path = write_run(tmp_path / "a", goals=lambda n: [None, n / 10])
    run = read_run(path)
    assert run.evaluated[1].desired_goal == (None, 0.1)
    write_report([path])


def test_records_are_ordered_by_steps(tmp_path):
    """With asynchronous evaluations a record may be written after one with more steps."""
    path = write_run(tmp_path / "a")
    lines = (path / "metrics.jsonl").read_text().splitlines()
    (path / "metrics.jsonl").write_text("\n".join([lines[0], lines[2], lines[1], lines[3], ""]))
    assert read_run(path).column("env_steps").tolist() == [100, 200, 300, 400]


def test_damaged_lines_are_skipped_and_counted(tmp_path):
    path = write_run(tmp_path / "a")
    for name in ("metrics", "evaluations", "episodes"):
        place = path / f"{name}.jsonl"
        lines = place.read_bytes().splitlines(keepends=True)
        place.write_bytes(b"".join([lines[0], b'{"env_\n', b"\xff\xfe\n", *lines[1:], b'{"env_steps": 5']))
    run = read_run(path)
    assert run.damaged_lines == {"metrics.jsonl": 3, "evaluations.jsonl": 3, "episodes.jsonl": 3}
    assert (len(run.column("env_steps")), len(run.evaluated), len(run.trained)) == (4, 40, 4)


def test_of_many_episodes_some_are_kept_evenly_spaced_and_all_are_counted(tmp_path, monkeypatch):
    path = write_run(tmp_path / "a", rates=(0.5,) * 10)
    monkeypatch.setattr(run_module, "MOST_EPISODES", 30)
    run = read_run(path)
    assert (len(run.evaluated), run.n_evaluated) == (25, 100)
    assert [episode.desired_goal[0] for episode in run.evaluated[:5]] == [0.0, 0.4, 0.8, 0.2, 0.6]


@pytest.mark.parametrize(("name", "value"), [("MOST_NUMBERS", 20), ("MOST_CHANGES", 1)])
def test_more_than_a_report_can_hold_is_refused(tmp_path, monkeypatch, name, value):
    path = write_run(tmp_path / "a")
    change = {"env_steps": 1, "seconds": 1.0}
    (path / "changes.jsonl").write_text(2 * f"{json.dumps(change)}\n")
    monkeypatch.setattr(run_module, name, value)
    with pytest.raises(FileError, match=r"too many for a report|more than 1 changes"):
        read_run(path)


@pytest.mark.parametrize(
    ("file", "line", "field"),
    [
        ("metrics.jsonl", '{"env_steps": "many"}', "line 1: `env_steps`"),
        ("metrics.jsonl", '{"env_steps": 1, "train/q_mean": [1]}', "line 1: `train/q_mean`"),
        ("metrics.jsonl", '{"train/q_mean": 1}', "env_steps"),
        ("evaluations.jsonl", '{"env_steps": 1}', "line 1: `desired_goal`"),
        ("evaluations.jsonl", '{"env_steps": 1, "desired_goal": "abc"}', "line 1: `desired_goal`"),
        ("evaluations.jsonl", '{"env_steps": 1, "desired_goal": [1], "final_goal": [1, 2]}', "goals"),
        ("episodes.jsonl", '{"env_steps": 1, "desired_goal": [1, "x"]}', "line 1: `desired_goal.1`"),
        ("episodes.jsonl", '{"env_steps": "inf", "desired_goal": [1]}', "line 1: `env_steps`"),
        ("metrics.jsonl", '{"env_steps": "inf"}', "env_steps"),
        ("ended.json", '["solved"]', "JSON object"),
        ("settings.json", "[]", "JSON object"),
        ("settings.json", "{", "JSON"),
        ("settings.json", '{"agent": 3}', "agent"),
    ],
)
def test_a_malformed_file_is_named_with_the_field(tmp_path, file, line, field):
    path = write_run(tmp_path / "a")
    (path / file).write_text(line + "\n")
    with pytest.raises(FileError) as problem:
        read_run(path)
    assert file in str(problem.value)
    assert field in str(problem.value)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"options": {"discount": 1.0}}, "options.discount"),
        ({"options": {"discount": "high"}}, "options.discount"),
        ({"options": {"seed": None}}, "options.seed"),
        ({"options": {"env_options": 3}}, "options.env_options"),
        ({"spec": {"reward_low": "low"}}, "spec.reward_low"),
        ({"spec": None}, "spec"),
        ({"machine": {"versions": 3}}, "machine.versions"),
        ({"explained": {"seed": 3}}, "explained.seed"),
    ],
)
def test_a_malformed_setting_is_named(tmp_path, changes, field):
    with pytest.raises(FileError, match=rf"settings.json: `{field}` is malformed"):
        read_run(change_settings(write_run(tmp_path / "a"), **changes))


def test_infinite_bounds_of_the_reward_are_strings(tmp_path):
    spec = {"reward_low": "-inf", "reward_high": "inf"}
    assert read_run(write_run(tmp_path / "a", spec=spec)).settings.spec.reward_low == -np.inf


def test_folders_without_a_run_are_named(tmp_path):
    with pytest.raises(RunFolderError, match="There is no run in"):
        read_run(tmp_path)
    with pytest.raises(RunFolderError, match="There is no run in"):
        find_runs(tmp_path)
    runs = [write_run(tmp_path / "x" / name) for name in ("a", "b")]
    assert find_runs(tmp_path) == runs
    assert find_runs(runs[1]) == [runs[1]]


def test_the_ending_is_read(tmp_path):
    path = write_run(tmp_path / "a")
    assert read_run(path).ended == ""
    (path / "ended.json").write_text(json.dumps({"why": "solved", "env_steps": 400}))
    assert read_run(path).ended == "solved"


def test_a_path_in_another_encoding_can_be_shown():
    assert readable_path(os.fsdecode("é".encode())) == "é"
    readable_path(os.fsdecode(b"run-\xe9")).encode("utf-8")
