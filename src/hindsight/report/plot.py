"""One plot as plain data, which the script of the page draws. Colours are names of the style sheet, such as `blue@0.5`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from ..records import Array
from .run import Run
from .statistics import MAX_POINTS, finite_points, mean_window, moving_mean, thin

COLOURS = ("blue", "orange", "green", "pink", "sky", "red")  # Okabe and Ito 2008
X = Literal["env_steps", "seconds"]  # metric on the x axis
Scale = Literal["linear", "positive", "log", "fraction"]  # of the y axis: "positive" starts at 0, "fraction" is in percent


@dataclass
class Plot:
    """A plot of curves, with its title and caption.

    x: metric on the x axis. "seconds" are those of collecting and updating.
    bands: areas between two curves. levels, moments: dotted lines at a y or an x, with a text.
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

    def to_json(self) -> dict[str, Any]:
        """Return what the script of the page draws."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def rounded(values: Array, digits: int = 6) -> list[float | None]:
    """Return numbers with `digits` significant digits for JSON, None for those that are not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]
