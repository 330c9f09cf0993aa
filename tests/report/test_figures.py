import numpy as np
from run_files import write_run

from hindsight.report.figures import Plot, rounded
from hindsight.report.run import read_run


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
