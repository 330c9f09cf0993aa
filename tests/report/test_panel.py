import numpy as np
import pytest

from hindsight.report.panel import Axis, Drawing, digits, logarithmic_ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.001, 100.0, [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]),
        (0.09, 1.0, [0.1, 0.2, 0.5, 1.0]),
        (0.19, 0.45, [0.2, 0.3, 0.4]),
        (0.31, 0.32, []),
    ],
)
def test_logarithmic_ticks_are_round_and_few(low, high, ticks):
    assert logarithmic_ticks(low, high) == ticks


def test_labels_stand_apart():
    drawing = Drawing(Axis("steps", "steps", np.arange(2.0)))
    for y in (10.0, 0.0, 0.1):
        drawing.line(np.arange(2.0), np.array([0.0, y]), "", "var:blue")
        drawing.label(1.0, y, f"{y}", "var:blue")
    placed = {note["text"]: note["y"] for note in drawing.layout()["annotations"]}
    assert placed == {"0.0": 0.0, "0.1": pytest.approx(1.0), "10.0": 10.0}


def test_numbers_are_short_and_json():
    assert digits(np.array([1 / 3, 123456.7, np.nan, np.inf])) == [0.33333, 123460.0, None, None]
