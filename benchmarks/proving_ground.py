"""Train every task of the proving ground with nothing declared, and write one table.

OMP_NUM_THREADS=1 python benchmarks/proving_ground.py LABEL [--tasks DiscPuck-v0 ...] [--variants default none sb3]
    [--seeds 0-2] [--jobs 2]

LABEL: names the state of the library, as in "baseline". Results are added to benchmarks/results/proving_ground.csv, one
line for each label, task, variant and seed; what is there already is not run again. The table is written to
benchmarks/results/proving_ground_LABEL.md.

default: `hindsight-rl train TASK --recipe default`. none: the same with `--structure none`. sb3: SAC of Stable-Baselines3,
or DQN for Discrete actions, with its HerReplayBuffer and default settings, and one update per step.

A run of ours ends when it is solved, or at the budget of its task. Success is that of 200 unseen episodes of the policy
that the run leaves.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hindsight_rl import HER
from hindsight_rl.records.statistics import first_solved
from hindsight_rl.report.run import read_run
from hindsight_rl.report.write import result_of
from tasks import TASKS
from tasks.task import FAMILIES, Task

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "proving_ground.csv"
KEY = ("label", "task", "variant", "seed")
COLUMNS = (*KEY, "commit", "family", "status", "budget", "env_steps", "steps_to_solve", "success", "seconds", "error")
VARIANTS = ("default", "none", "sb3")
EPISODES = 200  # of the last policy
EVALUATIONS = 20  # during a run of ours
Line = dict[str, Any]


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("label")
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--status", choices=("open", "closed"))
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", default="0", help="as in 0-2")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--runs", type=Path, default=Path("runs/proving_ground"), help="folder of the runs")
    given = parser.parse_args()
    tasks = [TASKS[name] for name in given.tasks if given.status in (None, TASKS[name].status)]
    known = {tuple(line[column] for column in KEY) for line in read()}
    wanted = [(task, variant, seed) for variant in given.variants for seed in seeds(given.seeds) for task in tasks]
    missing = [each for each in wanted if (given.label, each[0].name, each[1], str(each[2])) not in known]
    commit = subprocess.check_output(("git", "rev-parse", "--short", "HEAD"), cwd=FOLDER, text=True).strip()
    with ThreadPoolExecutor(given.jobs) as pool:
        for line in pool.map(lambda each: run(*each, given.runs / given.label), missing):
            append(RESULTS, COLUMNS, {"label": given.label, "commit": commit} | line)
            print(*(line[name] for name in ("task", "variant", "seed", "success", "steps_to_solve", "error")), flush=True)
    table = "\n".join(table_of([line for line in read() if line["label"] == given.label]))
    RESULTS.with_name(f"proving_ground_{given.label}.md").write_text(table + "\n", encoding="utf-8")


def seeds(text: str) -> range:
    """Return the seeds that a text such as "0-2" or "3" names."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def run(task: Task, variant: str, seed: int, runs: Path) -> Line:
    """Train once, in processes of their own. Return a line without label and commit."""
    began = time.perf_counter()
    line: Line = {"task": task.name, "family": task.family, "status": task.status, "variant": variant, "seed": seed}
    line |= {"budget": task.budget, "env_steps": "", "steps_to_solve": "", "success": "", "error": ""}
    folder = runs / f"{task.name}-{variant}-{seed}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        line |= run_sb3(task, seed, folder) if variant == "sb3" else run_ours(task, variant, seed, folder)
    except subprocess.CalledProcessError as problem:
        line["error"] = last_line(problem.stderr or problem.stdout)
    return line | {"seconds": round(time.perf_counter() - began)}


