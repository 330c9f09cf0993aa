import numpy as np
import pytest
from run_files import SPEC, change_settings, write_run

from hindsight_rl.report import write
from hindsight_rl.report.comparison import (
    comparison_page,
    comparison_text,
    group_runs,
    ranking,
    success_over_environments,
    summarized,
)
from hindsight_rl.report.run import read_run
from hindsight_rl.report.write import write_comparison


@pytest.fixture
def runs(tmp_path):
    """Two seeds of td3, of which one solves the task, and one of sac."""
    rates = {"td3-0": (0.5, 1.0, 1.0), "td3-1": (0.5, 0.6, 0.7), "sac-0": (0.0, 0.1, 0.2)}
    return [read_run(write_run(tmp_path / name, r, name[:3], int(name[-1]))) for name, r in rates.items()]


def percent(value):
    return f"{value:.0%}"


def test_the_table_has_a_row_per_group(runs):
    td3, sac = (group.cells(np.random.default_rng(0)) for group in group_runs(runs))
    assert (td3["agent"], td3["seeds"], td3["solved"]) == ("td3", "2", "1 of 2")
    assert td3["success"] == "100% and 70%"
    assert td3["mean success"] == td3["IQM of success"] == "85.0% [70.0%, 100.0%]"
    assert (sac["mean success"], td3["updates to solve"]) == ("20.0%", "2,000")
    assert (td3["steps to solve"], td3["check steps"]) == ("200", "unknown")
    assert td3["time to solve"] == "4 s"
    assert td3["time"] == "6 s"
    assert (sac["success"], sac["steps to solve"]) == ("20%", "-")


def test_steps_to_solve_contain_those_of_the_check(tmp_path):
    run = read_run(write_run(tmp_path / "a", (0.0, 1.0, 1.0), check_steps=[30, 30, 30]))
    cells = group_runs([run])[0].cells(np.random.default_rng(0))
    assert (cells["steps to solve"], cells["check steps"]) == ("230", "30")


def test_two_values_are_both_listed_and_three_are_summarized():
    assert summarized([], percent) == "-"
    assert summarized([0.951, 0.949], percent) == "95%"
    assert summarized([0.9, 0.7], percent) == "90% and 70%"
    assert summarized([0.9, 1.0, 0.7], percent) == "90% (70% to 100%)"


def test_the_ranking_starts_with_the_highest_success(runs):
    result = ranking(group_runs(runs[::-1]))
    assert result.level == "partly"
    assert result.title == "Highest success: td3 on Task-v0, none: 70% and 100%"
    assert result.text.endswith("td3 on Task-v0, none: 70% and 100%; sac on Task-v0, none: 20%.")


def test_runs_without_evaluations_have_no_ranking(tmp_path):
    run = read_run(write_run(tmp_path / "a", ()))
    assert ranking(group_runs([run])).title == "No run was evaluated yet"
    assert group_runs([run])[0].cells(np.random.default_rng(0))["best"] == "-"


def test_compare_writes_text_and_page_even_of_one_run(runs, monkeypatch, no_pictures):
    monkeypatch.setattr(write, "_plotly_script", lambda: "")
    text, page = write_comparison([runs[0].path])
    assert page == runs[0].path / "comparison.html"
    assert "success           100%" in text
    text, page = write_comparison([run.path for run in runs])
    assert page == runs[0].path.parent / "comparison.html"
    assert text.splitlines()[0] == "td3 on Task-v0, none"
    assert "sac on Task-v0" in text
    text, page = write_comparison([runs[0].path.parent])
    assert page == runs[0].path.parent / "comparison.html"
    assert text.index("sac on Task-v0") < text.index("td3 on Task-v0")  # found in the order of their names


def test_runs_are_grouped_by_all_that_changes_the_result(tmp_path):
    """By variant, by options of the environment, by any other option. Not by the number of workers."""
    paths = [write_run(tmp_path / str(seed), seed=seed) for seed in range(5)]
    change_settings(paths[0], variant="declared")
    change_settings(paths[1], options={"workers": 2, "checkpoint_every": 5})
    change_settings(paths[2], options={"tau": 0.5})
    change_settings(paths[3], options={"env_options": ["n_bits=30"]})
    groups = {group.name: [run.options.seed for run in group.runs] for group in group_runs(list(map(read_run, paths)))}
    assert groups == {
        "td3 on Task-v0, declared": [0],
        "td3, tau=0.05 on Task-v0, none": [1, 4],
        "td3, tau=0.5 on Task-v0, none": [2],
        "td3 on Task-v0 (n_bits=30), none": [3],
    }


def test_options_that_each_run_found_by_itself_do_not_part_the_seeds(tmp_path):
    paths = [write_run(tmp_path / str(seed), seed=seed) for seed in range(3)]
    for seed, path in enumerate(paths):
        change_settings(path, variant="inferred", options={"tau": 0.1 * seed + 0.1}, reasons={"tau": "found"})
    assert [len(group.runs) for group in group_runs(list(map(read_run, paths)))] == [3]
    change_settings(paths[2], explained={"tau": {"source": "given"}})
    assert len(group_runs(list(map(read_run, paths)))) == 3


def test_a_run_of_a_version_without_an_option_has_its_default(tmp_path):
    """OPTIONS of run_files have no `dtype`, as in runs of older versions."""
    paths = [write_run(tmp_path / str(seed), seed=seed) for seed in range(2)]
    change_settings(paths[1], options={"dtype": None}, explained={"dtype": {"default": None}})
    assert [group.name for group in group_runs(list(map(read_run, paths)))] == ["td3 on Task-v0, none"]
    change_settings(paths[1], options={"dtype": "float64"})
    names = [group.name for group in group_runs(list(map(read_run, paths)))]
    assert names == ["td3, dtype=none on Task-v0, none", "td3, dtype=float64 on Task-v0, none"]


