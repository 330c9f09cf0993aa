"""Add runs to what docs/results.md shows: runs.csv, curves.csv and a picture per task.

python benchmarks/scoreboard.py RUNS...

RUNS: run folders, or folders of them, as `hindsight train` and `hindsight benchmark` write them. Earlier lines stay,
but those of the same task, learner and seed, which the new ones replace. The peers' lines are read from
benchmarks/results/peers.csv, where benchmarks/peers.py appends them. Pictures go to docs/_static/results. Drawing needs
matplotlib, which the extras panda and parking bring.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from hindsight.report.results import record_of, write_table
from hindsight.report.run import Run, find_runs, read_run

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "hindsight", "svg.fonttype": "none", "font.family": "sans-serif"}
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)
from matplotlib.ticker import MaxNLocator  # noqa: E402

RESULTS, PICTURES = Path("benchmarks/results"), Path("docs/_static/results")
Line = dict[str, Any]  # of a CSV file, by column


def main() -> None:
    """Write the tables, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*")
    runs = [read_run(path) for folder in parser.parse_args().runs for path in find_runs(folder)]
    records = [record_of(run) | {"folder": run.path.name} for run in runs]
    merge(RESULTS / "runs.csv", ("environment", "agent", "variant", "seed"), records)
    points = [point for run in runs for point in curve_of(run)] + peers_of(RESULTS / "peers.csv")
    lines = merge(RESULTS / "curves.csv", ("environment", "learner", "seed"), points)
    for environment in dict.fromkeys(line["environment"] for line in lines):
        draw(environment, [line for line in lines if line["environment"] == environment])


def curve_of(run: Run) -> Iterable[Line]:
    """A line per evaluation of a run."""
    names = ("env_steps", "seconds", "test/success_rate", "test/episodes")
    for steps, seconds, rate, episodes in zip(*(run.column(name) for name in names), strict=True):
        if np.isfinite(rate):
            yield {
                "environment": run.environment,
                "learner": f"{run.agent}, {run.variant}",
                "seed": run.seed,
                "env_steps": int(steps),
                "seconds": round(float(seconds), 1),
                "success_rate": float(rate),
                "episodes": int(episodes),
            }


def peers_of(path: Path) -> list[Line]:
    """The same of the peers' lines."""
    columns = ("seed", "env_steps", "seconds", "success_rate", "episodes")
    return [
        {"environment": line["environment"], "learner": f"SB3 {line['agent'].upper()}"}
        | {column: line[column] for column in columns}
        for line in read(path)
    ]


def merge(path: Path, key: Sequence[str], new: Sequence[Line]) -> list[Line]:
    """The file's lines, but for those of the same key as a new one, and the new ones: written back, and returned."""
    lines = [{column: str(value) for column, value in line.items()} for line in new]
    replaced = {tuple(line[column] for column in key) for line in lines}
    lines = [line for line in read(path) if tuple(line[column] for column in key) not in replaced] + lines
    write_table(path, lines)
    return lines


def read(path: Path) -> list[Line]:
    """The lines of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw(environment: str, lines: Sequence[Line]) -> None:
    """Success against steps, and against seconds of learning: a thin line per seed, a thick dot where a run ends."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    labels = {"env_steps": "environment steps", "seconds": "seconds of collecting and updating"}
    learners = list(dict.fromkeys(line["learner"] for line in lines))
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        for number, learner in enumerate(learners):
            chosen = [line for line in lines if line["learner"] == learner]
            for count, seed in enumerate(dict.fromkeys(line["seed"] for line in chosen)):
                x, y = ([float(line[name]) for line in chosen if line["seed"] == seed] for name in (column, "success_rate"))
                label_once = learner if not count else None
                axis.plot((0, *x), (0, *y), color=f"C{number}", linewidth=1.3, alpha=0.8, label=label_once)
                axis.plot(x[-1], y[-1], "o", color=f"C{number}", markersize=4)
        axis.axhline(0.95, color="grey", linewidth=0.7, linestyle=":")
        axis.set(xlabel=label, ylim=(-0.03, 1.03), xlim=(0, None))
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="success", title=environment)
    axes[1].legend(frameon=False, fontsize=8, loc="lower right")
    PICTURES.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[()=]", "", environment.replace(" ", "_"))
    figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
