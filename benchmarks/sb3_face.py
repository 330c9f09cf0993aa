"""How fast SB3's algorithms get their tensors, and what a transition costs: our HerReplayBuffer beside SB3's own.

    python benchmarks/sb3_face.py [--transitions 1000000] [--json FILE]

Both are called as SB3's algorithms call them, `sample(256)`, tensors included, in one process on one thread, in turns of 25
calls; "cold" is one call right after a critic's update. Medians. Memory is what the process grows by while a buffer is made
and filled. See sampling.py for the task.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
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

N_ENVS, TURN, FED_AT_ONCE = 8, 25, 1000  # environments; calls in a row; episodes made at once


class Wide(Silent):
    """The same task with float64 observations, as FetchPush itself has."""

    observation_space = spaces.Dict(
        {
            key: spaces.Box(-np.inf, np.inf, (size,), np.float64)
            for key, size in (("observation", OBSERVATION), ("achieved_goal", GOAL), ("desired_goal", GOAL))
        }
    )


def make(kind: type[TheirHerReplayBuffer], transitions: int, env: type[Silent]) -> TheirHerReplayBuffer:
    """A full buffer, and the bytes per transition that the process grew by."""
    venv = DummyVecEnv([env] * N_ENVS)
    options: dict[str, Any] = {"max_episode_length": LENGTH} if kind is HerReplayBuffer else {}
    buffer = kind(transitions, env.observation_space, ACTION_SPACE, env=venv, device="cpu", n_envs=N_ENVS, **options)
    for start in range(0, transitions // LENGTH, FED_AT_ONCE):
        episodes = make_episodes(min(FED_AT_ONCE, transitions // LENGTH - start), seed=start)
        for i in range(0, len(episodes), N_ENVS):
            feed_sb3(buffer, steps_of(episodes[i : i + N_ENVS]))
    return buffer


def resident() -> int:
    """Bytes of memory that this process holds."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def weigh(transitions: int) -> tuple[dict[str, Any], dict[str, float]]:
    """The buffers whose batches are timed, and bytes per transition of these and of those with float64 observations."""
    buffers: dict[str, Any] = {}
    weights = {}
    for name, kind in (("ours", HerReplayBuffer), ("SB3", TheirHerReplayBuffer)):
        for width, env in (("float64", Wide), ("float32", Silent)):
            print(f"filling {name}, {width}, with {transitions} transitions", file=sys.stderr)
            before = resident()
            buffers[name] = make(kind, transitions, env)
            weights[f"{name}, {width}"] = (resident() - before) / transitions
            if width == "float64":
                del buffers[name]
    return buffers, weights


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
    transitions = options.transitions // (N_ENVS * LENGTH) * N_ENVS * LENGTH
    np.random.seed(3)  # noqa: NPY002 - SB3 draws from the global state
    make(HerReplayBuffer, N_ENVS * LENGTH, Silent).sample(BATCH)  # compiles
    buffers, weights = weigh(transitions)
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
