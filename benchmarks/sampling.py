"""Speed of sampling and inserting: our buffer, Stable-Baselines3, cpprb, and a bare copy of the same memory.

    python benchmarks/sampling.py [--transitions 1000000] [--json FILE]

Everything runs in one process on one thread. The candidates take turns. Each has its own random stream, because with equal
seeds the second one would find its rows in the cache. "tight" is 250 calls in a row. "cold" is one call right after an
update of a critic, as in training. The bare gather is a compiled loop with prefetch that copies two adjacent rows and one
goal, for given rows into given memory. All figures are medians. Our buffer allocates memory for eight batches at once, so
cold figures are means of eight medians, one for every eighth call. The task has the shape of FetchPush: observation 25,
goal 3, action 4, episodes of 50 steps, strategy "future" with k = 4, a sparse reward in NumPy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import cpprb
import gymnasium
import numba
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

import hindsight_rl
from hindsight_rl import Episode, HindsightBuffer
from hindsight_rl.replay.kernels import PREFETCH_DISTANCE, copy_bytes, prefetch_bytes
from hindsight_rl.replay.rows import MOST_FRESH

OBSERVATION, GOAL, ACTION, LENGTH, BATCH, MANY = 25, 3, 4, 50, 256, 8
ACHIEVED = slice(3, 6)  # where FetchPush's observation holds the object's position
INSERT_TURN = 25  # calls in a row
ROUNDS, TURN = 2000, 250  # calls of each candidate; in a row, where they are timed tight


def sparse_reward(achieved_goal: np.ndarray, goal: np.ndarray, info: Any = None) -> np.ndarray:
    return -(np.linalg.norm(achieved_goal - goal, axis=-1) > 0.05).astype(np.float32)


@numba.njit(cache=True)
def compiled_reward(achieved_goal: np.ndarray, goal: np.ndarray, info: Any = None) -> np.ndarray:
    reward = np.empty(len(goal), np.float32)
    for i in range(len(goal)):
        total = np.float32(0)
        for j in range(goal.shape[1]):
            total += (achieved_goal[i, j] - goal[i, j]) ** 2
        reward[i] = -1 if np.sqrt(total) > 0.05 else 0
    return reward


def box(size: int, bound: float = np.inf) -> spaces.Box:
    return spaces.Box(-bound, bound, (size,), np.float32)


OBSERVATION_SPACE = spaces.Dict(observation=box(OBSERVATION), achieved_goal=box(GOAL), desired_goal=box(GOAL))
ACTION_SPACE = box(ACTION, 1.0)


class Silent(gymnasium.Env):
    """An environment for SB3's buffer, which only needs the spaces and the reward."""

    observation_space, action_space = OBSERVATION_SPACE, ACTION_SPACE
    compute_reward = staticmethod(sparse_reward)


