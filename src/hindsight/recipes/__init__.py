"""Tuned settings per environment family, as TOML: one file a family, chosen by the environment's id."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import FileError
from .files import RECIPES, names_in, read_toml


@dataclass(frozen=True)
class Recipe:
    """Settings for a family of environments.

    environments: patterns of ids it is chosen for. agent: the one it was tuned for. options: for every agent that has them.
    agent_options: by agent, on top. A value given by the user overrides both. discrete_agent: instead of `agent` where the
    actions are Discrete, for a recipe that serves tasks of both kinds. from_spec: what it leaves open is chosen from the
    task's sizes and time limit (see `recipes.fit`). reasons: of options that were chosen so, their value and why, in words.
    """

    name: str
    environments: tuple[str, ...]
    agent: str
    options: Mapping[str, Any]
    agent_options: Mapping[str, Mapping[str, Any]]
    discrete_agent: str | None = None
    from_spec: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def env_options(self) -> Sequence[str]:
        """What the environment is made with, unless the user says."""
        chosen: Sequence[str] = self.options.get("env_options", ())
        return chosen

    def agent_for(self, is_discrete: bool) -> str:
        """The agent to take for a task, whose actions are Discrete or not."""
        return self.discrete_agent if self.discrete_agent and is_discrete else self.agent

    def options_for(self, agent: str) -> dict[str, Any]:
        """The recipe's options with those of `agent` on top."""
        return dict(self.options) | dict(self.agent_options.get(agent, {}))


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return names_in(RECIPES)


def choose_recipe(name_or_path: str | None, environment_id: str | None) -> Recipe:
    """The recipe that is named, or without a name the one for this environment."""
    return load_recipe(name_or_path) if name_or_path else find_recipe(environment_id)


def find_recipe(environment_id: str | None) -> Recipe:
    """The recipe whose patterns match the id, whatever module stands before it as in "module:id"; "default" without one."""
    written = (environment_id or "").rpartition(":")[2]
    for name in recipe_names():
        recipe = load_recipe(name)
        if any(fnmatch.fnmatchcase(written, pattern) for pattern in recipe.environments):
            return recipe
    return load_recipe("default")


def load_recipe(name_or_path: str) -> Recipe:
    """A built-in recipe by its name, or a TOML file of your own by its path."""
    name, data = read_toml("recipe", name_or_path, RECIPES)
    environments, agent, options = data.pop("environments", []), data.pop("agent", "td3"), data.pop("options", {})
    discrete_agent, from_spec = data.pop("discrete_agent", None), data.pop("from_spec", False)
    tables = {"options": options, **data}
    if (
        not isinstance(environments, list)
        or not isinstance(agent, str)
        or not isinstance(discrete_agent, str | None)
        or not isinstance(from_spec, bool)
        or not all(isinstance(t, dict) for t in tables.values())
    ):
        raise FileError(
            f"{name_or_path}: a recipe holds `environments` (a list of patterns), `agent` and perhaps `discrete_agent` "
            f"(names), perhaps `from_spec` (true or false), and the tables [options] and [<agent>] with options; found "
            f"{', '.join(data) or 'something else'}"
        )
    return Recipe(name, tuple(environments), agent, options, data, discrete_agent, from_spec)
