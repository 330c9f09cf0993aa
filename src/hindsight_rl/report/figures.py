"""Plots as plain data, which the script of the page and matplotlib draw: the curves of a run, and what its steps show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from ..records import Array, Finding
from ..records.statistics import MAX_POINTS, finite_points, mean_interval, mean_window, moving_mean, thin
from .run import Run
from .verdict import possible_returns, solved_at_step

CURVE_COLOURS = ("blue", "orange", "green", "pink", "sky", "red")  # Okabe and Ito 2008
X = Literal["env_steps", "seconds"]  # metric on the x axis
Scale = Literal["linear", "log", "fraction"]  # of the y axis; "fraction" is in percent
Dash = Literal["solid", "dash", "dot"]

MAX_BOUND_DISTANCE = 1.5  # times the height of the curves: a more distant bound would flatten them
LOG_FROM = 10.0  # times the lowest value that the highest must be, so that a logarithmic axis has two labels
X_NAMES: dict[X, str] = {"env_steps": "steps", "seconds": "time"}
RETURN = (
    "Undiscounted sum of rewards, with the 95 % interval of the mean. Training episodes are not drawn: one that is cut "
    "short adds up fewer rewards, which is no success."
)
VALUE_CAPTION = "Discounted return that the critics predict."
ENTROPY_CAPTION = f"{VALUE_CAPTION} The entropy bonus is included, so that values may exceed the highest possible return."
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
# options that end training episodes early
CUTS = ("lowest_achieved", "highest_achieved", "rest_displacement", "training_episode_steps")
REWARD_PER_STEP = "Mean reward of a step of the training episodes, with exploration, however long the episodes are."
INTERVALS = "Intervals over episodes: a verdict holds if the whole interval is below the limit."
CONTACT = (
    "Median, 10 and 90 % quantiles of the distance at which an object begins to move. Below the red mark the "
    "subgoal is met."
)
FINDINGS = (  # kind, key of the plot, title, caption, title of the x axis
    ("part", "parts", "Parts of the goal", "What moves together.", "dimension of the goal"),
    ("group", "roles", "Columns of the observation", "What each column shows.", "column of the observation"),
    ("column", "column", "Columns that may be hidden", INTERVALS, "growth of the held-out error without the column"),
    ("contact", "contact", "Contact", CONTACT, "distance, in units of the goal"),
    ("symmetry", "symmetry", "Symmetries", INTERVALS, "growth of the held-out error in transformed steps"),
)
VERDICTS = {"column": ("hidden", "shown"), "symmetry": ("used", "not used")}  # accepted and not: blue and orange
ACCEPTED = ("is hidden", "are not needed", "holds", "follows from others")


class Unit(NamedTuple):
    """The unit of an x axis: the numbers of the metric in one, and its title."""

    size: float
    title: str


class LegendEntry(NamedTuple):
    """A name of the legend, with its colour and its kind of line."""

    name: str
    colour: str
    dash: Dash = "solid"


SOLVED = LegendEntry("solved", "green", "dot")
NEW_AGENT = LegendEntry("a new agent takes over", "red", "dash")
OPTIONS_CHANGE = LegendEntry("options change", "muted", "dot")


@dataclass
class Plot:
    """A plot of curves or a map of goals, with its title and caption.

    x: metric on the x axis. "seconds" are those of collecting and updating.
    bands: areas between two curves.
    levels: dotted lines at a y, with a text.
    marks: vertical lines at an x.
    legend: names with their colours.
    rows: points of a plot of intervals: label of the row, value on the x axis, its ends and its limit, colour, and text.
    x_title: of a plot of intervals.
    goals: data of a map (see goal_maps), empty for curves.
    subject: what is drawn, if a page has several: an environment.
    """

    key: str
    title: str
    caption: str
    x: X = "env_steps"
    scale: Scale = "linear"
    curves: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)
    levels: list[dict[str, Any]] = field(default_factory=list)
    marks: list[dict[str, Any]] = field(default_factory=list)
    legend: list[LegendEntry] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    x_title: str = ""
    goals: dict[str, Any] = field(default_factory=dict)
    subject: str = ""

    @property
    def unit(self) -> Unit:
        """The unit of the x axis: steps, or the unit of time that suits the longest curve."""
        if self.x == "env_steps":
            return Unit(1, "environment steps")
        longest = max((x for curve in self.curves for x in curve["x"]), default=0)
        size, name = (1, "seconds") if longest < 240 else (60, "minutes") if longest < 14400 else (3600, "hours")
        return Unit(size, f"{name} of collecting and updating")

    @property
    def is_log(self) -> bool:
        """Whether the y axis is logarithmic: for a wide range of positive values."""
        values = [y for curve in self.curves for y in curve["y"]]
        return self.scale == "log" and max(values) >= LOG_FROM * min(values) > 0

    def to_json(self) -> dict[str, Any]:
        """Return what the script of the page needs."""
        return vars(self) | {"unit": self.unit._asdict(), "is_log": bool(self.curves) and self.is_log}

    def curve(
        self, x: Array, y: Array, name: str, colour: str, width: float = 2.2, label: str = "", dash: Dash = "solid"
    ) -> None:
        """Add a curve, if it has a point. width: in pixels. label: text at its end."""
        x, y = thin(*finite_points(x, y))
        points = {"x": rounded(x), "y": rounded(y)}
        if len(x):
            self.curves.append(points | {"name": name, "colour": colour, "width": width, "label": label, "dash": dash})

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

    def mark(self, x: float, entry: LegendEntry) -> None:
        """Add a vertical line."""
        self.marks.append({"x": x, "colour": entry.colour, "dash": entry.dash})
        if entry not in self.legend:
            self.legend.append(entry)


def rounded(values: Array) -> list[float | None]:
    """Return numbers with six significant digits for JSON, None for those that are not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]


