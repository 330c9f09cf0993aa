"""What learns and what acts. Importing this folder loads no torch; making an agent does."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import OptionError, UnknownNameError, nearest

if TYPE_CHECKING:
    import numpy as np
    import torch

    from ..records import Batch, Episode, GoalSpec
    from .options import AgentOptions
    from .policy import Exploration, PolicySpec, PolicyWeights

_HOMES = {"ddpg": ("ddpg", "DDPG"), "td3": ("td3", "TD3"), "sac": ("sac", "SAC")}  # name: its file, its class

AGENT_NAMES = tuple(_HOMES)


class Agent(Protocol):
    """What every agent does; each is a class of its own in a file of its own."""

    batches_per_update: int
    policy_spec: PolicySpec

    @property
    def n_updates(self) -> int:
        """Critic steps so far."""

    def update(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Learn from a batch (batches_per_update, B, ...), or (B, ...) where that is 1; returns metrics, () tensors."""

    def observe(self, episode: Episode) -> None:
        """Take an episode up into the statistics that inputs are normalised by."""

    def exploration(self, is_random: bool) -> Exploration:
        """How to act while collecting; `is_random` for the warm-up."""

    def policy_weights(self) -> PolicyWeights:
        """Copies of what acting needs."""

    def is_finite(self) -> bool:
        """Whether no weight is NaN or infinite; waits for the device."""

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of everything needed to go on bit for bit."""

    def load_state_dict(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Take a `state_dict` back; raises FileError, naming the difference, before anything is changed."""


def agent_class(name: str) -> Any:
    """The class of the agent called `name`; raises UnknownNameError, with the nearest names, where there is none."""
    if name not in _HOMES:
        known = ", ".join(AGENT_NAMES)
        raise UnknownNameError(f"there is no agent {name!r}: there are {known}.{nearest(name, AGENT_NAMES)}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)


def make_agent(name: str, spec: GoalSpec, options: AgentOptions, seed: int) -> Agent:
    """The agent called `name` for a task, with options of the agent's own type; raises OptionError for any other."""
    agent_type = agent_class(name)
    if type(options) is not agent_type.options_type:
        wanted = agent_type.options_type.__name__
        raise OptionError(f"the agent {name!r} takes {wanted}, got {type(options).__name__}: make a {wanted}(...)")
    agent: Agent = agent_type(spec, options, seed)
    return agent
