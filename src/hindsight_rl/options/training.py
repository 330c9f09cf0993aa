"""The options of a training run: its length, memory, updates, evaluations and files."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Gt, Lt
from pydantic import Field, model_validator

from ..errors import OptionError
from .record import (
    BatchSize,
    Capacity,
    EvaluationEpisodes,
    OptionRecord,
    PositiveSteps,
    Rate,
    Seed,
    Steps,
    Threads,
)

StructureSource = Literal["none", "inferred", "declared"]


class RunOptions(OptionRecord, title="Run"):
    """How long a run lasts, and how fast it learns."""

    seed: Seed = Field(0, description="seed of every random number of the run")
    steps: PositiveSteps = Field(100_000, description="environment steps at most; the episode under way is finished")
    random_steps: Steps = Field(1_000, description="uniformly random actions before the policy acts and learns")
    updates_per_step: Annotated[float, Gt(0), Lt(1_000)] = Field(1.0, description="critic updates per environment step")
    batch_size: BatchSize = Field(256, description="transitions per update")
    capacity: Capacity = Field(1_000_000, description="transitions in the replay buffer")
    threads: Threads = Field(1, description="threads of torch; one is the fastest for small networks")
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
    eval_episodes: EvaluationEpisodes = Field(50, description="episodes per evaluation, on seeds that training never uses")
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
    demonstration_fraction: Annotated[float, Gt(0), Lt(1)] = Field(
        0.1, description="fraction of each batch that is sampled from demonstrations"
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
