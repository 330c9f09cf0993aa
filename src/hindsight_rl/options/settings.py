"""Settings: the option records of a run, and where their values come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..errors import UnknownNameError, nearest
from .agent import AGENT_OPTIONS, AgentOptions
from .record import OptionField, OptionRecord, option_fields, shortened, unknown_option
from .replay import ReplayOptions
from .run import RolloutOptions, TrainingOptions

_PARTS = ("agent", "hindsight", "collecting", "training")  # of Settings.records(), in their order
MOST_NAMED = 20  # unknown options for which similar names are looked for
# options that say it:
STRUCTURE = ("subgoals", "symmetries", "hidden_observation", "hidden_goal", "column_differences", "categories")


class Choice(NamedTuple):
    """A value that is proposed for an option, with the reason in one sentence. Whether it counts is decided elsewhere.

    needs: an option without whose use the value has no reason; "" if there is none.
    """

    option: str
    value: Any
    reason: str
    needs: str = ""


@dataclass(frozen=True, repr=False)
class Settings:
    """The four option records of a run. No option name occurs in two of them.

    from_recipe: the values that the recipe sets, those among them that the user overrides included.
    reasons: by option, why the automatic settings chose its value; only for values that are in use.
    given: names of the options that the user gave.
    declared: names of the options by which a person says some of the structure, where the program infers the rest.
    not_used: what was found, but is not used, with the reason, in sentences.
    Settings are equal if their agent and all options are, wherever the values come from.
    """

    agent: str
    recipe: str = field(compare=False)
    agent_options: AgentOptions
    replay: ReplayOptions
    rollout: RolloutOptions
    training: TrainingOptions
    from_recipe: Mapping[str, Any] = field(default_factory=dict, compare=False)
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)
    given: frozenset[str] = field(default=frozenset(), compare=False)
    declared: frozenset[str] = field(default=frozenset(), compare=False)
    not_used: tuple[str, ...] = field(default=(), compare=False)

    @property
    def variant(self) -> str:
        """Where the structure of the task comes from: "none", "inferred", or "declared" (at least some)."""
        flat = self.flat()
        if self.declared:
            return "declared"
        return self.training.structure or ("declared" if any(flat.get(name) for name in STRUCTURE) else "none")

    def __repr__(self) -> str:
        given = ", ".join(sorted(self.given)) or "none"
        return shortened(f"Settings({self.agent}, recipe {self.recipe!r}, {self.variant}, options given: {given})")

    def records(self) -> tuple[OptionRecord, ...]:
        """Return the option records."""
        return (self.agent_options, self.replay, self.rollout, self.training)

    def flat(self) -> dict[str, Any]:
        """Return every option by its name, as plain data."""
        return {name: value for record in self.records() for name, value in record.to_dict().items()}

    def source(self, option: str) -> str:
        """Return where the value of an option comes from: "given", "task", "recipe" or "default"."""
        if option in self.given:
            return "given"
        if option in self.reasons:
            return "task"
        return "recipe" if option in self.from_recipe else "default"

    def explained(self, command_defaults: Collection[str] = ()) -> dict[str, dict[str, Any]]:
        """Return for each option its part, meaning, default, what chose its value, and the recipe's value if it has one.

        command_defaults: options whose value is the default of the command line, which differs from that in Python.
        """
        explained = {}
        for part, record in zip(_PARTS, self.records(), strict=True):
            for option in option_fields(type(record)):
                facts = {"part": part, "meaning": option.description, "default": option.default}
                facts["source"] = "command" if option.name in command_defaults else self.source(option.name)
                if option.name in self.from_recipe:
                    facts["recipe"] = self.from_recipe[option.name]
                explained[option.name] = facts
        return explained

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        facts = {"agent": self.agent, "recipe": self.recipe, "variant": self.variant, "declared": sorted(self.declared)}
        return facts | {"options": self.flat()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], **overrides: Any) -> Settings:
        """Return the settings that `to_json` wrote, with `overrides` by option name on top."""
        settings = build_settings(str(data["agent"]), str(data["recipe"]), dict(data["options"]) | overrides)
        return replace(settings, declared=frozenset(map(str, data.get("declared", ()))))


def run_options(agent: str) -> dict[str, OptionField]:
    """Return every option of a run with this agent, by its name. Raises UnknownNameError."""
    return {option.name: option for record in _record_types(agent) for option in option_fields(record)}


def build_settings(agent: str, recipe: str, values: Mapping[str, Any]) -> Settings:
    """Return settings made of option names and values. Raises UnknownNameError and OptionError."""
    refuse_unknown(values, run_options(agent), f"agent {agent!r}")
    agent_record, *_ = _record_types(agent)
    return Settings(
        agent,
        recipe,
        agent_record(**_of(agent_record, values)),
        ReplayOptions(**_of(ReplayOptions, values)),
        RolloutOptions(**_of(RolloutOptions, values)),
        TrainingOptions(**_of(TrainingOptions, values)),
    )


def refuse_unknown(names: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raise UnknownNameError that lists the names that are not known. place: where they were given."""
    unknown = [name for name in names if name not in known]
    messages = [unknown_option(name, known, place) for name in unknown[:MOST_NAMED]]
    if len(unknown) > MOST_NAMED:
        messages.append(f"{len(unknown) - MOST_NAMED:,} other names are unknown too.")
    if messages:
        raise UnknownNameError("\n  ".join(messages))


def _record_types(agent: str) -> tuple[type[AgentOptions], type[OptionRecord], type[OptionRecord], type[OptionRecord]]:
    if agent not in AGENT_OPTIONS:
        raise UnknownNameError(
            f"There is no agent {agent!r}.{nearest(agent, AGENT_OPTIONS)} The agents are {', '.join(AGENT_OPTIONS)}."
        )
    return (AGENT_OPTIONS[agent], ReplayOptions, RolloutOptions, TrainingOptions)


def _of(record: type[OptionRecord], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in record.model_fields}
