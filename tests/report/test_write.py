import csv
import json
import os
import re

import pytest
from run_files import change_settings, write_run

from hindsight_rl.errors import RunFolderError
from hindsight_rl.report import write
from hindsight_rl.report.page import run_page
from hindsight_rl.report.run import read_run
from hindsight_rl.report.write import LiveReport, result_of, write_report, write_results

SCRIPT = "var Plotly = 'a short script';"


@pytest.fixture(autouse=True)
def plotly(monkeypatch, no_pictures):
    """The script has a test of its own."""
    monkeypatch.setattr(write, "_plotly_script", lambda: SCRIPT)


def plots_in(page):
    """Return the plots that a page holds as JSON, by key."""
    data = re.search(r'<script type="application/json" id="plots">(.*?)</script>', page, re.S).group(1)
    return {plot["key"]: plot for plot in json.loads(data)}


def plots_of(path):
    return plots_in(path.read_text())


def test_a_page_has_every_plot(tmp_path):
    run = write_run(tmp_path / "a", **{"train/goals_already_achieved": [0.1] * 4, "train/actor_loss": [1.0] * 4})
    page = write_report([run])
    assert page == run / "report.html"
    curves = {
        "success-env_steps",
        "success-seconds",
        "return-env_steps",
        "return-seconds",
        "reward_per_step",
        "critic_loss",
        "actor_loss",
        "q",
    }
    assert set(plots_of(page)) == curves | {"goals_already_achieved", "goals-0-1"}
    assert (run / "plotly.min.js").read_text() == SCRIPT
    assert '<script src="plotly.min.js">' in page.read_text()


def test_every_curve_has_the_numbers_of_the_run(tmp_path):
    columns = {"train/q_mean": [-9.0, -5.0, -2.0, -1.0], "train/actor_loss": [4.0, 3.0, 2.0, 1.0]}
    columns |= {"train/success_rate": [0.1, 0.2, 0.3, 0.4], "train/entropy_coefficient": [0.4, 0.3, 0.2, 0.1]}
    columns |= {"test/mean_q": [-8.0, -4.0, -3.0, -2.0], "train/goals_already_achieved": [0.4, 0.3, 0.2, 0.1]}
    plots = plots_of(write_report([write_run(tmp_path / "a", **columns)]))

    def curves(key):
        return {curve["name"]: (curve["x"], curve["y"]) for curve in plots[key]["curves"]}

    steps, seconds = [100, 200, 300, 400], [2.0, 4.0, 6.0, 8.0]
    for x, values in (("env_steps", steps), ("seconds", seconds)):
        assert curves(f"success-{x}") == {
            "training episodes": (values, [0.1, 0.2, 0.3, 0.4]),
            "evaluation": (values, [0.0, 0.5, 1.0, 1.0]),
        }
        assert plots[f"success-{x}"]["bands"][0]["y"] == [0.5, 0.75, 1.0, 1.0, 0.5, 0.5, 0.25, 0.0]
        assert plots[f"success-{x}"]["levels"] == [{"y": 0.95, "text": "solved_at = 95%"}]
        assert plots[f"success-{x}"]["marks"] == [{"x": values[2], "colour": "green", "dash": "dot"}]
        assert curves(f"return-{x}")["evaluation"] == (values, [-50.0, -25.0, 0.0, 0.0])
        half = 1.959964 / 10**0.5
        band = plots[f"return-{x}"]["bands"][0]["y"]
        assert band == pytest.approx([-50 + half, -25 + half, half, half, -half, -half, -25 - half, -50 - half], rel=1e-5)
    assert curves("q") == {
        "training batches": (steps, [-9.0, -5.0, -2.0, -1.0]),
        "evaluation episodes": (steps, [-8.0, -4.0, -3.0, -2.0]),
    }
    bounds = [
        {"y": pytest.approx(-10.0), "text": "lowest possible discounted return"},
        {"y": 0.0, "text": "highest possible discounted return"},
    ]
    assert plots["q"]["levels"] == bounds
    assert curves("critic_loss") == {"critic loss": (steps, [0.5] * 4)}
    assert curves("actor_loss") == {"actor loss": (steps, [4.0, 3.0, 2.0, 1.0])}
    assert curves("entropy_coefficient") == {"entropy coefficient": (steps, [0.4, 0.3, 0.2, 0.1])}
    assert curves("goals_already_achieved") == {"goals already achieved": (steps, [0.4, 0.3, 0.2, 0.1])}
    assert plots["goals-0-1"]["goals"]["evaluated"]["x"] == [n / 10 for n in range(10)] * 4


def test_a_standalone_page_needs_no_other_file(tmp_path):
    run = write_run(tmp_path / "a")
    (run / "play.gif").write_bytes(b"GIF89a-frames")
    text = write_report([run], tmp_path / "alone.html", standalone=True).read_text()
    assert SCRIPT in text
    assert "data:image/gif;base64,R0lGODlhLWZyYW1lcw==" in text
    assert not re.search(r"""(?:src|href)=['"](?!data:|#)""", text)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["alone.html"]


