"""What each option of a run means and where its value comes from, for readers of the run's folder."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..options import Settings, option_fields

PARTS = ("agent", "hindsight", "collecting", "training")  # of Settings.records(), in their order


def explain(settings: Settings, command_defaults: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return for each option its part, meaning, default, what chose its value, and the recipe's value if it has one.

    command_defaults: options whose value is the default of the command line, which differs from that in Python.
    """
    explained = {}
    for part, record in zip(PARTS, settings.records(), strict=True):
        for option in option_fields(type(record)):
            facts = {"part": part, "meaning": option.description, "default": option.default}
            facts["source"] = "command" if option.name in command_defaults else settings.source(option.name)
            if option.name in settings.from_recipe:
                facts["recipe"] = settings.from_recipe[option.name]
            explained[option.name] = facts
    return explained
