"""Every call of storage of a whole run fails once, each with one of the faults.

By hand, each with every fault: FAULTS=all pytest -m faults tests/faults/test_storage_calls.py
"""

import os
import shutil
import warnings

import pytest
from failing_disk import FAULTS, FailingDisk
from whole_run import content, train

from hindsight_rl.errors import HindsightError

pytestmark = pytest.mark.faults


def train_on(disk, folder):
    """Train on a failing disk. Return the text of the error that ended the run: one of ours or OSError. "" without one."""
    with disk, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*Training goes on", RuntimeWarning)
        try:
            train(folder)
        except (HindsightError, OSError) as problem:
            return str(problem)
    return ""


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_run_goes_on_or_stops_with_a_clear_error_and_resumes_to_the_same_bytes(run_folder, fault, capsys):
    folder = run_folder / "run"
    counting = FailingDisk(folder, fault=fault)
    assert not train_on(counting, folder)
    expected, step = content(folder), 1 if os.environ.get("FAULTS") else len(FAULTS)
    numbers = range(1 + list(FAULTS).index(fault) % step, len(counting.calls) + 1, step)
    stopped = 0
    for number in numbers:
        shutil.rmtree(folder)
        if error := train_on(FailingDisk(folder, number, fault), folder):
            assert str(folder) in error, "the error names no file"
            stopped += 1
        train(folder)
        assert content(folder) == expected, (fault, number, counting.calls[number - 1])
    with capsys.disabled():
        print(f"\n{fault}: {len(numbers)} of {len(counting.calls)} calls failed, {stopped} runs stopped, all resumed")
