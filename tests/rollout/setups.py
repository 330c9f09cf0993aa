"""Environments and weights for the tests of rollouts. Functions of a module, so that worker processes can call them."""

import os
import signal
import time
from pathlib import Path

import gymnasium
import numpy as np

from hindsight_rl import PointReach
from hindsight_rl.agents.policy import PolicySpec, PolicyWeights
from hindsight_rl.options.agent import DDPGOptions
from hindsight_rl.records import ArraySpec, GoalSpec
from hindsight_rl.rollout.collect import RolloutSetup


def policy_spec(**options):
    action = ArraySpec((2,), "float32", (-1.0,), (1.0,))
    task = GoalSpec(ArraySpec((4,), "float32"), ArraySpec((2,), "float32"), action)
    return PolicySpec(task, DDPGOptions(hidden=(8,), **options))


def weights(seed=0):
    spec, generator = policy_spec(), np.random.default_rng(seed)
    flat = generator.standard_normal(spec.architecture.n_weights).astype(np.float32)
    return PolicyWeights(flat, np.zeros(6, np.float32), np.ones(6, np.float32))


def setup(environment="PointReach-v0", **options):
    return RolloutSetup(environment, policy_spec(), **options)


def short():
    """Ten steps per episode."""
    return PointReach(max_steps=10)


class Sabotaged(gymnasium.Wrapper):
    """Call `sabotage` at the third step of every episode while the marker file exists.

    once: remove the marker file first.
    """

    marker = Path(os.environ.get("HINDSIGHT_TEST_MARKER", "/nonexistent"))

    def __init__(self, env, sabotage, once):
        super().__init__(env)
        self.sabotage, self.once = sabotage, once

    def reset(self, **options):
        self.steps = 0
        return self.env.reset(**options)

    def step(self, action):
        self.steps += 1
        if self.steps == 3 and self.marker.exists():
            if self.once:
                self.marker.unlink()
            self.sabotage()
        return self.env.step(action)


class Slow(gymnasium.Wrapper):
    """Take `seconds` for a step."""

    def __init__(self, env, seconds):
        super().__init__(env)
        self.seconds = seconds

    def step(self, action):
        time.sleep(self.seconds)
        return self.env.step(action)


def slow():
    """Three seconds per episode, so that a test can act during one."""
    return Slow(short(), 0.3)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10)


def fail():
    raise RuntimeError("the simulator exploded")


def dies_once():
    return Sabotaged(short(), kill, once=True)


def dies_always():
    return Sabotaged(short(), kill, once=False)


def hangs_once():
    return Sabotaged(short(), lambda: time.sleep(60), once=True)


def wait_while_marked():
    while Sabotaged.marker.exists():
        time.sleep(0.01)


def waits():
    """An episode lasts until the marker file is removed, so that a test can act during one."""
    return Sabotaged(short(), wait_while_marked, once=False)


def never_made():
    kill()


def raises_when_made():
    raise RuntimeError("no licence")


def slow_to_make():
    time.sleep(1.5)
    return short()


def fails():
    return Sabotaged(short(), fail, once=False)


def fails_once():
    return Sabotaged(short(), fail, once=True)


class Endless(PointReach):
    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, False, info | {"speed": np.float64(2.0)}
