"""Sizes in files are checked against what is in them before anything is allocated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
SCRIPT = Path(__file__).with_name("forged_files.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return the name and the message of the error of each forged file. They are read in a process of little memory."""
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("forged"))]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return {name: (error, message) for name, error, message in map(json.loads, process.stdout.splitlines())}


def test_a_forged_file_is_refused_in_little_memory_and_time(outcomes):
    assert len(outcomes) > 60
    others = {name: outcome for name, outcome in outcomes.items() if outcome[0] != "FileError"}
    assert not others


def test_no_forged_size_is_tried(outcomes):
    tried = [name for name, (_, message) in outcomes.items() if "allocate" in message or "MemoryError" in message]
    assert not tried
