"""Measure one update of hindsight-rl, of Stable-Baselines3, and of a reference (nn.Sequential and torch.optim.Adam).

All run in one process on one thread, interleaved. The result is the median of process time in milliseconds per critic
update; the update of TD3's actor, at every second one, is included. Replay buffers are not: SB3's `sample` returns a
fixed batch of tensors, while hindsight-rl starts from the NumPy arrays of a Batch and normalizes them. SB3's MlpPolicy
(observation and goal in one Box) computes the same as hindsight-rl. MultiInputPolicy, which HER with SB3 needs, has its
own column. The reference is tests/agents/plain_agents.py.      python benchmarks/update.py [--agents td3 ddpg sac]
[--networks 64,64 128,128,128] [--seconds 8] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "agents"))
from plain_agents import PLAIN_AGENTS, random_batch

from hindsight_rl.agents import make_agent
from hindsight_rl.options import AGENT_OPTIONS
from hindsight_rl.records import ArraySpec, Batch, GoalSpec

OBSERVATION, GOAL, ACTION = 25, 3, 4  # FetchPush
BATCH_SIZE = 256
TARGETS = {"td3": {"64,64": 1.8, "128,128,128": 1.4}, "ddpg": {"64,64": 1.5, "128,128,128": 1.25}}
TARGETS["sac"] = TARGETS["ddpg"]
LOWEST_RATIO = 0.97


class GoalTask(gymnasium.Env[Any, Any]):
    """An environment of spaces only, which SB3 reads."""

    def __init__(self, is_flat: bool) -> None:
        def box(size: int) -> gymnasium.spaces.Box:
            return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

        parts = {"observation": box(OBSERVATION), "achieved_goal": box(GOAL), "desired_goal": box(GOAL)}
        self.observation_space = box(OBSERVATION + GOAL) if is_flat else gymnasium.spaces.Dict(parts)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)


def make_ours(name: str, hidden: tuple[int, ...], batch: Batch) -> Callable[[], Any]:
    """Return a function that runs one update of hindsight-rl's agent."""
    agent = make_agent(name, goal_spec(), AGENT_OPTIONS[name](hidden=hidden, device="cpu"), seed=0)
    return lambda: agent.update(batch)


def make_reference(name: str, hidden: tuple[int, ...], batch: Batch) -> Callable[[], Any]:
    """Return a function that runs one update of the reference, without input normalization."""
    agent = make_agent(name, goal_spec(), AGENT_OPTIONS[name](hidden=hidden, device="cpu", normalize=False), seed=0)
    plain = PLAIN_AGENTS[name](agent)
    batch = batch if name == "td3" else batch[0]
    return lambda: plain.update(batch)


