"""What learns and what acts. Importing this folder loads no torch; making an agent does."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, UnknownNameError, nearest
from .agent import Agent

__all__ = ["AGENT_NAMES", "Agent", "agent_class", "make_agent"]

if TYPE_CHECKING:
    from ..options import AgentOptions
    from ..records import GoalSpec

_HOMES = {  # name: its file, its class
    "dqn": ("dqn", "DQN"),
    "qrdqn": ("qrdqn", "QRDQN"),
    "ddpg": ("ddpg", "DDPG"),
    "td3": ("td3", "TD3"),
    "sac": ("sac", "SAC"),
    "tqc": ("tqc", "TQC"),
}

AGENT_NAMES = tuple(_HOMES)


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
    return Agent(agent_type(spec, options, seed), options.policy_ema)