def learning(run: Run) -> list[Plot]:
    """Return the plots of success and return, each against steps and against time."""
    plots = [draw(run, x) for draw in (_success, _return) for x in X_NAMES]
    return [_with_changes(plot, run) for plot in plots if plot.curves]


def health(run: Run) -> list[Plot]:
    """Return the plots of losses, values, relabelled goals, entropy and training episodes that were recorded."""
    plots = [_values(run)]
    for name, title, scale, colour, caption in HEALTH:
        plots.append(Plot(name, title, caption, scale=scale))
        plots[-1].metric(run, run.column(f"train/{name}"), title.lower(), colour)
    return [_with_changes(plot, run) for plot in (*plots, *_training(run)) if plot.curves]


def _training(run: Run) -> list[Plot]:
    """Return the plots of the rewards of training episodes, and of their steps if these vary."""
    steps, cuts = run.column("train/episode_steps"), [name for name in CUTS if run.options.to_dict().get(name)]
    rewards = Plot("reward_per_step", "Reward per training step", REWARD_PER_STEP)
    rewards.metric(run, run.column("train/return") / np.maximum(steps, 1), "reward per training step", "muted")
    caption = f"Mean length. Episodes are cut short by the options {', '.join(cuts)}." if cuts else "Mean length."
    lengths = Plot("episode_steps", "Steps of a training episode", caption)
    if len(np.unique(steps[np.isfinite(steps)])) > 1:
        lengths.metric(run, steps, "steps of a training episode", "sky")
    return [rewards, lengths]


def _success(run: Run, x: X) -> Plot:
    plot = Plot(f"success-{x}", f"Success rate against {X_NAMES[x]}", "", x, "fraction")
    steps, rates = run.curve("train/success_rate", x)
    plot.curve(steps, moving_mean(rates, mean_window(len(rates))), "training episodes", "muted", width=1.2)
    plot.legend.append(LegendEntry("evaluations, with their 95 % interval", "blue"))
    if len(steps):
        plot.legend.append(LegendEntry("training episodes, with exploration", "muted"))
    plot.band(run.column(x), run.column("test/success_low"), run.column("test/success_high"), "blue")
    plot.metric(run, run.column("test/success_rate"), "evaluation", "blue")
    plot.levels.append({"y": run.options.solved_at, "text": f"solved_at = {run.options.solved_at:.0%}"})
    if (solved := solved_at_step(run)) is not None:
        plot.mark(run.at(solved, x), SOLVED)
    return plot


def _return(run: Run, x: X) -> Plot:
    plot = Plot(f"return-{x}", f"Return of evaluations against {X_NAMES[x]}", RETURN, x)
    mean = run.column("test/return_mean")
    plot.band(run.column(x), *mean_interval(mean, run.column("test/return_std"), run.column("test/episodes")), "blue")
    plot.metric(run, mean, "evaluation", "blue")
    return plot


def _values(run: Run) -> Plot:
    """Return the plot of the predicted returns, with the bounds of possible returns that lie near the curves."""
    plot = Plot("q", "Mean Q", ENTROPY_CAPTION if "train/entropy_coefficient" in run.metrics else VALUE_CAPTION)
    for metric, name, colour in (
        ("train/q_mean", "training batches", "blue"),
        ("test/mean_q", "evaluation episodes", "orange"),
    ):
        if np.isfinite(run.column(metric)).any():
            plot.metric(run, run.column(metric), name, colour)
            plot.legend.append(LegendEntry(name, colour))
    values = np.array([y for curve in plot.curves for y in curve["y"]])
    for bound, word in zip(possible_returns(run), ("lowest", "highest"), strict=True):
        if len(values) and np.abs(values - bound).min() <= MAX_BOUND_DISTANCE * np.ptp(values):
            plot.levels.append({"y": bound, "text": f"{word} possible discounted return"})
    return plot


def _with_changes(plot: Plot, run: Run) -> Plot:
    """Mark in a plot where options changed, and where a new agent took over."""
    for change in run.changes:
        plot.mark(getattr(change, plot.x), NEW_AGENT if change.new_agent else OPTIONS_CHANGE)
    return plot


def finding_plots(findings: Sequence[Finding]) -> list[Plot]:
    """Return a plot for each kind of finding that has columns or figures."""
    plots = []
    for kind, key, title, caption, x_title in FINDINGS:
        plot = Plot(key, title, caption, x_title=x_title, scale="fraction" if kind in VERDICTS else "linear")
        plot.legend += map(LegendEntry, VERDICTS.get(kind, ()), ("blue", "orange"))
        found = [finding for finding in findings if finding.kind == kind]
        for finding in found:
            _add_rows(plot, finding)
        if any(finding.limit is not None for finding in found):
            plot.legend.append(LegendEntry("tolerance of the subgoal" if kind == "contact" else "limit", "red"))
        plots.append(plot)
    return [plot for plot in plots if plot.rows]


def _add_rows(plot: Plot, finding: Finding) -> None:
    """Add the figure of a finding with its interval, or else each of its members."""
    label = finding.name.removesuffix(" columns")
    if finding.kind in ("part", "contact"):
        label += f" {finding.verdict}"
    is_refused = finding.kind in VERDICTS and finding.verdict not in ACCEPTED
    style = {"label": label, "text": str(finding), "colour": "orange" if is_refused else "blue", "limit": finding.limit}
    if finding.value is not None:
        plot.rows.append({"value": finding.value, "low": finding.low, "high": finding.high} | style)
    else:
        plot.rows += [{"value": member, "low": member, "high": member} | style for member in finding.members]
