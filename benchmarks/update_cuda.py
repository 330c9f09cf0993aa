"""Measure critic updates per second: on one CPU thread, on a GPU, and there replayed from a CUDA graph of eight batches.

Each batch starts from NumPy arrays: assembling the inputs and copying them to the device are included, sampling is not.
The graph is an experiment; training does not use one.

    python benchmarks/update_cuda.py [--seconds 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "agents"))
from cuda_graphs import GraphedUpdates
from plain_agents import random_batch

from hindsight_rl.agents import make_agent
from hindsight_rl.options import AGENT_OPTIONS
from hindsight_rl.records import ArraySpec, GoalSpec

SIZES = OBSERVATION, GOAL, ACTION = 25, 3, 4  # FetchPush
BATCHES = 8  # of one draw
CASES = [((64, 64), 256), ((256, 256, 256), 256), ((256, 256, 256), 1024), ((512, 512, 512), 2048)]


def make(name: str, hidden: tuple[int, ...], device: str = "cuda") -> Any:
    """Return an agent on a device."""
    observation, goal = ArraySpec((OBSERVATION,), "float64"), ArraySpec((GOAL,), "float64")
    spec = GoalSpec(observation, goal, ArraySpec((ACTION,), "float32", (-1.0,), (1.0,)), 50, -1.0, 0.0)
    return make_agent(name, spec, AGENT_OPTIONS[name](hidden=hidden, device=device), seed=0)


def rate(run: Callable[[], Any], seconds: float) -> float:
    """Return batches per second of a function that learns from BATCHES batches."""
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        run()
        calls += 1
        if calls % 16 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return calls * BATCHES / (time.perf_counter() - start)


def measure(name: str, hidden: tuple[int, ...], batch_size: int, seconds: float) -> tuple[float, float, float, float]:
    """Return batches per second: on the CPU, on the GPU, with a CUDA graph, and of the graph alone (no new batches)."""
    on_cpu, plain, graphed = make(name, hidden, "cpu"), make(name, hidden), make(name, hidden)
    batch = random_batch(np.random.default_rng(0), batch_size, BATCHES, SIZES)
    preprocessor = graphed.algorithm.preprocessor
    updates = GraphedUpdates(graphed.algorithm, preprocessor.transitions(batch, BATCHES))
    return (
        rate(lambda: on_cpu.updates(batch), seconds),
        rate(lambda: plain.updates(batch), seconds),
        rate(lambda: updates(preprocessor.transitions(batch, BATCHES)), seconds),
        rate(updates.graph.replay, seconds),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per number")
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, critic updates per second")
    print("agent  network      batch     CPU     GPU   graph  graph alone")
    for name in ("td3", "sac"):
        for hidden, batch_size in CASES:
            cpu, gpu, graph, alone = measure(name, hidden, batch_size, seconds)
            print(
                f"{name:6} {'x'.join(map(str, hidden)):12} {batch_size:5} {cpu:7.0f} {gpu:7.0f} {graph:7.0f} {alone:12.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
