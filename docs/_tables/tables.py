"""Markdown of the options, commands and recipes of the package, and of notebooks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from hindsight_rl import cli, recipes
from hindsight_rl.options import (
    AGENT_OPTIONS,
    OptionField,
    OptionRecord,
    ReplayOptions,
    RolloutOptions,
    TrainingOptions,
    option_fields,
)
from hindsight_rl.recipes import presets

DOCS = Path(__file__).parents[1]
RECORDS: dict[str, type[OptionRecord]] = {
    **AGENT_OPTIONS,
    "replay": ReplayOptions,
    "rollout": RolloutOptions,
    "training": TrainingOptions,
}


def options_text(name: str) -> str:
    """Return a Markdown table for each group of options of a record, those that only this record has first."""
    record, groups = RECORDS[name], {}
    for option in option_fields(record):
        groups.setdefault(option.group, []).append(option)
    titles = sorted(groups, key=lambda title: title != record.model_config.get("title"))
    return "\n\n".join(f"**{title}**\n\n{option_table(groups[title])}" for title in titles)


def option_table(options: Iterable[OptionField]) -> str:
    """Return a Markdown table of options: name, default, meaning."""
    return _table(("option", "default", "meaning"), [(f"`{o.name}`", _code(o.default), o.description) for o in options])


def notebook_text(page: str) -> str:
    """Return a notebook as Markdown: its text, its code, and what it printed. page: its path below docs."""
    notebook = json.loads((DOCS / page).read_text(encoding="utf-8"))
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [f"```text\n{''.join(each['text']).rstrip()}\n```" for each in cell.get("outputs", ())]
    return "\n\n".join(parts)


def commands_text() -> str:
    """Return a section for each command: a summary and a table of its arguments."""
    return "\n\n".join(map(command_text, cli.COMMANDS))


def command_text(name: str) -> str:
    """Return the section of a command."""
    command = cli.COMMANDS[name]
    table = arguments_table(cli.command_parser(name))
    return f"## hindsight-rl {name} {command.usage}\n\n{command.summary[0].upper()}{command.summary[1:]}.\n\n{table}"


def arguments_table(parser: argparse.ArgumentParser) -> str:
    """Return a Markdown table of the arguments of a command: name and meaning, with the default in parentheses."""
    shown = [action for action in parser._actions if action.help not in (None, argparse.SUPPRESS)]  # no public list
    rows = [
        (f"`{', '.join(action.option_strings) or action.metavar}`", str(action.help).replace("%%", "%"))
        for action in shown
        if action.dest != "help"
    ]
    return _table(("argument", "meaning"), rows) if rows else "It takes no arguments."


def recipes_text() -> str:
    """Return a section for each built-in recipe: its environments and its file."""
    return "\n".join(map(recipe_text, recipes.recipe_names()))


def recipe_text(name: str) -> str:
    """Return the section of a recipe."""
    patterns = ", ".join(f"`{pattern}`" for pattern in recipes.load_recipe(name).environments)
    if not patterns:
        is_chosen = name == recipes.find_recipe(None).name
        patterns = (
            "environments that no other recipe names" if is_chosen else f"comparisons. Only `--recipe {name}` selects it"
        )
    text = (resources.files(recipes) / f"{name}.toml").read_text(encoding="utf-8")
    return f"## {name}\n\nFor {patterns}.\n\n```toml\n{text}```\n"


def presets_text() -> str:
    """Return a table of the presets: the feature of a task, the options that follow, and the tasks they come from."""
    found = [presets.load_preset(name) for name in presets.preset_names()]
    rows = [(f"`{each.name}`", each.feature, _preset_options(each), ", ".join(each.tasks)) for each in found]
    return _table(("preset", "feature of the task", "options", "established with"), rows)


def _preset_options(preset: presets.Preset) -> str:
    texts = [f"{name} = {' '.join(value) if isinstance(value, list) else value}" for name, value in preset.options.items()]
    if preset.horizon is not None:
        limits = f"at least {preset.horizon.shortest:g}, at most {presets.LONGEST_HORIZON}"
        texts.append(f"discount: looks {_multiple(preset.horizon)} steps ahead ({limits})")
    for name, count in preset.steps.items():
        bound = f", at most {_multiple(count.most)}" if count.most else ""
        bound += f", at least {count.least}" if count.least > 1 else ""
        bound += f", if that is at most {_multiple(count.unless_above)}" if count.unless_above else ""
        texts.append(f"{name} = {_multiple(count)}{bound}")
    texts += [f"{name} = {_multiple(each)}" for name, each in preset.scaled.items()]
    return "; ".join(texts)


def _multiple(multiple: presets.Multiple) -> str:
    return f"{multiple.factor:g} * {multiple.of}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else "empty"
