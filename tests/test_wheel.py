"""The wheel installs one module, which does not meet the `hindsight` of another project."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hindsight_rl import __version__

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
USE_BOTH = """
import hindsight, hindsight_rl
from hindsight_rl import PointReach, make_goal_env

assert hindsight.WHOSE == "another project"
env = make_goal_env("PointReach-v0")
env.reset(seed=0)
print(hindsight_rl.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the source, as the build writes beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    subprocess.run([sys.executable, "-c", BUILD, "dist"], cwd=folder, check=True, capture_output=True)
    (built,) = folder.glob("dist/*.whl")
    return built


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return [Path(name) for name in archive.namelist()]


def test_the_only_top_level_package_of_the_wheel_is_ours(wheel):
    description = f"hindsight_rl-{__version__}.dist-info"
    assert {path.parts[0] for path in files_of(wheel)} == {"hindsight_rl", description}
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"{description}/top_level.txt").split() == [b"hindsight_rl"]


def test_every_file_of_the_source_is_in_the_wheel(wheel):
    source = {p.relative_to(ROOT / "src") for p in (ROOT / "src/hindsight_rl").rglob("*") if p.is_file()}
    compiled = {path for path in source if "__pycache__" in path.parts}
    assert source - compiled <= set(files_of(wheel))


def test_the_wheel_works_beside_another_module_of_the_name_hindsight(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "hindsight").mkdir()
    (tmp_path / "hindsight/__init__.py").write_text('WHOSE = "another project"\n')
    done = subprocess.run([sys.executable, "-c", USE_BOTH], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
