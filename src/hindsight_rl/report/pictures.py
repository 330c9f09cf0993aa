"""Pictures of curves for papers, as SVG and PNG: the plots of a page, drawn by matplotlib, without a browser."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from ..storage import save_bytes
from .figures import LegendEntry, Plot

FORMATS = ("svg", "png")
SIZE = 4.8, 3.2  # inches, without the legend
DPI = 200  # of PNG
LEGEND_ROW = 0.19  # inches
WIDE, ROW, EDGES = 7.2, 0.2, 0.85  # inches, of a plot of intervals
LONGEST_LABEL = 48  # characters
MAX_NAME = 150  # characters of a file's name
STYLE: Any = {  # rcParams, of which matplotlib's types list every name
    "text.parse_math": False,  # names of users may have a $
    "font.size": 9,
    "svg.hashsalt": "hindsight",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
HEX_COLOURS = {  # those of the page, on white
    "blue": "#0072b2",
    "orange": "#c26100",
    "green": "#00795a",
    "pink": "#b0528c",
    "sky": "#2b83b5",
    "red": "#c1440e",
    "muted": "#5f6b7a",
}
LINE_STYLES = {"solid": "-", "dash": "--", "dot": ":"}


def write_pictures(plots: Sequence[Plot], folder: Path) -> None:
    """Write each plot of curves as NAME.svg and NAME.png into a folder, and plots of intervals together as structure.*.

    NAME is made from the subject and the title.
    """
    pictures = {_file_name(plot): pictures_of(plot) for plot in plots if plot.curves}
    if rows := [plot for plot in plots if plot.rows]:
        pictures["structure"] = pictures_of_rows(rows, rows[0].subject)
    for name, contents in pictures.items():
        for kind, content in contents.items():
            save_bytes(folder / f"{name}.{kind}", content)


def _file_name(plot: Plot) -> str:
    return re.sub(r"[^\w.=]+", "-", f"{plot.subject} {plot.title.lower()}").strip("-")[:MAX_NAME]


def pictures_of(plot: Plot) -> dict[str, bytes]:
    """Return a plot of curves in each of FORMATS. The same plot gives the same bytes."""
    with mpl.rc_context(STYLE):
        legend = plot.legend or [LegendEntry(plot.curves[-1]["name"], plot.curves[-1]["colour"])]
        figure = Figure(figsize=(SIZE[0], SIZE[1] + LEGEND_ROW * len(legend)), dpi=DPI, layout="constrained")
        axes = figure.add_subplot()
        _draw(axes, plot)
        axes.set(xlabel=plot.unit.title, ylabel=re.sub(" against .*", "", plot.title), title=plot.subject)
        figure.legend(*_handles(legend), loc="outside lower left", fontsize=8)
        return _saved(figure)


def pictures_of_rows(plots: Sequence[Plot], title: str) -> dict[str, bytes]:
    """Return plots of intervals, one below the other, in each of FORMATS."""
    with mpl.rc_context(STYLE):
        heights = [ROW * len(_labels(plot)) + EDGES for plot in plots] or [EDGES]
        figure = Figure(figsize=(WIDE, sum(heights)), dpi=DPI, layout="constrained")
        figure.suptitle(title)
        rows = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, plot in zip(rows, plots, strict=False):
            _draw_rows(axes, plot)
        return _saved(figure)


def _labels(plot: Plot) -> list[str]:
    return list(dict.fromkeys(row["label"] for row in plot.rows))


def _draw_rows(axes: Axes, plot: Plot) -> None:
    labels = _labels(plot)
    for row in plot.rows:
        y = labels.index(row["label"])
        interval = [row["low"], row["value"], row["high"]]
        axes.plot(interval, [y] * 3, "o-", markevery=[1], color=HEX_COLOURS[row["colour"]], lw=1.4, ms=4)
        if row["limit"] is not None:
            axes.plot(row["limit"], y, "|", color=HEX_COLOURS["red"], ms=10)
    axes.set_yticks(range(len(labels)), [textwrap.shorten(label, LONGEST_LABEL, placeholder=" ...") for label in labels])
    axes.set(ylim=(len(labels) - 0.4, -0.6), xlabel=plot.x_title)
    axes.set_title(plot.title, loc="left", fontsize=9, fontweight="bold")
    axes.grid(axis="y", lw=0.3)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=all(isinstance(row["value"], int) for row in plot.rows)))
    if plot.scale == "fraction":
        axes.xaxis.set_major_formatter(PercentFormatter(1))
    if plot.legend:
        axes.legend(*_handles(plot.legend), loc="lower right", bbox_to_anchor=(1, 1), ncols=len(plot.legend), fontsize=7)


def _handles(legend: Sequence[LegendEntry]) -> tuple[list[Line2D], list[str]]:
    """Return a line for each entry of a legend, and its name."""
    lines = [Line2D([], [], color=HEX_COLOURS[entry.colour], ls=LINE_STYLES[entry.dash]) for entry in legend]
    return lines, [entry.name for entry in legend]


def _draw_marks(axes: Axes, plot: Plot) -> None:
    for mark in plot.marks:
        axes.axvline(mark["x"] / plot.unit.size, color=HEX_COLOURS[mark["colour"]], ls=LINE_STYLES[mark["dash"]], lw=1)


def _draw(axes: Axes, plot: Plot) -> None:
    size = plot.unit.size
    for band in plot.bands:
        axes.fill([x / size for x in band["x"]], band["y"], color=_colour(band["colour"]), lw=0)
    for curve in plot.curves:
        marker = "" if len(curve["x"]) > 1 else "o"
        style = {"color": _colour(curve["colour"]), "ls": LINE_STYLES[curve["dash"]], "lw": 0.7 * curve["width"]}
        axes.plot([x / size for x in curve["x"]], curve["y"], marker=marker, **style)
    for level in plot.levels:
        axes.axhline(level["y"], color=HEX_COLOURS["muted"], ls=":", lw=0.8)
        axes.annotate(level["text"], (0.01, level["y"]), xycoords=("axes fraction", "data"), va="top", fontsize=7)
    _draw_marks(axes, plot)
    axes.set_xlim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    if plot.x == "env_steps":
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if plot.is_log:
        axes.set_yscale("log")
    if plot.scale == "fraction":
        axes.set_ylim(-0.03, 1.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1))


def _colour(text: str) -> tuple[float, float, float, float]:
    """Return "blue" or "blue@0.35", a colour with an opacity, for matplotlib."""
    name, _, opacity = text.partition("@")
    return mpl.colors.to_rgba(HEX_COLOURS[name], float(opacity or 1))


def _saved(figure: Figure) -> dict[str, bytes]:
    """Return a figure in each of FORMATS."""
    files = {kind: io.BytesIO() for kind in FORMATS}
    for kind, file in files.items():
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else {})
    return {kind: file.getvalue() for kind, file in files.items()}
