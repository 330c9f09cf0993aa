"""Plots of curves as plain data, which the script of the page draws; and the curves of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..records import Array
from .run import Run
from .statistics import MAX_POINTS, finite_points, mean_window, moving_mean, thin
from .verdict import possible_returns, solved_at_step

COLOURS = ("blue", "orange", "green", "pink", "sky", "red")  # Okabe and Ito 2008
X = Literal["env_steps", "seconds"]  # metric on the x axis
Scale = Literal["linear", "log", "fraction"]  # of the y axis; "fraction" is in percent

Z_95 = 1.96  # standard errors above and below a mean: 95 % interval
MAX_BOUND_DISTANCE = 1.5  # times the height of the curves: a more distant bound would flatten them
X_NAMES: dict[X, str] = {"env_steps": "steps", "seconds": "time"}
SUCCESS = "Blue: evaluations without exploration, with their 95 % interval. Grey: training episodes, with exploration."
RETURN = "Undiscounted sum of rewards. Blue: evaluations, with the 95 % interval of their mean. Grey: training episodes."
VALUES = "Discounted return that the critics predict. Blue: training batches. Orange: evaluation episodes."
ENTROPY_VALUES = f"{VALUES} The entropy bonus is included, so that values may exceed the highest possible return."
HEALTH: tuple[tuple[str, str, Scale, str, str], ...] = (  # metric, title, scale, colour, caption
    ("critic_loss", "Critic loss", "log", "orange", "Error of the critics against their targets."),
    ("actor_loss", "Actor loss", "linear", "green", "Minus the value of the actor's actions, plus regularization."),
    (
        "goals_already_achieved",
        "Goals already achieved",
        "fraction",
        "pink",
        "Fraction of the relabelled goals that were achieved before the step.",
    ),
    ("entropy_coefficient", "Entropy coefficient", "log", "sky", "Weight of the policy's entropy against the reward."),
)


@dataclass
class Plot:
    """A plot of curves or a map of goals, with its title and caption.

    x: metric on the x axis. "seconds" are those of collecting and updating.
    bands: areas between two curves.
    levels, moments: dotted lines at a y or an x, with a text.
    goals: data of a map (see goal_maps), empty for curves.
    """

    key: str
    title: str
    caption: str
    x: X = "env_steps"
    scale: Scale = "linear"
    curves: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)
    levels: list[dict[str, Any]] = field(default_factory=list)
    moments: list[dict[str, Any]] = field(default_factory=list)
    goals: dict[str, Any] = field(default_factory=dict)

    def curve(self, x: Array, y: Array, name: str, colour: str, width: float = 2.2, label: str = "") -> None:
        """Add a curve, if it has a point. width: in pixels. label: text at its end."""
        x, y = thin(*finite_points(x, y))
        points = {"x": rounded(x), "y": rounded(y)}
        if len(x):
            self.curves.append(points | {"name": name, "colour": colour, "width": width, "label": label})

    def metric(self, run: Run, values: Array, name: str, colour: str) -> None:
        """Add a metric: a thin line as recorded, and a thick one of its moving mean, labelled with its last value."""
        x, y = finite_points(run.column(self.x), values)
        if self.scale == "log":
            x, y = x[y > 0], y[y > 0]
        if not len(y):
            return
        window = mean_window(len(y))
        mean = moving_mean(y, window)
        if window > 1:
            self.curve(x, y, name, f"{colour}@0.35", width=1)
            name = f"{name}, mean of {window} records"
        self.curve(x, mean, name, colour, label=format(mean[-1], ".0%" if self.scale == "fraction" else ".3g"))

    def band(self, x: Array, low: Array, high: Array, colour: str) -> None:
        """Fill the area between two curves."""
        rows = np.flatnonzero(np.isfinite(x + low + high))
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_POINTS // 2)).astype(np.int64)]
        outline = np.concatenate((rows, rows[::-1]))
        y = np.concatenate((high[rows], low[rows[::-1]]))
        self.bands.append({"x": rounded(x[outline]), "y": rounded(y), "colour": f"{colour}@0.16"})


def rounded(values: Array) -> list[float | None]:
    """Return numbers with six significant digits for JSON, None for those that are not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]


def learning(run: Run) -> list[Plot]:
    """Return the plots of success and return, each against steps and against time."""
    plots = [_success(run, "env_steps"), _success(run, "seconds"), _return(run, "env_steps"), _return(run, "seconds")]
    return [plot for plot in plots if plot.curves]


def health(run: Run) -> list[Plot]:
    """Return the plots of losses, values, relabelled goals and entropy, as far as they were recorded."""
    plots = [_values(run)]
    for name, title, scale, colour, caption in HEALTH:
        plots.append(Plot(name, title, caption, scale=scale))
        plots[-1].metric(run, run.column(f"train/{name}"), title.lower(), colour)
    return [plot for plot in plots if plot.curves]


def _success(run: Run, x: X) -> Plot:
    plot = Plot(f"success-{x}", f"Success rate against {X_NAMES[x]}", SUCCESS, x, "fraction")
    _add_training(plot, run, "train/success_rate")
    plot.band(run.column(x), run.column("test/success_low"), run.column("test/success_high"), "blue")
    plot.metric(run, run.column("test/success_rate"), "evaluation", "blue")
    plot.levels.append({"y": run.options.solved_at, "text": f"solved_at = {run.options.solved_at:.0%}"})
    if (solved := solved_at_step(run)) is not None:
        plot.moments.append({"x": run.at(solved, x), "text": "solved"})
    return plot


def _return(run: Run, x: X) -> Plot:
    plot = Plot(f"return-{x}", f"Return against {X_NAMES[x]}", RETURN, x)
    _add_training(plot, run, "train/return")
    mean = run.column("test/return_mean")
    half = Z_95 * run.column("test/return_std") / np.sqrt(np.maximum(run.column("test/episodes"), 1))
    plot.band(run.column(x), mean - half, mean + half, "blue")
    plot.metric(run, mean, "evaluation", "blue")
    return plot


def _values(run: Run) -> Plot:
    """Return the plot of the predicted returns, with the bounds of possible returns that lie near the curves."""
    plot = Plot("q", "Mean Q", ENTROPY_VALUES if "train/entropy_coefficient" in run.metrics else VALUES)
    plot.metric(run, run.column("train/q_mean"), "training batches", "blue")
    plot.metric(run, run.column("test/mean_q"), "evaluation episodes", "orange")
    values = np.array([y for curve in plot.curves for y in curve["y"]])
    for bound, word in zip(possible_returns(run), ("lowest", "highest"), strict=True):
        if len(values) and np.abs(values - bound).min() <= MAX_BOUND_DISTANCE * np.ptp(values):
            plot.levels.append({"y": bound, "text": f"{word} possible discounted return"})
    return plot


def _add_training(plot: Plot, run: Run, name: str) -> None:
    """Add the moving mean of a metric of training episodes as a thin grey line."""
    x, y = finite_points(run.column(plot.x), run.column(name))
    plot.curve(x, moving_mean(y, mean_window(len(y))), "training episodes", "muted", width=1.2)
