"""Measure the wall time of whole commands, from Enter to the prompt, against another checkout of this repository.

    python benchmarks/wall_time.py /path/to/other/checkout [--commands reach point panda fastest evaluate push inferred]
        [--repeats 3] [--workers N]

Both checkouts take turns. Each figure is a median. "first run" means that no loop was compiled before (an empty folder for
Numba's cache). "CPU" is the time of all processes of a command, which depends less on other load. FetchPush makes a fixed
number of environment steps without an early end: with its recipe in benchmarks/recipes ("push"), or with nothing declared
("inferred"). So do FetchPickAndPlace ("inferred-pick") and PandaPush ("inferred-panda"). "solved" is FetchPush with nothing
declared until it is solved, the median of seeds 0 to 4. "fastest" are four tasks of the proving ground, "panda" is a task
of PyBullet. The last table tells where the wall time of this checkout went.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parents[1]
PARTS = ("start", "collect", "update", "evaluate", "write")
FASTEST = ("DenseReach", "Dose", "ScalarReach", "Turntable")  # of the proving ground: about 11 s each in its first results


@dataclass
class Checkout:
    """A checkout and its measurements: seconds of wall time and of CPU time by the name of the command."""

    path: Path
    scratch: Path
    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str, *words: str, is_first: bool = False) -> None:
        """Run a command of hindsight-rl and add its times."""
        with tempfile.TemporaryDirectory() as empty:
            cache = empty if is_first else str(self.scratch / "numba")
            folders = self.path / "src", HERE / "benchmarks"  # both checkouts run the same tasks
            variables = os.environ | {
                "PYTHONPATH": os.pathsep.join(map(str, folders)),
                "NUMBA_CACHE_DIR": cache,
                "OMP_NUM_THREADS": "1",
            }
            variables |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self.scratch / "bytecode")}
            command = [sys.executable, "-m", "hindsight_rl", *words]
            before, started = _cpu_seconds(), time.perf_counter()
            subprocess.run(command, env=variables, cwd=self.scratch, check=True, capture_output=True)
            self.wall.setdefault(name, []).append(time.perf_counter() - started)
            self.cpu.setdefault(name, []).append(_cpu_seconds() - before)

    def train(self, name: str, environment: str, *words: str, is_first: bool = False) -> None:
        """Train in a new folder, `self.folder(name)`."""
        subprocess.run(["rm", "-rf", str(self.folder(name))], check=True)
        self.run(name, "train", environment, "--folder", str(self.folder(name)), *words, is_first=is_first)

    def folder(self, name: str) -> Path:
        """Return the run folder of the last command of this name."""
        return self.scratch / name.replace(" ", "-").replace(",", "")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def commands(push_steps: int, workers: Sequence[str]) -> Mapping[str, Callable[[Checkout], None]]:
    """Return what is measured, by the name on the command line. workers: the option of longer runs; empty: its default."""
    nothing_declared = "--recipe", "default", *workers
    fixed = "--steps", str(push_steps), "--solved-evaluations", "0"

    def reach(checkout: Checkout) -> None:
        checkout.train("FetchReach, first run", "FetchReach-v4", is_first=True)
        checkout.train("FetchReach, later runs", "FetchReach-v4")

    def evaluate(checkout: Checkout) -> None:
        if not checkout.folder("FetchReach, later runs").exists():
            checkout.train("FetchReach, later runs", "FetchReach-v4")
        checkout.run(
            "evaluate, 100 episodes", "evaluate", str(checkout.folder("FetchReach, later runs")), "--episodes", "100"
        )

    def push(checkout: Checkout) -> None:
        recipe = checkout.path / "benchmarks" / "recipes" / "fetch_push.toml"
        words = ("--recipe", str(recipe)) if recipe.exists() else ()  # an older checkout has it in the package
        checkout.train(f"FetchPush, {push_steps:,} steps", "FetchPush-v4", *words, *fixed, *workers)

    def inferred(environment: str) -> Callable[[Checkout], None]:
        name = f"{environment.partition('-')[0]} inferred, {push_steps:,} steps"
        return lambda checkout: checkout.train(name, environment, *nothing_declared, *fixed)

    def solved(checkout: Checkout) -> None:
        for seed in range(5):
            words = *nothing_declared, "--steps", "40000", "--seed", str(seed)
            checkout.train("FetchPush inferred, until solved", "FetchPush-v4", *words)

    def fastest(checkout: Checkout) -> None:
        for name in FASTEST:
            checkout.train(f"{name}, later runs", f"tasks:{name}-v0")

    return {
        "reach": reach,
        "panda": lambda checkout: checkout.train("PandaReach, later runs", "PandaReach-v3"),
        "fastest": fastest,
        "point": lambda checkout: checkout.train("PointReach, later runs", "PointReach-v0"),
        "push": push,
        "inferred": inferred("FetchPush-v4"),
        "inferred-pick": inferred("FetchPickAndPlace-v4"),
        "inferred-panda": inferred("PandaPush-v3"),
        "solved": solved,
        "evaluate": evaluate,
    }


def print_comparison(here: Checkout, other: Checkout) -> None:
    """Print the medians of both checkouts and their ratios."""
    print(f"\n| command | wall here | wall {other.path.name} | ratio | CPU here | CPU {other.path.name} | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in here.wall:
        cells = []
        for mine, theirs in ((here.wall, other.wall), (here.cpu, other.cpu)):
            first, second = statistics.median(mine[name]), statistics.median(theirs[name])
            cells += [f"{first:.1f} s", f"{second:.1f} s", f"{first / second:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def print_parts(here: Checkout) -> None:
    """Print where the wall time of the last training of each name went."""
    print(f"\n| command | {' | '.join(PARTS)} | rest |\n|---|{'---|' * (len(PARTS) + 1)}")
    for name in here.wall:
        place = here.folder(name) / "metrics.jsonl"
        if place.exists():
            records = [json.loads(line) for line in place.read_text().splitlines()]
            seconds = [max(record[f"{part}_seconds"] for record in records) for part in PARTS]
            cells = [f"{each:.1f} s" for each in (*seconds, here.wall[name][-1] - sum(seconds))]
            print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--commands", nargs="+", default=["reach", "point", "panda", "fastest", "evaluate", "push"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--push-steps", type=int, default=20_000)
    parser.add_argument("--workers", help="of runs with a number of steps and until solved")
    arguments = parser.parse_args()
    chosen = commands(arguments.push_steps, () if arguments.workers is None else ("--workers", arguments.workers))
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        here, other = Checkout(HERE, Path(first)), Checkout(arguments.other.resolve(), Path(second))
        here.train("warm up", "PointReach-v0", "--steps", "100")  # compiles the loops that later runs load
        other.train("warm up", "PointReach-v0", "--steps", "100")
        for times in (here.wall, here.cpu, other.wall, other.cpu):
            times.clear()
        for _ in range(arguments.repeats):
            for name in arguments.commands:
                for checkout in (here, other):
                    chosen[name](checkout)
                print(name, f"{time.strftime('%H:%M:%S')}", file=sys.stderr)
        print_comparison(here, other)
        print_parts(here)


if __name__ == "__main__":
    main()
