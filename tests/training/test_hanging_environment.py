"""An environment that never returns from a step, and machines on which no worker starts."""

import contextlib
import ctypes
import json
import multiprocessing.context
import time
from functools import partial

import pytest
from short_runs import OPTIONS, her, same_bytes, short

from hindsight_rl import HER, PointReach
from hindsight_rl.errors import CollectError
from hindsight_rl.rollout import episode_sources, time_limit
from hindsight_rl.seeds import TRAINING, environment_seed
from hindsight_rl.training.checkpoint import trainer_state
from hindsight_rl.training.interruptions import finished
from hindsight_rl.training.run_folder import RunFolder

SEED = environment_seed(0, TRAINING, 3)  # of the reset of the fourth episode


class Hanging(PointReach):
    """Calls `wait` in the third step of the fourth episode. The class counts its attempts and calls of `close`."""

    wait, attempts, closed = None, 0, 0

    def __init__(self):
        super().__init__(max_steps=10)

    def reset(self, *, seed=None, options=None):
        self.seed = seed
        return super().reset(seed=seed, options=options)

    def step(self, action):
        if Hanging.wait and self.seed == SEED and self._steps == 3:
            Hanging.attempts += 1
            Hanging.wait()
        return super().step(action)

    def close(self):
        Hanging.closed += 1


@pytest.fixture
def hanging():
    yield Hanging
    Hanging.wait, Hanging.attempts, Hanging.closed = None, 0, 0


def loop():
    while True:
        with contextlib.suppress(Exception):
            json.loads("{")


@pytest.mark.faults
@pytest.mark.parametrize("wait", [lambda: time.sleep(3600), loop])
def test_an_environment_that_never_returns_ends_the_run_with_a_checkpoint_and_its_seed(hanging, tmp_path, wait):
    options = {"workers": 0, "job_timeout": 1.0, "remake_environment": False}
    with her(hanging, **options) as model, her(short) as whole:
        hanging.wait = staticmethod(wait)
        message = rf"Training episode 3 \(reset seed {SEED}\): the environment did not return within job_timeout \(1 s\)"
        with pytest.raises(CollectError, match=message) as caught:
            model.learn(80, folder=tmp_path)
        assert "checkpoint.safetensors, after 30 steps" in caught.value.__notes__[-1]
        assert (hanging.attempts, model.trainer.counts.failed_jobs) == (3, 2)
        assert hanging.closed == 2  # each attempt had a new environment; the first one is the model's own
        hanging.wait = None
        model.close()
        with her(hanging, **options) as again, RunFolder(tmp_path, again.settings, again.spec) as folder:
            folder.resume(again.trainer)
            assert again.trainer.counts.env_steps == 30
            assert same_bytes(again.learn(50).agent.state_dict(), whole.learn(80).agent.state_dict())


@pytest.mark.faults
def test_an_environment_that_does_not_return_to_python_leaves_a_checkpoint_and_a_message(hanging, tmp_path, monkeypatch):
    """A mutex of C is locked twice. The test unlocks it when it gets the message, so that it can end."""
    libc, mutex, messages = ctypes.CDLL(None), ctypes.create_string_buffer(256), []

    def unlock(message):
        messages.append((message, json.loads((tmp_path / "ended.json").read_text())))
        libc.pthread_mutex_unlock(mutex)

    monkeypatch.setattr(time_limit, "STUCK_SECONDS", 0.1)
    monkeypatch.setattr("hindsight_rl.her.finished", partial(finished, report=unlock))
    with her(hanging, workers=0, job_timeout=1.0, remake_environment=False) as model:
        hanging.wait = lambda: libc.pthread_mutex_lock(mutex)
        libc.pthread_mutex_lock(mutex)
        with pytest.raises(CollectError):
            model.learn(80, folder=tmp_path)
    assert [ending for _, ending in messages] == [{"why": "stopped", "env_steps": 30}] * 3
    assert f"Training episode 3 (reset seed {SEED}): the environment does not return." in messages[0][0]
    assert "checkpoint.safetensors, after 30 steps" in messages[0][0]


def states_after(steps, **options):
    """Return the state of a run, and its evaluations."""
    with HER("PointReach-v0", **options) as model:
        list(model.trainer.run(steps))
        return trainer_state(model.trainer)[0], model.trainer.history


@pytest.mark.parametrize("workers", ["auto", 2])
def test_if_no_process_can_be_started_the_run_has_the_same_bytes_and_one_warning(monkeypatch, workers):
    def fail(process):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    options = OPTIONS | {"recipe": "point_reach", "max_episode_steps": 10, "policy_lag": 1, "eval_every": 20}
    options |= {"eval_episodes": 2, "check": False}
    expected = states_after(50, workers=0, **options)
    monkeypatch.setattr(episode_sources, "usable_cores", lambda: 3)
    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", fail)
    with pytest.warns(RuntimeWarning, match="No worker could be started .*temporarily unavailable") as warned:
        found = states_after(50, workers=workers, **options)
    assert len(warned) == 1
    assert same_bytes(found[0], expected[0])
    assert found[1] == expected[1]
