"""The HTML of a page, and the page of one run: verdict, numbers, plots, settings."""

from __future__ import annotations

import base64
import json
import math
import mimetypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from .figures import health, learning, speed
from .goal_maps import MAX_EPISODES, MIN_SHOWN, GoalMap, constant_numbers, goal_maps
from .plot import Plot
from .run import Run, find_video, readable_path
from .verdict import CHECKED, Level, Verdict, duration, verdict, warnings_of

SIGNS: dict[Level, str] = {"good": "✓", "partly": "◐", "bad": "✗", "unknown": "?"}
SCRIPT_NAME = "plotly.min.js"
TIME_PARTS = {
    "starting": "start_seconds",
    "collecting": "collect_seconds",
    "updating": "update_seconds",
    "evaluating": "evaluate_seconds",
    "writing": "write_seconds",
}


@dataclass(frozen=True)
class PageOptions:
    """How a page is made.

    plotly: Plotly's script if the page contains it, None if the page loads SCRIPT_NAME from its own folder.
    refresh: seconds after which a browser loads the page again, None if the run has ended.
    """

    plotly: str | None = None
    refresh: int | None = None


@dataclass(frozen=True)
class Section:
    """A heading, a sentence as plain text, and a body as HTML. plots: those that the body has places for."""

    key: str
    title: str
    text: str
    body: str
    plots: Sequence[Plot | GoalMap] = ()

    def to_html(self) -> str:
        """Return the section as HTML."""
        heading = f"<h2 id='{self.key}'>{escape(self.title)}</h2><p>{escape(self.text)}</p>"
        return f"<section>{heading}{self.body}</section>"


def run_page(run: Run, options: PageOptions) -> str:
    """Return the HTML page of one run."""
    about = f"{run.title} · {run.settings.variant} · recipe {run.settings.recipe} · {readable_path(run.path)}"
    sections = [
        plot_section("learning", "Did it learn?", "Drag in a plot to zoom. Double-click to zoom out.", learning(run)),
        _video_section(run, options),
        _goal_section(run),
        plot_section("health", "Is it healthy?", "Thin: as recorded. Thick: moving mean.", health(run), "small"),
        plot_section("speed", "How fast?", _time_text(run), speed(run), "small"),
        Section("options", "Settings", "Changed options, with who chose them: you, or the recipe.", _settings(run)),
        Section("machine", "Task and machine", "", f"<div class='tables'>{_task_table(run)}{_machine_table(run)}</div>"),
    ]
    return page(run.title, about, verdict(run), _tiles(run) + _warnings(warnings_of(run)), sections, options)


def page(title: str, about: str, result: Verdict, top: str, sections: Sequence[Section], options: PageOptions) -> str:
    """Return a whole page. Sections without a body are left out. about: plain text. top: HTML above the first section."""
    sections = [section for section in sections if section.body]
    plots = [plot.to_json() for section in sections for plot in section.plots]
    return Template(_file("page.html")).substitute(
        refresh=f"<meta http-equiv='refresh' content='{options.refresh}'>" if options.refresh else "",
        title=escape(title),
        about=escape(about),
        level=result.level,
        sign=SIGNS[result.level],
        headline=escape(result.title),
        text=escape(result.text),
        top=top,
        links="".join(f"<a href='#{section.key}'>{escape(section.title)}</a>" for section in sections),
        sections="".join(section.to_html() for section in sections),
        plots=json.dumps(plots, allow_nan=False).replace("<", "\\u003c"),
        plotly=f"<script>{options.plotly}</script>" if options.plotly else f"<script src='{SCRIPT_NAME}'></script>",
        script=_file("page.js"),
    )


def plot_section(key: str, title: str, text: str, plots: Sequence[Plot | GoalMap], size: str = "") -> Section:
    """Return a section of plots. size: CSS class of the plots."""
    body = "".join(_figure(plot) for plot in plots)
    return Section(key, title, text, body and f"<div class='plots {size}'>{body}</div>", plots)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return an HTML table of plain text. The first cell of a row is its heading. kind: CSS class."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(c)}</td>' for c in row[1:])}</tr>" for row in rows)
    return f"<div class='scroll'><table class='{kind}'><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"


