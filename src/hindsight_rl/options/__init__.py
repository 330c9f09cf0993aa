"""Every option of a run, in records that are validated when they are made and passed whole."""

from .agent import AGENT_OPTIONS as AGENT_OPTIONS
from .agent import CONTINUOUS_AGENTS as CONTINUOUS_AGENTS
from .agent import DISCRETE_AGENTS as DISCRETE_AGENTS
from .agent import AgentOptions as AgentOptions
from .record import OptionField as OptionField
from .record import OptionRecord as OptionRecord
from .record import named_values as named_values
from .record import option_fields as option_fields
from .replay import DEFAULT_N_SAMPLED_GOAL as DEFAULT_N_SAMPLED_GOAL
from .replay import FUNCTION as FUNCTION
from .replay import FloatType as FloatType
from .replay import Relabel as Relabel
from .replay import RelabelTerminated as RelabelTerminated
from .replay import ReplayOptions as ReplayOptions
from .replay import StrategyFunction as StrategyFunction
from .settings import STRUCTURE as STRUCTURE
from .settings import Choice as Choice
from .settings import Feature as Feature
from .settings import RolloutOptions as RolloutOptions
from .settings import Settings as Settings
from .settings import StructureSource as StructureSource
from .settings import TrainingOptions as TrainingOptions
from .settings import build_settings as build_settings
from .settings import refuse_unknown as refuse_unknown
from .settings import run_options as run_options
