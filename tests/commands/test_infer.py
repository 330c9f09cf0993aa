import tomllib

import numpy as np
import pytest

from hindsight.cli import main
from hindsight.commands.infer import RandomActions, infer_task, save_structure
from hindsight.errors import FileError
from hindsight.records import ArraySpec


def test_random_actions_are_repeated_and_within_the_bounds():
    act = RandomActions(ArraySpec((2,), "float32", (-1.0, 0.0), (1.0, 3.0)), np.random.default_rng(0))
    actions = np.array([act({}) for _ in range(200)])
    assert actions.dtype == np.float32
    assert (actions.min(0) >= (-1.0, 0.0)).all()
    assert (actions.max(0) <= (1.0, 3.0)).all()
    assert 50 <= np.any(np.diff(actions, axis=0) != 0, axis=1).sum() <= 100


def test_the_same_seed_gives_the_same_structure():
    first, second = (infer_task("PointReach-v0", steps=300, seed=3).options() for _ in range(2))
    assert first == second == {"goal_features": "relative"}


def test_a_recipe_is_written_that_train_reads(tmp_path, capsys):
    path = tmp_path / "point.toml"
    assert main(["infer", "PointReach-v0", "--steps", "300", "--output", str(path)]) == 0
    assert f"hindsight train PointReach-v0 --recipe {path}" in capsys.readouterr().out
    assert tomllib.loads(path.read_text())["options"] == {"goal_features": "relative"}
    arguments = [
        "train",
        "PointReach-v0",
        "--recipe",
        str(path),
        "--steps",
        "60",
        "--random-steps",
        "30",
        "--eval-every",
        "0",
    ]
    assert main([*arguments, "--folder", str(tmp_path / "run"), "--no-check"]) == 0


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.toml"):
        save_structure("PointReach-v0", 1, infer_task("PointReach-v0", 300, 0), tmp_path / "point.txt")
