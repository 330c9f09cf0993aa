"""How many steps BitFlipping takes: until 95 % of 200 unseen episodes succeed, by number of bits and seed.

OMP_NUM_THREADS=1 python benchmarks/bit_flipping.py --bits 15 30 50 --seeds 0 1 2
Any option of a run may be set: --set goal_features=none --set n_sampled_goal=0. Seconds are of collecting and updating.
"""

import argparse
import statistics
import tomllib

from hindsight import HER


def main() -> None:
    """Print a line per run, and the median of each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, nargs="+", default=[15])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=150_000, help="give up after so many")
    parser.add_argument("--every", type=int, default=250, help="steps between evaluations")
    parser.add_argument("--agent", help="the recipe's unless given")
    parser.add_argument("--continuous", action="store_true", help="actions are numbers: positive ones flip their bit")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="as in a recipe")
    given = parser.parse_args()
    options = tomllib.loads("\n".join(given.set))
    for n_bits in given.bits:
        solved = [run(given, n_bits, seed, options) for seed in given.seeds]
        print(f"{n_bits} bits: median {statistics.median(solved):,} steps, range {min(solved):,} to {max(solved):,}")


def run(given: argparse.Namespace, n_bits: int, seed: int, options: dict) -> float:
    """One run; returns the steps it took, infinite where it gave up."""

    fixed = {"seed": seed, "eval_every": given.every, "eval_episodes": 200, "solved_evaluations": 1}
    fixed["env_options"] = (f"n_bits={n_bits}", f"continuous={str(given.continuous).lower()}")
    with HER("BitFlipping-v0", given.agent, **fixed | options) as model:
        for _ in model.trainer.run(given.steps):
            pass
        trainer = model.trainer
        counts, last = trainer.counts, trainer.history[-1]["success_rate"]
        print(
            f"{n_bits} bits, {model.settings.agent}, seed {seed}: {last:.1%} at {counts.env_steps:,} steps, "
            f"{counts.updates:,} updates, {counts.collect_seconds + counts.update_seconds:.1f} s; "
            f"best {trainer.best['success_rate']:.1%}",
            flush=True,
        )
        return counts.env_steps if trainer.is_solved else float("inf")


if __name__ == "__main__":
    main()
