"""The map of goals: where the policy succeeds and fails, and how the goals that training achieved cover it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .curves import Array, covered_share
from .panel import Panel, digits
from .run import Goals, Run

MOST_EVALUATED, MOST_TRAINED = 4000, 2500  # episodes on a map
SHOWN = 50  # evaluated episodes at least, the latest up to the chosen evaluation, and the whole of that one
SPREADS = (0.6180, 0.7549)  # across and up: steps that fill an interval evenly, and together a square
FEW_VALUES = 12  # of a goal's number: so few lie on top of each other, and are spread a little


def goal_maps(run: Run) -> list[Panel]:
    """One map for goals of one or two numbers, two for more: the first number against the second, and the third."""
    width = run.evaluated.asked.shape[1]
    if not len(run.evaluated):
        return []
    pairs = [(0, 1), (0, 2)][: max(1, width - 1)] if width > 1 else [(0, -1)]
    maps = [_map(run, across, up) for across, up in pairs]
    return [*maps, _coverage(run)] if width > 1 and len(run.trained) else maps


def coverage(run: Run) -> str:
    """How much of where goals are asked training has reached, in words."""
    if not len(run.evaluated) or not len(run.trained):
        return ""
    cells = int(np.clip(np.sqrt(len(run.trained)) / 2, 2, 10))  # so that even a few episodes could fill them
    share = covered_share(run.evaluated.asked, run.trained.reached, cells)
    return (
        f"Of a grid of {cells} by {cells} over the evaluated goals, the {len(run.trained):,} training episodes ended in "
        f"{share:.0%} of the cells where goals were asked."
    )


def _map(run: Run, across: int, up: int) -> Panel:
    """up: -1 for goals of one number, which are shown against the steps."""
    evaluated, trained = _thinned(run.evaluated, MOST_EVALUATED), _thinned(run.trained, MOST_TRAINED)
    up_title = "environment steps" if up < 0 else f"goal[{up}]"
    goals = {
        "shown": SHOWN,
        "steps": sorted(set(evaluated.env_steps.tolist())),
        "evaluated": _points(evaluated, evaluated.asked, across, up)
        | {
            "success": evaluated.success.astype(int).tolist(),
            "distance": digits(evaluated.distance, 3),
            "step": evaluated.env_steps.tolist(),
        },
        "trained": _points(trained, trained.reached, across, up) | {"step": trained.env_steps.tolist()},
    }
    layout = {"xaxis": {"title": {"text": f"goal[{across}]"}}, "yaxis": {"title": {"text": up_title}}}
    note = "Where evaluated episodes were asked to go: reached (blue) or not (red). Grey: where training episodes ended."
    return Panel(f"goals-{max(up, 0)}", f"Success over the goals: goal[{across}] and {up_title}", note, [], layout, goals)


def _coverage(run: Run) -> Panel:
    """Where training episodes ended, by when, over where evaluated goals lie."""
    asked, trained = _thinned(run.evaluated, MOST_TRAINED), _thinned(run.trained, MOST_TRAINED)
    colour = {
        "color": trained.env_steps.tolist(),
        "colorscale": "Cividis",
        "size": 6,
        "colorbar": {"title": {"text": "steps"}, "thickness": 10, "outlinewidth": 0, "tickformat": "~s"},
    }
    traces = [
        _scatter(asked.asked, "asked in evaluations", {"color": "var:muted@0.25", "size": 4}),
        _scatter(trained.reached, "ended in training", colour),
    ]
    layout = {"xaxis": {"title": {"text": "goal[0]"}}, "yaxis": {"title": {"text": "goal[1]"}}, "hovermode": "closest"}
    note = "Where training episodes ended, dark for early and light for late. Grey: goals asked in evaluations."
    return Panel("coverage", "How training covers the goals", note, traces, layout)


def _scatter(places: Array, name: str, marker: dict[str, Any]) -> dict[str, Any]:
    points = {"x": digits(spread(places[:, 0], SPREADS[0]), 4), "y": digits(spread(places[:, 1], SPREADS[1]), 4)}
    return points | {"type": "scatter", "mode": "markers", "name": name, "marker": marker}


def _points(goals: Goals, places: Array, across: int, up: int) -> dict[str, list[float | None]]:
    y = goals.env_steps if up < 0 else spread(places[:, up], SPREADS[1])
    return {"x": digits(spread(places[:, across], SPREADS[0]), 4), "y": digits(y, 4)}


def spread(values: Array, ratio: float) -> Array:
    """Values of which there are only a few, such as bits, moved a little so that each point is seen; others as they are.

    ratio: one of SPREADS.
    """
    different = np.unique(values[np.isfinite(values)])
    if not 0 < len(different) <= FEW_VALUES:
        return values
    step = float(np.diff(different).min()) if len(different) > 1 else 1.0
    return np.asarray(values + 0.6 * step * (np.arange(len(values)) * ratio % 1.0 - 0.5))


def _thinned(goals: Goals, most: int) -> Goals:
    """Evenly over the run."""
    return goals if len(goals) <= most else goals[np.linspace(0, len(goals) - 1, most).astype(np.int64)]
