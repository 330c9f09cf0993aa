"""Options of collecting, training, evaluation and files; and `Settings`: all option records of a run, with reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, Self

from annotated_types import Ge, Le
from pydantic import Field, NonNegativeFloat, model_validator

from ..errors import OptionError, UnknownNameError, nearest
from .agent import AGENT_OPTIONS, AgentOptions
from .record import (
    Fraction,
    Numbers,
    OptionField,
    OptionRecord,
    PositiveSteps,
    Rate,
    Steps,
    Texts,
    named_values,
    option_fields,
    shortened,
    unknown_option,
)
from .replay import ReplayOptions

_PARTS = ("agent", "hindsight", "collecting", "training")  # of Settings.records(), in their order
MOST_NAMED = 20  # unknown options for which similar names are looked for
# options that say it:
STRUCTURE = (
    "subgoals",
    "symmetries",
    "hidden_observation",
    "hidden_goal",
    "column_differences",
    "rotations",
    "categories",
)
WEEK = 604_800.0  # seconds
StructureSource = Literal["none", "inferred", "declared"]
ResetMode = Literal["exact", "reuse"]


class Choice(NamedTuple):
    """A value that is proposed for an option, with the reason in one sentence. Whether it counts is decided elsewhere.

    needs: an option without whose use the value has no reason; "" if there is none.
    """

    option: str
    value: Any
    reason: str
    needs: str = ""


class Feature(NamedTuple):
    """A feature of a task, as found in its steps: the name of its preset in `recipes`, and the reason in one sentence.

    needs: an option without whose use the options of the preset have no reason; "" if there is none.
    """

    preset: str
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
    records: list[Any] = [
        record(**{name: value for name, value in values.items() if name in record.model_fields})
        for record in _record_types(agent)
    ]
    return Settings(agent, recipe, *records)


def refuse_unknown(names: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raise UnknownNameError that lists the names that are not known. place: where they were given."""
    unknown = [name for name in names if name not in known]
    messages = [unknown_option(name, known, place) for name in unknown[:MOST_NAMED]]
    if len(unknown) > MOST_NAMED:
        messages.append(f"{len(unknown) - MOST_NAMED:,} other names are unknown too.")
    if messages:
        raise UnknownNameError("\n  ".join(messages))


def _record_types(agent: str) -> tuple[type[OptionRecord], ...]:
    """Return the classes of `Settings.records()`."""
    if agent not in AGENT_OPTIONS:
        raise UnknownNameError(
            f"There is no agent {agent!r}.{nearest(agent, AGENT_OPTIONS)} The agents are {', '.join(AGENT_OPTIONS)}."
        )
    return (AGENT_OPTIONS[agent], ReplayOptions, RolloutOptions, TrainingOptions)


class EnvironmentOptions(OptionRecord, title="Environment"):
    """How the environment is made."""

    env_options: Texts = Field(
        (), description="keyword arguments of the environment in TOML, as in n_bits=30 or 'reward_type=\"dense\"'"
    )
    observation_keys: Texts = Field(
        (), description="further keys of the observation, appended to it; KEY[0,2]: two numbers"
    )
    env_module: str | None = Field(None, description="module that registers the environment; dock of dock:Dock-v0")
    max_episode_steps: PositiveSteps | None = Field(None, description="time limit; needed if the environment has none")
    remake_environment: bool | None = Field(None, description="new environment per episode; None: if resets are inexact")
    reset_mode: ResetMode = Field(
        "exact", description="reuse: reset one environment if it is nearly exact, faster; the same bytes are not promised"
    )

    @property
    def env_arguments(self) -> dict[str, Any]:
        """`env_options` as keyword arguments of the environment's constructor."""
        return named_values("env_options", self.env_options)

    @model_validator(mode="after")
    def _one_way_to_reset(self) -> Self:
        if self.reset_mode == "reuse" and self.remake_environment:
            raise ValueError("reset_mode='reuse' makes no new environment per episode. Leave out remake_environment")
        return self

    @model_validator(mode="after")
    def _readable_env_options(self) -> Self:
        named_values("env_options", self.env_options)
        return self


class WorkerOptions(OptionRecord, title="Workers"):
    """Where episodes are collected. The number of workers and the engine do not change the result."""

    workers: Annotated[int, Ge(0), Le(1_024)] | Literal["auto"] = Field(  # each is a process of 100 MB or more
        0, description="processes that collect and evaluate; 0: the learner's own; auto, set by `train`: also spare cores"
    )
    engine: Literal["processes", "ray"] = Field(
        "processes", description="what runs the workers; ray may use other machines"
    )
    ray_address: str | None = Field(None, description="of a Ray cluster; auto: on this machine; None: start one")
    schedule: Literal["deterministic", "free"] = Field(
        "deterministic", description="order of the episodes; free: as they finish, for uneven workers, not reproducible"
    )
    # all episodes of a job are in memory before the first is stored
    episodes_per_job: int = Field(1, ge=1, le=1_000, description="episodes collected with the same weights")
    # jobs beyond one for each worker only wait
    policy_lag: int = Field(1, ge=0, le=1_024, description="age of the weights in jobs; policy_lag + 1 jobs run at once")
    job_timeout: Annotated[float, Ge(1), Le(WEEK)] = Field(
        600.0, description="seconds for an episode in a worker, or a step in this process; it is tried three times"
    )