def test_success_over_environments(tmp_path):
    """By hand: of 0.7, 1.0 and 0.2 no quarter is a whole value, so the IQM is the mean. One environment has no line."""

    def run(name, rate, env_id, **more):
        return read_run(write_run(tmp_path / name, (rate,), spec=SPEC | {"env_id": env_id}, **more))

    def lines(runs):
        return success_over_environments(group_runs(runs), np.random.default_rng(0))

    runs = [run("a", 0.7, "A-v0"), run("b", 1.0, "A-v0", seed=1)]
    assert lines(runs) == []
    runs.append(run("c", 0.2, "B-v0"))
    [line] = lines(runs)
    assert line == "all, 3 runs in 2 environments: IQM of success 63.3% [53.3%, 73.3%]"
    assert line in comparison_text(runs)
    runs += [run("d", 0.5, "A-v0", agent="sac"), run("e", 0.4, "C-v0", agent="dqn")]
    assert lines(runs) == [line.replace("all", "td3, none")]


def curves_of(page, key):
    """Return the curves of a plot by their names."""
    [plot] = [plot for section in page.sections for plot in section.plots if plot.key == key]
    return {curve["name"]: curve for curve in plot.curves}


def test_two_seeds_are_drawn_each_and_without_a_median(runs, tmp_path):
    page = comparison_page(runs[:2], tmp_path)
    curves = curves_of(page, "curves-1-test-success_rate-env_steps")
    assert {name: curve["y"] for name, curve in curves.items()} == {
        "td3, none, td3-0": [0.5, 1.0, 1.0],
        "td3, none, td3-1": [0.5, 0.6, 0.7],
    }


def test_three_seeds_have_a_median_against_steps_but_not_against_time(tmp_path):
    rates = [(0.0, 0.1), (0.5, 0.6), (1.0, 0.9)]
    runs = [read_run(write_run(tmp_path / str(i), rate, seed=i)) for i, rate in enumerate(rates)]
    page = comparison_page(runs, tmp_path)
    median = curves_of(page, "curves-1-test-success_rate-env_steps")["td3, none, median"]
    assert (median["y"][0], median["y"][-1]) == (0.5, 0.6)
    assert len(curves_of(page, "curves-1-test-success_rate-seconds")) == 3


def test_entries_of_a_suite_have_their_names_in_every_legend_and_table(tmp_path):
    """Both are td3 on the same task; one declares structure."""
    paths = [write_run(tmp_path / name, (0.0, rate)) for name, rate in (("symmetric", 1.0), ("plain", 0.5))]
    for path, variant in zip(paths, ("declared", "none"), strict=True):
        change_settings(path, name=path.name, variant=variant)
    runs = [read_run(path) for path in paths]
    page = comparison_page(runs, tmp_path)
    names = ["symmetric, td3, declared", "plain, td3, none"]
    plots = [plot for section in page.sections for plot in section.plots]
    assert len(plots) == 6
    for plot in plots:
        assert [(entry.name, entry.colour) for entry in plot.legend] == list(zip(names, ("blue", "orange"), strict=True))
    tables = [table for section in page.sections if section.key == "table" for table in section.tables]
    assert [table.head[:4] for table in tables] == [["environment", "name", "variant", "agent"]] * 2
    assert [[row[1] for row in table.rows] for table in tables] == [["symmetric", "plain"]] * 2
    assert "symmetric, td3 on Task-v0, declared" in comparison_text(runs)
    assert "symmetric, td3 on Task-v0, declared: 100%" in page.verdict.title
    assert runs[0].title == "Task-v0 · symmetric · td3 · seed 0"


def test_variants_of_runs_without_a_name_differ_in_the_legend(tmp_path):
    paths = [write_run(tmp_path / variant) for variant in ("inferred", "none")]
    for path in paths:
        change_settings(path, variant=path.name)
    plot = comparison_page([read_run(path) for path in paths], tmp_path).sections[1].plots[0]
    assert [entry.name for entry in plot.legend] == ["td3, inferred", "td3, none"]


def test_more_groups_than_colours_have_other_kinds_of_lines(tmp_path):
    paths = [write_run(tmp_path / str(n)) for n in range(8)]
    for n, path in enumerate(paths):
        change_settings(path, name=f"entry {n}")
    plot = comparison_page([read_run(path) for path in paths], tmp_path).sections[1].plots[0]
    assert len({(entry.colour, entry.dash) for entry in plot.legend}) == 8


def test_options_that_differ_are_listed_by_group(tmp_path):
    paths = [write_run(tmp_path / str(seed), seed=seed) for seed in range(4)]
    for path in paths[2:]:
        change_settings(path, options={"tau": 0.5})
    [table] = comparison_page([read_run(path) for path in paths], tmp_path).sections[1].tables
    assert table.head == ("option", "td3, tau=0.05, none", "td3, tau=0.5, none")
    assert table.rows == [["tau", "0.05", "0.5"]]


def test_a_run_without_evaluations_has_no_curve(tmp_path):
    rates = {"early": (), "one": (0.0, 1.0), "two": (0.5, 0.5)}
    paths = [write_run(tmp_path / name, rate, seed=seed) for seed, (name, rate) in enumerate(rates.items())]
    page = comparison_page([read_run(path) for path in paths], tmp_path)
    assert list(curves_of(page, "curves-1-test-success_rate-env_steps")) == ["td3, none, one", "td3, none, two"]
