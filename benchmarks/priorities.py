"""Speed of prioritized sampling and of priority updates: our buffer, our adapter for cpprb code, and cpprb.

    python benchmarks/priorities.py [--transitions 1000000] [--json FILE]

All hold the same real transitions, cpprb and the adapter with four extra goals each, in one process on one thread. A
call draws 256 and updates the priorities of the same; they take turns of 25 calls. Medians. Priorities were random at
first, from one distribution for all. See sampling.py for the task.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cpprb
import numpy as np

from hindsight_rl import HindsightBuffer, ReplayOptions
from hindsight_rl.compat.cpprb import HindsightReplayBuffer
from sampling import (
    ACHIEVED,
    ACTION,
    ACTION_SPACE,
    BATCH,
    GOAL,
    LENGTH,
    OBSERVATION,
    OBSERVATION_SPACE,
    describe_machine,
    feed_cpprb,
    make_episodes,
    sparse_reward,
    time_calls,
)

CALLS, TURN, BETA = 2000, 25, 0.4


def make_ours(transitions: int, prioritized: bool) -> HindsightBuffer:
    options = ReplayOptions(prioritized=prioritized)
    return HindsightBuffer(
        transitions, OBSERVATION_SPACE, ACTION_SPACE, sparse_reward, seed=1, options=options, episode_length=LENGTH
    )


def make_cpprb(buffer: Callable[..., Any], transitions: int) -> Any:
    """Make a buffer of cpprb, or of the adapter."""
    fields = {"obs": {"shape": OBSERVATION}, "act": {"shape": ACTION}, "next_obs": {"shape": OBSERVATION}}
    return buffer(
        5 * transitions,
        fields,
        LENGTH,
        lambda next_state, action, goal: sparse_reward(next_state[:, ACHIEVED], goal),
        goal_func=lambda state: state[:, ACHIEVED],
        goal_shape=GOAL,
        prioritized=True,
    )


def set_all(update: Callable[[np.ndarray, np.ndarray], None], rows: np.ndarray) -> None:
    """Give every row a priority of its own."""
    rng = np.random.default_rng(5)
    for part in np.array_split(rows, max(1, len(rows) // 10_000)):
        update(part, rng.exponential(size=len(part)))


def measure(transitions: int, calls: int) -> dict[str, Any]:
    """Fill the buffers, give every row a priority and take every figure."""
    print(f"filling four buffers with {transitions} transitions each", file=sys.stderr)
    ours, plain = make_ours(transitions, prioritized=True), make_ours(transitions, prioritized=False)
    cpp, adapter = (make_cpprb(each, transitions) for each in (cpprb.HindsightReplayBuffer, HindsightReplayBuffer))
    for start in range(0, transitions // LENGTH, 1000):
        for episode in make_episodes(min(1000, transitions // LENGTH - start), seed=start):
            ours.add_episode(episode)
            plain.add_episode(episode)
            feed_cpprb(cpp, episode)
            feed_cpprb(adapter, episode)
    set_all(ours.update_priorities, ours.timeline.live_rows())
    set_all(cpp.update_priorities, np.arange(cpp.get_stored_size()))
    stored = [adapter.sample(100_000)["indexes"] for _ in range(transitions // 5_000 + 1)]
    set_all(adapter.update_priorities, np.unique(np.concatenate(stored)))
    errors = np.random.default_rng(6).exponential(size=BATCH)

    def both_ours() -> None:
        ours.update_priorities(ours.sample(BATCH).row, errors)

    def both_cpprb() -> None:
        cpp.update_priorities(cpp.sample(BATCH, beta=BETA)["indexes"], errors)

    def both_adapter() -> None:
        adapter.update_priorities(adapter.sample(BATCH, beta=BETA)["indexes"], errors)

    row, index = ours.sample(BATCH).row, cpp.sample(BATCH, beta=BETA)["indexes"].copy()
    candidates: dict[str, Callable[[], Any]] = {
        "ours, sample and update": both_ours,
        "cpprb, sample and update": both_cpprb,
        "ours as cpprb, sample and update": both_adapter,
        "ours, sample": lambda: ours.sample(BATCH),
        "cpprb, sample": lambda: cpp.sample(BATCH, beta=BETA),
        "ours as cpprb, sample": lambda: adapter.sample(BATCH, beta=BETA),
        "ours, update, same rows": lambda: ours.update_priorities(row, errors),
        "cpprb, update, same rows": lambda: cpp.update_priorities(index, errors),
        "ours, sample, all rows alike": lambda: plain.sample(BATCH),
    }
    return {
        "transitions": len(ours),
        "us": time_calls(candidates, calls, TURN, lambda _: None),
        "bytes_per_transition": {"prioritized": ours.nbytes / len(ours), "plain": plain.nbytes / len(plain)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transitions", type=int, default=1_000_000, help="real transitions in every buffer")
    parser.add_argument("--calls", type=int, default=CALLS, help="timed calls of each")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    figures = {"machine": describe_machine(), **measure(options.transitions, options.calls)}
    print(f"\n{BATCH} of {figures['transitions']} transitions")
    for name, value in figures["us"].items():
        print(f"{name:34}{value:9.1f} us")
    for name in ("ours", "ours as cpprb"):
        both = "sample and update"
        print(f"cpprb / {name}, both: {figures['us'][f'cpprb, {both}'] / figures['us'][f'{name}, {both}']:.1f}")
    for name, value in figures["bytes_per_transition"].items():
        print(f"{name:34}{value:9.0f} bytes per transition")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
