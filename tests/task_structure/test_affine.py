import numpy as np
import pytest

from hindsight_rl.task_structure.affine import AffineColumns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("0,12", AffineColumns.plain((0, 12))),
        ("2.5*o0+1,-o1", AffineColumns((0, 1), (2.5, -1.0), (1.0, 0.0))),
        ("o3-0.25,-1e-3*o4", AffineColumns((3, 4), (1.0, -1e-3), (-0.25, 0.0))),
    ],
)
def test_columns_are_read_and_written(text, columns):
    assert AffineColumns.parse(text) == columns
    assert AffineColumns.parse(columns.text()) == columns


def test_the_values_of_columns():
    seen = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert AffineColumns.parse("2*o1-1,0").of(seen).tolist() == [[3, 1], [7, 3]]
    assert AffineColumns.plain((1,)).of(seen[0]).tolist() == [2]


@pytest.mark.parametrize("text", ["", "0,", "a1", "2*", "1+1+1"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="Cannot read the columns"):
        AffineColumns.parse(text)