def make_sb3(name: str, hidden: tuple[int, ...], batch: Batch, is_flat: bool) -> Callable[[], Any]:
    """Return a function that calls SB3's `train` with as many gradient steps as one update of hindsight-rl has batches."""
    kind = getattr(stable_baselines3, name.upper())
    model = kind(
        "MlpPolicy" if is_flat else "MultiInputPolicy",
        GoalTask(is_flat),
        learning_rate=1e-3,
        gamma=0.98,
        batch_size=BATCH_SIZE,
        buffer_size=BATCH_SIZE,
        policy_kwargs={"net_arch": list(hidden)},
        device="cpu",
        seed=0,
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    sample = sb3_samples(batch[0], is_flat)
    model.replay_buffer.sample = lambda batch_size, env=None: sample
    n_steps = len(batch)
    return lambda: model.train(gradient_steps=n_steps, batch_size=BATCH_SIZE)


def sb3_samples(batch: Batch, is_flat: bool) -> Any:
    """Return the batch as SB3's buffers return it."""
    tensor = torch.from_numpy
    rest = {
        "actions": tensor(batch.action),
        "dones": tensor(batch.terminated.astype(np.float32))[:, None],
        "rewards": tensor(batch.reward)[:, None],
    }
    goal = tensor(batch.goal)
    if is_flat:
        observations = torch.cat((tensor(batch.observation), goal), 1)
        next_observations = torch.cat((tensor(batch.next_observation), goal), 1)
        return ReplayBufferSamples(observations=observations, next_observations=next_observations, **rest)
    now = {"observation": tensor(batch.observation), "achieved_goal": tensor(batch.achieved_goal), "desired_goal": goal}
    later = {
        "observation": tensor(batch.next_observation),
        "achieved_goal": tensor(batch.next_achieved_goal),
        "desired_goal": goal,
    }
    return DictReplayBufferSamples(observations=now, next_observations=later, **rest)


def goal_spec() -> GoalSpec:
    """Return a task with the sizes of FetchPush."""
    observation, goal = ArraySpec((OBSERVATION,), "float64"), ArraySpec((GOAL,), "float64")
    return GoalSpec(observation, goal, ArraySpec((ACTION,), "float32", (-1.0,), (1.0,)), 50, -1.0, 0.0)


def measure(contenders: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return median milliseconds per call. The contenders run interleaved, 30 ms each, for `seconds` in all."""
    calls = {}
    for name, update in contenders.items():
        for _ in range(10):
            update()
        calls[name] = max(1, round(0.03 / timed(update, 5)))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples["hindsight_rl"]) < 5:
        for name, update in contenders.items():
            samples[name].append(1e3 * timed(update, calls[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def timed(update: Callable[[], Any], calls: int) -> float:
    """Return seconds of process time per call: with one thread this is the wall time of an idle machine."""
    start = time.process_time()
    for _ in range(calls):
        update()
    return (time.process_time() - start) / calls


def run(name: str, network: str, seconds: float) -> dict[str, Any]:
    """Measure one line of the table."""
    hidden = tuple(int(size) for size in network.split(","))
    n_batches = AGENT_OPTIONS[name]().policy_period if name == "td3" else 1
    batch = random_batch(np.random.default_rng(0), BATCH_SIZE, n_batches, (OBSERVATION, GOAL, ACTION))
    medians = measure(
        {
            "hindsight_rl": make_ours(name, hidden, batch),
            "sb3": make_sb3(name, hidden, batch, is_flat=True),
            "sb3_multi_input": make_sb3(name, hidden, batch, is_flat=False),
            "reference": make_reference(name, hidden, batch),
        },
        seconds,
    )
    milliseconds = {contender: value / n_batches for contender, value in medians.items()}
    ratio = milliseconds["sb3"] / milliseconds["hindsight_rl"]
    target = TARGETS[name].get(network, LOWEST_RATIO)
    return {"agent": name, "network": network, "ms": milliseconds, "ratio": ratio, "target": target}


def describe(line: dict[str, Any]) -> str:
    """Return a line of results as text."""
    ms, result = line["ms"], "reached" if line["ratio"] >= line["target"] else "MISSED"
    times = f"{ms['hindsight_rl']:9.3f} {ms['sb3']:7.3f} {ms['sb3_multi_input']:8.3f} {ms['reference']:7.3f}"
    ratios = f"{line['ratio']:6.2f} {ms['reference'] / ms['hindsight_rl']:7.2f}"
    return f"{line['agent']:6} {line['network']:12} {times} {ratios} {line['target']:6.2f} {result}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agents", nargs="+", default=["td3", "ddpg", "sac"], choices=["td3", "ddpg", "sac"])
    parser.add_argument("--networks", nargs="+", default=["64,64", "128,128,128", "256,256,256"])
    parser.add_argument("--seconds", type=float, default=8.0, help="per line of the table")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    versions = {"machine": platform.machine(), "torch": torch.__version__, "sb3": stable_baselines3.__version__}
    print(f"{versions}, batch {BATCH_SIZE}, one thread, ms per critic update")
    print("agent  network   hindsight_rl     SB3 SB3 dict   refer. x SB3 x ref. target")
    results = []
    for name in arguments.agents:
        for network in arguments.networks:
            results.append(run(name, network, arguments.seconds))
            print(describe(results[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(versions | {"batch_size": BATCH_SIZE, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
