"""The parts of the pages that are made: they are up to date, and each shows what the package has."""

import argparse
from fractions import Fraction
from pathlib import Path

import pytest

import hindsight_rl
from hindsight_rl.cli import COMMANDS
from hindsight_rl.options import AGENT_OPTIONS, option_fields
from hindsight_rl.recipes import recipe_names

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def paths(monkeypatch):
    for folder in ("benchmarks", "docs/_tables", "docs"):
        monkeypatch.syspath_prepend(ROOT / folder)


def test_tables_and_drawings_are_up_to_date():
    from make_tables import made_files

    stale = [path for path, text in made_files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert [str(path.relative_to(ROOT)) for path in stale] == [], "write them: python docs/make_tables.py"


def test_no_page_has_a_directive_that_is_empty_unless_it_is_built():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [str(path) for path in pages if "```{" in path.read_text(encoding="utf-8")] == []


def test_every_page_is_in_the_navigation():
    from conf import NAVIGATION

    named = {
        str(Path(page).parent / name) if page != "index" else name
        for page, parts in NAVIGATION.items()
        for names in parts.values()
        for name in names
    }
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert named == pages - {"index"}


def test_options_are_in_groups_and_those_of_the_record_come_first():
    from tables import options_text

    text = options_text("tqc")
    titles = [line.strip("*") for line in text.splitlines() if line.startswith("**")]
    assert titles[0] == "TQC"
    assert len(titles) == len(set(titles)) > 3
    assert text.split("\n\n")[1].count("\n| `") == 2  # n_quantiles, top_quantiles_to_drop_per_net


@pytest.mark.parametrize("name", ["replay", "rollout", "training", *AGENT_OPTIONS])
def test_every_option_has_one_line_with_a_meaning(name):
    from tables import RECORDS, options_text

    rows = [line for line in options_text(name).splitlines() if line.startswith("| `")]
    cells = [row.replace(r"\|", "").split("|") for row in rows]
    assert sorted(cell[1].strip(" `") for cell in cells) == sorted(o.name for o in option_fields(RECORDS[name]))
    assert all(len(cell[3].strip()) > 5 for cell in cells)


def test_an_option_shows_the_default_of_its_agent():
    from tables import options_text

    assert "| `noise` | `0.0` | standard deviation" in options_text("tqc")
    assert "| `noise` | `0.1` | standard deviation" in options_text("ddpg")
    assert "| `hidden` | `256 256` | sizes" in options_text("tqc")


def test_every_command_has_a_section_and_every_argument_a_meaning():
    from tables import commands_text

    text = commands_text()
    assert text.count("## hindsight-rl ") == len(COMMANDS)
    assert [line for line in text.splitlines() if line.startswith("| `") and line.endswith("` |  |")] == []


def test_arguments_show_name_and_meaning():
    from tables import arguments_table

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
    from tables import recipes_text

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
    from reference import as_markdown

    docstring = """Sample rows.

    row, u: (B,) integers
        in [0, 1).
    out: `memory` to reuse.
    What follows without indentation is of no argument. Raises InputError.
    """
    assert as_markdown(docstring).split("\n\n") == [
        "Sample rows.",
        "- **row, u**: (B,) integers in [0, 1).",
        "- **out**: `memory` to reuse.",
        "What follows without indentation is of no argument.",
        "Raises InputError.",
    ]
    assert as_markdown("discount**steps, a|b, name_") == r"discount\*\*steps, a|b, name\_"


def test_a_signature_has_no_quotes_around_annotations():
    from reference import reference_text

    text = reference_text("hindsight_rl.make_goal_env")
    assert "make_goal_env(" in text
    assert "'EnvSource'" not in text
    assert "env: EnvSource" in text


def test_members_of_a_class_have_sections_of_their_own():
    from reference import reference_text

    text = reference_text("hindsight_rl.HER", "*")
    assert {line for line in text.splitlines() if line.startswith("#### ")} >= {
        "#### HER.learn",
        "#### HER.load",
        "#### HER.policy",
    }
    assert "def " not in text
    assert hindsight_rl.HER.evaluate.__doc__.splitlines()[0][:40] in text


FIRST_RUNS = """task,family,none,none_commit,default,solved_at,commit,batch
TowBall-v0,push,10,aaa,95,4000,aaa,1
ArmRing-v0,hit,,,40,,bbb,2
AnyLid-v0,push,,,99,5000,bbb,2
OldCup-v0,push,0,bbb,90,,bbb,2
EasyDisc-v0,push,80,bbb,96.5,1000,bbb,2
"""
RUNS = """label,task,variant,seed,commit,family,status,budget,env_steps,steps_to_solve,success,seconds,error
first,TowBall-v0,default,0,aaa,push,closed,20000,4000,4000,0.95,9,
later,TowBall-v0,default,0,ccc,push,closed,20000,3000,3000,0.97,9,
later,TowBall-v0,default,1,ccc,push,closed,20000,20000,,0.88,9,
later,TowBall-v0,default,2,ddd,push,closed,20000,,,,9,ended with an error
later,TowBall-v0,none,0,ccc,push,closed,20000,20000,,0.99,9,
later,AnyLid-v0,none,0,ccc,push,closed,20000,20000,,0.005,9,
"""


@pytest.fixture
def closed(tmp_path):
    from closed_tables import closed_tasks
    from result_tables import read

    (tmp_path / "first.csv").write_text(FIRST_RUNS)
    (tmp_path / "runs.csv").write_text(RUNS)
    names = {"TowBall-v0", "ArmRing-v0", "AnyLid-v0", "EasyDisc-v0"}
    return closed_tasks(read(tmp_path / "first.csv"), read(tmp_path / "runs.csv"), names)


def test_closed_tasks_have_a_row_with_the_first_run_and_the_last_label(closed):
    from closed_tables import table_text

    assert table_text(closed).splitlines()[2:] == [
        "| AnyLid | push | 0.5 | 99 (bbb) | 99 | 5,000 | bbb |",  # `none` is in the second file, the default is not
        "| TowBall | push | 10 | 95 (aaa) | 88 (median of 3 seeds, errors: 1) | 1 of 3: 3,000 | ccc, ddd |",
        "| ArmRing | hit | not run | 40 (bbb) | 40 | - | bbb |",
    ]


def test_closed_tasks_that_none_solves_too_are_a_list(closed):
    from closed_tables import others_text

    assert others_text(closed) == "- push: EasyDisc 96.5/80"


def test_open_tasks_count_in_their_first_run_alone(closed):
    from closed_tables import counts_text

    first, newest = counts_text(closed).splitlines()
    assert "3 of 4 (75 %) reached 90 % in their first run." in first
    assert "`none` was not run on 1 of the 4 tasks." in first
    assert "of those that are closed today, 1 of 3 (33 %) reach 90 % in their newest run." in newest
    assert newest.endswith("The others are TowBall, ArmRing.")


def test_every_closed_task_that_was_run_has_a_first_run():
    from result_tables import RESULTS, read

    first = [line["task"] for line in read(RESULTS / "first_runs.csv")]
    closed = {line["task"] for line in read(RESULTS / "proving_ground.csv") if line["status"] == "closed"}
    assert len(first) == len(set(first))
    assert closed - set(first) == set()
