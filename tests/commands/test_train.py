import io
import json
import os
import re
import signal

import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl import HER, PointReach
from hindsight_rl.cli import main
from hindsight_rl.commands.terminal import TrainDisplay
from hindsight_rl.commands.train import Training, folder_name
from hindsight_rl.recipes import load_recipe


def test_an_environment_as_the_name_of_a_folder():
    assert folder_name("FetchReach-v4") == "FetchReach-v4"
    assert folder_name("dock:Dock-v0", ["n_bits=3", 'reward="a/b"']) == "dock_Dock-v0_n_bits=3_reward=_a_b_"
    assert len(folder_name("x" * 500)) == 100


class WithUnusedKey(PointReach):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict({**self.observation_space, "fuel": spaces.Box(0, 1, (1,), np.float32)})

    def reset(self, **arguments):
        observation, info = super().reset(**arguments)
        return {**observation, "fuel": np.ones(1, np.float32)}, info

    def step(self, action):
        observation, *others = super().step(action)
        return {**observation, "fuel": np.ones(1, np.float32)}, *others


def test_a_default_of_the_command_line_is_not_an_option_of_the_user(tmp_path):
    arguments = ["train", "PointReach-v0", "--folder", str(tmp_path), "--steps", "50", "--eval-every", "0", "--no-check"]
    assert main(arguments) == 0
    explained = json.loads((tmp_path / "settings.json").read_text())["explained"]
    assert explained["workers"]["source"] == "command"
    assert explained["steps"]["source"] == "given"


def test_warnings_of_the_check_are_written_to_the_run_folder(tmp_path):
    with HER(WithUnusedKey, check=True, steps=40, random_steps=40, hidden=(8,), eval_every=0) as model:
        assert Training(model, "WithUnusedKey", tmp_path, False, ()).run() == 0
    (sentence,) = json.loads((tmp_path / "settings.json").read_text())["check"]
    assert sentence.startswith("spaces: ")
    assert "Not used: fuel" in sentence


RUN = ["train", "PointReach-v0", "--recipe", "default", "--hidden", "8", "--batch-size", "8", "--random-steps", "200"]
RUN += ["--updates-per-step", "0.05", "--eval-every", "0", "--workers", "0"]


@pytest.mark.parametrize(("steps", "structure"), [("300", "inferred"), ("300", "none")])
def test_the_recipe_that_a_run_writes_at_its_end_holds_what_it_found(tmp_path, monkeypatch, capsys, steps, structure):
    monkeypatch.chdir(tmp_path)
    options = ["--steps", steps, "--structure", structure, "--save-recipe", "mine.toml"]
    assert main([*RUN, *options]) == 0
    settings = json.loads(next(tmp_path.glob("runs/PointReach-v0/td3-seed0-1/settings.json")).read_text())
    options = load_recipe("mine.toml").options
    assert options["structure"] == structure
    assert options["discount"] == settings["options"]["discount"] == 0.95
    relabel = "future=0.4,desired=0.4" if structure == "inferred" else ""
    assert options["relabel"] == settings["options"]["relabel"] == relabel
    capsys.readouterr()
    assert main(["train", "PointReach-v0", "--recipe", "mine.toml", "--workers", "0"]) == 0
    printed = capsys.readouterr().out
    assert f"recipe 'mine' ({structure})" in printed
    assert "options change" not in printed
    assert "not found" not in printed
    again = json.loads(next(tmp_path.glob("runs/PointReach-v0/td3-seed0-2/settings.json")).read_text())
    assert again["options"] == settings["options"]


@pytest.mark.usefixtures("default_signal_handlers")
def test_a_run_that_is_stopped_writes_its_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TrainDisplay, "show", lambda *event: os.kill(os.getpid(), signal.SIGINT))
    assert main([*RUN, "--steps", "300", "--save-recipe", "mine.toml"]) == 130
    assert load_recipe("mine.toml").complete


def test_a_recipe_with_another_suffix_is_refused_before_the_run(tmp_path, capsys):
    assert main([*RUN, "--save-recipe", str(tmp_path / "mine.json")]) == 1
    assert "must end in .toml" in capsys.readouterr().err
    assert not (tmp_path / "mine.json").exists()


def test_the_first_lines_say_what_is_declared_and_what_is_not_used(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*RUN, "--steps", "300", "--hidden-observation", "2", "--relabel", "future=0.8"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "recipe 'default' (hidden_observation declared, the rest inferred: nothing found yet)" in printed
    assert "not used: relabel = future=0.4,desired=0.4, since you set relabel = future=0.8" in printed


def test_a_name_stays_with_a_run_that_is_resumed_without_it(tmp_path):
    short = ["PointReach-v0", "--folder", str(tmp_path), "--steps", "50", "--eval-every", "0", "--no-check"]
    assert main(["train", *short, "--name", "mine"]) == 0
    assert main(["train", *short, "--resume"]) == 0
    assert json.loads((tmp_path / "settings.json").read_text())["name"] == "mine"


def test_without_a_check_a_reused_environment_is_announced(tmp_path, capsys):
    run = ["train", "PointReach-v0", "--folder", str(tmp_path), "--steps", "50", "--eval-every", "0", "--no-check"]
    for arguments in ([*run, "--reset-mode", "reuse"], [*run, "--reset-mode", "reuse", "--resume"]):
        assert main(arguments) == 0
        assert "The same bytes are not promised" in " ".join(capsys.readouterr().out.split())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_of_80_columns_shows_whole_words(tmp_path, monkeypatch):
    folder = tmp_path / "a-folder-with-a-name-that-is-long-enough-for-two-lines"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # without a live line
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    arguments = ["train", "PointReach-v0", "--recipe", "default", "--folder", str(folder), "--no-check"]
    assert main([*arguments, "--steps", "100", "--hidden", "8", "--eval-every", "100", "--eval-episodes", "2"]) == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "\n").splitlines()
    assert [line for line in lines if len(line) > 80 and str(folder) not in line] == []
    words = " ".join(" ".join(lines).split())
    assert f"training PointReach-v0 with td3, recipe 'default' (inferred: nothing found yet), seed 0, in {folder}" in words
    assert " s of starting, " in words
    assert f"  hindsight-rl play {folder}" in lines
