"""The model card of a run."""

import json
import shlex
import shutil

import pytest

from hindsight_rl.cli import command_parser, main

SHORT = "--steps 300 --eval-every 150 --eval-episodes 2 --hidden 8 8 --updates-per-step 0.2 --workers 0 --no-normalize"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "point"
    assert main(["train", "PointReach-v0", "--seed", "3", "--folder", str(folder), *SHORT.split()]) == 0
    return folder


def test_a_card_has_task_figures_command_and_commit(run, tmp_path, capsys):
    assert main(["export", str(run), "--card", str(tmp_path / "card.md")]) == 0
    assert f"model card: {tmp_path / 'card.md'}" in capsys.readouterr().out.replace("\n", "")
    text = (tmp_path / "card.md").read_text()
    settings = json.loads((run / "settings.json").read_text())
    assert text.startswith("# A policy for PointReach-v0\n")
    assert "| observation | (4,) float32 |" in text
    assert "| solved | no: 2 evaluations in a row with at least 95% |" in text
    assert "of 2 episodes without exploration (95 % interval " in text
    assert f"| commit | `{settings['machine']['commit'] or 'unknown'}` |" in text


def test_a_card_of_a_run_without_evaluations_says_so(tmp_path):
    folder, card = tmp_path / "point", tmp_path / "card.md"
    main(["train", "PointReach-v0", "--folder", str(folder), *SHORT.replace("--eval-every 150", "--eval-every 0").split()])
    assert main(["export", str(folder), "--card", str(card)]) == 0
    assert "| solved | not known: there was no evaluation |" in card.read_text()


def test_a_card_has_what_was_found(run, tmp_path):
    settings = json.loads((run / "settings.json").read_text())
    found = {"kind": "symmetry", "name": "mirror of axis 0", "verdict": "holds", "reason": "a|b"}
    copy = tmp_path / "point"
    shutil.copytree(run, copy)
    (copy / "settings.json").write_text(json.dumps(settings | {"findings": [found]}))
    main(["export", str(copy), "--card", str(tmp_path / "card.md")])
    assert "| symmetry | mirror of axis 0 holds | a\\|b |" in (tmp_path / "card.md").read_text()


def test_the_command_of_a_card_has_the_options_that_were_given(run, tmp_path):
    main(["export", str(run), "--card", str(tmp_path / "card.md")])
    command = (tmp_path / "card.md").read_text().split("```sh\n")[1].split("\n```")[0]
    words = shlex.split(command)
    assert words[:3] == ["hindsight-rl", "train", "PointReach-v0"]
    arguments = vars(command_parser("train").parse_args(words[2:]))
    wanted = {"agent": "td3", "recipe": "point_reach", "seed": 3, "steps": 300, "normalize": False}
    assert {name: arguments[name] for name in wanted} == wanted
    assert list(arguments["hidden"]) == [8, 8]


def test_a_policy_file_has_no_card(run, tmp_path, capsys):
    policy = run / "policies" / "latest.safetensors"
    assert main(["export", str(policy), "--card", str(tmp_path / "card.md")]) == 1
    assert "Give the run folder" in capsys.readouterr().err


def test_the_replay_of_a_run_becomes_a_data_set(run, tmp_path, monkeypatch, capsys):
    pytest.importorskip("h5py")
    pytest.importorskip("minari")
    from hindsight_rl.envs.goal_env import make_goal_env, read_spec
    from hindsight_rl.envs.minari_data import read_episodes

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert main(["export", str(run), "--replay", "point/replay-v0"]) == 0
    episodes = read_episodes("point/replay-v0", read_spec(make_goal_env("PointReach-v0")))
    lines = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert f"data set: point/replay-v0, {len(lines)} episodes of training, 300 steps" in capsys.readouterr().out
    assert [len(episode) for episode in episodes] == [line["steps"] for line in lines]
    assert [float(episode.reward.sum()) for episode in episodes] == [line["return"] for line in lines]
    for episode, line in zip(episodes, lines, strict=True):
        assert episode.desired_goal[-1].tolist() == pytest.approx(line["desired_goal"])
    assert main(["export", str(run), "--replay", "point/replay-v0"]) == 1  # the data set exists
