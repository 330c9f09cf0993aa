"""Settings are resolved here, once: defaults, then the recipe, then what the user gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import UnknownNameError, nearest
from ..options import AGENT_OPTIONS, Settings, build_settings, coerce, option_types, refuse_unknown
from ..recipes import Recipe


def resolve_settings(recipe: Recipe, agent: str | None, overrides: Mapping[str, Any]) -> Settings:
    """The settings of a run. Raises UnknownNameError and OptionError for a name or a value that cannot be."""
    agent = agent or recipe.agent
    known = option_types(agent)
    _check_recipe(recipe)
    refuse_unknown(set(overrides) - set(known), known, f"agent {agent!r}")
    from_recipe = {k: v for k, v in recipe.options_for(agent).items() if k in known}
    settings = build_settings(agent, recipe.name, from_recipe | dict(overrides))
    found = settings.flat()
    chosen = {name: why for name, why in recipe.reasons.items() if name in from_recipe}
    reasons = [why for name, why in chosen.items() if found[name] == coerce(name, from_recipe[name], known[name])]
    return replace(settings, from_recipe=from_recipe, reasons=tuple(reasons))


def _check_recipe(recipe: Recipe) -> None:
    """Refuse a recipe with a name that means nothing, be it of an agent or of an option."""
    elsewhere = {name for other in AGENT_OPTIONS for name in option_types(other)}
    refuse_unknown(set(recipe.options) - elsewhere, elsewhere, f"recipe {recipe.name!r}")
    for agent, table in recipe.agent_options.items():
        if agent not in AGENT_OPTIONS:
            raise UnknownNameError(
                f"recipe {recipe.name!r} has a table [{agent}], but tables are called options or by an agent."
                f"{nearest(agent, ['options', *AGENT_OPTIONS])}"
            )
        refuse_unknown(set(table) - set(option_types(agent)), option_types(agent), f"recipe {recipe.name!r}, [{agent}]")
