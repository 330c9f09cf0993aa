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
HEADLINE = (  # tasks of the README
    "FetchReach-v4",
    "FetchPush-v4",
    "FetchPickAndPlace-v4",
    "PandaPush-v3",
    "PandaPickAndPlace-v3",
    "PointMaze_UMaze-v3",
    "PointMaze_Large-v3",
    "FetchSlide-v4",
    "PandaSlide-v3",
    "PandaStack-v3",
    "AntMaze_UMaze-v5",
    "HandReach-v3",
    "parking-v0",
)
HEADLINE_HEAD = "|task|solved|steps: median (quartiles)|all seeds|time|SB3 + HER|\n|---|---|---|---|---|---|\n"
VARIANTS = ("inferred", "none", "declared", "subgoals", "symmetric", "relative", "plain")  # in the order of the rows
HEADER = (
    "| task | learner | seeds | solved at steps | of these, by the check | last success in % | seconds | commit |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def results_table(family: str) -> str:
    """Return the table of a family of tasks."""
    runs, peers = read(RESULTS / "runs.csv"), read(RESULTS / "peers.csv")
    return HEADER + "\n".join(row for pattern in FAMILIES[family] for row in rows_of(pattern, runs, peers)) + "\n"


def headline_table() -> str:
    """Return the table of the README: runs with nothing declared, and SB3 where it was run. Unsolved tasks come last."""
    runs, peers = (read(RESULTS / name) for name in ("runs.csv", "peers.csv"))
    tasks = {
        task: [line for line in runs if line["environment"] == task and line["variant"] in ("inferred", "none")]
        for task in HEADLINE
    }
    rows = [
        (task, lines, [line for line in peers if line["environment"] == task]) for task, lines in tasks.items() if lines
    ]
    rows.sort(key=lambda row: not all(line["steps_to_solve"] for line in row[1]))
    return HEADLINE_HEAD + "\n".join(headline_row(*row) for row in rows) + "\n"


def headline_row(task: str, runs: Sequence[Line], peers: Sequence[Line]) -> str:
    """Return steps and time of a task: the median over all seeds, with the quartiles in brackets."""
    solved = [run for run in runs if run["steps_to_solve"]]
    if 2 * len(solved) > len(runs):
        numbers = [total(run, "steps_to_solve") for run in solved]
        longest = max(total(run, "env_steps") for run in runs)
        left = f"; {len(runs) - len(solved)} not in {longest:,.0f}" if len(solved) < len(runs) else ""
        steps, extremes = quartiles(numbers) + left, between(min(numbers), max(numbers))
        time = duration(statistics.median(float(run["seconds_to_solve"]) for run in solved))
    else:
        numbers = [100 * float(run["final_success"]) for run in runs]
        extremes = between(min(numbers), max(numbers), " %")
        end = statistics.median(float(run["env_steps"]) for run in runs)
        steps = f"not solved: {quartiles(numbers)} %{of_episodes(runs)} at {end:,.0f}"
        time = duration(statistics.median(float(run["seconds"]) for run in runs))
    others = "; ".join(peer_text(agent, peers) for agent in dict.fromkeys(line["agent"] for line in peers))
    cells = (task, f"{len(solved)}/{len(runs)}", steps, extremes, time, others)
    return f"|{'|'.join(cells)}|"


def peer_text(agent: str, peers: Sequence[Line]) -> str:
    """Return what a learner of SB3 reached on a task: every seed."""
    curves = [line for line in peers if line["agent"] == agent]
    results = [result_of_peer(curves, seed) for seed in seeds_of(curves)]
    solved = [float(result["steps_to_solve"]) for result in results if "steps_to_solve" in result]
    seeds = f"{len(results)} seed{'s' if len(results) > 1 else ''}"
    if len(solved) == len(results):
        return f"{agent.upper()}: {quartiles(solved)} ({seeds})"
    end = min(int(result["env_steps"]) for result in results)  # a seed that trained longer is compared there too
    until_end = [line for line in curves if int(line["env_steps"]) <= end]
    results = [result_of_peer(until_end, seed) for seed in seeds_of(curves)]
    success = quartiles([100 * float(result["final_success"]) for result in results])
    return f"{agent.upper()}: {success} %{of_episodes(results)} at {end:,} ({seeds})"


def of_episodes(runs: Sequence[Line]) -> str:
    """Return of how many episodes the last evaluations are, if some have fewer than 50."""
    numbers = [int(run["eval_episodes"]) for run in runs]
    return f" of {between(min(numbers), max(numbers))}" if min(numbers) < 50 else ""


def quartiles(values: Sequence[float]) -> str:
    """Return the median, with the quartiles in brackets if there are at least two values that differ."""
    median = statistics.median(values)
    if len(values) < 2 or min(values) == max(values):
        return f"{median:,.0f}"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:,.0f} ({between(low, high)})"


def between(low: float, high: float, unit: str = "") -> str:
    """Return a range, or one number if both are the same."""
    return f"{low:,.0f}{unit}" if low == high else f"{low:,.0f}-{high:,.0f}{unit}"


def duration(seconds: float) -> str:
    """Return seconds, or minutes from two on."""
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


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
    last = summary([100 * float(run["final_success"]) for run in runs]) + of_episodes(runs)
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
    commits = ", ".join(dict.fromkeys(run["commit"][:7] or "unknown" for run in runs if "commit" in run)) or "-"
    return f"| `{task}` | {learner} | {seeds_text(runs)} | {steps} | {check} | {last} | {seconds} | {commits} |"


def seeds_text(runs: Sequence[Line]) -> str:
    """Return the seeds of runs: those from 0 on as a range."""
    seeds = [int(seed) for seed in seeds_of(runs)]
    return f"0-{seeds[-1]}" if len(seeds) > 1 and seeds == list(range(len(seeds))) else ", ".join(map(str, seeds))


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
