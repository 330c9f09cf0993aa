"""The agents and their policies. Importing this folder loads no torch; making an agent does."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import FileError, OptionError, UnknownNameError, nearest
from ..options import AGENT_OPTIONS
from .agent import Agent

__all__ = ["AGENT_NAMES", "Agent", "make_agent"]

if TYPE_CHECKING:
    from ..options import AgentOptions
    from ..records import Array, GoalSpec

AGENT_NAMES = tuple(AGENT_OPTIONS)
ALGORITHMS = {"dqn": "DQN", "qrdqn": "DQN", "ddpg": "TD3", "td3": "TD3", "sac": "SAC", "tqc": "SAC"}


def make_agent(
    name: str, spec: GoalSpec, options: AgentOptions, seed: int, stored: Mapping[str, Array] | None = None
) -> Agent:
    """Return an agent for a task.

    name: one of AGENT_NAMES; UnknownNameError for any other.
    options: a record of the agent's own type, such as TD3Options; OptionError for any other.
    seed: of the initial weights and of all random numbers in updates.
    stored: the state that it will take. FileError if its weights have another size, before memory is allocated.
    """
    if name not in AGENT_OPTIONS:
        raise UnknownNameError(f"There is no agent {name!r}. Choose {', '.join(AGENT_NAMES)}.{nearest(name, AGENT_NAMES)}")
    if type(options) is not AGENT_OPTIONS[name]:
        raise OptionError(f"The agent {name!r} needs {AGENT_OPTIONS[name].__name__}, got {type(options).__name__}.")
    if stored is not None:
        _check_size(stored, spec, options)
    class_name = ALGORITHMS[name]
    algorithm_class = getattr(importlib.import_module(f"{__name__}.{class_name.lower()}"), class_name)
    return Agent(algorithm_class(spec, options, seed), options.policy_ema)


def _check_size(stored: Mapping[str, Array], spec: GoalSpec, options: AgentOptions) -> None:
    from .networks import architectures
    from .policy import PolicySpec

    n_weights = sum(architecture.n_weights for architecture in architectures(PolicySpec(spec, options)))
    if "weights" not in stored or stored["weights"].shape != (n_weights,):
        found = stored["weights"].shape if "weights" in stored else "none"
        raise FileError(f"The agent has {n_weights:,} weights, but those that are stored have the shape {found}.")
