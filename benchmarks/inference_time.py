"""Measure the CPU time of one inference of the structure of a task.

usage: OMP_NUM_THREADS=1 python benchmarks/inference_time.py [--steps 2000 20000] [--profile] [ENV]

The steps are those that runs with the seeds 0, 1, ... play before they learn: random ones and those that seek contact.
CPU time does not depend on what else the machine does, as wall time does.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import time

from hindsight_rl import HER
from hindsight_rl.records import Episode, GoalSpec
from hindsight_rl.structure import infer_structure


def record(environment: str, steps: int) -> tuple[GoalSpec, list[Episode], list[Episode]]:
    """Return the task, random episodes and probing episodes, with at least `steps` steps together."""
    random: list[Episode] = []
    probing: list[Episode] = []
    spec = None
    for seed in itertools.count():
        if spec is not None and sum(len(episode.action) for episode in (*random, *probing)) >= steps:
            break
        options = {"structure": "inferred", "updates_per_step": 1e-6, "check": False}
        with HER(environment, recipe="default", seed=seed, **options) as model:
            trainer, search, spec = model.trainer, model.trainer.search, model.spec
            while search.is_warm_up:
                trainer.learn_from_next_job()
            episodes, n_random = trainer.buffer.timeline.episodes(), search.state.random_episodes
            random += episodes[:n_random]
            probing += episodes[n_random:]
    return spec, random, probing


def main() -> None:
    """Print one line per number of steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", nargs="?", default="FetchPush-v4", metavar="ENV")
    parser.add_argument("--steps", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    arguments = parser.parse_args()
    for steps in arguments.steps:
        spec, random, probing = record(arguments.environment, steps)
        n = sum(len(episode.action) for episode in (*random, *probing))
        infer_structure(random[:3], spec)  # imports and first calls
        profile, began = cProfile.Profile(), time.process_time()
        if arguments.profile:
            profile.enable()
        infer_structure(random, spec, probing)
        profile.disable()
        print(f"{arguments.environment}: {time.process_time() - began:.2f} s for {n:,} steps")
        if arguments.profile:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


if __name__ == "__main__":
    main()
