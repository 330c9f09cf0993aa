"""The plots of one run: what it learnt, whether it is healthy, how fast it went."""

from __future__ import annotations

from typing import Any

import numpy as np

from .curves import known, moving_mean, rate, window_of
from .panel import Axis, Drawing, Panel, axes, logarithmic_ticks
from .run import Run
from .verdict import possible_returns, solved_at

PERCENT = ".0%"
NOTES = {
    "critic_loss": "How far the critics are off their targets. It may rise while values grow, but must settle.",
    "actor_loss": "About minus the value of what the actor does: it falls while the actor finds better actions.",
    "goals_already_achieved": "Of the goals put in hindsight, the share achieved before the step: they teach little.",
    "entropy_coefficient": "What unpredictable actions are worth, in rewards.",
}
NEAR = 1.5  # times the height of the curves, from where a bound is drawn
SURE = 1.96  # standard errors on either side that hold a mean with 95% confidence


def learning(run: Run) -> list[Panel]:
    """Success and return, against steps and against time."""
    against = axes(run.column("seconds"), run.column("env_steps"))
    panels = [draw(run, axis) for draw in (success, returns) for axis in against]
    return [panel for panel in panels if panel.traces]


def success(run: Run, axis: Axis) -> Panel:
    """The success rate of evaluations, with its interval, and of training."""
    drawing = Drawing(axis, PERCENT)
    _training(drawing, run, "train/success_rate")
    low, high = run.column("test/success_low"), run.column("test/success_high")
    is_known = np.isfinite(low)
    drawing.band(axis.values[is_known], low[is_known], high[is_known], "var:blue")
    drawing.measured(run.column("test/success_rate"), "evaluation", "var:blue", PERCENT)
    if run.has("test/success_rate"):
        at = run.options.get("solved_at", 0.95)
        drawing.level(at, f"{at:.0%} counts as solved")
    if (solved := solved_at(run)) is not None:
        x = float(np.interp(solved, run.column("env_steps"), axis.values))
        drawing.moment(x, "solved")
    return Panel(
        f"success-{axis.key}",
        f"Success rate against {axis.key}",
        "Blue: evaluations without exploration, with their 95% interval. Grey: training episodes.",
        drawing.traces,
        drawing.layout(PERCENT, range=[-0.04, 1.08]),
    )


def returns(run: Run, axis: Axis) -> Panel:
    """The return of evaluations, with the interval of its mean, and of training."""
    drawing = Drawing(axis, "~s")
    _training(drawing, run, "train/return")
    mean, episodes = run.column("test/return_mean"), run.column("test/episodes")
    half = SURE * run.column("test/return_std") / np.sqrt(episodes)
    is_known = np.isfinite(mean)
    drawing.band(axis.values[is_known], (mean - half)[is_known], (mean + half)[is_known], "var:blue")
    drawing.measured(mean, "evaluation", "var:blue", ".3g")
    return Panel(
        f"return-{axis.key}",
        f"Return against {axis.key}",
        "The sum of an episode's rewards, not discounted; the band holds the mean with 95% confidence.",
        drawing.traces,
        drawing.layout("~s"),
    )


def health(run: Run) -> list[Panel]:
    """The losses, mean Q, and whatever else diverges where something is wrong."""
    panels = [
        _metric(run, "critic_loss", "Critic loss", "var:orange", type="log"),
        _metric(run, "actor_loss", "Actor loss", "var:green"),
        _values(run),
        _metric(run, "goals_already_achieved", "Goals achieved already", "var:pink", range=[-0.04, 1.08]),
        _metric(run, "entropy_coefficient", "Entropy coefficient", "var:sky", type="log"),
    ]
    return [panel for panel in panels if panel.traces]


def speed(run: Run) -> list[Panel]:
    """Steps per second of collecting, updates per second of updating."""
    steps, _ = axes(run.column("seconds"), run.column("env_steps"))
    panels = []
    for key, title, count, seconds, colour in (
        ("steps-per-second", "Environment steps per second", "env_steps", "collect_seconds", "var:blue"),
        ("updates-per-second", "Updates per second", "updates", "update_seconds", "var:orange"),
    ):
        drawing = Drawing(steps, "~s")
        drawing.measured(rate(run.column(count), run.column(seconds)), title.lower(), colour, ",.0f")
        spent = "collecting" if "collect" in seconds else "updating"
        note = f"Of the time spent on {spent}: {_share_of_time(run, seconds)} of the run."
        panels.append(Panel(key, title, note, drawing.traces, drawing.layout("~s", rangemode="tozero")))
    return [panel for panel in panels if panel.traces]


def _values(run: Run) -> Panel:
    """What the critics expect, beside what is possible."""
    steps, _ = axes(run.column("seconds"), run.column("env_steps"))
    drawing = Drawing(steps)
    drawing.measured(run.column("train/q_mean"), "of what was learnt from", "var:blue", ".3g")
    drawing.measured(run.column("test/mean_q"), "of evaluated episodes", "var:orange", ".3g")
    values = np.concatenate([trace["y"] for trace in drawing.traces]).astype(np.float64) if drawing.traces else np.zeros(0)
    for bound, word in zip(possible_returns(run), ("lowest", "highest"), strict=True):
        if len(values) and np.abs(values - bound).min() <= NEAR * np.ptp(values):  # or else it would squeeze the curves
            drawing.level(bound, f"{word} possible return")
    note = "The discounted return that the critics expect. Blue: in the batches learnt from. Orange: in evaluated episodes."
    return Panel("q", "Mean Q", note, drawing.traces, drawing.layout())


def _metric(run: Run, name: str, title: str, colour: str, **y_axis: Any) -> Panel:
    steps, _ = axes(run.column("seconds"), run.column("env_steps"))
    tell = PERCENT if "range" in y_axis else ".3g"
    drawing = Drawing(steps, tell)
    values = run.column(f"train/{name}")
    if "type" in y_axis:
        values = np.where(values > 0, values, np.nan)
    drawing.measured(values, title.lower(), colour, tell)
    if "type" in y_axis and drawing.traces:
        y_axis["tickvals"] = logarithmic_ticks(np.nanmin(values), np.nanmax(values))
    layout = drawing.layout(PERCENT if "range" in y_axis else ".3~g", **y_axis)
    return Panel(name.replace("_", "-"), title, NOTES[name], drawing.traces, layout)


def _training(drawing: Drawing, run: Run, name: str) -> None:
    """The moving mean of training episodes, thin and grey."""
    x, y = known(drawing.axis.values, run.column(name))
    if len(y):
        drawing.line(x, moving_mean(y, window_of(len(y))), "training episodes, with exploration", "var:muted", width=1.2)


def _share_of_time(run: Run, name: str) -> str:
    return f"{run.last(name) / max(run.last('seconds'), 1e-9):.0%}"