def make_episodes(count: int, seed: int) -> list[Episode]:
    """Episodes of FetchPush shape, filled with small random numbers."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(count):
        observation = rng.normal(0, 0.1, (LENGTH + 1, OBSERVATION)).astype(np.float32)
        achieved = observation[:, ACHIEVED].copy()
        desired = np.repeat(rng.normal(0, 0.1, (1, GOAL)).astype(np.float32), LENGTH + 1, axis=0)
        action = rng.uniform(-1, 1, (LENGTH, ACTION)).astype(np.float32)
        reward = sparse_reward(achieved[1:], desired[1:])
        episodes.append(Episode(observation, achieved, desired, action, reward))
    return episodes


def make_ours(capacity: int, n_envs: int = 1, seed: int = 1, reward: Any = sparse_reward) -> HindsightBuffer:
    return HindsightBuffer(
        capacity,
        OBSERVATION_SPACE,
        ACTION_SPACE,
        reward,
        n_envs=n_envs,
        autoreset="disabled",
        seed=seed,
        episode_length=LENGTH,
    )


def make_sb3(capacity: int, n_envs: int = 1) -> HerReplayBuffer:
    env = DummyVecEnv([Silent] * n_envs)
    return HerReplayBuffer(capacity, OBSERVATION_SPACE, ACTION_SPACE, env, device="cpu", n_envs=n_envs)


def make_cpprb(capacity: int) -> Any:
    fields = {"obs": {"shape": OBSERVATION}, "act": {"shape": ACTION}, "next_obs": {"shape": OBSERVATION}}
    return cpprb.HindsightReplayBuffer(
        5 * capacity,
        fields,
        LENGTH,
        lambda next_state, action, goal: sparse_reward(next_state[:, ACHIEVED], goal),
        goal_func=lambda state: state[:, ACHIEVED],
        goal_shape=GOAL,
        prioritized=False,
    )


Step = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, dict[str, np.ndarray], np.ndarray, np.ndarray]


def steps_of(episodes: list[Episode]) -> list[Step]:
    """The steps of episodes that run at the same time: arrays with one leading axis, as a vector environment gives them."""
    keys = ("observation", "achieved_goal", "desired_goal")
    parts = {key: np.stack([getattr(e, key) for e in episodes], axis=1) for key in keys}
    action, reward = np.stack([e.action for e in episodes], axis=1), np.stack([e.reward for e in episodes], axis=1)
    no = np.zeros(len(episodes), np.bool_)
    seen = [{key: part[t] for key, part in parts.items()} for t in range(LENGTH + 1)]
    return [(seen[t], action[t], reward[t], seen[t + 1], no, no | (t == LENGTH - 1)) for t in range(LENGTH)]


def feed_ours(buffer: HindsightBuffer, steps: list[Step]) -> None:
    for step in steps:
        buffer.add(*step, {})


def feed_sb3(buffer: HerReplayBuffer, steps: list[Step]) -> None:
    infos: list[dict[str, Any]] = [{} for _ in steps[0][2]]
    for observation, action, reward, next_observation, _, truncated in steps:
        buffer.add(observation, next_observation, action, reward, truncated, infos)


def feed_cpprb(buffer: Any, episode: Episode) -> None:
    now, after = episode.observation[:-1], episode.observation[1:]
    buffer.add(obs=now, act=episode.action, next_obs=after)
    buffer.on_episode_end(episode.desired_goal[0])


@numba.njit(nogil=True, error_model="numpy")
def bare_gather(
    ring: np.ndarray, row_bytes: int, row: np.ndarray, goal_at: np.ndarray, size: int, into: np.ndarray
) -> None:
    start, place = ring.ctypes.data, into.ctypes.data
    for i in range(-PREFETCH_DISTANCE, len(row)):
        if i + PREFETCH_DISTANCE < len(row):
            prefetch_bytes(start + row[i + PREFETCH_DISTANCE] * row_bytes, 2 * row_bytes)
            prefetch_bytes(start + goal_at[i + PREFETCH_DISTANCE], size)
        if i >= 0:
            copy_bytes(place, start + row[i] * row_bytes, 2 * row_bytes)
            copy_bytes(place + 2 * row_bytes, start + goal_at[i], size)
            place += 2 * row_bytes + size


class Gather:
    """The bare gather over our own ring, with rows drawn beforehand."""

    def __init__(self, rows: np.ndarray) -> None:
        self.ring, self.row_bytes, self.n_rows = rows.view(np.uint8), rows.itemsize, len(rows)
        self.rng = np.random.default_rng(7)
        self.into = np.empty(BATCH * (2 * self.row_bytes + 4 * GOAL), np.uint8)
        self.prepare()

    def prepare(self) -> None:
        self.row = self.rng.integers(0, self.n_rows - LENGTH - 1, BATCH)
        goal_row = self.row + self.rng.integers(1, LENGTH, BATCH)
        self.goal_at = goal_row * self.row_bytes + 4 * OBSERVATION

    def __call__(self) -> None:
        bare_gather(self.ring, self.row_bytes, self.row, self.goal_at, 4 * GOAL, self.into)


def make_update() -> Callable[[], None]:
    """A twin-critic update, 3x256, batch 256: what passes through the caches between two batches of training."""
    torch.manual_seed(0)
    sizes = (OBSERVATION + GOAL + ACTION, 256, 256, 256, 1)
    layers = [torch.nn.Sequential(*_layers(sizes)) for _ in range(2)]
    parameters = [p for critic in layers for p in critic.parameters()]
    optimizer, inputs = torch.optim.Adam(parameters), torch.randn(BATCH, sizes[0])

    def update() -> None:
        loss = sum((critic(inputs) ** 2).mean() for critic in layers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return update


def _layers(sizes: tuple[int, ...]) -> list[torch.nn.Module]:
    return [layer for pair in pairwise(sizes) for layer in (torch.nn.Linear(*pair), torch.nn.ReLU())][:-1]


def time_calls(
    calls: dict[str, Callable[[], Any]], rounds: int, turn: int, before: Callable[[str], None], group: int = 1
) -> dict[str, float]:
    """Median microseconds of each call, taken in turns of `turn` calls; `before` runs, untimed, before each.

    group: one call in so many works for the next ones too. So many medians, each of every group-th call, are averaged.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(1, rounds // turn)):
        for name, call in calls.items():
            for _ in range(turn):
                before(name)
                start = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - start)
    medians = {name: [statistics.median(values[i::group]) for i in range(group)] for name, values in seconds.items()}
    return {name: 1e6 * statistics.mean(values) for name, values in medians.items()}


