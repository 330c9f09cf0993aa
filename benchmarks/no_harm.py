"""Compare `inferred` with `none` on small tasks in which a column matters later than random actions show.

usage: python benchmarks/no_harm.py [--seeds 0 1 2] [--steps 10000] [TASK ...]

The tasks are those of tests/structure/push_tasks.py. Prints one line of a table per task and structure: the success of 100
unseen episodes after each quarter of the steps, in %, for each seed. A run ends at 95 % success or more in two evaluations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hindsight_rl import HER

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "structure"))
import push_tasks

TASKS = ("Peg", "Fuel", "Wind", "Latch", "Key")
SOLVED = 95


def curve(task: Callable[[], Any], structure: str, seed: int, steps: int) -> list[int]:
    """Return the success in % after each quarter of the steps."""
    success: list[int] = []
    options = {"structure": structure, "seed": seed, "updates_per_step": 2}
    with HER(task, recipe="default", check=False, **options) as model:
        while model.num_timesteps < steps and min([0, *success][-2:]) < SOLVED:
            model.learn(steps // 4, reset_num_timesteps=False)
            success.append(round(100 * model.evaluate(100).success_rate))
    return success


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--steps", type=int, default=10_000)
    arguments = parser.parse_args()
    print("| task | structure |", " | ".join(f"seed {seed}" for seed in arguments.seeds), "|", flush=True)
    for name in arguments.tasks:
        for structure in ("inferred", "none"):
            curves = [curve(getattr(push_tasks, name), structure, seed, arguments.steps) for seed in arguments.seeds]
            print(f"| {name} | {structure} |", " | ".join(", ".join(map(str, each)) for each in curves), "|", flush=True)


if __name__ == "__main__":
    main()
