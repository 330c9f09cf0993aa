"""Several runs beside each other: median and range over seeds, by environment and agent."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from .curves import Curve, known, middle
from .figures import PERCENT
from .page import Form, Section, head, page, plots
from .panel import COLOURS, Axis, Drawing, Panel, axes
from .run import Run
from .tables import say
from .verdict import Level, Verdict, duration, signs, solved_at

FREE = frozenset({"seed", "workers"})  # options that runs of one kind may differ in
TITLES = {"test/success_rate": "Success rate", "test/return_mean": "Return", "train/q_mean": "Mean Q"}


@dataclass(frozen=True, eq=False)
class Kind:
    """Runs of one environment and agent, which differ by their seeds."""

    environment: str
    agent: str
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.agent} on {self.environment}"

    def numbers(self) -> dict[str, tuple[float, ...]]:
        """What is compared: one number per run that has it."""
        solved = [(run, at) for run in self.runs if (at := solved_at(run)) is not None]
        best = [run.column("test/success_rate") for run in self.runs if run.has("test/success_rate")]
        seconds = [float(np.interp(at, run.column("env_steps"), run.column("seconds"))) for run, at in solved]
        found = {
            "success": [run.last("test/success_rate") for run in self.runs],
            "best": [float(np.nanmax(rates)) for rates in best],
            "return": [run.last("test/return_mean") for run in self.runs],
            "steps to solve": [at for _, at in solved],
            "seconds to solve": seconds,
            "seconds": [run.last("seconds") for run in self.runs],
        }
        return {name: tuple(value for value in values if not math.isnan(value)) for name, values in found.items()}


def kinds_of(runs: Sequence[Run]) -> list[Kind]:
    """The runs by environment and agent, in the order in which they were named."""
    keys = dict.fromkeys((run.environment, run.agent) for run in runs)
    return [Kind(*key, tuple(run for run in runs if (run.environment, run.agent) == key)) for key in keys]


HEAD = ("environment", "agent", "seeds", "success", "best", "return", "solved", "steps to solve", "time to solve", "time")


def rows(kinds: Sequence[Kind]) -> list[tuple[str, ...]]:
    """One line per kind, as HEAD says: each number as its median over seeds, and its range."""
    return [_row(kind) for kind in kinds]


def text(runs: Sequence[Run]) -> str:
    """The same as lines of text, one kind after another: tables of ten columns are wider than a terminal."""
    lines = []
    for cells in rows(kinds_of(runs)):
        environment, agent, *rest = cells
        lines.append(f"{agent} on {environment}")
        lines += [f"  {title:15}  {cell}" for title, cell in zip(HEAD[2:], rest, strict=True)]
    return "\n".join(lines)


def _row(kind: Kind) -> tuple[str, ...]:
    numbers, runs = kind.numbers(), kind.runs
    return (
        kind.environment,
        kind.agent,
        str(len(runs)),
        spread(numbers["success"], PERCENT),
        spread(numbers["best"], PERCENT),
        spread(numbers["return"], ".3g"),
        f"{len(numbers['steps to solve'])} of {len(runs)}",
        spread(numbers["steps to solve"], ",.0f"),
        spread_of_times(numbers["seconds to solve"]),
        spread_of_times(numbers["seconds"]),
    )


def spread(values: Sequence[float], form: str) -> str:
    """The median and the range, as "95% (90% to 100%)"; the one value where all are alike; a dash where there is none."""
    return _spread([format(value, form) for value in _three(values)])


def spread_of_times(values: Sequence[float]) -> str:
    """The same of seconds."""
    return _spread([duration(value) for value in _three(values)])


def _three(values: Sequence[float]) -> list[float]:
    return [float(np.median(values)), min(values), max(values)] if values else []


def _spread(said: Sequence[str]) -> str:
    if not said:
        return "-"
    return said[0] if len(set(said)) == 1 else f"{said[0]} ({said[1]} to {said[2]})"


def comparison_page(runs: Sequence[Run], form: Form, place: Path) -> str:
    """The page of several runs. place: the folder it will lie in, from which it links to their own pages."""
    kinds = kinds_of(runs)
    about = f"{len(runs)} runs of {len(kinds)} kind{'s' * (len(kinds) > 1)}: medians and ranges over seeds"
    table = _table(HEAD, rows(kinds))
    sections = [Section("table", "Side by side", "The median over seeds, and the range where they differ.", table)]
    for environment in dict.fromkeys(run.environment for run in runs):
        chosen = [kind for kind in kinds if kind.environment == environment]
        key = f"curves-{len(sections)}"
        told = "Bold: the median over seeds. Band: their range. A run that has ended counts with its last value."
        sections.append(plots(key, environment, told, _panels(chosen, key)))
    sections.append(Section("differences", "What differs in their settings", "", _differences(runs)))
    sections.append(Section("runs", "The runs", "", _links(runs, place)))
    return page("Comparison of runs", head(about, headline(kinds)), sections, form)


def headline(kinds: Sequence[Kind]) -> Verdict:
    """Who did best."""
    rates = {kind: kind.numbers()["success"] for kind in kinds}
    ranked = sorted((kind for kind in kinds if rates[kind]), key=lambda kind: float(np.median(rates[kind])), reverse=True)
    if not ranked:
        return Verdict("unknown", "Nothing was evaluated yet", "")
    said = [f"{kind.name}: {spread(rates[kind], PERCENT)}" for kind in ranked]
    lowest = float(np.median(rates[ranked[-1]]))
    level: Level = "good" if lowest >= 0.95 else "partly" if float(np.median(rates[ranked[0]])) >= 0.5 else "bad"
    best = f"{said[0]} of unseen episodes succeed"
    return Verdict(level, best, f"In the last evaluation of each run, best first: {'; '.join(said)}.")


def _panels(kinds: Sequence[Kind], key: str) -> list[Panel]:
    pairs = [(name, which) for name in TITLES for which in (0, 1)]
    return [panel for name, which in pairs if (panel := _panel(kinds, name, which, key)).traces]


def _panel(kinds: Sequence[Kind], name: str, which: int, key: str) -> Panel:
    """which: 0 against steps, 1 against time, in the unit of the longest run."""
    longest = max((run for kind in kinds for run in kind.runs if len(run)), key=lambda run: run.last("seconds"))
    axis = axes(longest.column("seconds"), longest.column("env_steps"))[which]
    form = PERCENT if "rate" in name else ".3~g"
    drawing, ends = Drawing(axis, form), []
    for kind, colour in zip(kinds, COLOURS * len(kinds), strict=False):
        curves = [curve for run in kind.runs if len((curve := _curve(run, name, axis))[0])]
        if not curves:
            continue
        if len(curves) > 1:
            for run, (x, y) in zip(kind.runs, curves, strict=False):
                drawing.line(x, y, f"{kind.agent} {run.name}", f"{colour}@0.3", width=1)
        x, median, low, high = middle(curves) if len(curves) > 1 else (*curves[0], curves[0][1], curves[0][1])
        drawing.band(x, low, high, colour)
        drawing.line(x, median, f"{kind.agent}, median of {len(curves)}", colour, width=2.6)
        ends.append((x[-1], median[-1], kind.agent, colour))
    for end in ends:
        drawing.label(*end)
    against = "steps" if which == 0 else "time"
    y_axis = {"range": [-0.04, 1.08]} if form == PERCENT else {}
    layout = drawing.layout(form, **y_axis) | {"margin": {"r": 74}}
    place = f"{key}-{name.replace('/', '-')}-{against}"
    return Panel(place, f"{TITLES[name]} against {against}", "", drawing.traces, layout)


def _curve(run: Run, name: str, axis: Axis) -> Curve:
    values = run.column("env_steps") if axis.key == "steps" else run.column("seconds") / axis.unit
    return known(values, run.column(name))


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _differences(runs: Sequence[Run]) -> str:
    names = dict.fromkeys(name for run in runs for name in run.options if name not in FREE)
    lines = []
    for name in names:
        values = [say(run.options[name]) if name in run.options else "-" for run in runs]
        if len(set(values)) > 1:
            lines.append([name, *values])
    if not lines:
        return "<p>Nothing but their seeds.</p>"
    return _table(("option", *(run.name for run in runs)), lines)


def _links(runs: Sequence[Run], place: Path) -> str:
    items = []
    for run in runs:
        there = run.path / "report.html"
        name = escape(f"{run.environment} · {run.agent} · seed {run.seed} · {run.path}")
        link = f"<a href='{escape(os.path.relpath(there, place))}'>{name}</a>" if there.exists() else name
        found = "".join(f"<li>{escape(sentence)}</li>" for sentence in signs(run)) or "<li class='muted'>healthy</li>"
        items.append(f"<li>{link}<ul>{found}</ul></li>")
    return f"<ul>{''.join(items)}</ul>"