def time_sampling(ours: HindsightBuffer, sb3: HerReplayBuffer, other: Any, rounds: dict[str, int]) -> dict[str, Any]:
    """Microseconds per batch of 256, tight and cold."""
    gather = Gather(ours.timeline.rows)
    out, out_many = ours.sample(BATCH), ours.sample_many(MANY, BATCH)
    compiled = make_ours(ours.timeline.capacity, seed=2, reward=compiled_reward)
    compiled.load_state_dict(ours.state_dict()[0], compiled.state_dict()[1])
    compiled_out = compiled.sample(BATCH)
    calls: dict[str, Callable[[], Any]] = {
        "bare gather": gather,
        "ours": lambda: ours.sample(BATCH),
        "ours, compiled reward": lambda: compiled.sample(BATCH),
        "ours, out=": lambda: ours.sample(BATCH, out=out),
        "ours, compiled reward, out=": lambda: compiled.sample(BATCH, out=compiled_out),
        f"ours, {MANY} batches, out=": lambda: ours.sample_many(MANY, BATCH, out=out_many),
        "SB3 HerReplayBuffer": lambda: sb3.sample(BATCH),
        "cpprb HindsightReplayBuffer": lambda: other.sample(BATCH),
    }
    update = make_update()

    def before_tight(name: str) -> None:
        if name == "bare gather":
            gather.prepare()

    def before_cold(name: str) -> None:
        before_tight(name)
        update()

    times = {
        "tight": time_calls(calls, rounds["tight"], TURN, before_tight),
        "cold": time_calls(calls, rounds["cold"], 1, before_cold, MOST_FRESH),
    }
    for each in times.values():
        each[f"ours, {MANY} batches, out="] /= MANY
    return times


