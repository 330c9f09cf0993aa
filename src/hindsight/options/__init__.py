"""Every option of a run, in records that are validated when they are made and passed whole."""

from .agent import (
    AGENT_OPTIONS,
    CONTINUOUS_AGENTS,
    DISCRETE_AGENTS,
    ActorCriticOptions,
    AgentOptions,
    ChoiceOptions,
    DDPGOptions,
    DQNOptions,
    GoalFeatures,
    QRDQNOptions,
    SACOptions,
    TD3Options,
    TQCOptions,
)
from .relabel import Relabel
from .replay import ReplayOptions
from .rollout import RolloutOptions, named_values
from .settings import Settings, build_settings, coerce, option_types, refuse_unknown
from .training import TrainingOptions

__all__ = [
    "AGENT_OPTIONS",
    "CONTINUOUS_AGENTS",
    "DISCRETE_AGENTS",
    "ActorCriticOptions",
    "AgentOptions",
    "ChoiceOptions",
    "DDPGOptions",
    "DQNOptions",
    "GoalFeatures",
    "QRDQNOptions",
    "Relabel",
    "ReplayOptions",
    "RolloutOptions",
    "SACOptions",
    "Settings",
    "TD3Options",
    "TQCOptions",
    "TrainingOptions",
    "build_settings",
    "coerce",
    "named_values",
    "option_types",
    "refuse_unknown",
]
