"""One plot as plain data for Plotly. Colours are names, `var:blue`, that the page looks up in its style: light or dark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .curves import MOST_POINTS, Array, known, moving_mean, thin, window_of

FEWEST_TICKS = 3  # of a logarithmic axis, where there are so many round numbers
LINE_OF_TEXT = 0.1  # its height, as a share of a plot's
COLOURS = ("var:blue", "var:orange", "var:green", "var:pink", "var:sky", "var:red")  # of Okabe and Ito 2008
Trace = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A plot with its title, a sentence on how to read it, and Plotly's traces and layout. goals: for a map (see goals)."""

    key: str
    title: str
    note: str
    traces: list[Trace]
    layout: dict[str, Any]
    goals: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """What the page's script draws."""
        return {"key": self.key, "traces": self.traces, "layout": self.layout, "goals": self.goals}


@dataclass(frozen=True)
class Axis:
    """What a curve is drawn against. values: one per record."""

    key: str
    title: str
    values: Array
    format: str = "~s"
    unit: float = 1.0  # what one of its units is worth: seconds, or steps


@dataclass
class Drawing:
    """Collects the curves of one panel, and their labels, which stand where the curves end."""

    axis: Axis
    format: str = ".3~g"
    traces: list[Trace] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    shapes: list[dict[str, Any]] = field(default_factory=list)

    def line(self, x: Array, y: Array, name: str, colour: str, **style: Any) -> None:
        """A curve. style: of Plotly's line."""
        x, y = thin(x, y)
        look = {"mode": "lines", "line": {"color": colour, "width": 2.2} | style, "hovertemplate": f"%{{y:{self.format}}}"}
        self.traces.append({"type": "scatter", "x": digits(x), "y": digits(y), "name": name} | look)

    def label(self, x: float, y: float, text: str, colour: str) -> None:
        """Words to the right of a point."""
        look = {
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "middle",
            "xshift": 6,
            "font": {"color": colour, "size": 12},
        }
        self.labels.append({"x": float(x), "y": float(y), "text": text} | look)

    def band(self, x: Array, low: Array, high: Array, colour: str) -> None:
        """What lies between two curves, faintly."""
        if not len(x):
            return
        index = np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS // 2)).astype(np.int64)
        x, low, high = x[index], low[index], high[index]
        both = np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1]))
        look = {"fill": "toself", "fillcolor": f"{colour}@0.16", "line": {"width": 0}, "hoverinfo": "skip", "mode": "lines"}
        self.traces.append({"type": "scatter", "x": digits(both[0]), "y": digits(both[1]), "showlegend": False} | look)

    def measured(self, values: Array, name: str, colour: str, tell: str) -> None:
        """A metric, faintly, and its moving mean, labelled with its last value by the format `tell`."""
        x, y = known(self.axis.values, values)
        if not len(y):
            return
        window = window_of(len(y))
        if window > 1:
            self.line(x, y, name, f"{colour}@0.35", width=1)
        mean = moving_mean(y, window)
        self.line(x, mean, f"{name}, mean of {window}" if window > 1 else name, colour)
        self.label(x[-1], mean[-1], format(mean[-1], tell), colour)

    def level(self, y: float, text: str) -> None:
        """A line across, with its meaning."""
        self.shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": _DOTTED})
        self.notes.append({"xref": "paper", "x": 0, "y": y, "text": text} | _AT_LEVEL)

    def moment(self, x: float, text: str) -> None:
        """An upright line, with its meaning."""
        self.shapes.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x, "line": _DOTTED})
        self.notes.append({"yref": "paper", "y": 1, "x": x, "text": text} | _AT_MOMENT)

    def layout(self, y_format: str = ".3~g", **y_axis: Any) -> dict[str, Any]:
        """Plotly's layout."""
        is_log = y_axis.get("type") == "log"
        return {
            "xaxis": {"title": {"text": self.axis.title}, "tickformat": self.axis.format, "rangemode": "tozero"},
            "yaxis": {"tickformat": y_format} | y_axis,
            "annotations": self.notes + self._labels_apart(np.log10 if is_log else np.asarray),
            "shapes": self.shapes,
        }

    def _labels_apart(self, place: Callable[[Any], Any]) -> list[dict[str, Any]]:
        """The labels, none upon another. place: from a value to where Plotly's axis has it."""
        values = [value for trace in self.traces for value in trace["y"] if value is not None]
        values += [shape["y0"] for shape in self.shapes if shape.get("xref") == "paper"]
        room = LINE_OF_TEXT * float(place(max(values)) - place(min(values))) if values else 0.0
        before, placed = -np.inf, []
        for label in sorted(self.labels, key=lambda label: float(label["y"])):
            before = max(float(place(label["y"])), before + room)
            placed.append(label | {"y": before})
        return placed


_DOTTED = {"color": "var:muted", "width": 1, "dash": "dot"}
_SMALL = {"showarrow": False, "font": {"color": "var:muted", "size": 11}}
_AT_LEVEL = {"xanchor": "left", "yanchor": "bottom"} | _SMALL
_AT_MOMENT = {"xanchor": "left", "yanchor": "top", "xshift": 4} | _SMALL


def digits(values: Array, count: int = 5) -> list[float | None]:
    """Numbers to `count` digits, as JSON takes them: None for what is not finite."""
    return [float(f"{value:.{count}g}") if np.isfinite(value) else None for value in values.tolist()]


def axes(seconds: Array, env_steps: Array) -> tuple[Axis, Axis]:
    """Environment steps, and the time spent on collecting and updating in a unit that suits it."""
    longest = float(seconds[-1]) if len(seconds) else 0.0
    unit, name = (1.0, "seconds") if longest < 240 else (60.0, "minutes") if longest < 14_400 else (3600.0, "hours")
    steps = Axis("steps", "environment steps", env_steps)
    return steps, Axis("time", f"{name} of collecting and updating", seconds / unit, ",.4~g", unit)


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, both above 0: as many digits of each decade as leave a few in all."""
    decades = range(int(np.floor(np.log10(low))), int(np.floor(np.log10(high))) + 1)
    for leading in ((1,), (1, 2, 5), range(1, 10)):
        ticks = [float(f"{digit}e{power}") for power in decades for digit in leading]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= FEWEST_TICKS:
            break
    return inside
