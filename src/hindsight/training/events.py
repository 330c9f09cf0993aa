"""The events of a training run, which listeners receive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..agents import Agent
from ..agents.policy import PolicyWeights
from ..records import Array, Episode
from .counts import Counts
from .evaluate import Evaluation, Outcome


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An agent at one moment of a run."""

    weights: PolicyWeights
    agent_state: dict[str, Array]
    counts: Counts

    @classmethod
    def take(cls, agent: Agent, counts: Counts) -> Snapshot:
        """Return copies of the agent's weights and state, and of the counts."""
        return cls(agent.policy_weights(), agent.state_dict(), replace(counts))


@dataclass(frozen=True)
class JobFinished:
    """The episodes of a job are stored, and the updates that were due are done.

    evaluation_follows: whether an evaluation is due now.
    """

    episodes: list[Episode]
    evaluation_follows: bool = False


@dataclass(frozen=True, eq=False)
class EvaluationFinished:
    """An evaluation is complete.

    is_best: whether it is the best of the run so far.
    snapshot: the agent as it was when the evaluation began.
    """

    evaluation: Evaluation
    is_best: bool
    snapshot: Snapshot = field(repr=False)


Event = JobFinished | Outcome | EvaluationFinished
