"""Compare the structure that the program infers with the structure that recipes declare.

usage: python benchmarks/structure.py [--seed 0] [ENV ...]

For each environment it plays the warm-up of a run, as `hindsight-rl infer` does, and prints one line of a table: what of
the declared structure was found, what was missed, and what was found besides.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hindsight_rl import HER
from hindsight_rl.recipes import Recipe, find_recipe, load_recipe

RECIPES = Path(__file__).parent / "recipes"  # of tasks that are trained without a recipe
ENVIRONMENTS = (
    "FetchReach-v4",
    "FetchPush-v4",
    "FetchPickAndPlace-v4",
    "FetchSlide-v4",
    "PandaReach-v3",
    "PandaPush-v3",
    "PandaPickAndPlace-v3",
    "PointMaze_UMaze-v3",
    "parking-v0",
    "HandReach-v3",
)


def declared_recipe(environment: str) -> Recipe:
    """Return the recipe that declares the structure of an environment: one of this folder, or a built-in one."""
    here = [load_recipe(str(path)) for path in sorted(RECIPES.glob("*.toml"))]
    return next((recipe for recipe in here if recipe.fits(environment)), None) or find_recipe(environment)


def parts(options: dict[str, Any]) -> set[str]:
    """Return the structure in options as short texts that can be compared."""
    found = {f"subgoal {_columns(text)}" for text in options.get("subgoals") or ()}
    found |= {f"symmetry {_signs(text)}" for text in options.get("symmetries") or ()}
    found |= {f"difference {text}" for text in options.get("column_differences") or ()}
    return found | {f"hidden {column}" for column in options.get("hidden_observation") or ()}


def _columns(text: str) -> str:
    return " to ".join(re.findall(r"(?:achieved|goal)=(\S+)", text))


def _signs(text: str) -> str:
    """Return what a symmetry does to goals and actions, without the offsets."""
    entries = re.findall(r"([ga]\d+)=\S*?([-+]?)([ga]\d+)(?=\s|$)", text)
    return " ".join(f"{to}={'-' if sign == '-' else ''}{source}" for to, sign, source in entries)


def infer(environment: str, seed: int) -> tuple[dict[str, Any], int]:
    """Return the options that the warm-up of a run finds, and its steps."""
    options = {"structure": "inferred", "updates_per_step": 0.01}  # updates would only take time
    with HER(environment, recipe="default", seed=seed, check=False, **options) as model:
        trainer = model.trainer
        while trainer.search is not None and trainer.search.is_warm_up:
            trainer.learn_from_next_job()
        found = trainer.search.state.found.structure if trainer.search else ()
        return {choice.option: choice.value for choice in found}, trainer.counts.env_steps


def line(environment: str, seed: int) -> str:
    """Return one line of the table."""
    recipe = declared_recipe(environment)
    declared = parts(recipe.tuned_options(recipe.agent))
    options, steps = infer(environment, seed)
    inferred = parts(options)
    cells = (declared & inferred, declared - inferred, inferred - declared)
    return f"| {environment} | {steps:,} | {' | '.join(map(_listed, cells))} |"


def _listed(found: Iterable[str]) -> str:
    """Return the parts, with the hidden columns as one."""
    names = sorted(found)
    hidden = sorted(int(name.split()[1]) for name in names if name.startswith("hidden "))
    texts = [f"`{name}`" for name in names if not name.startswith("hidden ")]
    return "; ".join([*texts, *(["hidden " + ", ".join(map(str, hidden))] if hidden else [])]) or "-"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=ENVIRONMENTS, metavar="ENV")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| task | warm-up steps | found as declared | declared, not found | found, not declared |\n|---|---|---|---|---|")
    for environment in arguments.environments:
        print(line(environment, arguments.seed))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
