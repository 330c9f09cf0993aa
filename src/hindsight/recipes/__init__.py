"""Tuned settings per environment family, as TOML: one file a family, chosen by the environment's id."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import FileError, UnknownNameError, nearest

_LARGEST_FILE = 1_000_000  # bytes; a recipe has a few hundred


@dataclass(frozen=True)
class Recipe:
    """Settings for a family of environments.

    environments: patterns of ids it is chosen for. agent: the one it was tuned for. options: for every agent that has them.
    agent_options: by agent, on top. A value given by the user overrides both. discrete_agent: instead of `agent` where the
    actions are Discrete, for a recipe that serves tasks of both kinds. from_spec: what it leaves open is chosen from the
    task's sizes and time limit (see `recipes.fit`). reasons: what was chosen so, and why, a sentence's part each.
    """

    name: str
    environments: tuple[str, ...]
    agent: str
    options: Mapping[str, Any]
    agent_options: Mapping[str, Mapping[str, Any]]
    discrete_agent: str | None = None
    from_spec: bool = False
    reasons: tuple[str, ...] = ()

    def agent_for(self, is_discrete: bool) -> str:
        """The agent to take for a task, whose actions are Discrete or not."""
        return self.discrete_agent if self.discrete_agent and is_discrete else self.agent

    def options_for(self, agent: str) -> dict[str, Any]:
        """The recipe's options with those of `agent` on top."""
        return dict(self.options) | dict(self.agent_options.get(agent, {}))


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return sorted(entry.name[:-5] for entry in resources.files(__name__).iterdir() if entry.name.endswith(".toml"))


def find_recipe(environment_id: str | None) -> Recipe:
    """The recipe whose patterns match the id; "default" where none does."""
    for name in recipe_names():
        recipe = load_recipe(name)
        if any(fnmatch.fnmatchcase(environment_id or "", pattern) for pattern in recipe.environments):
            return recipe
    return load_recipe("default")


def load_recipe(name_or_path: str) -> Recipe:
    """A built-in recipe by its name, or a TOML file of your own by its path."""
    if name_or_path.endswith(".toml"):
        return _parse(name_or_path, Path(name_or_path).stem, _read(Path(name_or_path)))
    if name_or_path not in recipe_names():
        raise UnknownNameError(
            f"there is no recipe {name_or_path!r}.{nearest(name_or_path, recipe_names())} The built-in ones are "
            f"{', '.join(recipe_names())}; a file of your own ends in .toml"
        )
    text = (resources.files(__name__) / f"{name_or_path}.toml").read_text(encoding="utf-8")
    return _parse(f"{name_or_path}.toml", name_or_path, text)


def _read(path: Path) -> str:
    if not path.is_file():
        raise FileError(f"there is no recipe file {path}")
    if path.stat().st_size > _LARGEST_FILE:
        raise FileError(f"{path} has {path.stat().st_size} bytes, a recipe at most {_LARGEST_FILE}: it is not a recipe")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text ({problem})") from None


def _parse(place: str, name: str, text: str) -> Recipe:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"{place} is not valid TOML: {problem}") from None
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
            f"{place}: a recipe holds `environments` (a list of patterns), `agent` and perhaps `discrete_agent` "
            f"(names), perhaps `from_spec` (true or false), and the tables [options] and [<agent>] with options; found {', '.join(data) or 'something else'}"
        )
    return Recipe(name, tuple(environments), agent, options, data, discrete_agent, from_spec)
