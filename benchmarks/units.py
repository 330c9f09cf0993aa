"""Train the same tasks with rewards of other values and with lengths in other units. Nothing is declared.

usage: python benchmarks/units.py [--seeds 0 1] [--steps 6000] [rewards] [lengths] [reach]

rewards: a disc pushes a puck, with five pairs of rewards. All must have the same success at every evaluation.
lengths: the same task in metres, kilometres and millimetres. All must be solved in about as many steps.
reach: a point reaches a goal: in the three units, with dense rewards of three scales, with the cost of the action in the
reward. The tasks are those of tests/envs. Prints one line of a table per variant: the success of 100 unseen episodes after
each 1,000 steps, in %, for each seed, and the median of the steps to solved. A run ends at 95 % success or more in two
evaluations; "solved" is the first of them.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hindsight_rl import HER

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "envs"))
from puck_env import Puck
from reach_env import Reach

SOLVED, EVERY = 95, 1_000
REWARDS = ((-1, 0), (0, 1), (0, 100), (-100, 0), (99, 100))
LENGTHS = {"metres": 1.0, "kilometres": 1e-3, "millimetres": 1e3}
VARIANTS: dict[str, dict[str, Callable[[], Any]]] = {
    "rewards": {f"puck, rewards {low}/{high}": partial(Puck, low, high) for low, high in REWARDS},
    "lengths": {f"puck, {name}": partial(Puck, unit=unit) for name, unit in LENGTHS.items()},
    "reach": {
        **{f"reach, {name}": partial(Reach, unit=unit) for name, unit in LENGTHS.items()},
        **{f"reach, dense rewards times {scale:g}": partial(Reach, "dense", scale) for scale in (0.01, 1.0, 100.0)},
        **{f"reach, -1/0 minus a cost, times {scale:g}": partial(Reach, "costly", scale) for scale in (1.0, 100.0)},
    },
}


def curve(task: Callable[[], Any], seed: int, steps: int) -> list[int]:
    """Return the success in % after each EVERY steps."""
    success: list[int] = []
    with HER(task, recipe="default", seed=seed) as model:
        while model.num_timesteps < steps and min([0, *success][-2:]) < SOLVED:
            model.learn(EVERY, reset_num_timesteps=False)
            success.append(round(100 * model.evaluate(100).success_rate))
    return success


def solved_at(success: list[int]) -> float:
    """Return the steps of the first of two evaluations in a row with enough success; infinite without."""
    pairs = itertools.pairwise(success)
    return next((EVERY * i for i, pair in enumerate(pairs, 1) if min(pair) >= SOLVED), float("inf"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(VARIANTS), metavar="PART", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1))
    parser.add_argument("--steps", type=int, default=6_000)
    arguments = parser.parse_args()
    seeds = " | ".join(f"seed {seed}" for seed in arguments.seeds)
    print(f"| task | {seeds} | median steps to solved |\n|---|{'---|' * (len(arguments.seeds) + 1)}", flush=True)
    for part in arguments.parts:
        for name, task in VARIANTS[part].items():
            curves = [curve(task, seed, arguments.steps) for seed in arguments.seeds]
            cells = " | ".join(", ".join(map(str, each)) for each in curves)
            print(f"| {name} | {cells} | {statistics.median(map(solved_at, curves)):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
