"""The tables of docs/results.md, from the CSV files of benchmarks/results."""

import csv
import fnmatch
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hindsight_rl.records.statistics import first_solved

RESULTS = Path(__file__).parent / "results"
Line = dict[str, Any]  # of a CSV file: column -> value
FAMILIES = {  # tasks in the order of their rows
    "reach": ("FetchReach-*", "PandaReach-*", "PointReach-*"),
    "fetch": ("FetchPush-*", "FetchPickAndPlace-*", "FetchSlide-*"),
    "panda": ("PandaPush-*", "PandaPickAndPlace-*", "PandaSlide-*", "PandaStack-*"),
    "mazes": ("PointMaze_UMaze-*", "PointMaze_Medium-*", "PointMaze_Large-*", "AntMaze_*"),
    "hand": ("HandReach-*", "HandManipulate*"),
    "parking": ("parking-*",),
    "bits": ("BitFlipping-*",),
}
VARIANTS = ("inferred", "none", "declared", "subgoals", "symmetric", "relative", "plain")  # in the order of the rows
HEADER = (
    "| task | learner | seeds | solved at steps | of these, by the check | last success in % | seconds |\n"
    "|---|---|---|---|---|---|---|\n"
)


def results_table(family: str) -> str:
    """Return the table of a family of tasks."""
    runs, peers = read(RESULTS / "runs.csv"), read(RESULTS / "peers.csv")
    return HEADER + "\n".join(row for pattern in FAMILIES[family] for row in rows_of(pattern, runs, peers)) + "\n"


def rows_of(pattern: str, runs: Sequence[Line], peers: Sequence[Line]) -> Iterable[str]:
    """Yield the rows of a table for the tasks that match a pattern: our runs by variant, then other libraries."""
    ours = [line for line in runs if fnmatch.fnmatchcase(line["environment"], pattern)]
    for task in dict.fromkeys(line["environment"] for line in ours):
        for variant in VARIANTS:
            lines = [line for line in ours if (line["environment"], line["variant"]) == (task, variant)]
            if lines:
                yield row_of(task, f"{variant}, {lines[0]['agent'].upper()}", lines)
        others = [line for line in peers if line["environment"] == task]
        for agent in dict.fromkeys(line["agent"] for line in others):
            curves = [line for line in others if line["agent"] == agent]
            yield row_of(task, f"SB3, {agent.upper()}", [result_of_peer(curves, seed) for seed in seeds_of(curves)])


def seeds_of(lines: Sequence[Line]) -> list[str]:
    """Return the seeds in their order."""
    return sorted({line["seed"] for line in lines}, key=int)


def result_of_peer(curves: Sequence[Line], seed: str) -> Line:
    """Return what a row needs of a run of another library."""
    curve = [line for line in curves if line["seed"] == seed]
    solved = first_solved([float(line["success_rate"]) for line in curve], 0.95, 2)
    end = curve[-1]
    times = (
        {}
        if solved is None
        else {"steps_to_solve": curve[solved]["env_steps"], "seconds_to_solve": curve[solved]["seconds"]}
    )
    whole = {"final_success": end["success_rate"], "eval_episodes": end["episodes"], "env_steps": end["env_steps"]}
    whole["check_steps"] = "0"
    return {"seed": seed, "seconds": end["seconds"]} | whole | times


def row_of(task: str, learner: str, runs: Sequence[Line]) -> str:
    """Return a row of a table: medians, with the lowest and the highest value in brackets."""
    solved = [run for run in runs if run.get("steps_to_solve")]
    last = summary([100 * float(run["final_success"]) for run in runs])
    if len({run["eval_episodes"] for run in runs}) == 1 and int(runs[0]["eval_episodes"]) < 50:
        last += f" of {runs[0]['eval_episodes']}"
    steps, seconds = "-", summary([float(run["seconds"]) for run in runs]) + ", whole run"
    if len(solved) == len(runs):
        steps = summary([total(run, "steps_to_solve") for run in solved])
        seconds = summary([float(run["seconds_to_solve"]) for run in solved])
    elif solved:
        steps = f"{len(solved)} of {len(runs)}: " + summary([total(run, "steps_to_solve") for run in solved])
    else:
        steps = f"not in {summary([total(run, 'env_steps') for run in runs])}"
    checks = [run.get("check_steps", "") for run in runs]
    check = summary([float(number) for number in checks]) if all(checks) else "unknown"
    return f"| {task} | {learner} | {', '.join(seeds_of(runs))} | {steps} | {check} | {last} | {seconds} |"


def total(run: Line, column: str) -> float:
    """Return steps of training and those of the check before it, which old lines do not have."""
    return float(run[column]) + float(run.get("check_steps") or 0)


def summary(values: Sequence[float]) -> str:
    """Return the median, with the range if the values differ, with at most three digits after large numbers."""
    median, low, high = (f"{value:,.0f}" for value in (statistics.median(values), min(values), max(values)))
    return median if low == high else f"{median} ({low}-{high})"


def read(path: Path) -> list[Line]:
    """Return the lines of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
