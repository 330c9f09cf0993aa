import pytest

from hindsight import doctor
from hindsight.doctor import Requirement, examine, fits, parse, part_findings

LISTED = ["numpy>=1.26", 'torch>=2.4; extra == "train"', 'hindsight-rl[train]; extra == "robotics"']
LISTED += ['mujoco<3.10,>=3.3; extra == "robotics"', 'pytest>=8; extra == "dev"', 'mine; extra == "other"']


def findings(**installed):
    versions = {"numpy": "2.0", "torch": "2.13.0+cpu", "mujoco": "3.9.0", "mine": "1.0"} | installed
    return {found.name: found for found in part_findings(list(map(parse, LISTED)), versions)}


@pytest.mark.parametrize(
    ("version", "wanted", "is_good"),
    [
        ("3.9.0", "<3.10,>=3.3", True),
        ("3.10.0", "<3.10,>=3.3", False),
        ("3.2.7", ">=3.3,<3.10", False),
        ("2.13.0+cpu", ">=2.4", True),
        ("2.4", ">=2.4.0", True),
        ("1", "", True),
        ("1.4.2", "==1.4.2", True),
        ("5.1rc2", ">5.1", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version, wanted, is_good):
    assert fits(version, wanted) is is_good


def test_requirements_are_read_as_packages_list_them():
    assert parse('mujoco<3.10,>=3.3; extra == "robotics"') == Requirement("mujoco", "<3.10,>=3.3", "robotics")
    assert parse("numpy") == Requirement("numpy", "", "")
    assert parse('hindsight-rl[train]; extra == "robotics"').package == "hindsight-rl[train]"


def test_what_is_there_is_told_by_what_it_is_for():
    told = findings()
    assert {found.level for found in told.values()} == {"good"}
    assert told["train, play, evaluate"].told == "torch 2.13.0+cpu"
    assert list(told) == ["HindsightBuffer, HER.load", "train, play, evaluate", doctor.PURPOSES["robotics"], "extra other"]


def test_what_is_missing_or_out_of_range_has_a_cure():
    told = findings(torch=None, mujoco="3.11.0")
    train, robotics = told["train, play, evaluate"], told[doctor.PURPOSES["robotics"]]
    assert (train.level, train.told) == ("missing", "torch is not installed")
    assert 'fix: pip install "hindsight-rl[train]"' in str(train)
    assert (robotics.level, robotics.told) == ("note", "mujoco is 3.11.0, but <3.10,>=3.3 is needed")
    assert robotics.fix == 'pip install "hindsight-rl[robotics]"'


def test_without_egl_the_line_that_installs_it_is_told(monkeypatch):
    monkeypatch.setattr(doctor, "egl_devices", lambda: 0)
    monkeypatch.setattr(doctor, "has_display", lambda: False)
    graphics = next(found for found in examine() if found.name == "play, graphics")
    assert graphics.fix.startswith("apt-get install -y libegl1")
    assert "EGL missing" in graphics.told


def test_a_small_disk_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SMALLEST_DISK", 1e18)
    assert "checkpoints may not fit" in examine()[-1].told


def test_an_install_without_pip_is_told(monkeypatch):
    monkeypatch.setattr(doctor, "_version_of", lambda package: None)
    assert any("was not installed by pip" in found.told for found in examine())


def test_without_the_library_egl_has_nothing_to_draw_on(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(doctor.ctypes, "CDLL", missing)
    assert doctor.egl_devices() == 0
