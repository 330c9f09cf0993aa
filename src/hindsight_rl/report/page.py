"""The page of one run: verdict, numbers, plots, maps of goals and settings, filled into the template page.html."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from jinja2 import Template

from ..records import GOAL_DIMENSIONS, Array, Finding
from ..storage import json_text
from .figures import Plot, finding_plots, health, learning, rounded
from .run import EpisodeFacts, Run, readable_path
from .verdict import Verdict, by_reason, duration, format_value, reward_range, success_interval, verdict, warnings_of

TIME_PARTS = {"start": "", "collect": "env_steps", "update": "updates", "evaluate": "", "write": ""}  # part: what it counts
SOURCE_NAMES = {"given": "you", "command": "the command line", "default": ""}  # in settings.json: on the page
HEALTH_TEXT = "Thick: moving mean (hover for its window). Thin: as recorded."
COLUMNS = ("option", "value", "source", "meaning")
MAX_EPISODES = 4000  # of evaluation, and of training, on a map
MIN_SHOWN = 50  # evaluation episodes, the latest ones
JITTER = 0.16  # range of the jitter of whole numbers, below 2 * 0.1
JITTER_STEPS = (0.6180, 0.7549)  # for x and y: their multiples modulo 1 fill a square evenly (Roberts 2018)


class Table(NamedTuple):
    """A table of plain text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A part of a page.

    folded: a table that the reader opens.
    video: URL.
    runs: name, URL of the page, "" without one, and warnings.
    """

    key: str
    title: str
    text: str = ""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    folded: Table | None = None
    video: str = ""
    runs: Sequence[tuple[str, str, Sequence[str]]] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing but text."""
        return not (self.plots or self.video or self.folded or any(table.rows for table in self.tables))


@dataclass(frozen=True)
class Page:
    """The content of a page. tiles: label, value and explanation of the numbers at its top."""

    title: str
    about: str
    verdict: Verdict
    sections: Sequence[Section]
    tiles: Sequence[tuple[str, str, str]] = ()
    warnings: Sequence[str] = ()

    def to_html(self, plotly: str = "", refresh: int = 0) -> str:
        """Return the page as HTML.

        plotly: Plotly's script if the page contains it, "" if the page loads it from its own folder.
        refresh: seconds after which a browser loads the page again, 0 if the run has ended.
        """
        html, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("page.html", "page.js"))
        plots = json_text([plot.to_json() for section in self.sections for plot in section.plots]).replace("<", "\\u003c")
        template = Template(html, autoescape=True)
        return str(template.render(vars(self), plots=plots, script=script, plotly=plotly, refresh=refresh))


def run_page(run: Run, video: str = "") -> Page:
    """Return the page of one run. video: URL."""
    settings = run.settings
    sections = [
        Section("learning", "Did it learn?", "Drag in a plot to zoom. Double-click to zoom out.", learning(run)),
        _change_section(run),
        findings_section(settings.findings, finding_plots(settings.findings)),
        _left_out_section(run),
        Section("video", "What does it look like?", video=video),
        _goal_section(run),
        Section("health", "Is it healthy?", HEALTH_TEXT, health(run)),
        Section("speed", "How fast?", "The wall time of the run until its last record.", tables=[_time_table(run)]),
        _option_section(run),
        Section("machine", "Task and machine", tables=[_task_table(run)]),
    ]
    return Page(
        run.title,
        f"{run.title} · {settings.variant} · recipe {settings.recipe} · {readable_path(run.path)}",
        verdict(run),
        [section for section in sections if not section.is_empty or section.key == "goals"],
        _tiles(run),
        warnings_of(run),
    )


def findings_page(environment: str, findings: Sequence[Finding], plots: Sequence[Plot]) -> Page:
    """Return the page of what the first steps of a task show, without a run."""
    title = f"Structure of {environment}"
    headline = Verdict("unknown", title, "Found in the first steps, and not declared.")
    return Page(title, "hindsight-rl infer", headline, [findings_section(findings, plots)])


def findings_section(findings: Sequence[Finding], plots: Sequence[Plot]) -> Section:
    """Return the plots of what the steps show, and each sentence, folded into a table."""
    rows = [(finding.kind, f"{finding.name} {finding.verdict}", finding.reason) for finding in findings]
    text = "What the steps show about the task, and the figures that decide."
    tables = [Table(("", "finding", "why"), rows)]
    return Section("structure", "What was found about the task?", text, plots, tables=tables)


def link(path: str | Path) -> str:
    """Return a relative path as the URL of a link, whatever characters it has."""
    return quote(os.fsencode(path))


