import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def run_folder(tmp_path):
    """A new folder, in memory if possible: these tests write many files."""
    memory = Path("/dev/shm")
    folder = (memory if memory.is_dir() else tmp_path) / f"hindsight-rl-faults-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
