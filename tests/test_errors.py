"""Commands without the extra that they need: one line says what is missing, and how to install it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hindsight_rl import HER
from hindsight_rl.errors import OF_TRAIN, install_line, missing_extra

DISTRIBUTION_OF = {"PIL": "pillow"}  # others have the name of their module
RUN = """
import contextlib, io, json, sys

class Others:  # the finders of this Python, but not for ABSENT
    finders = list(sys.meta_path)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return None
        return next((spec for finder in self.finders if (spec := finder.find_spec(name, path, target))), None)

sys.meta_path[:] = [Others()]
from hindsight_rl.cli import main

results = []
for words in json.loads(sys.stdin.read()):
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main(words)
    results.append((status, out.getvalue(), error.getvalue()))
print(json.dumps(results))
"""


def run_without(packages, commands):
    """Return (status, stdout, stderr) of each command in one process that cannot import the packages."""
    code = f"ABSENT = {set(packages)!r}\n{RUN}"
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(commands), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_line_that_installs_an_extra(installed_from, tmp_path):
    installed_from(None)
    assert install_line("panda") == 'pip install "hindsight-rl[panda]"'
    assert install_line("") == 'pip install "hindsight-rl"'
    installed_from("file:///a/wheel%20house/hindsight_rl-0.1.0-py3-none-any.whl")
    assert install_line("panda") == 'pip install "/a/wheel house/hindsight_rl-0.1.0-py3-none-any.whl[panda]"'
    (tmp_path / "constraints.txt").touch()
    installed_from(tmp_path.as_uri())
    assert install_line("panda") == f'pip install -c {tmp_path}/constraints.txt "{tmp_path}[panda]"'


def test_the_extras_have_the_packages():
    listed = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    report, train = ({Requirement(line).name for line in listed[name]} for name in ("report", "train"))
    assert {DISTRIBUTION_OF.get(module, module) for module in OF_TRAIN} == (train | report) - {"hindsight-rl"}
    assert "hindsight-rl[report]" in listed["train"]


def test_another_missing_module_is_raised_again():
    with pytest.raises(ModuleNotFoundError, match="mine"):
        missing_extra("train", ModuleNotFoundError("No module named 'mine'", name="mine"))


def test_without_the_extras_every_command_works_or_names_the_line_that_installs_what_it_needs(tmp_path):
    run = tmp_path / "run"
    with HER("PointReach-v0", hidden=(8,), batch_size=8, eval_every=0, random_steps=50, updates_per_step=0.1) as model:
        model.learn(100, folder=run)
    env, folder = "PointReach-v0", str(run)
    needs = {  # an extra, or None
        "train": ([env, "--folder", str(tmp_path / "new")], "train"),
        "play": ([folder], "train"),
        "evaluate": ([folder], "train"),
        "report": ([folder], "report"),
        "compare": ([folder], "report"),
        "benchmark": (["quick", "--folder", str(tmp_path / "suite")], "train"),
        "export": ([folder, "--onnx", str(tmp_path / "x.onnx")], "train"),
        "doctor": ([], None),
        "new": (["mine", "--folder", str(tmp_path)], None),
        "infer": ([env], "train"),
        "record": ([folder, "--output", "a/b-v0"], "minari"),
        "check": ([env], None),
    }
    results = run_without(OF_TRAIN, [[name, *words] for name, (words, _) in needs.items()])
    for (name, (_, extra)), (status, out, error) in zip(needs.items(), results, strict=True):
        if extra is None:
            assert (out != "", error) == (True, ""), (name, error)
            continue
        assert status == 1, (name, error)
        assert re.fullmatch(rf"hindsight-rl: .* needs? .*: pip install .*\[({extra})\]\"\n", error), (name, error)
    assert not (tmp_path / "new").exists()