def _tiles(run: Run) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the numbers at the top of the page, those that were recorded."""
    tiles = [
        ("success", f"{run.last('test/success_rate'):.0%}", f"{success_interval(run)}, last evaluation"),
        ("final distance", f"{run.last('test/final_distance'):.3g}", "in units of the goal, mean of the last evaluation"),
        ("environment steps", f"{run.last('env_steps') + np.nan_to_num(run.check_steps):,.0f}", _steps_text(run)),
        ("updates", f"{run.last('updates'):,.0f}", _update_counts(run)),
        ("time", duration(run.last("seconds")), "of collecting and updating"),
    ]
    return [tile for tile in tiles if "nan" not in tile[1]]


def _steps_text(run: Run) -> str:
    """Return how many of the environment steps are of training and before it, and in how many episodes training was."""
    check = "those before it are unknown" if math.isnan(run.check_steps) else f"{run.check_steps:,.0f} before it"
    return f"{run.last('env_steps'):,.0f} of training in {run.last('episodes'):,.0f} episodes; {check}"


def _update_counts(run: Run) -> str:
    """Return of which the updates consist; "" if that was not recorded."""
    updates, offline, catch_up = (run.last(name) for name in ("updates", "offline_updates", "catch_up_updates"))
    regular, rate = updates - offline - catch_up, run.options.updates_per_step
    if math.isnan(regular) or not rate:
        return ""
    some_planned = run.options.planned_updates < 1
    parts = [f"{rate:g} for each of {regular / rate:,.0f} training steps"] if regular and not some_planned else []
    parts += [f"{regular:,.0f} with {rate:g} for each training step, fewer while paths are planned"] * some_planned
    parts += [f"{catch_up:,.0f} with which new agents caught up"] if catch_up else []
    parts += [f"{offline:,.0f} from demonstrations alone"] if offline else []
    return ", ".join(parts) or "none yet"


def _change_section(run: Run) -> Section:
    """Return the table of the options that changed during the run, and of new agents, with the reasons."""
    rows = []
    for change in run.changes:
        texts = [(f"{c.option}: {format_value(c.before)} → {format_value(c.value)}", c.reason) for c in change.changes]
        if change.new_agent:
            texts.append(("a new agent takes over, and learns from the stored episodes", change.new_agent))
        rows += [(f"{change.env_steps:,.0f}", *text) for text in by_reason(texts)]
    text = (
        "The program looks for the structure of the task in the steps so far. Vertical lines mark these steps in the plots."
    )
    return Section("changes", "What changed, and why?", text, tables=[Table(("step", "what changed", "why"), rows)])


def _left_out_section(run: Run) -> Section:
    """Return what the program did not find about the task, and what it found that contradicts other options."""
    settings = run.settings
    rows = [("not found", text) for text in settings.not_found] + [("not used", text) for text in settings.not_used]
    text = "What the steps so far do not show, and what they show, but other options exclude."
    return Section("left-out", "What was not found or is not used?", text, tables=[Table(("", "what, and why"), rows)])


def _goal_section(run: Run) -> Section:
    """Return the maps of the goals, and a sentence about dimensions of the goals that do not vary."""
    maps, text = goal_maps(run), constant_dimensions(run) or "No goal was evaluated yet." * (not run.evaluated)
    if maps:
        text += f" Shown: the evaluation at the slider, and earlier ones until there are {MIN_SHOWN} evaluation episodes."
        text += " Grey: training episodes up to there."
    if run.n_evaluated > MAX_EPISODES:
        text += f" The maps have {MAX_EPISODES:,} of {run.n_evaluated:,} evaluation episodes, evenly spaced."
    return Section("goals", "Where does it succeed?", text, maps)


def _time_table(run: Run) -> Table:
    """Return the wall time of the run by part, and the speed of collecting and updating."""
    rows, total = [], 0.0
    for part, count in TIME_PARTS.items():
        seconds = run.last(f"{part}_seconds")
        speed = f"{run.last(count) / seconds:,.0f} {count.replace('_', ' ')} per second" if count and seconds > 0 else ""
        rows.append((part, "not recorded" if math.isnan(seconds) else f"{seconds:,.1f} s", speed))
        total += 0.0 if math.isnan(seconds) else seconds
    in_words = f" ({duration(total)})" if total >= 120 else ""
    return Table(("part", "time", "speed"), [*rows, ("in all", f"{total:,.1f} s{in_words}", "")])


def _option_section(run: Run) -> Section:
    """Return the options that differ from their default, and all options, folded."""
    explained, options, reasons = run.settings.explained, run.options.to_dict(), run.settings.reasons
    rows = {name: _option_row(name, options[name], explained.get(name, {}), reasons.get(name, "")) for name in options}
    text = (
        "Options that you chose or that differ from their default, with their source: you, the recipe, the task (and why), "
        "or the default of the command line."
    )
    changed = [row for name, row in rows.items() if _is_changed(options[name], explained.get(name, {}))]
    folded = Table(COLUMNS, list(rows.values()))
    return Section("options", "Settings", text, tables=[Table(COLUMNS, changed)], folded=folded)


def _is_changed(value: Any, facts: Mapping[str, Any]) -> bool:
    """Return whether an option was given or differs from its default."""
    return facts.get("source") == "given" or facts.get("default", value) != value


def _option_row(name: str, value: Any, facts: Mapping[str, Any], reason: str) -> tuple[str, str, str, str]:
    """Return name, value, source and meaning. The source names the default and the recipe's value if they differ."""
    others = [f"{key} {format_value(facts[key])}" for key in ("default", "recipe") if facts.get(key, value) != value]
    source = str(facts.get("source", "default"))
    source = " ".join(filter(None, (SOURCE_NAMES.get(source, source), f"({', '.join(others)})" if others else "")))
    return name, format_value(value), f"{source}: {reason}" if reason else source, str(facts.get("meaning", ""))


