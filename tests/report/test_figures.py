import numpy as np
from run_files import change_settings, write_changes, write_run

from hindsight_rl.records import Finding
from hindsight_rl.report.figures import Plot, finding_plots, health, learning, rounded
from hindsight_rl.report.page import findings_section
from hindsight_rl.report.run import read_run

HIDDEN = Finding("column", "column 4", "is hidden", "it adds little", (), 0.01, -0.02, 0.04, 0.1)
SHOWN = Finding("column", "column 5", "is shown", "it adds much", (), 0.6, 0.4, 0.8, 0.1)


def test_numbers_are_short_and_json():
    assert rounded(np.array([1 / 3, 1234567.8, np.nan, np.inf])) == [0.333333, 1234570.0, None, None]


def test_a_short_metric_is_one_curve_labelled_with_its_last_value(tmp_path):
    plot = Plot("key", "Title", "Caption")
    plot.metric(read_run(write_run(tmp_path / "a")), np.array([1.0, np.nan, 3.0, 0.12345]), "loss", "blue")
    [curve] = plot.curves
    assert curve == {
        "x": [100, 300, 400],
        "y": [1.0, 3.0, 0.12345],
        "name": "loss",
        "colour": "blue",
        "width": 2.2,
        "label": "0.123",
        "dash": "solid",
    }


def test_a_long_metric_is_drawn_with_its_moving_mean(tmp_path):
    plot = Plot("key", "Title", "Caption")
    plot.metric(read_run(write_run(tmp_path / "a", (0.0,) * 40)), np.arange(40.0), "loss", "blue")
    thin, thick = plot.curves
    assert (thin["name"], thin["width"], thin["y"]) == ("loss", 1, list(range(40)))
    assert (thick["name"], thick["y"][:3], thick["label"]) == ("loss, mean of 2 records", [0.0, 0.5, 1.5], "38.5")


def test_values_at_or_below_zero_have_no_place_on_a_logarithmic_axis(tmp_path):
    plot = Plot("key", "Title", "Caption", scale="log")
    plot.metric(read_run(write_run(tmp_path / "a")), np.array([1.0, 0.0, -1.0, 2.0]), "loss", "blue")
    assert plot.curves[0]["y"] == [1.0, 2.0]


def test_a_band_is_the_outline_of_an_area():
    plot = Plot("key", "Title", "Caption")
    plot.band(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.1, np.nan]), np.array([1.0, 0.9, 0.8]), "blue")
    assert plot.bands == [{"x": [1, 2, 2, 1], "y": [1.0, 0.9, 0.1, 0.0], "colour": "blue@0.16"}]


def plot_of(plots, key):
    [plot] = [plot for plot in plots if plot.key == key]
    return plot


def test_the_return_of_training_episodes_is_not_drawn_beside_that_of_evaluations(tmp_path):
    """Episodes that are cut short add up fewer rewards, which looks like success: here 0.5 of the steps are played."""
    lengths = {"train/return": [-50.0, -25.0, -25.0, -25.0], "train/episode_steps": [50, 25, 25, 25]}
    path = change_settings(write_run(tmp_path / "a", **lengths), options={"lowest_achieved": [0.0, 0.0]})
    run = read_run(path)
    returns = plot_of(learning(run), "return-env_steps")
    assert [curve["name"] for curve in returns.curves] == ["evaluation"]
    assert "cut short" in returns.caption
    plots = health(run)
    assert [curve["y"] for curve in plot_of(plots, "reward_per_step").curves] == [[-1.0] * 4]
    steps = plot_of(plots, "episode_steps")
    assert [curve["y"] for curve in steps.curves] == [[50, 25, 25, 25]]
    assert steps.caption == "Mean length. Episodes are cut short by the options lowest_achieved."


def test_episodes_that_are_all_as_long_have_no_plot_of_their_length(tmp_path):
    run = read_run(write_run(tmp_path / "a", **{"train/episode_steps": [50] * 4}))
    assert "episode_steps" not in [plot.key for plot in health(run)]


def test_changes_of_options_and_new_agents_are_marked_on_every_curve(tmp_path):
    path = write_run(tmp_path / "a", **{"train/actor_loss": [1.0] * 4})
    write_changes(path, (150, 3.0, "noise", ""), (250, 5.0, "noise", "its success was low"))
    run = read_run(path)
    options, agent = {"colour": "muted", "dash": "dot"}, {"colour": "red", "dash": "dash"}
    for plot in (*learning(run), *health(run)):
        first, second = (150, 250) if plot.x == "env_steps" else (3.0, 5.0)
        assert {"x": first, **options} in plot.marks, plot.key
        assert {"x": second, **agent} in plot.marks, plot.key
        assert {"options change", "a new agent takes over"} <= {entry.name for entry in plot.legend}, plot.key


def test_an_axis_is_logarithmic_if_the_values_have_a_wide_range():
    """A narrow one would have a label at each tenth, which overlap."""
    plots = [Plot("key", "Title", "", scale="log") for _ in range(3)]
    for plot, high in zip(plots, (5.0, 500.0, 500.0), strict=True):
        plot.curve(np.array([1.0, 2.0]), np.array([1.0, high]), "loss", "blue")
    plots[2].curve(np.array([1.0]), np.array([-1.0]), "below", "blue")
    assert [plot.is_log for plot in plots] == [False, True, False]


def test_the_unit_of_time_suits_the_longest_curve():
    names = []
    for longest in (100.0, 1_000.0, 100_000.0):
        plot = Plot("key", "Title", "", x="seconds")
        plot.curve(np.array([1.0, longest]), np.array([0.0, 1.0]), "loss", "blue")
        names.append((plot.unit.size, plot.unit.title.split()[0]))
    assert names == [(1, "seconds"), (60, "minutes"), (3600, "hours")]


def test_columns_are_drawn_with_their_intervals_and_the_limit():
    (plot,) = finding_plots([HIDDEN, SHOWN])
    assert [(row["label"], row["low"], row["value"], row["high"], row["colour"]) for row in plot.rows] == [
        ("column 4", -0.02, 0.01, 0.04, "blue"),
        ("column 5", 0.4, 0.6, 0.8, "orange"),
    ]
    assert [row["limit"] for row in plot.rows] == [0.1, 0.1]


def test_each_column_stands_in_the_row_of_its_role():
    agent, other = (
        Finding("group", "agent columns", "are 0, 2", "", (0, 2)),
        Finding("group", "gap columns", "are 1", "", (1,)),
    )
    (plot,) = finding_plots([agent, other])
    assert [(row["label"], row["value"]) for row in plot.rows] == [("agent", 0), ("agent", 2), ("gap", 1)]


def test_a_column_without_a_figure_is_in_the_table_and_not_in_the_plot():
    constant = Finding("column", "column 3", "is hidden", "it never changes")
    section = findings_section([constant], finding_plots([constant]))
    assert section.plots == []
    assert section.tables[0].rows == [("column", "column 3 is hidden", "it never changes")]


def test_a_symmetry_that_follows_from_others_is_drawn_as_used():
    verdicts = ("holds", "follows from others", "is uncertain, so it is not used", "does not hold")
    (plot,) = finding_plots([Finding("symmetry", "mirror", each, "", (), 0.1, 0.0, 0.2, 0.35) for each in verdicts])
    assert [row["colour"] for row in plot.rows] == ["blue", "blue", "orange", "orange"]
