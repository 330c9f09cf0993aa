"""Train with a constant of the search for structure halved or doubled, where that changes a verdict.

OMP_NUM_THREADS=1 python benchmarks/changed_constants.py [--names SYMMETRY_MARGIN ...] [--seeds 0 1 2] [--most 1]

`benchmarks/constants.py` says on which tasks an option differs. Of these, the ones that train in the least time are trained
here, and each also with the constant as it is. Results are added to benchmarks/results/changed_constants.csv, one line for
each constant, value, task and seed; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from constants import RESULTS as TABLE
from constants import changed, constants, is_absurd
from proving_ground import append, read, rows, train_here

RESULTS = Path(__file__).parent / "results" / "changed_constants.csv"
COLUMNS = ("constant", "value", "task", "seed", "commit", "solved_at", "success", "seconds")
FACTORS = (0.5, 2.0)  # of the two columns of the table


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", nargs="*", default=[])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--most", type=int, default=1, help="tasks of each constant and value")
    given = parser.parse_args()
    wanted = [each for each in changes(given.most) if not given.names or each[0] in given.names]
    for seed in given.seeds:
        for name, value, task in wanted:
            for tried in ("", f"{value:g}"):  # "": all constants as they are
                key = name if tried else "", tried, task, str(seed)
                if key not in {tuple(line[column] for column in COLUMNS[:4]) for line in rows(RESULTS)}:
                    append(RESULTS, COLUMNS, run(key[0], value, tried, task, seed))


def changes(most: int) -> Iterator[tuple[str, float, str]]:
    """Yield constants, the values to try, and the tasks on which an option then differs, those of short runs first."""
    seconds = {line["task"]: float(line["seconds"]) for line in read() if line["variant"] == "default"}
    now = {name: value for name, value, _ in constants()}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[2:]:
        name, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for factor, cell in zip(FACTORS, cells, strict=True):
            value = changed(now[name], factor) if name in now else 0.0
            tasks = [part.split(":")[0] for part in cell.split("; ") if ":" in part and "error" not in part]
            if name in now and not is_absurd(now[name], factor):
                yield from (
                    (name, value, task) for task in sorted(tasks, key=lambda each: seconds.get(each, float("inf")))[:most]
                )


def run(name: str, value: float, tried: str, task: str, seed: int) -> dict[str, object]:
    """Train once, and return a line of results. name: of the constant that has this value; "": all are as they are."""
    began = time.perf_counter()
    before = {known: (usual, holders) for known, usual, holders in constants()}
    usual, holders = before.get(name, (0.0, []))
    for module in holders:
        setattr(module, name, value)
    solved_at, success = train_here(task, seed)
    for module in holders:
        setattr(module, name, usual)
    commit = subprocess.check_output(("git", "rev-parse", "--short", "HEAD"), cwd=RESULTS.parent, text=True).strip()
    values = (name, tried, task, seed, commit, solved_at, success, round(time.perf_counter() - began))
    print(*values, flush=True)
    return dict(zip(COLUMNS, values, strict=True))


if __name__ == "__main__":
    main()
