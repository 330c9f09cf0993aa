"""Sampling time and memory of the SB3 adapter, compared with SB3's own HerReplayBuffer.

    python benchmarks/sb3_adapter.py [--transitions 1000000] [--json FILE]

Both are called as SB3's algorithms call them, `sample(256)`, tensors included, in one process on one thread, alternating
every 24 calls. "cold" is one call right after a critic update. Ours draws up to eight batches at once, so times are means
of eight medians, one for every eighth call. Memory is the growth of a new process while a buffer is made and filled, for
float32 spaces and for float64 spaces such as FetchPush's. See sampling.py for the task.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer as SB3HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

from hindsight_rl.compat.sb3 import HerReplayBuffer
from hindsight_rl.compat.sb3_convert import MOST_AHEAD
from sampling import (
    ACTION_SPACE,
    BATCH,
    GOAL,
    LENGTH,
    OBSERVATION,
    Silent,
    describe_machine,
    feed_sb3,
    make_episodes,
    make_update,
    steps_of,
    time_calls,
)

TURN, FED_AT_ONCE = 24, 100  # calls in a row; episodes generated at once
KINDS = {"ours": HerReplayBuffer, "SB3": SB3HerReplayBuffer}


class Wide(Silent):
    """The same task with float64 observations, as in FetchPush."""

    observation_space = spaces.Dict(
        {
            key: spaces.Box(-np.inf, np.inf, (size,), np.float64)
            for key, size in (("observation", OBSERVATION), ("achieved_goal", GOAL), ("desired_goal", GOAL))
        }
    )


WIDTHS = {"float32": Silent, "float64": Wide}


def fill(name: str, width: str, transitions: int) -> Any:
    """Return a buffer of one environment with this number of transitions."""
    env = WIDTHS[width]
    options: dict[str, Any] = {"max_episode_length": LENGTH} if name == "ours" else {}
    buffer = KINDS[name](transitions, env.observation_space, ACTION_SPACE, env=DummyVecEnv([env]), device="cpu", **options)
    for start in range(0, transitions // LENGTH, FED_AT_ONCE):
        for episode in make_episodes(min(FED_AT_ONCE, transitions // LENGTH - start), seed=start):
            feed_sb3(buffer, steps_of([episode]))
    return buffer


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_per_transition(name: str, width: str, transitions: int) -> float:
    """Return the growth of this process in bytes per transition while a buffer is made and filled."""
    fill(name, width, 10 * LENGTH)  # compiles the kernels and loads modules
    before = resident()
    buffer = fill(name, width, transitions)
    grown = (resident() - before) / transitions
    del buffer
    return grown


def memory_of_all(transitions: int) -> dict[str, float]:
    """Return the same for every buffer, each in a new process."""
    memory = {}
    for name in KINDS:
        for width in WIDTHS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                memory[f"{name}, {width}"] = pool.apply(memory_per_transition, (name, width, transitions))
    return memory


def time_samples(buffers: dict[str, Any], calls: int) -> dict[str, dict[str, float]]:
    """Return microseconds per batch, for consecutive calls ("tight") and after an update ("cold")."""
    torch.set_num_threads(1)
    update = make_update()
    candidates: dict[str, Callable[[], Any]] = {
        "ours": lambda: buffers["ours"].sample(BATCH),
        "SB3": lambda: buffers["SB3"].sample(BATCH),
    }
    return {
        "tight": time_calls(candidates, calls, TURN, lambda _: None, MOST_AHEAD),
        "cold": time_calls(candidates, calls // 10, 1, lambda _: update(), MOST_AHEAD),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transitions", type=int, default=1_000_000, help="transitions in every buffer")
    parser.add_argument("--calls", type=int, default=1000, help="timed calls of each; a tenth of them cold")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    transitions = options.transitions // LENGTH * LENGTH
    memory = memory_of_all(transitions)
    np.random.seed(3)  # noqa: NPY002 - SB3 draws from the global state
    buffers = {name: fill(name, "float32", transitions) for name in KINDS}
    figures = {"machine": describe_machine(), "us": time_samples(buffers, options.calls), "bytes_per_transition": memory}
    print(f"\nsample({BATCH}) of {transitions} transitions, tensors included")
    for condition, times in figures["us"].items():
        print(
            f"{condition:8}ours {times['ours']:8.1f} us, SB3 {times['SB3']:8.1f} us: {times['SB3'] / times['ours']:.1f} x"
        )
    print("\nmemory, bytes per transition")
    for width in ("float32", "float64"):
        ours, theirs = memory[f"ours, {width}"], memory[f"SB3, {width}"]
        print(f"{width:8}ours {ours:8.0f}, SB3 {theirs:8.0f}: ratio {ours / theirs:.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
