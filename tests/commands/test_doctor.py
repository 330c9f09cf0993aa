import pytest
from packaging.requirements import Requirement

from hindsight_rl.commands import doctor
from hindsight_rl.commands.doctor import examine, part_findings

LISTED = ["numpy>=1.26", 'torch>=2.4; extra == "train"', 'hindsight-rl[train]; extra == "robotics"']
LISTED += [
    'old; extra == "other" and python_version < "3"',
    'mujoco<3.10,>=3.3; extra == "robotics"',
    'pytest>=8; extra == "dev"',
    'mine; extra == "other"',
]


def findings(**installed):
    versions = {"numpy": "2.0", "torch": "2.13.0+cpu", "mujoco": "3.9.0", "mine": "1.0", "old": None} | installed
    return {found.name: found for found in part_findings([Requirement(line) for line in LISTED], versions)}


def test_each_part_has_a_line_with_its_versions():
    found = findings()
    assert {finding.level for finding in found.values()} == {"good"}
    assert found["train, play, evaluate"].text == "torch 2.13.0+cpu"
    assert list(found) == ["HindsightBuffer, HER.load", "train, play, evaluate", doctor.PURPOSES["robotics"], "extra other"]


def test_a_missing_package_and_a_wrong_version_have_a_fix(installed_from):
    installed_from(None)
    found = findings(torch=None, mujoco="3.11.0")
    train, robotics = found["train, play, evaluate"], found[doctor.PURPOSES["robotics"]]
    assert (train.level, train.text) == ("missing", "torch is not installed")
    assert 'fix: pip install "hindsight-rl[train]"' in str(train)
    assert (robotics.level, robotics.text) == ("note", "mujoco must be <3.10,>=3.3, got 3.11.0")
    assert robotics.fix == 'pip install "hindsight-rl[robotics]"'


@pytest.mark.parametrize("version", ["3.3", "3.9.0", "3.10.0rc1"])
def test_versions_in_the_range_are_accepted(version):
    assert findings(mujoco=version)[doctor.PURPOSES["robotics"]].level == ("note" if "rc" in version else "good")


def test_without_egl_the_fix_installs_it(monkeypatch):
    monkeypatch.setattr(doctor, "find_library", lambda name: None)
    monkeypatch.setattr(doctor, "has_display", lambda: False)
    graphics = next(found for found in examine() if found.name == "play, graphics")
    assert graphics.fix.startswith("apt-get install -y libegl1")
    assert "no EGL" in graphics.text


def test_an_install_without_pip_is_reported(monkeypatch):
    monkeypatch.setattr(doctor, "installed_version", lambda package: None)
    assert any("was not installed by pip" in found.text for found in examine())
