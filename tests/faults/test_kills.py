"""Runs are killed with SIGKILL at random moments and resumed, until they end.

By hand: KILLS=200 pytest -m faults tests/faults/test_kills.py
"""

import multiprocessing
import os
import random
import signal
import time

import pytest
from whole_run import content, train

KILLS = int(os.environ.get("KILLS", "10"))
LONGEST = 300  # seconds of one run: a run that takes longer hangs
WORKER_STARTS = 20  # every twentieth start has a worker process, which does not change the result

pytestmark = pytest.mark.faults
forkserver = multiprocessing.get_context("forkserver")  # forks a process that never ran threads of torch


def start(folder, workers=0):
    process = forkserver.Process(target=train, args=(folder, workers))
    process.start()
    return process


def wait_for(process, seconds=LONGEST):
    """Wait until a process ends. If it takes longer, it is killed and the test fails."""
    process.join(seconds)
    hangs = process.is_alive()
    process.kill()
    process.join()
    assert not hangs, f"a process did not end within {seconds} s"
    assert process.exitcode == 0


def seconds_of(folder, workers):
    """Train without a kill, and return how long it took."""
    began = time.monotonic()
    wait_for(start(folder, workers))
    return time.monotonic() - began


def kill_runs(path):
    """Kill and resume runs below a path. A server that has imported everything forks them, so they start at once."""
    forkserver.set_forkserver_preload(["hindsight_rl.her", "hindsight_rl.commands.train"])
    wait_for(start(path / "whole"))
    expected, rng = content(path / "whole"), random.Random(0)
    seconds = [seconds_of(path / f"{workers}-workers", workers) for workers in (0, 1)]
    kills, starts, ended = 0, 0, 0
    folder = path / "killed-0"
    while kills < KILLS or folder.exists():
        starts += 1
        workers = int(starts % WORKER_STARTS == 0)
        process = start(folder, workers)
        if kills < KILLS:
            process.join(rng.uniform(0, seconds[workers]))
            process.kill()
            process.join()
        if process.exitcode == -signal.SIGKILL:
            kills += folder.exists()  # else it came before the first file
            continue
        wait_for(process)
        assert content(folder) == expected
        ended += 1
        folder = path / f"killed-{ended}"
    print(f"\n{kills} kills, {ended} runs ended with the same bytes, {seconds[0]:.1f} s each")


def test_killed_runs_end_with_the_same_bytes(tmp_path, capfd):
    process = multiprocessing.get_context("spawn").Process(target=kill_runs, args=(tmp_path,))
    with capfd.disabled():
        process.start()
        wait_for(process, LONGEST + 20 * KILLS)
