from pathlib import Path

import pytest

from hindsight_rl.cli import command_parser
from hindsight_rl.errors import FileError, UnknownNameError
from hindsight_rl.recipes import choose_recipe, find_recipe
from hindsight_rl.recipes.files import SUITES, load_suite, names_in
from hindsight_rl.training.resolve import resolve_settings


@pytest.mark.parametrize("name", names_in(SUITES))
def test_every_entry_holds_valid_options(name):
    suite = load_suite(name)
    assert suite.name == name
    for entry in suite.entries:
        resolve_settings(find_recipe(entry.environment), None, entry.agent, entry.options)


def test_every_ablation_holds_valid_options(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])  # the suite names a recipe of the repository
    for entry in load_suite("benchmarks/fetch-apart.toml").entries:
        recipe = choose_recipe(entry.recipe, entry.environment)
        assert resolve_settings(recipe, None, entry.agent, entry.options).recipe == "fetch_push"


def test_the_help_names_every_suite():
    help_text = command_parser("benchmark").format_help()
    assert all(name in help_text for name in names_in(SUITES))


def test_all_holds_every_entry_of_the_others_once():
    entries = load_suite("all").entries
    assert all(entries.count(entry) == 1 for entry in entries)
    assert all(entry in entries for name in ("quick", "bits", "fetch", "maze") for entry in load_suite(name).entries)


def test_an_own_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[entry]]\nenvironment = "PointReach-v0"\nagent = "sac"\nname = "slow"\ntau = 0.5\n')
    [entry] = load_suite(str(path)).entries
    assert (entry.environment, entry.agent, entry.recipe, entry.name) == ("PointReach-v0", "sac", None, "slow")
    assert entry.options == {"tau": 0.5}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("entry = ", "not valid TOML"),
        ("", "nothing to run"),
        ("[[entries]]\n", "Found entries"),
        ("entry = 3", r"a table \[\[entry\]\]"),
        ('include = "bits"', "a list of other suites"),
        ('include = ["all"]', "includes 'all', which includes others itself"),
        ('[[entry]]\nname = "x"\n', "Entry 1 of suite 'bad' is not valid. `environment` is missing"),
        ('[[entry]]\nenvironment = "X-v0"\nagent = 3\n', "`agent` must be a valid string, got 3"),
        ("a = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(FileError, match=message):
        load_suite(str(path))


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no suite 'quik'.* 'quick'"):
        load_suite("quik")
