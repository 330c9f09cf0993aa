"""Several runs beside each other: what the seeds of a kind say together, by environment, variant and agent."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from .curves import Array, Curve, known, middle
from .figures import PERCENT
from .page import Form, Section, head, page, plots
from .panel import COLOURS, Axis, Drawing, Panel, axes
from .run import Run
from .statistics import estimate, interquartile_mean, mean
from .tables import say
from .verdict import Level, Verdict, duration, signs, solved_at

FREE = frozenset({"seed", "workers"})  # options that runs of one kind may differ in
UNTOLD = FREE | {"engine", "ray_address", "job_timeout", "threads", "log_every", "checkpoint_every", "keep_every"}
MOST_TOLD = 3  # options in the name of a kind
MOST_LETTERS = 30  # of an option's value there
SEED = 0  # of the bootstrap
TITLES = {"test/success_rate": "Success rate", "test/return_mean": "Return", "train/q_mean": "Mean Q"}


@dataclass(frozen=True, eq=False)
class Kind:
    """Runs of one environment, variant and agent, which differ by their seeds.

    apart: the values of the options in which they differ from others of the same, by name.
    """

    environment: str
    variant: str
    agent: str
    apart: Mapping[str, str]
    runs: tuple[Run, ...]

    @property
    def told(self) -> str:
        """The agent, and what sets it apart."""
        parts = [f"{name}={_cut(value)}" for name, value in self.apart.items()]
        more = [f"{len(parts) - MOST_TOLD} more"] if len(parts) > MOST_TOLD else []
        return ", ".join([self.agent, *parts[:MOST_TOLD], *more])

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.told} on {self.environment}, {self.variant}"

    def numbers(self) -> dict[str, tuple[float, ...]]:
        """What is compared: one number per run that has it."""
        solved = [(run, at) for run in self.runs if (at := solved_at(run)) is not None]
        best = [run.column("test/success_rate") for run in self.runs if run.has("test/success_rate")]
        found = {
            "success": [run.last("test/success_rate") for run in self.runs],
            "best": [float(np.nanmax(rates)) for rates in best],
            "return": [run.last("test/return_mean") for run in self.runs],
            "steps to solve": [at for _, at in solved],
            "updates to solve": [run.at(at, "updates") for run, at in solved],
            "seconds to solve": [run.at(at, "seconds") for run, at in solved],
            "seconds": [run.last("seconds") for run in self.runs],
        }
        return {name: tuple(value for value in values if not math.isnan(value)) for name, values in found.items()}


def kinds_of(runs: Sequence[Run]) -> list[Kind]:
    """The runs by environment, variant and agent, in the order in which they were named; by options where these differ."""
    kinds = []
    for key in dict.fromkeys(map(_key, runs)):
        alike = [run for run in runs if _key(run) == key]
        names = _differing(alike, UNTOLD)
        values = [tuple(_value(run, name) for name in names) for run in alike]
        for chosen in dict.fromkeys(values):
            same = tuple(run for run, value in zip(alike, values, strict=True) if value == chosen)
            kinds.append(Kind(*key, dict(zip(names, chosen, strict=True)), same))
    return kinds


HEAD = (
    "environment",
    "variant",
    "agent",
    "seeds",
    "success",
    "mean success",
    "IQM of success",
    "best",
    "return",
    "solved",
    "steps to solve",
    "updates to solve",
    "time to solve",
    "time",
)
EXPLAINED = (
    "Success is that of a run's last evaluation. Numbers over seeds are medians (lowest to highest); mean and IQM, the "
    "interquartile mean, stand with their [95% interval], by a stratified bootstrap of the seeds (Agarwal et al. 2021). A "
    "run is solved at the first of the evaluations in a row that reach solved_at; times are of collecting and updating."
)


def rows(kinds: Sequence[Kind], generator: np.random.Generator) -> list[tuple[str, ...]]:
    """One line per kind, as HEAD says: numbers as their median over seeds, and their range."""
    return [_row(kind, generator) for kind in kinds]


def overall(kinds: Sequence[Kind], generator: np.random.Generator) -> str:
    """The interquartile mean of the final success over environments, each a stratum; "" for fewer than two.

    Of all runs; where an environment stands twice, of each agent and variant by itself.
    """
    evaluated = [kind for kind in kinds if kind.numbers()["success"]]
    groups: dict[str, list[Kind]] = {}
    is_once = len({kind.environment for kind in evaluated}) == len(evaluated)
    for kind in evaluated:
        groups.setdefault("all" if is_once else f"{kind.told}, {kind.variant}", []).append(kind)
    lines = []
    for name, group in groups.items():
        strata = [np.array(kind.numbers()["success"]) for kind in group]
        said = f"{name}, {sum(map(len, strata))} runs in {len(group)} environments"
        lines += [f"{said}: IQM of success {_interval(strata, interquartile_mean, generator)}"] * (len(group) > 1)
    return "\n".join(lines)


def text(runs: Sequence[Run]) -> str:
    """The same as lines of text, one kind after another: so many columns are wider than a terminal."""
    kinds, generator, lines = kinds_of(runs), np.random.default_rng(SEED), []
    for kind, cells in zip(kinds, rows(kinds, generator), strict=True):
        lines.append(kind.name)
        lines += [f"  {title:16}  {cell}" for title, cell in zip(HEAD[3:], cells[3:], strict=True)]
    return "\n".join([*lines, overall(kinds, generator)]).strip()


def markdown(runs: Sequence[Run]) -> str:
    """The same as a table in Markdown."""
    kinds, generator = kinds_of(runs), np.random.default_rng(SEED)
    cells = [HEAD, ["---"] * len(HEAD), *rows(kinds, generator)]
    table = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in cells)
    return "\n\n".join(part for part in (table, overall(kinds, generator), EXPLAINED) if part)


def _row(kind: Kind, generator: np.random.Generator) -> tuple[str, ...]:
    numbers, runs = kind.numbers(), kind.runs
    rates = [np.array(numbers["success"])] if numbers["success"] else []
    return (
        kind.environment,
        kind.variant,
        kind.told,
        str(len(runs)),
        spread(numbers["success"], PERCENT),
        _interval(rates, mean, generator),
        _interval(rates, interquartile_mean, generator),
        spread(numbers["best"], PERCENT),
        spread(numbers["return"], ".3g"),
        f"{len(numbers['steps to solve'])} of {len(runs)}",
        spread(numbers["steps to solve"], ",.0f"),
        spread(numbers["updates to solve"], ",.0f"),
        spread_of_times(numbers["seconds to solve"]),
        spread_of_times(numbers["seconds"]),
    )


def _interval(strata: Sequence[Array], statistic: Callable[[Array], Array], generator: np.random.Generator) -> str:
    """As "97.0% [95.2%, 98.4%]"; without the interval where all draws are alike; a dash without values."""
    if not strata:
        return "-"
    found = estimate(strata, statistic, generator)
    sure = f" [{found.low:.1%}, {found.high:.1%}]" if found.is_sure else ""
    return f"{found.value:.1%}{sure}"


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
    kinds, generator = kinds_of(runs), np.random.default_rng(SEED)
    about = f"{len(runs)} runs of {len(kinds)} kind{'s' * (len(kinds) > 1)}: medians and ranges over seeds"
    table = _table(HEAD, rows(kinds, generator)) + f"<p>{escape(overall(kinds, generator))}</p>"
    sections = [Section("table", "Side by side", EXPLAINED, table)]
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
        drawn = [(run, curve) for run in kind.runs if len((curve := _curve(run, name, axis))[0])]
        if not drawn:
            continue
        curves = [curve for _, curve in drawn]
        called = _curve_name(kind, kinds)
        if len(curves) > 1:
            for run, (x, y) in drawn:
                drawing.line(x, y, f"{called} {run.name}", f"{colour}@0.3", width=1)
        x, median, low, high = middle(curves) if len(curves) > 1 else (*curves[0], curves[0][1], curves[0][1])
        drawing.band(x, low, high, colour)
        drawing.line(x, median, f"{called}, median of {len(curves)}", colour, width=2.6)
        ends.append((x[-1], median[-1], called, colour))
    for end in ends:
        drawing.label(*end)
    against = "steps" if which == 0 else "time"
    y_axis = {"range": [-0.04, 1.08]} if form == PERCENT else {}
    layout = drawing.layout(form, **y_axis) | {"margin": {"r": 74}}
    place = f"{key}-{name.replace('/', '-')}-{against}"
    return Panel(place, f"{TITLES[name]} against {against}", "", drawing.traces, layout)


def _curve_name(kind: Kind, kinds: Sequence[Kind]) -> str:
    """What to call a curve: by its agent; by its variant too, where others of its agent are drawn beside it."""
    is_alone = [other.agent for other in kinds].count(kind.agent) == 1
    return kind.agent if is_alone else ", ".join([kind.agent, kind.variant, *map(_cut, kind.apart.values())])


def _curve(run: Run, name: str, axis: Axis) -> Curve:
    values = run.column("env_steps") if axis.key == "steps" else run.column("seconds") / axis.unit
    return known(values, run.column(name))


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _differences(runs: Sequence[Run]) -> str:
    lines = [[name, *(_value(run, name) for run in runs)] for name in _differing(runs, FREE)]
    if not lines:
        return "<p>Nothing but their seeds.</p>"
    return _table(("option", *(run.name for run in runs)), lines)


def _differing(runs: Sequence[Run], free: Set[str]) -> list[str]:
    """The options in which runs differ, but for those in `free`."""
    names = dict.fromkeys(name for run in runs for name in run.options if name not in free)
    return [name for name in names if len({_value(run, name) for run in runs}) > 1]


def _value(run: Run, name: str) -> str:
    return say(run.options[name]) if name in run.options else "-"


def _key(run: Run) -> tuple[str, str, str]:
    return run.environment, run.variant, run.agent


def _cut(value: str) -> str:
    return value if len(value) <= MOST_LETTERS else f"{value[: MOST_LETTERS - 3]}..."


def _links(runs: Sequence[Run], place: Path) -> str:
    items = []
    for run in runs:
        there = run.path / "report.html"
        name = escape(f"{run.environment} · {run.agent} · seed {run.seed} · {run.path}")
        link = f"<a href='{escape(os.path.relpath(there, place))}'>{name}</a>" if there.exists() else name
        found = "".join(f"<li>{escape(sentence)}</li>" for sentence in signs(run)) or "<li class='muted'>healthy</li>"
        items.append(f"<li>{link}<ul>{found}</ul></li>")
    return f"<ul>{''.join(items)}</ul>"
