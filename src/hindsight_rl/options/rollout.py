"""The options of collecting episodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, model_validator

from ..errors import OptionError
from .record import (
    EpisodesPerJob,
    Fraction,
    Numbers,
    OptionRecord,
    PolicyLag,
    PositiveSteps,
    Texts,
    Workers,
    named_values,
)

WEEK = 604_800.0  # seconds


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

    workers: Workers | Literal["auto"] = Field(
        0, description="processes that collect and evaluate; 0: the learner's own; auto: its own and spare cores"
    )
    engine: Literal["processes", "ray"] = Field(
        "processes", description="what runs the workers; ray may use other machines"
    )
    ray_address: str | None = Field(None, description="of a Ray cluster; auto: on this machine; None: start one")
    schedule: Literal["deterministic", "free"] = Field(
        "deterministic", description="order of the episodes; free: as they finish, for uneven workers, not reproducible"
    )
    episodes_per_job: EpisodesPerJob = Field(1, description="episodes collected with the same weights")
    policy_lag: PolicyLag = Field(0, description="age of the weights in jobs; policy_lag + 1 jobs run at once")
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
