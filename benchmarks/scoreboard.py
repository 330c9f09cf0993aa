"""From run folders and the peers' lines to what docs/results.md shows: runs.csv, curves.csv and a picture per task.

python benchmarks/scoreboard.py RUNS... --peers benchmarks/results/peers.csv

RUNS: run folders, or folders of them, as `hindsight train` and `hindsight benchmark` write them. Files go to
benchmarks/results, pictures to docs/_static/results. Drawing needs matplotlib, which the extras panda and parking bring.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

from hindsight.report.results import record_of
from hindsight.report.run import Run, find_runs, read_run

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "hindsight", "svg.fonttype": "none", "font.family": "sans-serif"}
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)
from matplotlib.ticker import MaxNLocator  # noqa: E402

RESULTS, PICTURES = Path("benchmarks/results"), Path("docs/_static/results")
CURVE = ("environment", "learner", "seed", "env_steps", "seconds", "success_rate", "episodes")
Point = tuple[str, str, int, int, float, float, int]


def main() -> None:
    """Write the tables, draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--peers", type=Path, help="lines that benchmarks/peers.py wrote")
    given = parser.parse_args()
    runs = [read_run(path) for folder in given.runs for path in find_runs(folder)]
    records = [record_of(run) | {"folder": run.path.name} for run in runs]
    write(RESULTS / "runs.csv", list(records[0]), [tuple(record.values()) for record in records])
    points = [point for run in runs for point in curve_of(run)]
    points += peers_of(given.peers) if given.peers else []
    write(RESULTS / "curves.csv", CURVE, points)
    for environment in dict.fromkeys(point[0] for point in points):
        draw(environment, [point for point in points if point[0] == environment])


def curve_of(run: Run) -> Iterable[Point]:
    """A point per evaluation of a run."""
    names = ("env_steps", "seconds", "test/success_rate", "test/episodes")
    for steps, seconds, rate, episodes in zip(*(run.column(name) for name in names), strict=True):
        if np.isfinite(rate):
            learner = f"{run.agent}, {run.variant}"
            yield run.environment, learner, run.seed, int(steps), round(float(seconds), 1), float(rate), int(episodes)


def peers_of(path: Path) -> list[Point]:
    """The same of the peers' lines."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [
        (
            line["environment"],
            f"SB3 {line['agent'].upper()}",
            int(line["seed"]),
            int(line["env_steps"]),
            float(line["seconds"]),
            float(line["success_rate"]),
            int(line["episodes"]),
        )
        for line in lines
    ]


def write(path: Path, head: Sequence[str], lines: Iterable[tuple]) -> None:
    """A CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *lines])


def draw(environment: str, points: Sequence[Point]) -> None:
    """Success against steps, and against seconds of learning: a thin line per seed, a thick dot where a run ends."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    learners = list(dict.fromkeys(point[1] for point in points))
    for axis, column, label in zip(axes, (3, 4), ("environment steps", "seconds of collecting and updating"), strict=True):
        for number, learner in enumerate(learners):
            chosen = [point for point in points if point[1] == learner]
            for count, seed in enumerate(dict.fromkeys(point[2] for point in chosen)):
                x, y = zip(*((point[column], point[5]) for point in chosen if point[2] == seed), strict=True)
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
