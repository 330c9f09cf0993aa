"""Train open tasks of the proving ground without one preset, for comparison with the default.

OMP_NUM_THREADS=1 python benchmarks/presets.py [--presets object hit ...] [--seeds 0 1]

A preset is a set of hyperparameters for a feature of a task (recipes/presets). Each run has the budget and the evaluations
of `benchmarks/proving_ground.py`. Results are added to benchmarks/results/presets.csv, one line for each preset, task and
seed; what is there already is not run again. The preset "none" is the default, with all presets.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path

from hindsight_rl.recipes import presets
from hindsight_rl.recipes.presets import Preset, load_preset
from proving_ground import append, rows, train_here

RESULTS = Path(__file__).parent / "results" / "presets.csv"
COLUMNS = ("preset", "task", "seed", "commit", "solved_at", "success", "seconds")
TASKS_OF = {  # open tasks that have the feature
    "object": ("DiscPuck-v0", "Drawer-v0"),
    "lone_object": ("DiscPuck-v0", "PlaneGrasp-v0"),
    "guided": ("DiscPuck-v0", "PlaneGrasp-v0"),
    "hit": ("SlidingPuck-v0",),
    "body": ("TwoCars-v0", "PlaneDrone-v0"),
}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", choices=TASKS_OF, default=list(TASKS_OF), metavar="NAME")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    given = parser.parse_args()
    for seed in given.seeds:
        for name in given.presets:
            for task in TASKS_OF[name]:
                for without in ("none", name):
                    if (without, task, str(seed)) not in known():
                        append(RESULTS, COLUMNS, run(without, task, seed))


def run(without: str, task: str, seed: int) -> dict[str, object]:
    """Train once without a preset, and return a line of results."""
    began = time.perf_counter()
    presets.load_preset = lambda name: Preset(name=name) if name == without else load_preset(name)
    solved_at, success = train_here(task, seed)
    commit = subprocess.check_output(("git", "rev-parse", "--short", "HEAD"), cwd=RESULTS.parent, text=True).strip()
    values = (without, task, seed, commit, solved_at, success, round(time.perf_counter() - began))
    line: dict[str, object] = dict(zip(COLUMNS, values, strict=True))
    print(*values, flush=True)
    return line


def known() -> set[tuple[str, str, str]]:
    """Return preset, task and seed of each run so far."""
    return {(line["preset"], line["task"], line["seed"]) for line in rows(RESULTS)}


if __name__ == "__main__":
    main()
