"""The Sphinx extensions: tables from the option records, drawings from the strategies, docstrings as lists."""

import argparse
from fractions import Fraction
from pathlib import Path

import pytest

from hindsight_rl.cli import COMMANDS
from hindsight_rl.options import AGENT_OPTIONS, option_fields
from hindsight_rl.recipes import recipe_names

pytest.importorskip("sphinx")


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_extensions")


def test_options_are_in_groups_and_those_of_the_record_come_first():
    from generated import options_text

    text = options_text("tqc")
    titles = [line.strip("*") for line in text.splitlines() if line.startswith("**")]
    assert titles[0] == "TQC"
    assert len(titles) == len(set(titles)) > 3
    assert text.split("\n\n")[1].count("\n| `") == 2  # n_quantiles, top_quantiles_to_drop_per_net


@pytest.mark.parametrize("name", ["replay", "rollout", "training", *AGENT_OPTIONS])
def test_every_option_has_one_line_with_a_meaning(name):
    from generated import RECORDS, options_text

    rows = [line for line in options_text(name).splitlines() if line.startswith("| `")]
    cells = [row.replace(r"\|", "").split("|") for row in rows]
    assert sorted(cell[1].strip(" `") for cell in cells) == sorted(o.name for o in option_fields(RECORDS[name]))
    assert all(len(cell[3].strip()) > 5 for cell in cells)


def test_an_option_shows_the_default_of_its_agent():
    from generated import options_text

    assert "| `noise` | `0.0` | standard deviation" in options_text("tqc")
    assert "| `noise` | `0.1` | standard deviation" in options_text("ddpg")
    assert "| `hidden` | `256 256` | sizes" in options_text("tqc")


def test_every_command_has_a_section_and_every_argument_a_meaning():
    from generated import commands_text

    text = commands_text()
    assert text.count("## hindsight-rl ") == len(COMMANDS)
    assert [line for line in text.splitlines() if line.startswith("| `") and line.endswith("` |  |")] == []


def test_arguments_show_name_and_meaning():
    from generated import arguments_table

    parser = argparse.ArgumentParser()
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--episodes", type=int, default=100, help="number of episodes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    assert arguments_table(parser).splitlines()[2:] == [
        "| `RUN` | a run folder |",
        "| `--episodes` | number of episodes |",
        "| `--json` | print JSON |",
    ]


def test_every_recipe_is_shown():
    from generated import recipes_text

    assert [line[3:] for line in recipes_text().splitlines() if line.startswith("## ")] == recipe_names()


@pytest.mark.parametrize(
    ("strategy", "probabilities"),
    [
        ("future", {row: Fraction(1, 5) for row in range(8, 13)}),
        ("final", {12: Fraction(1)}),
        ("episode", {row: Fraction(1, 7) for row in range(6, 13)}),
        ("random", {row: Fraction(1, 11) for row in (1, 2, 3, 4, *range(6, 13))}),
    ],
)
def test_a_drawing_shows_the_probabilities_of_the_strategy(strategy, probabilities):
    from drawings import draw_strategy, goal_probabilities

    assert {row: p for row, p in enumerate(goal_probabilities(strategy)) if p} == probabilities
    svg = draw_strategy(strategy)
    assert svg.count('class="goal"') == len(probabilities)
    assert svg.count(f'text-anchor="middle">{probabilities[12]}</text>') >= len(probabilities)


def test_a_docstring_becomes_a_list_of_its_arguments():
    from docstrings import as_restructured_text

    docstring = [
        "Sample rows.",
        "",
        "row, u: (B,) integers",
        "    in [0, 1).",
        "out: `memory` to reuse.",
        "Raises InputError.",
    ]
    assert as_restructured_text(docstring) == [
        "Sample rows.",
        "",
        "- **row, u**: (B,) integers in [0, 1).",
        "",
        "- **out**: ``memory`` to reuse.",
        "",
        "Raises InputError.",
        "",
    ]
    assert as_restructured_text(["discount**steps, a|b, name_"]) == [r"discount\*\*steps, a\|b, name\_", ""]
