import numpy as np
import pytest

from hindsight_rl.task_structure.affine import AffineColumns, Posture


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("0,12", AffineColumns.plain((0, 12))),
        ("2.5*o0+1,-o1", AffineColumns((0, 1), (2.5, -1.0), (1.0, 0.0))),
        ("o3-0.25,-1e-3*o4", AffineColumns((3, 4), (1.0, -1e-3), (-0.25, 0.0))),
        ("8-o2,2*o9+1+0.5*o3,7", AffineColumns((8, 9, 7), (1.0, 2.0, 1.0), (0.0, 1.0, 0.0), (2, 3, 7), (-1.0, 0.5, 0.0))),
    ],
)
def test_columns_are_read_and_written(text, columns):
    assert AffineColumns.parse(text) == columns
    assert AffineColumns.parse(columns.text()) == columns


def test_the_values_of_columns():
    seen = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert AffineColumns.parse("2*o1-1,0").of(seen).tolist() == [[3, 1], [7, 3]]
    assert AffineColumns.plain((1,)).of(seen[0]).tolist() == [2]
    assert AffineColumns.parse("2*o1-1-0.5*o0,0").of(seen).tolist() == [[2.5, 1], [5.5, 3]]
    assert AffineColumns.parse("1-o0").all_columns == {0, 1}
    assert AffineColumns.parse("1,o0").all_columns == {0, 1}


def test_a_function_of_a_sum_of_columns():
    """By hand: 3 * (2 * o1 - o0) + 1."""
    outer = AffineColumns((7,), (3.0,), (1.0,))
    assert outer.after(AffineColumns.parse("2*o1-o0")).text() == "6*o1+1-3*o0"


def test_a_posture_has_cosine_and_sine_of_its_angles():
    posture = Posture((0, 1), (1.0, 2.0), (0.0, -1.0), angles=(1,), radians=(0.5,), means=(0.25, 0.75))
    seen = np.array([[3.0, np.pi]])
    assert posture.of(seen)[0] == pytest.approx([3, 2 * np.pi - 1, -0.25, 0.25])
    in_other_units = posture.after(AffineColumns((0, 1), (10.0, 1.0), (0.0, 0.0)))
    assert in_other_units.of(seen)[0] == pytest.approx([30, 2 * np.pi - 1, -0.25, 0.25])
    assert Posture.plain((0,)).of(seen).tolist() == [[3.0]]


@pytest.mark.parametrize("text", ["", "0,", "a1", "2*", "1+1+1"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="Cannot read the columns"):
        AffineColumns.parse(text)
