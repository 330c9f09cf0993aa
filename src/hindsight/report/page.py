"""The page: headline, plots, tables, in one HTML text."""

from __future__ import annotations

import base64
import json
import math
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from .figures import health, learning, speed
from .goals import coverage, goal_maps
from .panel import Panel
from .run import Run
from .tables import machine_table, option_tables, task_table
from .verdict import Level, Verdict, duration, signs, verdict

SIGNS: dict[Level, str] = {"good": "✓", "partly": "◐", "bad": "✗", "unknown": "?"}
SCRIPT_NAME = "plotly.min.js"


@dataclass(frozen=True)
class Form:
    """How a page is made.

    plotly: Plotly's script, to lie inside the page; None where the page finds it in SCRIPT_NAME beside itself. refresh:
    seconds after which a page of a run under way is read anew; None for one that is done.
    """

    plotly: str | None = None
    refresh: int | None = None


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and what stands under them, as HTML. panels: of those that stand in it."""

    key: str
    title: str
    told: str
    body: str
    panels: Sequence[Panel] = ()


def run_page(run: Run, form: Form) -> str:
    """The page of one run."""
    about = f"{run.agent} on {run.environment}, recipe {run.settings.get('recipe', 'none')}, seed {run.seed} · {run.path}"
    sections = [
        plots("learning", "Did it learn?", "In any plot: drag to zoom, double-click to go back.", learning(run)),
        _film(run, form),
        _goals(run),
        plots("health", "Is it healthy?", "Faint: as recorded. Bold: moving means.", health(run), "small"),
        plots("speed", "How fast?", "Since the record before.", speed(run)),
        Section("options", "Settings", _chosen(run), _only() + option_tables(run)),
        Section("machine", "Task and machine", "", f"<div class='tables'>{task_table(run)}{machine_table(run)}</div>"),
    ]
    title = f"{run.environment} · {run.agent} · seed {run.seed}"
    return page(title, head(about, verdict(run)) + _tiles(run) + told_signs(signs(run)), sections, form)


def page(title: str, top: str, sections: Sequence[Section], form: Form) -> str:
    """The whole text. `top` and the bodies are HTML; titles are plain text."""
    sections = [section for section in sections if section.body]
    panels = [panel.to_json() for section in sections for panel in section.panels]
    links = "".join(f"<a href='#{section.key}'>{escape(section.title)}</a>" for section in sections)
    bodies = "".join(
        f"<section><h2 id='{section.key}'>{escape(section.title)}</h2><p>{section.told}</p>{section.body}</section>"
        for section in sections
    )
    again = f"<meta http-equiv='refresh' content='{form.refresh}'>" if form.refresh else ""
    script = f"<script src='{SCRIPT_NAME}'></script>" if form.plotly is None else f"<script>{form.plotly}</script>"
    data = json.dumps(panels, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>{again}<link rel='icon' href='data:,'>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{escape(title)}</title>"
        f"<style>{_file('style.css')}</style></head><body><main>{top}<nav>{links}</nav>{_MISSING}{bodies}</main>"
        f"<script type='application/json' id='panels'>{data}</script>{script}<script>{_file('page.js')}</script>"
        "</body></html>"
    )


_MISSING = (
    f"<p id='missing' class='missing' hidden>The plots need the file {SCRIPT_NAME} beside this page: copy it along, or "
    "make a page that needs none with <code>hindsight report RUN --standalone</code>.</p>"
)


def head(about: str, said: Verdict) -> str:
    """The headline."""
    return (
        f"<header><p class='about'>{escape(about)}</p><h1 class='{said.level}'>"
        f"<span class='sign'>{SIGNS[said.level]}</span>{escape(said.title)}</h1>"
        f"<p class='told'>{escape(said.text)}</p></header>"
    )


def told_signs(sentences: Sequence[str]) -> str:
    """What looks wrong, or that nothing does."""
    if not sentences:
        return "<div class='signs'><b>Healthy.</b> No sign of divergence in what was recorded.</div>"
    found = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    what = "One sign" if len(sentences) == 1 else f"{len(sentences)} signs"
    return f"<div class='signs some'><b>⚠ {what} that something is wrong.</b><ul>{found}</ul></div>"


def plots(key: str, title: str, told: str, panels: Sequence[Panel], size: str = "") -> Section:
    """A section of plots; `told` is plain text."""
    body = "".join(_figure(panel) for panel in panels)
    return Section(key, title, escape(told), body and f"<div class='panels {size}'>{body}</div>", panels)


def _figure(panel: Panel) -> str:
    kind = "plot map" if panel.goals or panel.key == "coverage" else "plot"
    return (
        f"<figure><figcaption><b>{escape(panel.title)}</b><span>{escape(panel.note)}</span></figcaption>"
        f"<div class='{kind}' id='plot-{panel.key}' role='img' aria-label='{escape(panel.title)}'></div></figure>"
    )


def _tiles(run: Run) -> str:
    rate, low, high = (run.last(f"test/{name}") for name in ("success_rate", "success_low", "success_high"))
    seconds, collecting = run.last("seconds"), run.last("collect_seconds")
    tiles = [
        ("success now", f"{rate:.0%}", f"95% interval {low:.0%} to {high:.0%}"),
        ("final distance", f"{run.last('test/final_distance'):.3g}", "mean of the last evaluation"),
        ("environment steps", f"{run.last('env_steps'):,.0f}", f"in {run.last('episodes'):,.0f} episodes"),
        ("updates", f"{run.last('updates'):,.0f}", f"{run.last('updates') / max(run.last('env_steps'), 1):.2g} per step"),
        ("time", duration(seconds), f"{duration(collecting)} collecting, {duration(seconds - collecting)} updating"),
    ]
    if math.isnan(rate):
        tiles = tiles[2:]
    return "<div class='tiles'>" + "".join(_tile(*tile) for tile in tiles if "nan" not in tile[1]) + "</div>"


def _tile(label: str, value: str, detail: str) -> str:
    parts = (("label", label), ("value", value), ("detail", detail))
    return f"<div class='tile'>{''.join(f'<div class={kind}>{text}</div>' for kind, text in parts)}</div>"


def _goals(run: Run) -> Section:
    maps = goal_maps(run)
    made = plots("goals", "Where does it succeed?", coverage(run), maps)
    if not maps:
        return made
    last = len((maps[0].goals or {})["steps"]) - 1
    slider = (
        f"<div class='when'><label for='when'>evaluations up to</label><input type='range' id='when' min='0' max='{last}' "
        f"value='{last}'><output id='when-told' for='when'></output></div>"
    )
    return Section(made.key, made.title, made.told, slider + made.body, maps)


def _film(run: Run, form: Form) -> Section:
    """The video, beside the page, or inside it where the page is to stand alone."""
    if run.video is None:
        return Section("film", "", "", "")
    kind = mimetypes.guess_type(run.video.name)[0] or "image/webp"
    place = escape(run.video.name)
    if form.plotly is not None:
        place = f"data:{kind};base64,{base64.b64encode(run.video.read_bytes()).decode()}"
    if kind.startswith("video"):
        film = f"<video src='{place}' controls loop muted></video>"
    else:
        film = f"<img class='film' src='{place}' alt='episodes'>"
    return Section("film", "What does it look like?", escape(run.video.name), film)


def _chosen(run: Run) -> str:
    recipe = escape(str(run.settings.get("recipe", "")))
    return f"All that decides the run. What is no default is bold, with who chose it: you, or the recipe {recipe}."


def _only() -> str:
    return "<label class='only'><input type='checkbox' id='only'> only what is not a default</label>"


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
