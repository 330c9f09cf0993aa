from dataclasses import fields

import pytest

from hindsight.cli import BenchmarkArguments
from hindsight.errors import FileError, UnknownNameError
from hindsight.recipes import find_recipe
from hindsight.recipes.suite import load_suite, suite_names
from hindsight.training.explain import field_comments
from hindsight.training.settings import resolve_settings


@pytest.mark.parametrize("name", suite_names())
def test_every_entry_holds_options_that_exist(name):
    suite = load_suite(name)
    assert suite.name == name
    for entry in suite.entries:
        settings = resolve_settings(find_recipe(entry.environment), entry.agent, entry.options)
        assert settings.variant == (entry.name or settings.variant)


def test_the_help_names_every_suite():
    comment = field_comments(BenchmarkArguments)[fields(BenchmarkArguments)[0].name]
    assert sorted(comment.split(", or ")[0].split(", ")) == suite_names()


def test_all_holds_what_the_others_hold_once():
    entries = load_suite("all").entries
    assert all(entries.count(entry) == 1 for entry in entries)
    assert all(entry in entries for name in ("quick", "bits", "fetch", "maze") for entry in load_suite(name).entries)


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[entry]]\nenvironment = "PointReach-v0"\nagent = "sac"\nname = "slow"\ntau = 0.5\n')
    [entry] = load_suite(str(path)).entries
    assert (entry.environment, entry.agent, entry.recipe, entry.name) == ("PointReach-v0", "sac", None, "slow")
    assert entry.options == {"tau": 0.5}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("entry = ", "not valid TOML"),
        ("", "nothing to run"),
        ("[[entries]]\n", "entries, but a suite has"),
        ("entry = 3", "a suite has a table"),
        ('include = "bits"', "a list of other suites"),
        ('include = ["all"]', "includes 'all', which includes others itself"),
        ('[[entry]]\nname = "x"\n', "entry 1 of suite 'bad' has name = 'x', but it needs an environment"),
        ('[[entry]]\nenvironment = "X-v0"\nagent = 3\n', "agent = 3"),
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path, content, said):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(FileError, match=said):
        load_suite(str(path))


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no suite 'quik'.* 'quick'"):
        load_suite("quik")