def train_here(task: str, seed: int) -> tuple[int | str, float]:
    """Train in this process until the task is solved. Return at which step it is, "" if not, and the success of the end."""
    budget = TASKS[task].budget
    with HER(f"tasks:{task}", recipe="default", seed=seed, eval_every=budget // EVALUATIONS) as model:
        for _ in model.trainer.run(budget):
            pass
        history, options = model.trainer.history, model.settings.training
        first = first_solved([each["success_rate"] for each in history], options.solved_at, options.solved_evaluations)
        return "" if first is None else int(history[first]["env_steps"]), model.evaluate(EPISODES).success_rate


def last_line(text: str) -> str:
    """Return the last line that is not empty, the message of an error."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "ended without a message")


def run_ours(task: Task, variant: str, seed: int, folder: Path) -> Line:
    """Train with `hindsight-rl train`, unless the folder holds a finished run, and evaluate the last policy."""
    every = str(max(1, task.budget // EVALUATIONS))
    command = ["-m", "hindsight_rl", "train", f"tasks:{task.name}", "--recipe", "default", "--steps", str(task.budget)]
    command += ["--eval-every", every, "--seed", str(seed), "--workers", "0", "--folder", str(folder)]
    command += ["--structure", "none"] if variant == "none" else []
    command += ["--resume"] if folder.exists() else []
    call(command)
    result = result_of(read_run(folder))
    latest = str(folder / "policies" / "latest.safetensors")
    command = [
        "-m",
        "hindsight_rl",
        "evaluate",
        latest,
        "--env",
        f"tasks:{task.name}",
        "--episodes",
        str(EPISODES),
        "--json",
    ]
    evaluation = json.loads(call([*command, "--workers", "0"]))
    steps = {
        name: int(result[name]) + int(result["check_steps"]) for name in ("env_steps", "steps_to_solve") if result[name]
    }
    return steps | {"success": evaluation["success_rate"]}


def run_sb3(task: Task, seed: int, folder: Path) -> Line:
    """Train with Stable-Baselines3. Its curve has a line for every tenth of the budget, with all episodes at the end."""
    output = folder.with_suffix(".csv")
    output.unlink(missing_ok=True)
    command = [str(FOLDER / "peers.py"), f"tasks:{task.name}", "--seed", str(seed), "--steps", str(task.budget)]
    command += ["--every", str(task.budget), "--episodes", str(EPISODES), "--agent", "auto", "--output", str(output)]
    call(command)
    curve = rows(output)
    return {"env_steps": curve[-1]["env_steps"], "success": curve[-1]["success_rate"]}


def call(command: Sequence[str]) -> str:
    """Run Python with the tasks on its path, and return what it printed."""
    path = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def rows(path: Path) -> list[Line]:
    """Return the lines of a CSV file, none if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read() -> list[Line]:
    """Return all results."""
    return rows(RESULTS)


def append(path: Path, columns: Sequence[str], line: Line) -> None:
    """Add a line to a CSV file, after the header if the file is new."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def table_of(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a table: a row for each task, with the success of each variant and the steps of the default to 95 %."""
    yield "| task | family | status | budget | default | solved at steps | none | SB3 |"
    yield "|---|---|---|---|---|---|---|---|"
    for family in FAMILIES:
        for name in dict.fromkeys(line["task"] for line in lines if line["family"] == family):
            of_task = [line for line in lines if line["task"] == name]
            of = {variant: [line for line in of_task if line["variant"] == variant] for variant in VARIANTS}
            steps = summary([float(line["steps_to_solve"]) for line in of["default"] if line["steps_to_solve"]])
            cells = [successes(of[variant]) for variant in VARIANTS]
            task = of_task[0]
            yield (
                f"| {name} | {FAMILIES[family]} | {task['status']} | {int(task['budget']):,} | {cells[0]} | {steps} | "
                f"{cells[1]} | {cells[2]} |"
            )


def successes(lines: Iterable[Line]) -> str:
    """Return the success in percent of the runs of one variant. A run that ended with an error counts as 0."""
    runs = list(lines)
    text = summary([100 * float(line["success"] or 0) for line in runs])
    n_errors = sum(bool(line["error"]) for line in runs)
    return f"{text} ({n_errors} errors)" if n_errors else text


def summary(values: Sequence[float]) -> str:
    """Return the median, with the range if the values differ."""
    if not values:
        return "-"
    median, low, high = (f"{value:,.0f}" for value in (statistics.median(values), min(values), max(values)))
    return median if low == high else f"{median} ({low}-{high})"


if __name__ == "__main__":
    main()
