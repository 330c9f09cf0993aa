"""The state of a run: its parts as they are now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from ..agents import Agent
from ..options import Settings
from ..replay.buffer import HindsightBuffer
from ..rollout.episode_sources import Source
from .counts import Counts, Meter, UnguidedSuccess
from .demonstrations import Demonstrations


@dataclass(eq=False)
class RunState(ABC):
    """The parts of a run as they are now. The trainer is the state of its run: nothing else keeps any of them.

    What the structure of the task is now stands in the settings.

    agent: the agent to train.
    buffer: stores the episodes and samples relabelled batches.
    source: collects the episodes.
    settings: the options of the run.
    counts: how far the run is: zero for a new run.
    demonstrations: recorded episodes to learn from as well, or None.
    meter: means of the metrics since the last record.
    success: of the agent in its unguided training episodes.
    """

    agent: Agent
    buffer: HindsightBuffer
    source: Source
    settings: Settings
    counts: Counts
    demonstrations: Demonstrations | None = None
    meter: Meter = field(default_factory=Meter, init=False)
    success: UnguidedSuccess = field(default_factory=UnguidedSuccess, init=False)

    @abstractmethod
    def drop_jobs(self) -> None:
        """Drop the jobs in flight."""

    @abstractmethod
    def rebuild(
        self,
        agent: Agent,
        buffer: HindsightBuffer,
        demonstrations: Demonstrations | None,
        settings: Settings,
        why_new: str = "",
    ) -> None:
        """Go on with these parts. why_new: why the agent is a new one."""
