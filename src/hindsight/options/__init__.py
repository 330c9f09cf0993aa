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
from .record import OptionField, OptionRecord, option_fields
from .relabel import DEFAULT_N_SAMPLED_GOAL, Relabel
from .replay import RelabelAt, RelabelTerminated, ReplayOptions, StrategyFunction
from .rollout import RolloutOptions, named_values
from .settings import STRUCTURE, Settings, build_settings, refuse_unknown, run_options
from .training import StructureSource, TrainingOptions

__all__ = [
    "AGENT_OPTIONS",
    "CONTINUOUS_AGENTS",
    "DEFAULT_N_SAMPLED_GOAL",
    "DISCRETE_AGENTS",
    "STRUCTURE",
    "ActorCriticOptions",
    "AgentOptions",
    "ChoiceOptions",
    "DDPGOptions",
    "DQNOptions",
    "GoalFeatures",
    "OptionField",
    "OptionRecord",
    "QRDQNOptions",
    "Relabel",
    "RelabelAt",
    "RelabelTerminated",
    "ReplayOptions",
    "RolloutOptions",
    "SACOptions",
    "Settings",
    "StrategyFunction",
    "StructureSource",
    "TD3Options",
    "TQCOptions",
    "TrainingOptions",
    "build_settings",
    "named_values",
    "option_fields",
    "refuse_unknown",
    "run_options",
]
