"""Threads that use one buffer at once, and what is left of runs that have ended."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from whole_run import train

from hindsight_rl import HER, HindsightBuffer, PointReach, ReplayOptions
from hindsight_rl.errors import CollectError
from hindsight_rl.records import Episode

pytestmark = pytest.mark.faults
BOX = spaces.Box(-np.inf, np.inf, (1,), np.float32)
SPACE = spaces.Dict(observation=BOX, achieved_goal=BOX, desired_goal=BOX)
EPISODES = 400


def minus_distance(achieved, goal, info):
    return -np.abs(achieved - goal)[:, 0]


def episode(number):
    """An episode in which every value follows from the first observation of its step."""
    rows = np.arange(number, number + 12, dtype=np.float32)[:, None]
    return Episode(rows, rows, rows - 3, rows[:-1], -np.abs(rows[1:] - rows[:-1] + 3)[:, 0])


def check(batch):
    """Every value of a sample belongs to one step and to one goal."""
    assert np.array_equal(batch.next_achieved_goal, batch.observation + 1)
    assert np.array_equal(batch.action, batch.observation)
    assert np.array_equal(batch.reward, minus_distance(batch.next_achieved_goal, batch.goal, {}))


def test_threads_add_sample_and_save_one_buffer(run_folder):
    options = ReplayOptions(prioritized=True)
    buffer = HindsightBuffer(300, SPACE, BOX, minus_distance, options=options)
    buffer.add_episode(episode(0))
    problems, is_over, counts = [], threading.Event(), [0, 0, 0]

    def repeat(number, act):
        try:
            while not is_over.is_set():
                act()
                counts[number] += 1
        except BaseException as problem:
            problems.append(problem)

    def sample():
        batch = buffer.sample(64)
        check(batch)
        buffer.update_priorities(batch.row, np.ones(64))

    def save():
        buffer.save(run_folder / "buffer")
        check(HindsightBuffer.load(run_folder / "buffer", minus_distance).sample(64))

    acts = (sample, sample, save)
    threads = [threading.Thread(target=repeat, args=(number, act), daemon=True) for number, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for number in range(1, EPISODES):
        buffer.add_episode(episode(number))
    is_over.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert min(counts) > 0


class Failing(PointReach):
    def step(self, action):
        if self._steps == 7:
            raise RuntimeError("lost contact")
        return super().step(action)


def learn_from_failing_environment():
    with HER(Failing, workers=2, check=False, remake_environment=False) as model, pytest.raises(CollectError):
        model.learn(100)


def left_over():
    """Return the open descriptors, the names in /dev/shm and the child processes, by count or name."""
    children = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread of an earlier test has just ended
            children += (task / "children").read_text().split()
    shared = {name for name in os.listdir("/dev/shm") if not name.startswith("hindsight-rl-faults")}
    return len(os.listdir("/proc/self/fd")), len(children), shared


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_leaves_nothing_open(run_folder, workers):
    train(run_folder / "first", workers)  # imports, and starts the process of Python that tracks resources
    before = left_over()
    train(run_folder / "second", workers)
    assert left_over() == before


def test_a_run_that_failed_leaves_nothing_open():
    learn_from_failing_environment()
    before = left_over()
    learn_from_failing_environment()
    assert left_over() == before
