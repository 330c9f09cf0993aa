"""Environments that never return from a step, on the command line: in this process, in C code, and in a worker."""

import json
import re
import subprocess

import pytest

from test_cli import COMMAND, SMALL

pytestmark = pytest.mark.faults
MODULE = """
import ctypes, time, gymnasium
from hindsight_rl import PointReach
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)

def sleep():
    time.sleep(3600)

def deadlock():
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)

class Hangs(PointReach):
    def __init__(self, wait):
        super().__init__(max_steps=10)
        self.wait, self.episodes = globals()[wait], 0

    def reset(self, *, seed=None, options=None):
        self.seed = seed
        return super().reset(seed=seed, options=options)

    def step(self, action):
        if self.seed == SEED:
            self.wait()
        return super().step(action)

gymnasium.register("Hangs-v0", entry_point=Hangs)
"""


def seed_of_fourth_episode():
    from hindsight_rl.seeds import TRAINING, environment_seed

    return environment_seed(0, TRAINING, 3)


@pytest.mark.parametrize(
    ("wait", "workers", "reason"),
    [
        ("sleep", 0, "did not return within job_timeout"),
        ("deadlock", 0, "the environment does not return"),
        ("deadlock", 1, "no result in 3 attempts"),
    ],
)
def test_a_run_that_hangs_ends_with_a_checkpoint_and_the_seed(tmp_path, wait, workers, reason):
    seed = seed_of_fourth_episode()
    (tmp_path / "hangs.py").write_text(MODULE.replace("SEED", str(seed)))
    arguments = ["train", "hangs:Hangs-v0", "--folder", "run", "--no-check", "--env-options", f"wait={wait!r}"]
    arguments += [*SMALL, "--workers", workers, "--job-timeout", 1, "--eval-every", 0, "--steps", 100]
    ended = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1
    assert re.search(rf"Training episode 3 \(reset seed {seed}\): .*{reason}", ended.stderr)
    assert "--resume goes on from it" in ended.stderr
    assert json.loads((tmp_path / "run" / "ended.json").read_text()) == {"why": "stopped", "env_steps": 30}
