import os
import re
import subprocess

import pytest

from hindsight_rl.training.machine import is_compiled, machine_facts, source_commit


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_the_repository(tmp_path):
    package = tmp_path / "src" / "hindsight_rl"
    package.mkdir(parents=True)
    git(tmp_path, "init", "-q")
    assert source_commit(package) == ""
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    assert source_commit(package) == git(tmp_path, "rev-parse", "HEAD")


def test_an_installed_package_has_no_commit(tmp_path):
    git(tmp_path, "init", "-q")
    assert source_commit(tmp_path / "site-packages" / "hindsight_rl") == ""


def test_facts_of_this_machine():
    facts = machine_facts()
    assert {"versions", "commit", "python", "system", "processor", "cores"} == set(facts)
    assert re.fullmatch("|[0-9a-f]{40}", facts["commit"])


@pytest.mark.parametrize(
    ("name", "age", "expected"),
    [("loops.add-3.py311.1.nbc", -1.0, True), ("loops.add-3.py311.1.nbc", 1.0, False), ("other.add-3.nbc", -1.0, False)],
)
def test_loops_are_compiled_if_the_cache_is_newer_than_their_source(tmp_path, name, age, expected):
    source = tmp_path / "loops.py"
    for file in (source, tmp_path / name):
        file.touch()
    changed = source.stat().st_mtime
    os.utime(tmp_path / name, (changed - age, changed - age))
    assert is_compiled(tmp_path, source) is expected


def test_loops_are_not_compiled_without_a_cache(tmp_path):
    (tmp_path / "loops.py").touch()
    assert not is_compiled(tmp_path / "missing", tmp_path / "loops.py")
