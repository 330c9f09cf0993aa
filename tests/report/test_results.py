import csv
import json

from run_files import write_run

from hindsight.report.results import record_of, write_results
from hindsight.report.run import read_run


def test_a_run_is_a_line(tmp_path):
    path = write_run(tmp_path / "task" / "td3-seed3", (0.5, 1.0, 0.95, 0.9), seed=3)
    settings = json.loads((path / "settings.json").read_text())
    settings |= {"variant": "relative", "begun": "2026-01-02T03:04:05+00:00"}
    settings["machine"] |= {"commit": "abc", "versions": {"hindsight-rl": "0.1", "torch": "2.5", "numpy": "2.0"}}
    (path / "settings.json").write_text(json.dumps(settings))
    write_results("mine", [read_run(path)], tmp_path, [])
    [line] = csv.DictReader((tmp_path / "results.csv").read_text().splitlines())
    assert line == {
        "environment": "Task-v0",
        "variant": "relative",
        "agent": "td3",
        "recipe": "mine",
        "seed": "3",
        "solved": "True",
        "steps_to_solve": "200",
        "updates_to_solve": "2000",
        "seconds_to_solve": "4.0",
        "final_success": "0.9",
        "best_success": "1",
        "eval_episodes": "10",
        "env_steps": "400",
        "updates": "4000",
        "seconds": "8",
        "version": "0.1",
        "commit": "abc",
        "python": "3.11",
        "torch": "2.5",
        "numpy": "2.0",
        "processor": "",
        "cores": "2",
        "time": "2026-01-02T03:04:05+00:00",
        "folder": "task/td3-seed3",
    }


def test_what_there_is_not_is_left_empty(tmp_path):
    record = record_of(read_run(write_run(tmp_path / "a", (0.5, 0.5))))
    assert (record["solved"], record["steps_to_solve"], record["seconds_to_solve"], record["time"]) == (False, "", "", "")


def test_the_table_names_what_failed(tmp_path):
    write_results("mine", [read_run(write_run(tmp_path / "a"))], tmp_path, ["Other-v0, seed 1: no such simulator"])
    text = (tmp_path / "results.md").read_text()
    assert text.startswith("# mine\n\n| environment | variant | agent | seeds |")
    assert "| Task-v0 | plain | td3 | 1 | 100% | 100.0% |" in text
    assert "- Other-v0, seed 1: no such simulator\n" in text
    write_results("mine", [], tmp_path, [])
    assert (tmp_path / "results.csv").read_text() == ""
