"""The options of a run besides those of its agent and buffer: how episodes are collected, and how long it trains."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, model_validator

from ..errors import OptionError
from .record import Fraction, Numbers, OptionRecord, PositiveSteps, Rate, Steps, Texts, named_values

WEEK = 604_800.0  # seconds
StructureSource = Literal["none", "inferred", "declared"]


class EnvironmentOptions(OptionRecord, title="Environment"):
    """How the environment is made."""

    env_options: Texts = Field(
        (), description="keyword arguments of the environment in TOML, as in n_bits=30 or 'reward_type=\"dense\"'"
    )
    observation_keys: Texts = Field((), description="further keys of the observation, appended to it")
    env_module: str | None = Field(None, description="module that registers the environment; dock of dock:Dock-v0")
    max_episode_steps: PositiveSteps | None = Field(None, description="time limit; needed if the environment has none")
    remake_environment: bool | None = Field(None, description="new environment per episode; None: if resets are inexact")

    @property
    def env_arguments(self) -> dict[str, Any]:
        """`env_options` as keyword arguments of the environment's constructor."""
        return named_values("env_options", self.env_options)

    @model_validator(mode="after")
    def _readable_env_options(self) -> Self:
        named_values("env_options", self.env_options)
        return self


class WorkerOptions(OptionRecord, title="Workers"):
    """Where episodes are collected. The number of workers and the engine do not change the result."""

    workers: Annotated[int, Ge(0), Le(1_024)] | Literal["auto"] = Field(  # each is a process of 100 MB or more
        0, description="processes that collect and evaluate; 0: the learner's own; auto: its own and spare cores"
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
    policy_lag: int = Field(0, ge=0, le=1_024, description="age of the weights in jobs; policy_lag + 1 jobs run at once")
    job_timeout: float = Field(
        600.0,
        ge=1,
        le=WEEK,
        description="seconds for an episode in a worker, or a step in this process; it is tried three times",
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

    @model_validator(mode="after")
    def _both_ends(self) -> Self:
        low, high = self.lowest_achieved, self.highest_achieved
        if len(low) != len(high) or any(not a < b for a, b in zip(low, high, strict=True)):
            raise OptionError(
                f"`lowest_achieved` and `highest_achieved` need as many numbers as the goal has, each lowest one below the "
                f"highest one, got {low} and {high}."
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
