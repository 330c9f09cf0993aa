from pathlib import Path

import pytest

from hindsight_rl.cli import _parse, command_parser, main
from hindsight_rl.commands import arguments
from hindsight_rl.commands.arguments import SHOWN_BY_HELP, given_options, take_environment, train_help
from hindsight_rl.errors import OptionError
from hindsight_rl.options import AGENT_OPTIONS, run_options


def parse(line):
    return command_parser("train").parse_args(line.split())


def test_only_what_the_user_gives_is_given():
    assert given_options(parse("PointReach-v0 --agent sac --resume")) == {}
    given = given_options(
        parse("--steps 20_000 --tau 1 --hidden 64 32 --strategy final --target-entropy -3 --no-normalize")
    )
    assert given == {
        "steps": 20_000,
        "tau": 1.0,
        "hidden": [64, 32],
        "strategy": "final",
        "target_entropy": -3.0,
        "normalize": False,
    }


def test_no_name_empties_a_list_or_removes_a_limit():
    given = given_options(parse("--no-subgoals --no-gradient-clip --no-remake-environment --prioritized"))
    assert given == {"subgoals": (), "gradient_clip": None, "remake_environment": False, "prioritized": True}


@pytest.mark.parametrize("word", ["-1e-3", "-1.0E-03", "-.001e0", "-0.001"])
def test_negative_numbers_may_have_an_exponent(word):
    parsed = _parse(command_parser("train"), ["--lowest-achieved", word, "2"])
    assert given_options(parsed) == {"lowest_achieved": [-0.001, 2]}


def test_a_list_without_values_is_an_error():
    with pytest.raises(OptionError, match="`--subgoals` needs at least one value"):
        given_options(parse("--subgoals --steps 3"))


@pytest.mark.parametrize(
    ("line", "environment"),
    [
        ("FetchPush-v4 --folder runs/push-v2", "FetchPush-v4"),
        ("--folder runs/push-v2 FetchPush-v4", "FetchPush-v4"),
        ("--folder runs/push-v2", arguments.DEFAULT_ENVIRONMENT),
        ("--hidden 64 64 FetchPush-v4", "FetchPush-v4"),
        ("--hidden 64 64 --seed 3 mine:Reach-v0", "mine:Reach-v0"),
        ("--seed 3", arguments.DEFAULT_ENVIRONMENT),
    ],
)
def test_the_environment_is_found(line, environment):
    parsed = parse(line)
    assert take_environment(parsed) == environment
    assert given_options(parsed).get("hidden", [64, 64]) == [64, 64]
    assert getattr(parsed, "folder", None) in (None, Path("runs/push-v2"))


def test_a_value_that_is_no_number_is_left_for_the_option_to_refuse():
    assert given_options(parse("--steps many --hidden 64 big")) == {"steps": "many", "hidden": [64, "big"]}


@pytest.mark.parametrize("line", ["PointReach-v0 --help", "PointReach-v0 --help-all"])
def test_the_help_names_options_with_the_values_of_the_recipe(line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = train_help(parse(line))
    words = set(text.replace(",", " ").split())
    names = SHOWN_BY_HELP if line.endswith("--help") else run_options("td3")
    assert all(f"--{name.replace('_', '-')}" in words for name in names)
    assert {"--agent", "--recipe", "--folder", "--resume"} <= words
    assert ("--random-steps" in words) == line.endswith("all")
    if line.endswith("--help"):
        assert len(text.splitlines()) <= 48  # two screens
    else:
        assert "learns (200)" in text


def test_the_help_says_which_values_are_chosen_from_the_task():
    text = train_help(parse("Unknown-v0 --help-all"))
    assert "(chosen from the task)" in text


def test_the_help_names_the_workers_of_the_command_line():
    text = " ".join(train_help(parse("PointReach-v0 --help")).split())
    assert "--workers N or auto" in text
    assert "spare cores (auto)" in text


def test_every_option_of_every_agent_can_be_given():
    known = {word for action in command_parser("train")._actions for word in action.option_strings}
    for agent in AGENT_OPTIONS:
        assert {f"--{name.replace('_', '-')}" for name in run_options(agent)} <= known


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train --gamma 0.9", "no option `gamma` (hindsight-rl train). Names of other libraries: docs/migrating.md"),
        ("train PointReach-v0 --buffer_size 10", "no option `buffer_size` (hindsight-rl train)"),
        ("train PointReach-v0 --taus 1", "Did you mean 'tau'"),
        ("train PointReach-v0 more", "'more' was not expected"),
        ("train PointReach-v0 --folder=", "argument --folder: must be the path of a folder, got nothing"),
        ("evaluate", "the following arguments are required: RUN"),
        ("evaluate x --episodes many", "must be a whole number of at least 1, got 'many'"),
        ("play x --epsiodes 3", "Did you mean 'episodes'"),
    ],
)
def test_wrong_usage_says_what_to_write(line, message, capsys):
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err
