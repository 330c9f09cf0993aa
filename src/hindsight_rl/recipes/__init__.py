"""Recipes: sets of tuned hyperparameters, one TOML file per family of environments."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ..errors import FileError, OptionError
from ..options import OptionRecord, RolloutOptions
from .files import RECIPES, names_in, read_toml

RECIPE_KEYS = (
    "environments",
    "agent",
    "discrete_agent",
    "automatic",
    "general",
    "complete",
    "declared",
    "options",
)  # in a file; all others are tables of agents


class Recipe(OptionRecord):
    """Tuned hyperparameters for a family of environments. Values that the user gives override them.

    environments: patterns of the ids that it is chosen for.
    agent: the agent that it was tuned for; discrete_agent: instead of it for Discrete actions.
    options: for every agent that has them; agent_options: by agent, above `options`.
    automatic: options that it leaves open are chosen from the task (see `recipes.fit`).
    general: its options suit tasks of any kind, so what is chosen from the task is above them.
    complete: it has all options of a run, so nothing is chosen from the task, and nothing is looked for.
    declared: of a complete recipe with an inferred structure: the options that a person declared.
    base: the recipe whose options hold where this one says nothing. Where the structure comes from, a recipe says itself.
    """

    name: str
    environments: tuple[str, ...] = ()
    agent: str = "td3"
    options: dict[str, Any] = Field(default_factory=dict)
    agent_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    discrete_agent: str | None = None
    automatic: bool = False
    general: bool = False
    complete: bool = False
    declared: tuple[str, ...] = ()
    base: Recipe | None = None

    def fits(self, environment_id: str) -> bool:
        """Return whether one of its patterns matches the id."""
        return any(fnmatch.fnmatchcase(environment_id, pattern) for pattern in self.environments)

    def agent_for(self, is_discrete: bool) -> str:
        """Return the agent for a task with or without Discrete actions."""
        return self.discrete_agent if self.discrete_agent and is_discrete else self.agent

    def general_options(self, agent: str) -> dict[str, Any]:
        """Return the options for `agent` that suit tasks of any kind: those of the base, or its own if it is general."""
        if self.general:
            return self.options | self.agent_options.get(agent, {})
        base = self.base.general_options(agent) if self.base else {}
        return {name: value for name, value in base.items() if name != "structure"}

    def tuned_options(self, agent: str) -> dict[str, Any]:
        """Return the options for `agent` that were tuned: `options`, then the agent's own."""
        return {} if self.general else self.options | self.agent_options.get(agent, {})

    def options_for(self, agent: str) -> dict[str, Any]:
        """Return all options for `agent`, the tuned ones above the general ones."""
        return self.general_options(agent) | self.tuned_options(agent)

    def environment_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of the environment: the user's `env_options`, or else the recipe's."""
        return RolloutOptions(env_options=given.get("env_options", self.options.get("env_options", ()))).env_arguments


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    return names_in(RECIPES)


def choose_recipe(name_or_path: str | None, environment_id: str | None) -> Recipe:
    """Return the recipe with this name or path; without one, the recipe for this environment."""
    return load_recipe(name_or_path) if name_or_path else find_recipe(environment_id)


def find_recipe(environment_id: str | None) -> Recipe:
    """Return the recipe whose patterns match the id, "module:" before it left out; "default" if none does."""
    env_id = (environment_id or "").rpartition(":")[2]
    for name in recipe_names():
        recipe = load_recipe(name)
        if recipe.fits(env_id):
            return recipe
    return load_recipe("default")


def load_recipe(name_or_path: str) -> Recipe:
    """Return a built-in recipe by its name, or the recipe in a .toml file by its path.

    A file is laid over the recipe "default" and its automatic settings unless it has `automatic = false`.
    Raises UnknownNameError and FileError.
    """
    name, data = read_toml("recipe", name_or_path, RECIPES)
    known = {key: data.pop(key) for key in RECIPE_KEYS if key in data}
    if name_or_path.endswith(".toml") and known.get("automatic") is not False:
        base = load_recipe("default")
        agents = {} if "agent" in known else {"agent": base.agent, "discrete_agent": base.discrete_agent}
        known = {"automatic": True, "base": base} | agents | known
    for key, table in data.items():
        if not isinstance(table, dict):
            raise FileError(f"{name_or_path}: `{key}` must be a table of options, or stand in [options], got {table!r}.")
    try:
        return Recipe(name=name, agent_options=data, **known)
    except OptionError as problem:
        raise FileError(f"{name_or_path} is not a recipe. {problem}") from None