def format_value(value: Any) -> str:
    """Return the value of an option as text."""
    if value is None or value in ("", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def link(path: str | Path) -> str:
    """Return a relative path as the URL of a link, whatever characters it has."""
    return quote(os.fsencode(path))


def _warnings(sentences: Sequence[str]) -> str:
    if not sentences:
        return f"<div class='warnings'><b>No warnings.</b> Checked, as far as recorded: {CHECKED}.</div>"
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<div class='warnings some'><b>⚠ Warnings</b><ul>{items}</ul></div>"


def _figure(plot: Plot | GoalMap) -> str:
    kind = "plot map" if isinstance(plot, GoalMap) else "plot"
    return (
        f"<figure><figcaption><b>{escape(plot.title)}</b><span>{escape(plot.caption)}</span></figcaption>"
        f"<div class='{kind}' id='plot-{plot.key}' role='img' aria-label='{escape(plot.title)}'></div></figure>"
    )


def _tiles(run: Run) -> str:
    """Return the numbers at the top of the page, those that were recorded."""
    low, high, options = run.last("test/success_low"), run.last("test/success_high"), run.options
    rate = (
        ""
        if options.updates_per_step is None
        else f"{options.updates_per_step:g} per step after {options.random_steps:,} steps"
    )
    tiles = [
        ("success", f"{run.last('test/success_rate'):.0%}", f"95 % interval {low:.0%} to {high:.0%}, last evaluation"),
        (
            "final distance",
            f"{run.last('test/final_distance'):.3g}",
            "to the goal, in its units; mean of the last evaluation",
        ),
        ("environment steps", f"{run.last('env_steps'):,.0f}", f"in {run.last('episodes'):,.0f} episodes"),
        ("updates", f"{run.last('updates'):,.0f}", rate),
        ("time", duration(run.last("seconds")), "of collecting and updating"),
    ]
    return f"<div class='tiles'>{''.join(_tile(*tile) for tile in tiles if 'nan' not in tile[1])}</div>"


def _tile(label: str, value: str, detail: str) -> str:
    parts = {"label": label, "value": value, "detail": detail}
    return f"<div class='tile'>{''.join(f'<div class={kind}>{escape(text)}</div>' for kind, text in parts.items())}</div>"


def _time_text(run: Run) -> str:
    """Return the wall time by part, as far as it was recorded."""
    parts = {name: run.last(metric) for name, metric in TIME_PARTS.items()}
    recorded = {name: seconds for name, seconds in parts.items() if not math.isnan(seconds)}
    missing = [name for name in parts if name not in recorded]
    total = duration(sum(recorded.values()))
    text = f"Wall time until the last record: {total}. " + ", ".join(
        f"{name} {duration(s)}" for name, s in recorded.items()
    )
    return f"{text}.{' Not recorded: ' * bool(missing)}{', '.join(missing)}{'.' * bool(missing)}"


def _goal_section(run: Run) -> Section:
    maps = goal_maps(run)
    text = f"{constant_numbers(run)} Shown: the evaluation at the slider, and at least {MIN_SHOWN} episodes up to it."
    if len(run.evaluated) > MAX_EPISODES:
        text += f" The maps have {MAX_EPISODES:,} of {len(run.evaluated):,} evaluation episodes, evenly spaced."
    slider = (
        "<div class='slider'><label for='slider'>evaluation at</label><input type='range' id='slider' min='0'>"
        "<output id='slider-value' for='slider'></output></div>"
    )
    section = plot_section("goals", "Where does it succeed?", text.strip(), maps)
    return Section(section.key, section.title, section.text, section.body and slider + section.body, maps)


def _video_section(run: Run, options: PageOptions) -> Section:
    """Return the video of the run's folder. A page with Plotly's script inside contains the video too."""
    video = find_video(run.path)
    if video is None:
        return Section("video", "", "", "")
    kind, source = mimetypes.guess_type(video.name)[0] or "image/webp", link(video.name)
    if options.plotly is not None:
        source = f"data:{kind};base64,{base64.b64encode(video.read_bytes()).decode()}"
    is_video = kind.startswith("video")
    body = (
        f"<video src='{source}' controls loop muted></video>"
        if is_video
        else f"<img class='video' src='{source}' alt='episodes'>"
    )
    return Section("video", "What does it look like?", readable_path(video.name), body)


def _settings(run: Run) -> str:
    """Return the options that differ from their default, and all options, folded."""
    options, explained = run.options.to_dict(), run.settings.explained
    rows = {name: _option_row(name, value, explained.get(name, {})) for name, value in options.items()}
    head = ("option", "value", "chosen by", "meaning")
    changed = table(head, [row for row in rows.values() if row[2]], "options")
    return f"{changed}<details><summary>All {len(rows)} options</summary>{table(head, rows.values(), 'options')}</details>"


def _option_row(name: str, value: Any, facts: Mapping[str, Any]) -> tuple[str, str, str, str]:
    who = origin(value, facts)
    others = {key: facts[key] for key in ("default", "recipe") if who and key in facts and facts[key] != value}
    known = ", ".join(f"{key} {format_value(other)}" for key, other in others.items())
    return name, format_value(value), f"{who} ({known})" if known else who, str(facts.get("meaning", ""))


def origin(value: Any, facts: Mapping[str, Any]) -> str:
    """Return who chose the value of an option: "you", "recipe", or "" for the default."""
    if "recipe" in facts:
        return "recipe" if value == facts["recipe"] else "you"
    return "" if not facts or value == facts.get("default") else "you"


def _task_table(run: Run) -> str:
    spec = run.settings.spec
    rows = [
        ("environment", run.environment),
        ("time limit of an episode", f"{format_value(spec.max_episode_steps)} (steps)"),
    ]
    for name, array in (("observation", spec.observation), ("goal", spec.goal), ("action", spec.action)):
        if array:
            numbers = f"{' x '.join(map(str, array.shape)) or 1} numbers, {array.dtype}"
            rows.append((name, numbers if array.n_values is None else f"one of {array.n_values} values"))
    return table(("task", ""), [*rows, ("reward of a step", f"{spec.reward_low:g} to {spec.reward_high:g}")])


def _machine_table(run: Run) -> str:
    return table(("machine", ""), [(name, format_value(value)) for name, value in run.settings.machine.facts().items()])


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
