import tomllib

import pytest

from hindsight_rl.cli import main
from hindsight_rl.commands.infer import save_choices
from hindsight_rl.errors import FileError
from hindsight_rl.options import Choice


def test_a_task_whose_goal_the_action_moves_needs_random_steps_alone(capsys):
    assert main(["infer", "PointReach-v0", "--steps", "100"]) == 0
    assert "not found: no object" in capsys.readouterr().out


def test_bits_are_refused(capsys):
    assert main(["infer", "BitFlipping-v0"]) == 1
    assert "flat arrays of floats" in capsys.readouterr().err


def test_a_recipe_is_written_that_train_reads(tmp_path):
    path = tmp_path / "point.toml"
    symmetry = "o0=-o0 g0=-g0 a0=-a0"
    save_choices("PointReach-v0", [Choice("symmetries", (symmetry,), "it held in 300 steps")], path)
    assert "# it held in 300 steps" in path.read_text()
    assert tomllib.loads(path.read_text())["options"] == {"symmetries": [symmetry]}
    run = ["train", "PointReach-v0", "--recipe", str(path), "--steps", "60", "--random-steps", "30", "--eval-every", "0"]
    assert main([*run, "--folder", str(tmp_path / "run"), "--no-check"]) == 0


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.toml"):
        save_choices("PointReach-v0", [], tmp_path / "point.txt")
