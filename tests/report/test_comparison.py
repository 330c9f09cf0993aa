import json

import numpy as np
import pytest
from run_files import SPEC, write_run

from hindsight.report import write
from hindsight.report.comparison import HEAD, comparison_page, headline, kinds_of, markdown, overall, rows, spread
from hindsight.report.page import Form
from hindsight.report.run import read_run
from hindsight.report.write import write_comparison


@pytest.fixture
def runs(tmp_path):
    """Two seeds of td3, of which one solves the task, and one of sac."""
    rates = {"td3-0": (0.5, 1.0, 1.0), "td3-1": (0.5, 0.6, 0.7), "sac-0": (0.0, 0.1, 0.2)}
    return [read_run(write_run(tmp_path / name, r, name[:3], int(name[-1]))) for name, r in rates.items()]


def test_median_and_range_over_seeds(runs):
    td3, sac = (dict(zip(HEAD, row, strict=True)) for row in rows(kinds_of(runs), np.random.default_rng(0)))
    assert (td3["agent"], td3["seeds"], td3["solved"]) == ("td3", "2", "1 of 2")
    assert td3["success"] == "85% (70% to 100%)"
    assert td3["mean success"] == td3["IQM of success"] == "85.0% [70.0%, 100.0%]"
    assert (sac["mean success"], td3["updates to solve"]) == ("20.0%", "2,000")
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
    assert said.title == "td3 on Task-v0, plain: 85% (70% to 100%) of unseen episodes succeed"
    assert said.text.endswith("td3 on Task-v0, plain: 85% (70% to 100%); sac on Task-v0, plain: 20%.")


def test_compare_tells_and_draws_even_one_run(runs, monkeypatch):
    monkeypatch.setattr(write, "_plotly", lambda: "")
    told, page = write_comparison([runs[0].path])
    assert page == runs[0].path / "comparison.html"
    assert "success           100%" in told
    told, page = write_comparison([run.path for run in runs])
    assert page == runs[0].path.parent / "comparison.html"
    assert told.splitlines()[0] == "td3 on Task-v0, plain"
    assert "sac on Task-v0" in told
    assert "Nothing but their seeds" in page.read_text()
    told, page = write_comparison([runs[0].path.parent])
    assert page == runs[0].path.parent / "comparison.html"
    assert told.index("sac on Task-v0") < told.index("td3 on Task-v0")  # found by name


def change(path, **changes):
    place = path / "settings.json"
    settings = json.loads(place.read_text())
    settings["options"] |= changes.pop("options", {})
    place.write_text(json.dumps(settings | changes))
    return read_run(path)


def test_what_differs_by_more_than_its_seed_is_told_apart(tmp_path):
    """By variant, by what the environment was made with, by any other option; not by how many workers helped."""
    runs = [
        change(write_run(tmp_path / "0"), variant="subgoals"),
        change(write_run(tmp_path / "1", seed=1), variant="plain", options={"workers": 2, "checkpoint_every": 5}),
        change(write_run(tmp_path / "2", seed=2), variant="plain", options={"tau": 0.5}),
        change(write_run(tmp_path / "3", seed=3), variant="plain", options={"env_options": ["n_bits=30"]}),
        change(write_run(tmp_path / "4", seed=4), variant="plain"),
    ]
    kinds = {kind.name: [run.seed for run in kind.runs] for kind in kinds_of(runs)}
    assert kinds == {
        "td3 on Task-v0, subgoals": [0],
        "td3, tau=0.05 on Task-v0, plain": [1, 4],
        "td3, tau=0.5 on Task-v0, plain": [2],
        "td3 on Task-v0 (n_bits=30), plain": [3],
    }


def test_all_environments_together(tmp_path):
    """By hand: of 0.7, 1.0 and 0.2 none is a quarter, so that the IQM is the mean. One alone has no such line."""

    def run(name, rate, env_id, **more):
        return read_run(write_run(tmp_path / name, (rate,), spec=SPEC | {"env_id": env_id}, **more))

    runs = [run("a", 0.7, "A-v0"), run("b", 1.0, "A-v0", seed=1)]
    assert overall(kinds_of(runs), np.random.default_rng(0)) == ""
    runs.append(run("c", 0.2, "B-v0"))
    said = overall(kinds_of(runs), np.random.default_rng(0))
    assert said == "all, 3 runs in 2 environments: IQM of success 63.3% [53.3%, 73.3%]"
    assert said in markdown(runs)
    runs += [run("d", 0.5, "A-v0", agent="sac"), run("e", 0.4, "C-v0", agent="dqn")]
    assert overall(kinds_of(runs), np.random.default_rng(0)) == said.replace("all", "td3, plain")


def test_curves_bear_the_names_of_their_runs_where_one_has_none(tmp_path):
    rates = {"early": (), "one": (0.0, 1.0), "two": (0.5, 0.5)}
    paths = [write_run(tmp_path / name, rate, seed=seed) for seed, (name, rate) in enumerate(rates.items())]
    page = comparison_page([read_run(path) for path in paths], Form(), tmp_path)
    assert [f"td3 {name}" in page for name in rates] == [False, True, True]
