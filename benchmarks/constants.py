"""Halve and double each constant of the search for structure, and see which verdicts change, without training.

OMP_NUM_THREADS=1 python benchmarks/constants.py [--tasks DiscPuck-v0 ...] [--names SYMMETRY_MARGIN ...]

The first steps of each task, as a run with seed 0 plays them, are recorded once. Then the structure is inferred from them
with each constant halved and doubled. Whole numbers stay whole, and at least 1. Fractions are not doubled to 1 or more.
Writes benchmarks/results/constants.md: for each constant the tasks in which an option that follows from the steps differs,
and which options. What is in the table already is not tried again.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gymnasium.spaces import Box

from hindsight_rl import HER
from hindsight_rl.errors import HindsightError
from hindsight_rl.structure import infer_structure
from hindsight_rl.training.structure_search import all_choices
from tasks import TASKS

RESULTS = Path(__file__).parent / "results" / "constants.md"
PACKAGE = "hindsight_rl.structure"
CONTINUOUS = [name for name, task in TASKS.items() if task.status == "open" and isinstance(task.make().action_space, Box)]
LABELS = ("SCALAR", "UNCLEAR_AXIS")  # numbers that only name something
NAME = re.compile(r"[A-Z][A-Z0-9_]+")
Options = dict[str, Any]


class Recorded:
    """The first steps of a task, as a run plays them before it learns."""

    def __init__(self, name: str) -> None:
        with HER(f"tasks:{name}", recipe="default", seed=0, updates_per_step=1e-6) as model:
            search, self.spec = model.trainer.search, model.spec
            while search is not None and search.is_warm_up:
                model.trainer.learn_from_next_job()
            episodes = model.trainer.buffer.timeline.episodes()
            n_random = search.state.random_episodes or len(episodes)
            self.random, self.probing = episodes[:n_random], episodes[n_random:]
            self.compute_reward = model.trainer.buffer.compute_reward

    def options(self) -> Options:
        """Return the options that follow from the steps, with the constants as they are now."""
        try:
            found = infer_structure(self.random, self.spec, self.probing, compute_reward=self.compute_reward)
        except (HindsightError, ValueError) as problem:  # a constant may become absurd, as a majority of all
            return {"error": str(problem)}
        return {choice.option: choice.value for choice in all_choices(found)}


def constants() -> Iterator[tuple[str, float, list[ModuleType]]]:
    """Yield the name and the value of each constant, and the modules that hold it."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(PACKAGE)]
    names = sorted({name for module in modules for name in vars(module) if NAME.fullmatch(name)})
    for name in names:
        holders = [module for module in modules if name in vars(module)]
        value = vars(holders[0])[name]
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in LABELS:
            yield name, value, holders


def changed(value: float, factor: float) -> float:
    """Return a constant times a factor; a whole number stays whole, and at least 1."""
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def is_absurd(value: float, factor: float) -> bool:
    """Return whether a fraction would become 1 or more: a decay of 1.8 makes a model that never settles."""
    return isinstance(value, float) and value < 1 <= changed(value, factor)


def line_of(
    name: str, value: float, holders: list[ModuleType], tasks: dict[str, Recorded], usual: dict[str, Options]
) -> str:
    """Return one line of the table."""
    cells = []
    for factor in (0.5, 2.0):
        if is_absurd(value, factor):
            cells.append("not tried")
            continue
        for module in holders:
            setattr(module, name, changed(value, factor))
        differ = []
        for task, recorded in tasks.items():
            options = recorded.options()
            names = sorted(key for key in {*options, *usual[task]} if options.get(key) != usual[task].get(key))
            differ += [f"{task}: {', '.join(names)}"] if names else []
        for module in holders:
            setattr(module, name, value)
        cells.append("; ".join(differ) or "-")
    print(name, *cells, sep=" | ", flush=True)
    return f"| {name} | {value:g} | {' | '.join(cells)} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", choices=CONTINUOUS, default=CONTINUOUS, metavar="NAME")
    parser.add_argument("--names", nargs="*", default=[])
    given = parser.parse_args()
    tasks = {name: Recorded(name) for name in given.tasks}
    usual = {name: recorded.options() for name, recorded in tasks.items()}
    head = ["| constant | value | halved: options that differ | doubled: options that differ |", "|---|---|---|---|"]
    lines = RESULTS.read_text(encoding="utf-8").splitlines()[len(head) :] if RESULTS.exists() else []
    known = {line.split(" | ")[0].strip("| "): line for line in lines}
    for name, value, holders in constants():
        if name not in known and (not given.names or name in given.names):
            known[name] = line_of(name, value, holders, tasks, usual)
            RESULTS.write_text("\n".join([*head, *(known[each] for each in sorted(known))]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
