"""Measure the steps that BitFlipping needs until 95 % of 200 new episodes succeed, by number of bits and seed.

OMP_NUM_THREADS=1 python benchmarks/bit_flipping.py --bits 15 30 50 --seeds 0 1 2
Set any option of a run: --set goal_features=none --set n_sampled_goal=0. Seconds are those of collecting and updating.
"""

import argparse
import statistics
import tomllib

from hindsight_rl import HER


def main() -> None:
    """Print a line per run, and the median of each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, nargs="+", default=[15])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=150_000, help="steps after which a run ends unsolved")
    parser.add_argument("--every", type=int, default=250, help="steps between evaluations")
    parser.add_argument("--agent", help="default: the recipe's")
    parser.add_argument("--continuous", action="store_true", help="continuous actions: positive ones flip their bit")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="as in a recipe")
    given = parser.parse_args()
    options = tomllib.loads("\n".join(given.set))
    for n_bits in given.bits:
        steps = [solve(given, n_bits, seed, options) for seed in given.seeds]
        print(f"{n_bits} bits: median {statistics.median(steps):,} steps, range {min(steps):,} to {max(steps):,}")


def solve(given: argparse.Namespace, n_bits: int, seed: int, options: dict) -> float:
    """Train once and return the steps until it was solved, infinity if it was not."""
    fixed = {"seed": seed, "eval_every": given.every, "eval_episodes": 200, "solved_evaluations": 1}
    fixed["env_options"] = (f"n_bits={n_bits}", f"continuous={str(given.continuous).lower()}")
    with HER("BitFlipping-v0", given.agent, **fixed | options) as model:
        for _ in model.trainer.run(given.steps):
            pass
        trainer = model.trainer
        counts, evaluator = trainer.counts, trainer.evaluator
        print(
            f"{n_bits} bits, {model.settings.agent}, seed {seed}: {evaluator.history[-1]['success_rate']:.1%} at "
            f"{counts.env_steps:,} steps, {counts.updates:,} updates, "
            f"{counts.collect_seconds + counts.update_seconds:.1f} s; best {evaluator.best['success_rate']:.1%}",
            flush=True,
        )
        return counts.env_steps if trainer.is_solved else float("inf")


if __name__ == "__main__":
    main()
