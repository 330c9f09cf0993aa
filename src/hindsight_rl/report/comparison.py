"""Compare runs in groups. The runs of a group have the same environment, variant, agent and options, but other seeds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..records import Array
from ..records.statistics import bootstrap_interval, interquartile_mean, mean, median_curve
from .figures import CURVE_COLOURS, X_NAMES, Dash, LegendEntry, Plot, Scale, X
from .page import Page, Section, Table, link
from .run import Run, readable_path
from .verdict import Level, Verdict, best_evaluation, duration, format_value, solved_at_step, warnings_of

FREE = {"seed", "workers"}  # options that may differ within a group and are no difference between runs
NOT_GROUPED_BY = FREE | {"engine", "ray_address", "job_timeout", "threads", "log_every", "checkpoint_every", "keep_every"}
MIN_MEDIAN = 3  # runs of a group: fewer are listed one by one, without a median
BOOTSTRAP_SEED = 0
MISSING = object()
METRIC_TITLES = {"test/success_rate": "Success rate", "test/return_mean": "Return", "train/q_mean": "Mean Q"}
EXPLANATION = (
    "Success is that of the last evaluation of a run. With three seeds or more, numbers are the median (lowest to "
    "highest). Mean and IQM (interquartile mean) are followed by their [95 % interval] from a stratified bootstrap over "
    "seeds (Agarwal et al. 2021). Times are of collecting and updating. Steps to solve are environment steps: those of "
    "training and of the check before it. Those of the check are left out if they are unknown (older versions)."
)
GROUP_DASHES: tuple[Dash, ...] = ("solid", "dash", "dot")  # of the first six groups, of the next, and so on
SUCCESS = ("seeds", "success", "mean success", "IQM of success", "best", "return")  # columns of the first table
COST = ("solved", "steps to solve", "updates to solve", "time to solve", "time")  # and of the second
CURVES = "Thin: each run. Thick: median of three seeds or more, with their range. Time depends on the load of the machine."


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ only in their seed.

    entry: the name that the user gave the runs, "" without one.
    label: the agent, and options in which the group differs from others of this environment, variant, entry and agent.
    """

    environment: str
    variant: str
    entry: str
    label: str
    runs: tuple[Run, ...]

    @property
    def curve_name(self) -> str:
        """The name of the group in the legend of its environment."""
        return ", ".join(filter(None, (self.entry, self.label, self.variant)))

    @property
    def name(self) -> str:
        """The entry, the label, the environment and the variant."""
        return f"{', '.join(filter(None, (self.entry, self.label)))} on {self.environment}, {self.variant}"

    def last(self, metric: str) -> list[float]:
        """Return the latest value of a metric of each run that has it."""
        return [value for run in self.runs if math.isfinite(value := run.last(metric))]

    def best_success(self) -> list[float]:
        """Return the success rate in the best evaluation of each run that was evaluated."""
        return [best.success_rate for run in self.runs if (best := best_evaluation(run)) is not None]

    def at_solved(self, metric: str) -> list[float]:
        """Return a metric of each solved run, at the evaluation at which it was solved."""
        return [run.at(steps, metric) for run in self.runs if (steps := solved_at_step(run)) is not None]

    def steps_to_solve(self) -> list[float]:
        """Return the environment steps of each solved run until it was solved, those of the check included if known."""
        solved = [(steps, run.check_steps) for run in self.runs if (steps := solved_at_step(run)) is not None]
        return [steps + float(np.nan_to_num(check)) for steps, check in solved]

    def cells(self, rng: np.random.Generator) -> dict[str, str]:
        """Return the row of the group in the table: column -> text. rng: of the bootstrap."""
        rates = self.last("test/success_rate")
        return {
            "environment": self.environment,
            "name": self.entry,
            "variant": self.variant,
            "agent": self.label,
            "seeds": str(len(self.runs)),
            "success": summarized(rates, "{:.0%}".format),
            "mean success": _interval([rates], mean, rng),
            "IQM of success": _interval([rates], interquartile_mean, rng),
            "best": summarized(self.best_success(), "{:.0%}".format),
            "return": summarized(self.last("test/return_mean"), "{:.3g}".format),
            "solved": f"{len(self.at_solved('env_steps'))} of {len(self.runs)}",
            "steps to solve": summarized(self.steps_to_solve(), "{:,.0f}".format),
            "check steps": summarized(self.last("check_steps"), "{:,.0f}".format, "unknown"),
            "updates to solve": summarized(self.at_solved("updates"), "{:,.0f}".format),
            "time to solve": summarized(self.at_solved("seconds"), duration),
            "time": summarized(self.last("seconds"), duration),
        }


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups of runs, in the order in which the runs are given."""
    families: dict[tuple[str, str, str, str], list[Run]] = {}
    for run in runs:
        families.setdefault((run.environment, run.settings.variant, run.settings.name, run.settings.agent), []).append(run)
    groups: dict[tuple[str, str, str, str], list[Run]] = {}
    for (environment, variant, entry, agent), family in families.items():
        names = [name for name in differing_options(family) if name not in {*NOT_GROUPED_BY, *_found_options(family)}]
        for run in family:
            label = ", ".join([agent, *(f"{name}={_option_text(run, name, family):.30}" for name in names)])
            groups.setdefault((environment, variant, entry, label), []).append(run)
    return [Group(*names, tuple(members)) for names, members in groups.items()]


def _found_options(runs: Sequence[Run]) -> set[str]:
    """Return the options that the runs found by themselves. They may find other values with another seed."""
    found = {name for run in runs for name in run.settings.reasons}
    given = {name for run in runs for name, facts in run.settings.explained.items() if facts.get("source") == "given"}
    return found - given


def differing_options(runs: Sequence[Run]) -> list[str]:
    """Return the names of the options in which runs differ."""
    names = dict.fromkeys(name for run in runs for name in run.options.to_dict())
    return [name for name in names if len({_option_text(run, name, runs) for run in runs}) > 1]


def comparison_text(runs: Sequence[Run]) -> str:
    """Return the comparison as text for a terminal, group by group."""
    groups, rng, lines = group_runs(runs), np.random.default_rng(BOOTSTRAP_SEED), []
    for group in groups:
        lines.append(group.name)
        cells = group.cells(rng)
        lines += [f"  {title:16}  {cells[title]}" for title in SUCCESS + COST]
    text = "\n".join([*lines, *success_over_environments(groups, rng)])
    return text.encode("utf-8", "replace").decode()


def success_over_environments(groups: Sequence[Group], rng: np.random.Generator) -> list[str]:
    """Return a line with the interquartile mean of the success over two or more environments, each a stratum.

    If an environment has several groups, there is one line for each agent and variant.
    """
    selections: dict[str, list[list[float]]] = {}
    is_unique = len({group.environment for group in groups}) == len(groups)
    for group in groups:
        if rates := group.last("test/success_rate"):
            selections.setdefault("all" if is_unique else group.curve_name, []).append(rates)
    return [
        f"{name}, {sum(map(len, strata))} runs in {len(strata)} environments: IQM of success "
        f"{_interval(strata, interquartile_mean, rng)}"
        for name, strata in selections.items()
        if len(strata) > 1
    ]


def summarized(values: Sequence[float], text: Callable[[float], str], unknown: str = "-") -> str:
    """Return "95% (90% to 100%)", the median and range; both of two values; one if all look alike.

    unknown: what is returned without values.
    """
    texts = list(map(text, values))
    if len(set(texts)) <= 1:
        return texts[0] if texts else unknown
    if len(values) < MIN_MEDIAN:
        return " and ".join(texts)
    return f"{text(float(np.median(values)))} ({text(min(values))} to {text(max(values))})"


def comparison_page(runs: Sequence[Run], folder: Path) -> Page:
    """Return the page of several runs. folder: where the page will be, for links to the pages of the runs."""
    groups, rng = group_runs(runs), np.random.default_rng(BOOTSTRAP_SEED)
    text = " ".join([EXPLANATION, *success_over_environments(groups, rng)])
    sections = [Section("table", "Table", text, tables=_tables(groups, rng))]
    for number, environment in enumerate(dict.fromkeys(run.environment for run in runs), 1):
        key, chosen = f"curves-{number}", [group for group in groups if group.environment == environment]
        plots = [_plot(chosen, metric, x, key) for metric in METRIC_TITLES for x in X_NAMES]
        plots = [plot for plot in plots if plot.curves]
        sections.append(Section(key, environment, CURVES, plots, tables=_differences(chosen)))
    sections.append(Section("runs", "The runs", runs=[_run_item(run, folder) for run in runs]))
    return Page("Comparison of runs", f"{len(runs)} runs", ranking(groups), sections)


def _tables(groups: Sequence[Group], rng: np.random.Generator) -> list[Table]:
    """Return the table of success, and that of the cost. Each fits a page."""
    rows = [group.cells(rng) for group in groups]
    first = ["environment", *(["name"] if any(group.entry for group in groups) else []), "variant", "agent"]
    heads = [*first, *SUCCESS], [*first, *COST]
    return [Table(head, [[row[title] for title in head] for row in rows]) for head in heads]


def _differences(groups: Sequence[Group]) -> list[Table]:
    """Return a table of the options in which the groups of an environment differ, if there are any."""
    runs = [run for group in groups for run in group.runs]
    names = [name for name in differing_options(runs) if name not in FREE] if len(groups) > 1 else []
    rows = [
        [name, *(" | ".join(dict.fromkeys(_option_text(run, name, runs) for run in group.runs)) for group in groups)]
        for name in names
    ]
    return [Table(("option", *(group.curve_name for group in groups)), rows)] if rows else []


def ranking(groups: Sequence[Group]) -> Verdict:
    """Return the groups by their median success."""
    rates = {group: group.last("test/success_rate") for group in groups}
    ranked = sorted((group for group in groups if rates[group]), key=lambda group: -float(np.median(rates[group])))
    if not ranked:
        return Verdict("unknown", "No run was evaluated yet", "")
    texts = [f"{group.name}: {summarized(rates[group], '{:.0%}'.format)}" for group in ranked]
    text = f"Success in the last evaluation of each run, highest median first: {'; '.join(texts)}."
    highest, lowest = np.median(rates[ranked[0]]), np.median(rates[ranked[-1]])
    level: Level = "good" if lowest >= 0.95 else "partly" if highest >= 0.5 else "bad"
    return Verdict(level, f"Highest success: {texts[0]}", text)


def _plot(groups: Sequence[Group], metric: str, x: X, key: str) -> Plot:
    scale: Scale = "fraction" if metric.endswith("rate") else "linear"
    title, subject = f"{METRIC_TITLES[metric]} against {X_NAMES[x]}", groups[0].environment
    plot = Plot(f"{key}-{metric.replace('/', '-')}-{x}", title, "", x, scale, subject=subject)
    for number, group in enumerate(groups):
        colour, dash = number % len(CURVE_COLOURS), number // len(CURVE_COLOURS) % len(GROUP_DASHES)
        _draw_group(plot, group, metric, LegendEntry(group.curve_name, CURVE_COLOURS[colour], GROUP_DASHES[dash]))
    return plot


def _draw_group(plot: Plot, group: Group, metric: str, style: LegendEntry) -> None:
    """Draw the curve of each run, and against steps the median and the range over three seeds or more."""
    name, colour, dash = style
    curves = [run.curve(metric, plot.x) for run in group.runs]
    known = [curve for curve in curves if len(curve[0])]
    if known:
        plot.legend.append(style)
    has_median = plot.x == "env_steps" and len(known) >= MIN_MEDIAN
    for run, (x, y) in zip(group.runs, curves, strict=True):
        plot.curve(x, y, f"{name}, {run.path.name}", f"{colour}@0.35" if has_median else colour, 1.4, dash=dash)
    if has_median:
        x, median, low, high = median_curve(known)
        plot.band(x, low, high, colour)
        plot.curve(x, median, f"{name}, median", colour, 2.6, dash=dash)


def _interval(strata: Sequence[Sequence[float]], statistic: Callable[[Array], Array], rng: np.random.Generator) -> str:
    """Return text such as "97.0% [95.2%, 98.4%]". The interval is left out if it has no width, as for one run."""
    if not strata[0]:
        return "-"
    arrays = [np.array(values) for values in strata]
    value, (low, high) = float(statistic(np.concatenate(arrays))), bootstrap_interval(arrays, statistic, rng)
    return f"{value:.1%}" + (f" [{low:.1%}, {high:.1%}]" if low < high else "")


def _option_text(run: Run, name: str, runs: Sequence[Run]) -> str:
    """Return the value of an option. A run of a version without the option has the default that other runs name."""
    values = [run.options.to_dict().get(name, MISSING)]
    values += [other.settings.explained.get(name, {}).get("default", MISSING) for other in runs]
    return next((format_value(value) for value in values if value is not MISSING), "-")


def _run_item(run: Run, folder: Path) -> tuple[str, str, list[str]]:
    """Return the name of a run in the list, the URL of its page, "" without one, and its warnings."""
    report = run.path / "report.html"
    url = link(os.path.relpath(report, folder)) if report.exists() else ""
    return f"{run.title} · {readable_path(run.path)}", url, warnings_of(run)
