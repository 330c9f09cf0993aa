"""The events of a training run, which listeners receive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..agents import Agent
from ..agents.policy import PolicyWeights
from ..records import Array, Episode
from .counts import Counts
from .evaluate import Evaluation, Outcome


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


@dataclass(frozen=True)
class JobFinished:
    """The episodes of a job are stored, and the updates that were due are done.

    evaluation_follows: whether an evaluation is due now.
    """

    episodes: list[Episode]
    evaluation_follows: bool = False


@dataclass(frozen=True, eq=False)
class EvaluationFinished:
    """The result of an evaluation takes effect.

    is_best: whether it is the best of the run so far.
    snapshot: the agent as it was when the evaluation began.
    """

    evaluation: Evaluation
    is_best: bool
    snapshot: Snapshot = field(repr=False)


Event = JobFinished | Outcome | EvaluationFinished
