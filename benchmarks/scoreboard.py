"""Add runs to the tables and pictures of docs/results.md.

python benchmarks/scoreboard.py RUNS...

RUNS: run folders, or folders that contain run folders, as `hindsight-rl train` and `hindsight-rl benchmark` write them.
The results are added to benchmarks/results/runs.csv, and the evaluations to benchmarks/results/curves.csv. A new line
replaces the old one of the same task, learner and seed. The lines of other libraries are read from
benchmarks/results/peers.csv, which benchmarks/peers.py writes. The pictures are written to docs/_static/results. Then
`python docs/make_tables.py` writes the tables of the page.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from hindsight_rl.report.run import Run, find_runs, read_run
from hindsight_rl.report.write import result_of
from hindsight_rl.storage import write_csv
from result_tables import RESULTS, Line, read

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "hindsight-rl", "svg.fonttype": "none", "font.family": "sans-serif"}
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)
from matplotlib.ticker import MaxNLocator  # noqa: E402

PICTURES = Path("docs/_static/results")


def main() -> None:
    """Add the runs and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*")
    folders = parser.parse_args().runs
    runs = [read_run(path) for folder in folders for path in find_runs(folder)]
    results = [result_of(run) | {"folder": run.path.name} for run in runs]
    merge(RESULTS / "runs.csv", ("environment", "agent", "variant", "seed"), results)
    points = [point for run in runs for point in curve_of(run)] + peer_curves(RESULTS / "peers.csv")
    lines = merge(RESULTS / "curves.csv", ("environment", "learner", "seed"), points)
    for environment in dict.fromkeys(line["environment"] for line in lines):
        draw(environment, [line for line in lines if line["environment"] == environment])


def curve_of(run: Run) -> Iterable[Line]:
    """Yield a line for each evaluation of a run."""
    names = ("env_steps", "seconds", "test/success_rate", "test/episodes")
    for steps, seconds, rate, episodes in zip(*(run.column(name) for name in names), strict=True):
        if np.isfinite(rate):
            yield {
                "environment": run.environment,
                "learner": f"{run.settings.agent}, {run.settings.variant}",
                "seed": run.options.seed,
                "env_steps": int(steps),
                "seconds": round(float(seconds), 1),
                "success_rate": float(rate),
                "episodes": int(episodes),
            }


def peer_curves(path: Path) -> list[Line]:
    """Return the lines of other libraries in the same columns."""
    columns = ("seed", "env_steps", "seconds", "success_rate", "episodes")
    return [
        {"environment": line["environment"], "learner": f"SB3 {line['agent'].upper()}"}
        | {column: line[column] for column in columns}
        for line in read(path)
    ]


def merge(path: Path, key: Sequence[str], new: Sequence[Line]) -> list[Line]:
    """Add lines to a CSV file in place of old lines with the same key, and return all its lines."""
    lines = [{column: str(value) for column, value in line.items()} for line in new]
    replaced = {tuple(line[column] for column in key) for line in lines}
    lines = [line for line in read(path) if tuple(line[column] for column in key) not in replaced] + lines
    columns = list(dict.fromkeys(column for line in lines for column in line))  # new ones last
    lines = [dict.fromkeys(columns, "") | line for line in lines]
    write_csv(path, columns, lines)
    return lines


def draw(environment: str, lines: Sequence[Line]) -> None:
    """Draw success against steps and against seconds: a line for each seed, with a dot at the end of the run."""
    figure, axes = plt.subplots(2, 1, figsize=(5.2, 5.8), layout="constrained")  # readable on a telephone
    labels = {"env_steps": "environment steps", "seconds": "seconds of collecting and updating"}
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        draw_curves(axis, lines, column)
        axis.set(xlabel=label, ylabel="success", ylim=(-0.03, 1.03), xlim=(0, None))
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set(title=environment)
    figure.legend(*axes[1].get_legend_handles_labels(), frameon=False, ncols=2, loc="outside lower center")
    PICTURES.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[()=]", "", environment.replace(" ", "_"))
    figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_curves(axis: Any, lines: Sequence[Line], column: str) -> None:
    """Draw the success of each learner and seed against a column, and a dotted line at 95 %."""
    for number, learner in enumerate(dict.fromkeys(line["learner"] for line in lines)):
        chosen = [line for line in lines if line["learner"] == learner]
        for index, seed in enumerate(dict.fromkeys(line["seed"] for line in chosen)):
            x, y = ([float(line[name]) for line in chosen if line["seed"] == seed] for name in (column, "success_rate"))
            label = learner if index == 0 else None
            axis.plot((0, *x), (0, *y), color=f"C{number}", linewidth=1.3, alpha=0.8, label=label)
            axis.plot(x[-1], y[-1], "o", color=f"C{number}", markersize=4)
    axis.axhline(0.95, color="grey", linewidth=0.7, linestyle=":")


if __name__ == "__main__":
    main()
