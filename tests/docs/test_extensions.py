"""What the pages are generated with: tables from the records, laws from the strategies, docstrings as they are meant."""

from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

from hindsight.cli import COMMANDS
from hindsight.options import AGENT_OPTIONS, TQCOptions
from hindsight.recipes import recipe_names

pytest.importorskip("sphinx")


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_extensions")


def test_options_are_grouped_by_the_class_that_has_the_last_word():
    from generated import option_groups

    groups = dict(option_groups(TQCOptions))
    assert [option.name for option in groups[""]] == ["n_quantiles", "top_quantiles_to_drop_per_net"]
    assert {"noise", "entropy_coefficient"} < {option.name for option in groups["As of sac"]}
    assert "noise" not in {option.name for option in groups["Shared by the agents for continuous actions"]}
    assert sorted(o.name for group in groups.values() for o in group) == sorted(o.name for o in fields(TQCOptions))


@pytest.mark.parametrize("name", ["replay", "rollout", "training", *AGENT_OPTIONS])
def test_every_option_has_a_meaning(name):
    from generated import RECORDS, option_table

    rows = option_table(RECORDS[name], fields(RECORDS[name])).splitlines()[2:]
    assert len(rows) == len(fields(RECORDS[name]))
    assert all(len(row.replace(r"\|", "").split("|")[3].strip()) > 10 for row in rows)


def test_an_option_shows_the_default_that_its_agent_has():
    from generated import option_table

    assert "| `noise` | `0.0` | standard deviation" in option_table(TQCOptions, fields(TQCOptions))
    assert "| `hidden` | `256 256` | sizes" in option_table(TQCOptions, fields(TQCOptions))


def test_every_command_and_argument_is_told():
    from generated import commands_text

    text = commands_text()
    assert text.count("## hindsight ") == len(COMMANDS)
    assert "| `--env` |  | where its environment" in text  # a comment on a later line than its name
    assert [line for line in text.splitlines() if line.startswith("| `") and line.endswith("|  |")] == []


def test_every_recipe_is_shown():
    from generated import recipes_text

    assert [line[3:] for line in recipes_text().splitlines() if line.startswith("## ")] == recipe_names()


@pytest.mark.parametrize(
    ("strategy", "shares"),
    [
        ("future", {row: Fraction(1, 5) for row in range(8, 13)}),
        ("final", {12: Fraction(1)}),
        ("episode", {row: Fraction(1, 7) for row in range(6, 13)}),
        ("random", {row: Fraction(1, 11) for row in (1, 2, 3, 4, *range(6, 13))}),
    ],
)
def test_a_drawing_shows_the_law_of_the_strategy(strategy, shares):
    from drawings import draw_law, law

    assert {row: share for row, share in enumerate(law(strategy)) if share} == shares
    drawn = draw_law(strategy)
    assert drawn.count('class="goal"') == len(shares)
    assert drawn.count(f'font-size="13" text-anchor="middle">{shares[12]}</text>') == len(shares)


def test_a_docstring_becomes_a_list_of_what_it_tells_of():
    from docstrings import as_restructured_text

    told = "Draws.\n\nrow, u: (B,) integers\nin [0, 1). out: `memory`. other: a word. Raises InputError."
    assert as_restructured_text(told, {"row", "u", "out"}) == [
        "Draws.",
        "",
        "- **row, u**: (B,) integers in [0, 1).",
        "",
        "- **out**: ``memory``. other: a word.",
        "",
        "Raises InputError.",
        "",
    ]
    assert as_restructured_text("discount**steps, a|b, name_", set()) == [r"discount\*\*steps, a\|b, name\_", ""]