def time_inserting(episodes: list[Episode]) -> dict[str, float]:
    """Microseconds per environment step, into buffers that are already full."""
    capacity = len(episodes) * LENGTH // 2
    alone = [steps_of([e]) for e in episodes]
    eight = [steps_of(episodes[i : i + 8]) for i in range(0, len(episodes) - 7, 8)]
    bare = [[(_first(o), a[0], float(r[0]), _first(n), bool(d[0]), bool(t[0])) for o, a, r, n, d, t in s] for s in alone]
    ours = [make_ours(capacity, n) for n in (1, 1, 8)]
    sb3, cpp = [make_sb3(capacity, n) for n in (1, 8)], make_cpprb(capacity)
    plans: dict[str, tuple[Callable[[Any], None], list[Any], int]] = {
        "ours, add_episode": (ours[0].add_episode, episodes, 1),
        "ours, add, 1 environment": (lambda steps: feed_ours(ours[1], steps), bare, 1),
        "ours, add, 8 environments": (lambda steps: feed_ours(ours[2], steps), eight, 8),
        "SB3, add, 1 environment": (lambda steps: feed_sb3(sb3[0], steps), alone, 1),
        "SB3, add, 8 environments": (lambda steps: feed_sb3(sb3[1], steps), eight, 8),
        "cpprb, whole episodes": (lambda episode: feed_cpprb(cpp, episode), episodes, 1),
    }
    for feed, items, _ in plans.values():
        for item in items:
            feed(item)
    seconds: dict[str, list[float]] = {name: [] for name in plans}
    for first in range(0, len(eight), INSERT_TURN):
        for name, (feed, items, n_envs) in plans.items():
            for item in items[first : first + INSERT_TURN]:
                start = time.perf_counter()
                feed(item)
                seconds[name].append((time.perf_counter() - start) / (LENGTH * n_envs))
    return {name: 1e6 * statistics.median(values) for name, values in seconds.items()}


def _first(observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: value[0] for key, value in observation.items()}


def measure(transitions: int, rounds: dict[str, int]) -> dict[str, Any]:
    """Fill the three buffers with the same transitions and take every figure."""
    ours, sb3, cpp = make_ours(transitions), make_sb3(transitions), make_cpprb(transitions)
    print(f"filling three buffers with {transitions} transitions each", file=sys.stderr)
    for start in range(0, transitions // LENGTH, 1000):
        for episode in make_episodes(min(1000, transitions // LENGTH - start), seed=start):
            ours.add_episode(episode)
            feed_sb3(sb3, steps_of([episode]))
            feed_cpprb(cpp, episode)
    arrays = [*sb3.observations.values(), *sb3.next_observations.values(), sb3.actions, sb3.rewards, sb3.dones]
    arrays += [sb3.timeouts, sb3.ep_start, sb3.ep_length]
    row = cpp.rb.sample(1)
    return {
        "transitions": len(ours),
        "sample_us": time_sampling(ours, sb3, cpp, rounds),
        "insert_us_per_step": time_inserting(make_episodes(800, seed=3)),
        "bytes_per_transition": {
            "ours": ours.nbytes / len(ours),
            "SB3 HerReplayBuffer": sum(a.nbytes for a in arrays) / transitions,
            "cpprb HindsightReplayBuffer": 5.0 * sum(a.nbytes for a in row.values()),
        },
    }


def describe_machine() -> dict[str, Any]:
    versions = {"hindsight": hindsight_rl.__version__, "stable_baselines3": stable_baselines3.__version__}
    versions |= {"numpy": np.__version__, "torch": torch.__version__, "python": platform.python_version()}
    return {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), **versions}


def show(figures: dict[str, Any]) -> None:
    """Print the figures."""
    tight, cold = figures["sample_us"]["tight"], figures["sample_us"]["cold"]
    print(f"\nsample({BATCH}) of {figures['transitions']} transitions, per batch")
    others = "SB3 HerReplayBuffer", "cpprb HindsightReplayBuffer"
    for kind, times in (("tight", tight), ("cold", cold)):
        print(f"{kind:32}{'us':>9}{'x gather':>10}{'SB3 /':>9}{'cpprb /':>9}")
        for name, each in times.items():
            ratios = [each / times["bare gather"], *(times[other] / each for other in others)]
            print(f"{name:32}{each:9.1f}{ratios[0]:10.2f}{ratios[1]:9.1f}{ratios[2]:9.1f}")
    print("\ninserting, us per environment step")
    for name, value in figures["insert_us_per_step"].items():
        print(f"{name:32}{value:9.2f}")
    print("\nmemory, bytes per transition")
    for name, value in figures["bytes_per_transition"].items():
        print(f"{name:32}{value:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transitions", type=int, default=1_000_000, help="real transitions in every buffer")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="tight rounds; a tenth of it cold")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = {"tight": options.rounds, "cold": max(1, options.rounds // 10)}
    figures = {"machine": describe_machine(), **measure(options.transitions, rounds)}
    show(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