def _task_table(run: Run) -> Table:
    spec, machine = run.settings.spec, run.settings.machine.facts()
    task = {
        "environment": run.environment,
        "steps per episode, at most": spec.max_episode_steps,
        "reward of a step": reward_range(spec.reward_low, spec.reward_high, "range unknown"),
    }
    return Table(("", "value"), [(name, format_value(value)) for name, value in (task | machine).items()])


def goal_maps(run: Run) -> list[Plot]:
    """Return maps of the first dimension of the goals that varies against the others that vary.

    A single varying dimension is drawn against the environment steps. Goals that do not vary have no map.
    """
    columns = varying_columns(_goals(run.evaluated, "desired_goal"))
    return [_map(run, columns[0], up) for up in columns[1:] or columns[:1]]


def varying_columns(goals: Array) -> list[int]:
    """Return the columns of goals (N, d) that vary: their lowest and highest value differ in the first three digits."""
    is_finite = np.isfinite(goals)
    lowest = goals.min(0, initial=np.inf, where=is_finite)
    highest = goals.max(0, initial=-np.inf, where=is_finite)
    bounds = list(zip(lowest.tolist(), highest.tolist(), strict=True))
    return [i for i, (low, high) in enumerate(bounds) if low < high and f"{low:.3g}" != f"{high:.3g}"]


def constant_dimensions(run: Run) -> str:
    """Return sentences such as "goal[2] is 0.425 everywhere.", one for each dimension of the goals that does not vary."""
    goals = _goals(run.evaluated, "desired_goal")
    constant = sorted(set(range(goals.shape[1])) - set(varying_columns(goals))) if len(goals) else []
    return " ".join(f"goal[{i}] is {goals[0, i]:.3g} everywhere." for i in constant)


def jittered(values: Array, ratio: float) -> Array:
    """Return whole numbers moved by less than 0.1, so that equal points are visible.

    Other numbers are returned as they are. ratio: one of JITTER_STEPS.
    """
    if not is_whole(values):
        return values
    return np.asarray(values + JITTER * (np.arange(len(values)) * ratio % 1.0 - 0.5))


def is_whole(values: Array) -> bool:
    """Return whether all finite values are whole numbers."""
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all())


def _map(run: Run, across: int, up: int) -> Plot:
    """Return the map of two dimensions of the goals, or of one against the environment steps if both are the same."""
    y_title = "environment steps" if up == across else f"goal[{up}]"
    caption = "Desired goals of evaluations: success (blue), failure (red). Grey: goals at the end of training episodes."
    desired = _goals(run.evaluated, "desired_goal")
    if is_whole(desired[:, across]) or is_whole(desired[:, up]):
        caption += " Whole numbers are moved by less than 0.1, so that equal points are visible."
    goals = {
        "x_title": f"goal[{across}]",
        "y_title": y_title,
        "min_shown": MIN_SHOWN,
        "evaluated": _points(_thinned(run.evaluated), "desired_goal", across, up),
        "trained": _points(_thinned(run.trained), "final_goal", across, up),
    }
    title = f"Success over goals: goal[{across}] and {y_title}"
    return Plot(f"goals-{across}-{up}", title, caption, goals=goals)


def _points(episodes: Sequence[EpisodeFacts], name: str, across: int, up: int) -> dict[str, Any]:
    """Return the points of a map. name: of the goal that is drawn."""
    goals, steps = _goals(episodes, name), np.array([episode.env_steps for episode in episodes])
    return {
        "x": rounded(jittered(goals[:, across], JITTER_STEPS[0])),
        "y": rounded(steps if up == across else jittered(goals[:, up], JITTER_STEPS[1])),
        "steps": steps.tolist(),
        "success": [episode.success for episode in episodes],
        "distance": [episode.final_distance for episode in episodes],
    }


def _goals(episodes: Sequence[EpisodeFacts], name: str) -> Array:
    """Return the goals, (N, d), with d = GOAL_DIMENSIONS if there are none. NaN if an episode has no such goal."""
    size = len(episodes[0].desired_goal) if episodes else GOAL_DIMENSIONS
    goals = [getattr(episode, name) or (np.nan,) * size for episode in episodes]
    return np.array(goals, np.float64).reshape(len(episodes), size)


def _thinned(episodes: Sequence[EpisodeFacts]) -> Sequence[EpisodeFacts]:
    """Return at most MAX_EPISODES episodes, evenly spaced over the run."""
    count = min(len(episodes), MAX_EPISODES)
    return [episodes[row] for row in np.linspace(0, len(episodes) - 1, count).astype(np.int64)]
