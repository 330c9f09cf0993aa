import json
import re

import pytest
from run_files import write_run

from hindsight.errors import RunFolderError
from hindsight.report import live, write
from hindsight.report.live import LiveReport
from hindsight.report.page import Form, run_page
from hindsight.report.run import read_run
from hindsight.report.write import write_report

SCRIPT = "var Plotly = 'of seven letters';"


@pytest.fixture(autouse=True)
def plotly(monkeypatch):
    """The page does not care what the script says; a browser does, and has a test of its own."""
    monkeypatch.setattr(write, "_plotly", lambda: SCRIPT)


def panels_of(page):
    data = re.search(r"<script type='application/json' id='panels'>(.*?)</script>", page.read_text(), re.S).group(1)
    return {panel["key"]: panel for panel in json.loads(data)}


def test_a_page_holds_every_plot(tmp_path):
    run = write_run(tmp_path / "a", **{"train/goals_already_achieved": [0.1] * 4, "train/actor_loss": [1.0] * 4})
    page = write_report([run])
    assert page == run / "report.html"
    curves = {"success-steps", "success-time", "return-steps", "return-time", "critic-loss", "actor-loss", "q"}
    rest = {"goals-already-achieved", "goals-1", "goals-2", "coverage", "steps-per-second", "updates-per-second"}
    assert set(panels_of(page)) == curves | rest
    assert (run / "plotly.min.js").read_text() == SCRIPT
    assert "<script src='plotly.min.js'>" in page.read_text()


def test_curves_hold_the_runs_numbers(tmp_path):
    panels = panels_of(write_report([write_run(tmp_path / "a", **{"train/q_mean": [-9.0, -5.0, -2.0, -1.0]})]))
    blue = next(t for t in panels["success-steps"]["traces"] if t.get("name") == "evaluation")
    assert blue["x"] == [100, 200, 300, 400]
    assert blue["y"] == [0.0, 0.5, 1.0, 1.0]
    assert panels["success-time"]["traces"][-1]["x"] == [2.0, 4.0, 6.0, 8.0]
    assert panels["steps-per-second"]["traces"][0]["y"] == [200.0] * 4
    assert panels["updates-per-second"]["traces"][0]["y"] == pytest.approx([1000 / 1.5] * 4, rel=1e-4)
    goals = panels["goals-2"]["goals"]
    assert goals["steps"] == [100, 200, 300, 400]
    assert goals["evaluated"]["x"][3] == pytest.approx(0.3, abs=0.05)  # few values are spread a little
    assert goals["evaluated"]["success"][10:20] == [1] * 5 + [0] * 5
    levels = [note["text"] for note in panels["q"]["layout"]["annotations"]]
    assert "highest possible return" in levels


def test_options_say_who_chose_them_and_what_they_mean(tmp_path):
    text = write_report([write_run(tmp_path / "a")]).read_text()
    discount = re.search(r"<tr[^>]*><th><code>discount</code>.*?</tr>", text).group()
    assert "<b>0.9</b>" in discount
    assert "you" in discount
    assert "default 0.98, recipe 0.95" in discount
    assert "what a reward is worth one step later" in discount
    tau = re.search(r"<tr[^>]*><th><code>tau</code>.*?</tr>", text).group()
    assert ">recipe<" in tau
    assert "changed" not in re.search(r"<tr[^>]*><th><code>hidden</code>", text).group()
    assert "numpy" in text


def test_a_page_that_stands_alone_names_no_other_file(tmp_path):
    run = write_run(tmp_path / "a")
    (run / "play.gif").write_bytes(b"GIF89a-frames")
    text = write_report([run], tmp_path / "alone.html", standalone=True).read_text()
    assert SCRIPT in text
    assert "data:image/gif;base64,R0lGODlhLWZyYW1lcw==" in text
    assert not re.search(r"(?:src|href)='(?!data:|#)", text)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["alone.html"]


def test_the_video_is_shown(tmp_path):
    run = write_run(tmp_path / "a")
    (run / "play.gif").touch()
    (run / "play.mp4").touch()
    assert "<video src='play.mp4'" in write_report([run]).read_text()


def test_a_hostile_name_is_only_text(tmp_path):
    spec = {"env_id": "</script><script>alert(1)</script>", "reward_low": 0.0, "reward_high": 1.0}
    assert "<script>alert" not in write_report([write_run(tmp_path / "a", spec=spec)]).read_text()


def test_a_run_of_which_little_is_known_has_a_page(tmp_path):
    run = write_run(tmp_path / "a", ())
    (run / "episodes.jsonl").unlink()
    assert "cannot be told yet" in write_report([run]).read_text()
    assert panels_of(run / "report.html") == {}


def test_several_runs_share_a_page(tmp_path):
    runs = [write_run(tmp_path / f"{agent}-{seed}", agent=agent, seed=seed) for agent in ("td3", "sac") for seed in (0, 1)]
    write_report(runs[:1])
    page = write_report(runs)
    assert page == tmp_path / "comparison.html"
    text = page.read_text()
    assert "href='td3-0/report.html'" in text
    assert "href='sac-0/report.html'" not in text
    names = [trace.get("name") for trace in panels_of(page)["curves-1-test-success_rate-steps"]["traces"]]
    assert "td3, median of 2" in names
    assert "sac, median of 2" in names


def test_no_run_is_an_error():
    with pytest.raises(RunFolderError, match="no run is named"):
        write_report([])


def test_a_run_under_way_is_written_now_and_then(tmp_path):
    now, run = [0.0], write_run(tmp_path / "a")
    report = LiveReport(run, lambda: now[0])
    page, seen = run / "report.html", []
    for now[0] in (1.0, 9.0, 10.0, 15.0, 21.0):
        report.refresh()
        seen.append(page.exists())
        page.unlink(missing_ok=True)
    assert seen == [False, False, True, False, True]
    report._due = now[0]
    report.refresh()
    assert "http-equiv='refresh'" in page.read_text()
    assert report.finish() == page
    assert "http-equiv" not in page.read_text()
    assert list(run.glob("*tmp*")) == []


def test_a_report_that_fails_stops_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by a curve of no length")

    report = LiveReport(write_run(tmp_path / "a"), lambda: 0.0)
    report._due = 0.0
    monkeypatch.setattr(live, "write_page", fail)
    report.refresh()
    assert report.finish() is None
    assert "no length" in str(report.problem)


def test_the_page_of_a_long_run_is_small(tmp_path):
    rates = [0.5] * 2_000
    run = write_run(tmp_path / "a", rates, **{"train/actor_loss": [i * 1e-3 for i in range(2_000)]})
    assert len(run_page(read_run(run), Form())) < 1_000_000  # bytes
