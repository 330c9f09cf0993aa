"""How fast SB3's algorithms get their tensors, and what a transition costs: our HerReplayBuffer beside SB3's own.

    python benchmarks/sb3_face.py [--transitions 1000000] [--json FILE]

Both are called as SB3's algorithms call them, `sample(256)`, tensors included, in one process on one thread, in turns of 25
calls; "cold" is one call right after a critic's update. Medians. Memory is what a fresh process grows by while a buffer is
made and filled, for spaces of float32 and of float64, as FetchPush has. See sampling.py for the task.
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
from stable_baselines3 import HerReplayBuffer as TheirHerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

from hindsight.compat.sb3 import HerReplayBuffer
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

TURN, FED_AT_ONCE = 25, 100  # calls in a row; episodes made at once
KINDS = {"ours": HerReplayBuffer, "SB3": TheirHerReplayBuffer}


class Wide(Silent):
    """The same task with float64 observations, as FetchPush itself has."""

    observation_space = spaces.Dict(
        {
            key: spaces.Box(-np.inf, np.inf, (size,), np.float64)
            for key, size in (("observation", OBSERVATION), ("achieved_goal", GOAL), ("desired_goal", GOAL))
        }
    )


WIDTHS = {"float32": Silent, "float64": Wide}


def fill(name: str, width: str, transitions: int) -> Any:
    """A buffer of one environment that holds so many transitions."""
    env = WIDTHS[width]
    options: dict[str, Any] = {"max_episode_length": LENGTH} if name == "ours" else {}
    buffer = KINDS[name](transitions, env.observation_space, ACTION_SPACE, env=DummyVecEnv([env]), device="cpu", **options)
    for start in range(0, transitions // LENGTH, FED_AT_ONCE):
        for episode in make_episodes(min(FED_AT_ONCE, transitions // LENGTH - start), seed=start):
            feed_sb3(buffer, steps_of([episode]))
    return buffer


def resident() -> int:
    """Bytes of memory that this process holds."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def weigh(name: str, width: str, transitions: int) -> float:
    """Bytes per transition that a process grows by while a buffer is made and filled."""
    fill(name, width, 10 * LENGTH)  # compiles, and loads what is loaded late
    before = resident()
    buffer = fill(name, width, transitions)
    grown = (resident() - before) / transitions
    del buffer
    return grown


def weigh_all(transitions: int) -> dict[str, float]:
    """The same for every buffer, each in a process of its own, whose memory nobody used before."""
    weights = {}
    for name in KINDS:
        for width in WIDTHS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                weights[f"{name}, {width}"] = pool.apply(weigh, (name, width, transitions))
    return weights


def time_samples(buffers: dict[str, Any], calls: int) -> dict[str, dict[str, float]]:
    """Microseconds per batch, one call after the other and cold."""
    torch.set_num_threads(1)
    update = make_update()
    candidates: dict[str, Callable[[], Any]] = {
        "ours": lambda: buffers["ours"].sample(BATCH),
        "SB3": lambda: buffers["SB3"].sample(BATCH),
    }
    return {
        "tight": time_calls(candidates, calls, TURN, lambda _: None),
        "cold": time_calls(candidates, calls // 10, 1, lambda _: update()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transitions", type=int, default=1_000_000, help="transitions in every buffer")
    parser.add_argument("--calls", type=int, default=1000, help="timed calls of each; a tenth of it cold")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    transitions = options.transitions // LENGTH * LENGTH
    weights = weigh_all(transitions)
    np.random.seed(3)  # noqa: NPY002 - SB3 draws from the global state
    buffers = {name: fill(name, "float32", transitions) for name in KINDS}
    figures = {"machine": describe_machine(), "us": time_samples(buffers, options.calls), "bytes_per_transition": weights}
    print(f"\nsample({BATCH}) of {transitions} transitions, tensors included")
    for heat, times in figures["us"].items():
        print(f"{heat:8}ours {times['ours']:8.1f} us, SB3 {times['SB3']:8.1f} us: {times['SB3'] / times['ours']:.1f} x")
    print("\nmemory, bytes per transition")
    for width in ("float32", "float64"):
        ours, theirs = weights[f"ours, {width}"], weights[f"SB3, {width}"]
        print(f"{width:8}ours {ours:8.0f}, SB3 {theirs:8.0f}: {ours / theirs:.2f} of it")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
