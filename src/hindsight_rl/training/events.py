"""The events of a training run, which listeners receive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..agents import Agent
from ..agents.policy import PolicyWeights
from ..options import Settings
from ..records import Array, Episode
from .evaluate import Evaluation, Outcome
from .run_state import Counts


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An agent at one moment of a run. means: of the metrics since the last record."""

    weights: PolicyWeights
    agent_state: dict[str, Array]
    counts: Counts
    means: Mapping[str, float]

    @classmethod
    def take(cls, agent: Agent, counts: Counts, means: Mapping[str, float]) -> Snapshot:
        """Return copies of the agent's weights and state, and of the counts."""
        return cls(agent.policy_weights(), agent.state_dict(), replace(counts), means)


class OptionChange(NamedTuple):
    """An option with its values before and after, and why it changed."""

    option: str
    before: Any
    value: Any
    reason: str


@dataclass(frozen=True)
class OptionsChanged:
    """The search for structure changed options of the run, replaced its agent, or both.

    env_steps, updates, seconds: of the run before the change.
    new_agent: why a new agent, which learns from the stored episodes, replaced one that had learned; "" if none did.
    """

    env_steps: int
    updates: int
    seconds: float
    changes: tuple[OptionChange, ...]
    new_agent: str = ""

    @classmethod
    def between(cls, before: Settings, after: Settings, counts: Counts, new_agent: str) -> OptionsChanged:
        """Return the change of the settings of a run."""
        old, reasons = before.flat(), after.reasons
        changes = tuple(
            OptionChange(name, old[name], value, reasons.get(name, "it holds no more: the default"))
            for name, value in after.flat().items()
            if value != old[name]
        )
        seconds = counts.collect_seconds + counts.update_seconds
        return cls(counts.env_steps, counts.updates, seconds, changes, new_agent)


@dataclass(frozen=True)
class EpisodesStored:
    """The episodes of a job are stored. Its updates follow."""

    episodes: list[Episode]


@dataclass(frozen=True)
class JobFinished:
    """The updates that were due after the last job are made.

    evaluation_follows: whether an evaluation is due now.
    changes: of the options of the run, in their order, after the episodes and before the updates.
    """

    evaluation_follows: bool = False
    changes: tuple[OptionsChanged, ...] = ()


@dataclass(frozen=True, eq=False)
class EvaluationFinished:
    """The result of an evaluation takes effect.

    is_best: whether it is the best of the run so far.
    snapshot: the agent as it was when the evaluation began.
    """

    evaluation: Evaluation
    is_best: bool
    snapshot: Snapshot = field(repr=False)


Event = EpisodesStored | JobFinished | Outcome | EvaluationFinished
