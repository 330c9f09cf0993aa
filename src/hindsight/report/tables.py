"""The tables of a report: every option with its meaning and origin, the task, the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .run import Run

PARTS = {"hindsight": "Hindsight and replay", "agent": "Agent", "collecting": "Collecting", "training": "Training"}


def option_tables(run: Run) -> str:
    """Every option, by part: its value, its default where that is another, who chose it, what it means."""
    explained: Mapping[str, Mapping[str, Any]] = run.settings.get("explained", {})
    if not explained:
        return _table(("option", "value"), ((name, say(value)) for name, value in sorted(run.options.items())))
    return "".join(
        f"<h3>{title}</h3>" + _options(run, {name: facts for name, facts in explained.items() if facts.get("part") == part})
        for part, title in PARTS.items()
    )


def task_table(run: Run) -> str:
    """The environment as training saw it."""
    spec = run.settings["spec"]
    rows = [("environment", run.environment), ("episode ends after", f"{say(spec.get('max_episode_steps'))} steps")]
    rows += [(name, _array(spec[name])) for name in ("observation", "goal", "action") if name in spec]
    rows.append(("reward", f"{say(spec.get('reward_low'))} to {say(spec.get('reward_high'))}"))
    return _table(("task", ""), rows)


def machine_table(run: Run) -> str:
    """Where the run was made, and with what."""
    machine = dict(run.settings.get("machine", {}))
    versions = machine.pop("versions", {})
    return _table(("machine", ""), [(name, say(value)) for name, value in {**machine, **versions}.items()])


def origin(value: Any, facts: Mapping[str, Any]) -> str:
    """Who chose a value: "you", "recipe", or "" for the default."""
    if "recipe" in facts:
        return "recipe" if value == facts["recipe"] else "you"
    return "" if value == facts.get("default") else "you"


def _options(run: Run, explained: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, facts in explained.items():
        value = run.options.get(name)
        chosen = origin(value, facts)
        other = [f"default {say(facts.get('default'))}"] if value != facts.get("default") else []
        other += [f"recipe {say(facts['recipe'])}"] if chosen == "you" and "recipe" in facts else []
        cells = (f"<code>{escape(name)}</code>", f"<b>{escape(say(value))}</b>" if chosen else escape(say(value)))
        said = f"<span class='from'>{chosen}</span> <span class='muted'>{escape(', '.join(other))}</span>" if chosen else ""
        rows.append(
            f"<tr{' class=changed' if chosen else ''}><th>{cells[0]}</th><td>{cells[1]}</td><td>{said}</td>"
            f"<td>{escape(str(facts.get('meaning', '')))}</td></tr>"
        )
    head = "<thead><tr><th>option</th><th>value</th><th>chosen by</th><th>meaning</th></tr></thead>"
    return f"<div class='scroll'><table class='options'>{head}<tbody>{''.join(rows)}</tbody></table></div>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(c)}</td>' for c in row[1:])}</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"


def _array(spec: Mapping[str, Any]) -> str:
    kind = f"one of {spec['n_values']}" if spec.get("n_values") is not None else f"{tuple(spec.get('shape', ()))}"
    return f"{kind} {spec.get('dtype', '')}"


def say(value: Any) -> str:
    """A value as a person writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{value:,.0f}"
    if isinstance(value, list):
        return " ".join(map(say, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"