def test_the_video_is_shown(tmp_path):
    run = write_run(tmp_path / "a")
    assert "video" not in [link.key for link in run_page(read_run(run)).sections]
    (run / "play.gif").touch()
    (run / "play.mp4").touch()
    assert '<video src="play.mp4"' in write_report([run]).read_text()


def test_a_run_of_which_little_is_known_has_a_page(tmp_path):
    run = write_run(tmp_path / "a", ())
    (run / "episodes.jsonl").unlink()
    assert "Not evaluated yet" in write_report([run]).read_text()
    assert plots_of(run / "report.html") == {}


def test_several_runs_share_a_page(tmp_path):
    runs = [write_run(tmp_path / f"{agent}-{seed}", agent=agent, seed=seed) for agent in ("td3", "sac") for seed in (0, 1)]
    write_report(runs[:1])
    page = write_report(runs)
    assert page == tmp_path / "comparison.html"
    text = page.read_text()
    assert 'href="td3-0/report.html"' in text
    assert 'href="sac-0/report.html"' not in text


def test_a_folder_in_another_encoding_has_a_report(tmp_path):
    """A name that is not UTF-8, as every name with é is if the locale is not."""
    runs = [write_run(tmp_path / os.fsdecode(name), seed=seed) for seed, name in enumerate((b"run-\xe9", "é".encode()))]
    assert write_report(runs[:1]).exists()
    assert 'href="run-%E9/report.html"' in write_report(runs).read_text()


def test_no_run_is_an_error():
    with pytest.raises(RunFolderError, match="Expected at least one run folder"):
        write_report([])


def test_the_page_of_a_run_that_trains_is_written_at_intervals(tmp_path):
    now, run = [0.0], write_run(tmp_path / "a")
    report = LiveReport(run, lambda: now[0])
    page, seen = run / "report.html", []
    for now[0] in (1.0, 9.0, 10.0, 15.0, 21.0):
        report.refresh()
        seen.append(page.exists() and 'http-equiv="refresh"' in page.read_text())
        page.unlink(missing_ok=True)
    assert seen == [False, False, True, False, True]
    assert report.finish() == page
    assert "http-equiv" not in page.read_text()
    assert list(run.glob("*tmp*")) == []


def test_a_failing_report_does_not_stop_the_run(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by a curve of no length")

    now = [0.0]
    report = LiveReport(write_run(tmp_path / "a"), lambda: now[0])
    now[0] = 20.0
    monkeypatch.setattr(write, "_write_page", fail)
    report.refresh()
    assert report.finish() is None
    assert "no length" in str(report.problem)


def test_the_page_of_a_long_run_is_small(tmp_path):
    rates = [0.5] * 2_000
    run = write_run(tmp_path / "a", rates, **{"train/actor_loss": [i * 1e-3 for i in range(2_000)]})
    assert len(run_page(read_run(run)).to_html()) < 1_000_000  # bytes


def test_a_run_is_a_line_of_the_results(tmp_path):
    path = write_run(tmp_path / "task" / "td3-seed3", (0.5, 1.0, 0.95, 0.9), seed=3)
    versions = {"hindsight-rl": "0.1", "torch": "2.5", "numpy": "2.0"}
    machine = {"python": "3.11", "cores": 2, "commit": "abc", "versions": versions}
    change_settings(path, name="mine", variant="relative", begun="2026-01-02T03:04:05+00:00", machine=machine)
    write_results("mine", [read_run(path)], tmp_path, [])
    [line] = csv.DictReader((tmp_path / "results.csv").read_text().splitlines())
    assert line == {
        "environment": "Task-v0",
        "name": "mine",
        "variant": "relative",
        "agent": "td3",
        "recipe": "mine",
        "seed": "3",
        "solved": "True",
        "steps_to_solve": "200",
        "updates_to_solve": "2000",
        "seconds_to_solve": "4",
        "final_success": "0.9",
        "best_success": "1",
        "eval_episodes": "10",
        "env_steps": "400",
        "check_steps": "",
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


def test_the_steps_of_the_check_are_a_column_of_their_own(tmp_path):
    record = result_of(read_run(write_run(tmp_path / "a", (0.0, 1.0, 1.0), check_steps=[30, 30, 30])))
    assert (record["steps_to_solve"], record["env_steps"], record["check_steps"]) == ("200", "300", "30")


def test_unknown_results_are_empty(tmp_path):
    record = result_of(read_run(write_run(tmp_path / "a", (0.5, 0.5))))
    assert (record["solved"], record["steps_to_solve"], record["seconds_to_solve"], record["time"]) == (False, "", "", "")


def test_the_table_of_results_names_failures(tmp_path):
    write_results("mine", [read_run(write_run(tmp_path / "a"))], tmp_path, ["Other-v0, seed 1: no such simulator"])
    text = (tmp_path / "results.md").read_text()
    assert text.startswith("# mine\n\n```text\ntd3 on Task-v0, none\n  seeds             1\n")
    assert "- Other-v0, seed 1: no such simulator\n" in text
    write_results("mine", [], tmp_path, [])
    assert (tmp_path / "results.md").read_text() == "# mine\n"
    assert (tmp_path / "results.csv").read_text() == ""
