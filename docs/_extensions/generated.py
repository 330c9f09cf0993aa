"""Directives whose content is read from the package, so that no option, command or recipe is written down twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from importlib import resources
from typing import Any, get_type_hints

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hindsight import cli, recipes
from hindsight.options import (
    AGENT_OPTIONS,
    ActorCriticOptions,
    AgentOptions,
    ChoiceOptions,
    ReplayOptions,
    RolloutOptions,
    TrainingOptions,
)
from hindsight.training.explain import field_comments

RECORDS: dict[str, type] = {
    **AGENT_OPTIONS,
    "replay": ReplayOptions,
    "rollout": RolloutOptions,
    "training": TrainingOptions,
}
SETTLED_LATER = {"agent", "recipe"}  # of `train`: by the environment, whatever the record says
SHARED = {
    ChoiceOptions: "Shared by the agents for discrete actions",
    ActorCriticOptions: "Shared by the agents for continuous actions",
    AgentOptions: "Shared by all agents",
}


def option_groups(record: type) -> Iterator[tuple[str, list[Field[Any]]]]:
    """The options of a record by the class that has the last word on them, the record's own first."""
    names = {kind: name for name, kind in AGENT_OPTIONS.items()}
    known = {option.name: option for option in fields(record)}
    for kind in record.__mro__[:-1]:
        own = [known.pop(name) for name in vars(kind).get("__annotations__", {}) if name in known]
        if own:
            yield "" if kind is record else SHARED.get(kind) or f"As of {names[kind]}", own


def option_table(record: type, options: Sequence[Field[Any]]) -> str:
    """A Markdown table of options: name, default, meaning."""
    meanings = field_comments(record)
    return _table(
        ("option", "default", "meaning"),
        [(f"`{o.name}`", _code(o.default), meanings.get(o.name, "")) for o in options],
    )


def arguments_table(record: type) -> str:
    """A Markdown table of what a command takes: a name without dashes is a place, with dashes an option."""
    meanings, rows = field_comments(record), []
    for argument in fields(record):
        is_place = argument.default is MISSING
        kind = get_type_hints(record)[argument.name]
        name = argument.name.upper() if is_place else f"--{argument.name.replace('_', '-')}"
        is_told = is_place or kind is bool or argument.default is None or argument.name in SETTLED_LATER
        rows.append((f"`{name}`", "" if is_told else _code(argument.default), meanings.get(argument.name, "")))
    return _table(("argument", "default", "meaning"), rows)


def commands_text() -> str:
    """A section for each command of the command line."""
    parts = []
    for name, command in cli.COMMANDS.items():
        record = getattr(cli, f"{name.title()}Arguments", None)
        parts.append(f"## {command.__doc__ or name}\n")
        if record is not None:
            parts.append(f"{record.__doc__}\n\n{arguments_table(record) if fields(record) else 'It takes no arguments.'}\n")
    return "\n".join(parts)


def recipes_text() -> str:
    """A section for each built-in recipe: whose it is, and the file."""
    parts = []
    for name in recipes.recipe_names():
        recipe = recipes.load_recipe(name)
        patterns = ", ".join(f"`{pattern}`" for pattern in recipe.environments) or "environments that no other recipe names"
        text = (resources.files(recipes) / f"{name}.toml").read_text(encoding="utf-8")
        parts.append(f"## {name}\n\nFor {patterns}.\n\n```toml\n{text}```\n")
    return "\n".join(parts)


class Generated(SphinxDirective):
    """A directive whose text, in Markdown, a method makes."""

    def run(self) -> list[nodes.Node]:
        """Read the text as if it stood in the page."""
        return self.parse_text_to_nodes(self.text(), allow_section_headings=True)

    def text(self) -> str:
        """The Markdown."""
        raise NotImplementedError


class Options(Generated):
    """```{options} NAME: the options of an agent, or of replay, rollout or training."""

    required_arguments = 1

    def text(self) -> str:
        """A table for each class of options."""
        record = RECORDS[self.arguments[0]]
        groups = [(f"**{title}**" if title else "", options) for title, options in option_groups(record)]
        return "\n\n".join(f"{title}\n\n{option_table(record, options)}" for title, options in groups)


class Commands(Generated):
    """```{commands}: every command and what it takes."""

    def text(self) -> str:
        """A section for each."""
        return commands_text()


class Recipes(Generated):
    """```{recipes}: every built-in recipe, as it is."""

    def text(self) -> str:
        """A section for each."""
        return recipes_text()


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    for name, directive in (("options", Options), ("commands", Commands), ("recipes", Recipes)):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else "none"
