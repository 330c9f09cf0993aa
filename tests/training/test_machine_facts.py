import re

from hindsight.training.machine import machine_facts, source_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(path, head, **files):
    package = path / "src" / "hindsight"
    package.mkdir(parents=True)
    for name, content in {"HEAD": head, **files}.items():
        (path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / ".git" / name).write_text(content)
    return package


def test_the_commit_is_read_from_the_files_of_the_repository(tmp_path):
    branch = "ref: refs/heads/main\n"
    assert source_commit(repository(tmp_path / "a", COMMIT + "\n")) == COMMIT
    assert source_commit(repository(tmp_path / "b", branch, **{"refs/heads/main": COMMIT + "\n"})) == COMMIT
    packed = f"# packed\n{'1' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n"
    assert source_commit(repository(tmp_path / "c", branch, **{"packed-refs": packed})) == COMMIT


def test_an_unknown_commit_is_empty(tmp_path):
    assert source_commit(repository(tmp_path / "a", "ref: refs/heads/main")) == ""
    site_packages = tmp_path / "lib" / "site-packages" / "hindsight"
    site_packages.mkdir(parents=True)
    (tmp_path / "lib" / ".git").mkdir()
    (tmp_path / "lib" / ".git" / "HEAD").write_text(COMMIT)
    assert source_commit(site_packages) == ""


def test_facts_of_this_machine():
    facts = machine_facts()
    assert {"versions", "commit", "python", "system", "processor", "cores"} == set(facts)
    assert re.fullmatch("|[0-9a-f]{40}", facts["commit"])
