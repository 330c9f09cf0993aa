"""Settings: the option records of a run."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import OptionError, UnknownNameError, nearest
from .agent import AGENT_OPTIONS, AgentOptions
from .replay import ReplayOptions
from .rollout import RolloutOptions
from .training import TrainingOptions


@dataclass(frozen=True)
class Settings:
    """The four option records of a run, and where their values came from. No option name stands in two of them."""

    agent: str
    recipe: str
    agent_options: AgentOptions
    replay: ReplayOptions
    rollout: RolloutOptions
    training: TrainingOptions
    from_recipe: Mapping[str, Any] = field(default_factory=dict, compare=False)  # what the recipe says of these options
    reasons: tuple[str, ...] = field(default=(), compare=False)  # what was chosen from the task's spec and stands, and why

    @property
    def variant(self) -> str:
        """What was told of the world besides: "subgoals", "symmetric", "relative" or "plain", the first that is so."""
        if getattr(self.agent_options, "subgoals", ()):
            return "subgoals"
        if self.replay.symmetries:
            return "symmetric"
        return "relative" if self.agent_options.goal_features == "relative" else "plain"

    def records(self) -> tuple[Any, ...]:
        """The option records."""
        return (self.agent_options, self.replay, self.rollout, self.training)

    def flat(self) -> dict[str, Any]:
        """Every option by its name."""
        return {name: value for record in self.records() for name, value in asdict(record).items()}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"agent": self.agent, "recipe": self.recipe, "variant": self.variant, "options": self.flat()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], **overrides: Any) -> Settings:
        """The inverse of `to_json`, with `overrides` on top."""
        return build_settings(str(data["agent"]), str(data["recipe"]), dict(data["options"]) | overrides)


def option_types(agent: str) -> dict[str, Any]:
    """The name and the type of every option of a run with this agent."""
    return {name: hint for record in _record_types(agent) for name, hint in get_type_hints(record).items()}


def coerce(name: str, value: Any, hint: Any) -> Any:
    """`value` as an option of type `hint`: lists become tuples and integers floats. Raises OptionError for another type."""
    if get_origin(hint) in (Union, types.UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        return coerce(name, value, next(a for a in get_args(hint) if a is not type(None)))
    if get_origin(hint) is Literal and value in get_args(hint):
        return value
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(coerce(name, item, get_args(hint)[0]) for item in value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint in (int, bool, str) and type(value) is hint:
        return value
    wanted = " or ".join(map(repr, get_args(hint))) if get_origin(hint) is Literal else getattr(hint, "__name__", str(hint))
    raise OptionError(f"the option {name} is {value!r}, but it must be {wanted}")


def build_settings(agent: str, recipe: str, values: Mapping[str, Any]) -> Settings:
    """Make the records of `agent` from option names and values. Raises UnknownNameError and OptionError."""
    record_types = _record_types(agent)
    known = option_types(agent)
    refuse_unknown(set(values) - set(known), known, f"agent {agent!r}")
    records = [
        record(**{f.name: coerce(f.name, values[f.name], known[f.name]) for f in fields(record) if f.name in values})
        for record in record_types
    ]
    return Settings(agent, recipe, *records)


def _record_types(agent: str) -> tuple[Any, ...]:
    if agent not in AGENT_OPTIONS:
        raise UnknownNameError(
            f"there is no agent {agent!r}.{nearest(agent, AGENT_OPTIONS)} The agents are {', '.join(AGENT_OPTIONS)}"
        )
    return (AGENT_OPTIONS[agent], ReplayOptions, RolloutOptions, TrainingOptions)


def refuse_unknown(unknown: set[str], known: Any, place: str) -> None:
    """Raise UnknownNameError for the first of the unknown names. place: where they were given."""
    for name in sorted(unknown):
        raise UnknownNameError(f"there is no option {name!r} ({place}).{nearest(name, known)}")
