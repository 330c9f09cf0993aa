import pytest
from run_files import write_run

from hindsight.report import write
from hindsight.report.comparison import HEAD, headline, kinds_of, rows, spread
from hindsight.report.run import read_run
from hindsight.report.write import write_comparison


@pytest.fixture
def runs(tmp_path):
    """Two seeds of td3, of which one solves the task, and one of sac."""
    rates = {"td3-0": (0.5, 1.0, 1.0), "td3-1": (0.5, 0.6, 0.7), "sac-0": (0.0, 0.1, 0.2)}
    return [read_run(write_run(tmp_path / name, r, name[:3], int(name[-1]))) for name, r in rates.items()]


def test_median_and_range_over_seeds(runs):
    td3, sac = (dict(zip(HEAD, row, strict=True)) for row in rows(kinds_of(runs)))
    assert (td3["agent"], td3["seeds"], td3["solved"]) == ("td3", "2", "1 of 2")
    assert td3["success"] == "85% (70% to 100%)"
    assert td3["steps to solve"] == "200"
    assert td3["time to solve"] == "4 s"
    assert td3["time"] == "6 s"
    assert (sac["success"], sac["steps to solve"]) == ("20%", "-")


def test_a_spread_of_like_values_is_one_value():
    assert spread([0.951, 0.949], ".0%") == "95%"
    assert spread([1.0, 3.0, 2.0], ".1f") == "2.0 (1.0 to 3.0)"
    assert spread([], ".0%") == "-"


def test_the_headline_names_the_best_first(runs):
    said = headline(kinds_of(runs[::-1]))
    assert said.level == "partly"
    assert said.title == "td3 on Task-v0: 85% (70% to 100%) of unseen episodes succeed"
    assert said.text.endswith("td3 on Task-v0: 85% (70% to 100%); sac on Task-v0: 20%.")


def test_compare_tells_and_draws_even_one_run(runs, monkeypatch):
    monkeypatch.setattr(write, "_plotly", lambda: "")
    told, page = write_comparison([runs[0].path])
    assert page == runs[0].path / "comparison.html"
    assert "success          100%" in told
    told, page = write_comparison([run.path for run in runs])
    assert page == runs[0].path.parent / "comparison.html"
    assert told.splitlines()[0] == "td3 on Task-v0"
    assert "sac on Task-v0" in told
    assert "Nothing but their seeds" in page.read_text()
