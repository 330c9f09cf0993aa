import os

import pytest

from hindsight_rl.training.compiling import is_compiled


@pytest.mark.parametrize(
    ("name", "age", "expected"),
    [("loops.add-3.py311.1.nbc", -1.0, True), ("loops.add-3.py311.1.nbc", 1.0, False), ("other.add-3.nbc", -1.0, False)],
)
def test_loops_are_compiled_if_the_cache_is_newer_than_their_source(tmp_path, name, age, expected):
    source = tmp_path / "loops.py"
    for file in (source, tmp_path / name):
        file.touch()
    changed = source.stat().st_mtime
    os.utime(tmp_path / name, (changed - age, changed - age))
    assert is_compiled(tmp_path, source) is expected


def test_loops_are_not_compiled_without_a_cache(tmp_path):
    (tmp_path / "loops.py").touch()
    assert not is_compiled(tmp_path / "missing", tmp_path / "loops.py")