class GuideOptions(OptionRecord, title="Subgoals"):
    """Guided episodes of relay HER."""

    guided_episodes: Fraction = Field(
        0.8, description="fraction of training episodes that are guided, times (1 - success rate of unguided ones)"
    )
    guided_fraction: Fraction = Field(0.5, description="fraction of their steps that act for a subgoal")


class WorkspaceOptions(OptionRecord, title="Workspace"):
    """Where training episodes end before their time."""

    training_episode_steps: PositiveSteps | None = Field(
        None, description="training episodes end after so many steps; None: at the time limit, as evaluations do"
    )
    lowest_achieved: Numbers = Field(
        (), description="training episodes end once a dimension of the achieved goal is below these; empty: they do not"
    )
    highest_achieved: Numbers = Field((), description="the same above these")
    rest_displacement: NonNegativeFloat = Field(
        0.0,
        description="outside of these, training episodes end only once the achieved goal moves by less than this in two "
        "steps in a row; 0: at once",
    )

    @model_validator(mode="after")
    def _both_ends(self) -> Self:
        low, high = self.lowest_achieved, self.highest_achieved
        if len(low) != len(high) or any(not a < b for a, b in zip(low, high, strict=True)):
            raise OptionError(
                f"`lowest_achieved` and `highest_achieved` need as many numbers as the goal has, each lowest one below the "
                f"highest one, got {low} and {high}."
            )
        if self.rest_displacement and not low:
            raise OptionError(
                "`rest_displacement` needs the range outside of which episodes end. Give `lowest_achieved` and "
                "`highest_achieved`, too, or rest_displacement=0."
            )
        return self


class RolloutOptions(WorkspaceOptions, GuideOptions, WorkerOptions, EnvironmentOptions):
    """Options of collecting episodes."""


class RunOptions(OptionRecord, title="Run"):
    """How long a run lasts, and how fast it learns."""

    # data sets store seeds as int64
    seed: int = Field(0, ge=0, le=2**63 - 1, description="seed of every random number of the run")
    steps: PositiveSteps = Field(100_000, description="environment steps at most; the episode under way is finished")
    random_steps: Steps = Field(1_000, description="uniformly random actions before the policy acts and learns")
    updates_per_step: float = Field(1.0, gt=0, lt=1_000, description="critic updates per environment step")
    planned_updates: float = Field(
        1.0, ge=0, le=1, description="fraction of the updates that are made while `plan_states` finds paths"
    )
    # published agents have up to 2**13
    batch_size: int = Field(256, ge=1, le=2**17, description="transitions per update")
    # 400 GB at least; the buffer also compares it with the free memory
    capacity: int = Field(1_000_000, ge=1, le=10**10, description="transitions in the replay buffer")
    # cores of a large machine; more give no speed, and very many crash torch
    threads: int = Field(1, ge=1, le=256, description="threads of torch; one is the fastest for small networks")
    success_reward: float | None = Field(
        None,
        description="least reward of a success, as the environment returns it, for relabel_terminated='success'; "
        "None: the higher one of two rewards",
    )
    structure: StructureSource | None = Field(
        None,
        description="the structure of the task: none, inferred from its steps, or declared by the recipe or by options; "
        "None: as the recipe says; if it does not, declared where options declare some, else none",
    )


class EvaluationOptions(OptionRecord, title="Evaluation"):
    """How the policy is evaluated, and when it counts as solved."""

    eval_every: Steps = Field(5_000, description="environment steps between evaluations; 0: none")
    eval_episodes: int = Field(  # training waits for them; so many show the success to within 0.3 %
        50, ge=1, le=100_000, description="episodes per evaluation, on seeds that training never uses"
    )
    solved_at: Rate = Field(0.95, description="success rate that counts as solved")
    solved_evaluations: Steps = Field(2, description="consecutive evaluations at solved_at that end the run; 0: none")


class FileOptions(OptionRecord, title="Files"):
    """What a run writes, and when."""

    log_every: PositiveSteps = Field(1_000, description="environment steps between records in metrics.jsonl")
    checkpoint_every: Steps = Field(20_000, description="environment steps between checkpoints; 0: one at the end")
    keep_every: Steps = Field(10, description="keep the policy of every n-th evaluation as a file; 0: none")


class DemonstrationOptions(OptionRecord, title="Demonstrations"):
    """Learning from recorded episodes."""

    demonstrations: str | None = Field(None, description="Minari data set whose episodes are learned from as well")
    demonstration_fraction: float = Field(
        0.1, gt=0, lt=1, description="fraction of each batch that is sampled from demonstrations"
    )
    offline_steps: Steps = Field(0, description="critic updates from demonstrations alone, before the first step")

    @model_validator(mode="after")
    def _offline_needs_demonstrations(self) -> Self:
        if self.offline_steps and self.demonstrations is None:
            raise OptionError(
                "`offline_steps` learns from demonstrations alone. Give `demonstrations`, the name of a data set."
            )
        return self


class TrainingOptions(DemonstrationOptions, FileOptions, EvaluationOptions, RunOptions):
    """Options of a training run."""
