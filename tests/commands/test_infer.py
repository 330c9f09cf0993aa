import sys
import tomllib
from pathlib import Path

import pytest

from hindsight_rl import HER
from hindsight_rl.cli import main
from hindsight_rl.commands.tasks import infer_task, save_choices
from hindsight_rl.errors import FileError
from hindsight_rl.options import Choice
from hindsight_rl.records import Finding
from hindsight_rl.report.write import write_findings

sys.path.insert(0, str(Path(__file__).parents[1] / "structure"))
from push_tasks import Push


def test_a_task_whose_goal_the_action_moves_needs_random_steps_alone(capsys):
    assert main(["infer", "PointReach-v0", "--steps", "100"]) == 0
    assert "not found: no object" in capsys.readouterr().out


def test_bits_have_no_parts_and_the_command_says_why(capsys):
    assert main(["infer", "BitFlipping-v0"]) == 0
    assert "not found: parts, contact, hidden columns and symmetries" in capsys.readouterr().out


def test_a_recipe_is_written_that_train_reads(tmp_path, no_pictures):
    path = tmp_path / "point.toml"
    symmetry = "o0=-o0 g0=-g0 a0=-a0"
    save_choices("PointReach-v0", [Choice("symmetries", (symmetry,), "it held in 300 steps")], path)
    assert "# it held in 300 steps" in path.read_text()
    assert tomllib.loads(path.read_text())["options"] == {"symmetries": [symmetry]}
    run = ["train", "PointReach-v0", "--recipe", str(path), "--steps", "60", "--random-steps", "30", "--eval-every", "0"]
    assert main([*run, "--hidden", "8", "--folder", str(tmp_path / "run"), "--no-check"]) == 0


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.toml"):
        save_choices("PointReach-v0", [], tmp_path / "point.txt")


@pytest.mark.slow
def test_the_same_episodes_give_the_same_verdicts_in_infer_and_train():
    options = {"hidden": (8,), "batch_size": 8, "updates_per_step": 0.05}
    with HER(Push, recipe="default", structure="inferred", seed=3, **options) as model:
        trainer = model.trainer
        while trainer.search.is_warm_up:
            trainer.learn_from_next_job()
    inferred = infer_task(Push, 0, seed=3)
    assert inferred.env_steps == trainer.counts.env_steps
    assert inferred.findings == trainer.findings
    assert {"part", "group", "contact"} <= {finding.kind for finding in inferred.findings}
    assert inferred.not_found == trainer.not_found
    assert {each.option: each.reason for each in inferred.choices}.items() <= trainer.settings.reasons.items()


@pytest.mark.parametrize("suffix", ["html", "svg", "png"])
def test_what_was_found_is_drawn_in_the_format_of_the_suffix(suffix, tmp_path):
    path = tmp_path / f"push.{suffix}"
    finding = Finding("column", "column 4", "is hidden", "it adds little", (), 0.01, -0.02, 0.04, 0.1)
    write_findings([finding], "Push-v0", path)
    assert {"html": b"it adds little", "svg": b"<svg", "png": b"\x89PNG"}[suffix] in path.read_bytes()


def test_another_suffix_of_a_plot_is_refused_before_a_step(tmp_path):
    assert main(["infer", "PointReach-v0", "--plot", str(tmp_path / "point.pdf")]) == 1
