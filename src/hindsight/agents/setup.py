"""What the constructors of the algorithms share: policy spec, critic architecture, value range, device."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..errors import GoalEnvError, OptionError
from ..options import CONTINUOUS_AGENTS, DISCRETE_AGENTS, ActorCriticOptions, AgentOptions
from ..records import ArraySpec, GoalSpec, return_range
from .networks import Architecture
from .policy import PolicyKind, PolicySpec


def make_policy_spec(spec: GoalSpec, options: AgentOptions, kind: PolicyKind, layer_norm: bool) -> PolicySpec:
    """Return the spec of the agent's policy. Raises GoalEnvError if the agent cannot act in this action space."""
    _check_action(spec.action, kind)
    return PolicySpec(
        observation=spec.observation,
        goal=spec.goal,
        action=spec.action,
        hidden=options.hidden,
        layer_norm=layer_norm,
        observe_achieved_goal=options.observe_achieved_goal,
        goal_features=options.goal_features,
        kind=kind,
        normalizer_clip=options.normalizer_clip if options.normalize else None,
        image_channels=options.image_channels,
        hidden_observation=options.hidden_observation,
        hidden_goal=options.hidden_goal,
        column_differences=options.column_differences,
        subgoals=options.subgoals if isinstance(options, ActorCriticOptions) else (),
    )


def critic_architecture(spec: PolicySpec, options: AgentOptions, n_outputs: int, n_members: int = 1) -> Architecture:
    """Return the architecture of critics: their input is the policy's and, unless it is an index, the action."""
    action_size = 0 if spec.n_actions else spec.action.size
    encoding = spec.layout.encoding(spec.image_channels, action_size)
    n_inputs = encoding.output_size if encoding else spec.layout.size + action_size
    return Architecture((n_inputs, *options.hidden, n_outputs), n_members, options.critic_layer_norm, encoding)


def value_range(spec: GoalSpec, options: AgentOptions) -> tuple[float, float]:
    """Return the range to which targets are clipped: the possible returns, or infinite without `clip_targets`."""
    if not options.clip_targets:
        return -math.inf, math.inf
    low, high = return_range(spec.reward_low, spec.reward_high, options.discount)
    largest = torch.finfo(torch.float32).max  # a bound beyond it cannot be compared with float32 values
    return low if low >= -largest else -math.inf, high if high <= largest else math.inf


def choose_device(name: str) -> torch.device:
    """Return the device of the option `device`. Raises OptionError for "cuda" without a GPU."""
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise OptionError("device is 'cuda', but torch finds no GPU. Use device='auto' or 'cpu'.")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def _check_action(action: ArraySpec, kind: PolicyKind) -> None:
    if action.n_values is None and np.dtype(action.dtype).kind != "f":
        raise GoalEnvError(
            f"The action space has dtype {action.dtype}, but agents need a bounded Box of floats or a Discrete space. "
            f"Use gymnasium.wrappers.TransformAction."
        )
    if (action.n_values is not None) != (kind == "discrete"):
        space = f"Discrete({action.n_values})" if action.n_values else f"a Box of shape {action.shape}"
        fitting = DISCRETE_AGENTS if action.n_values else CONTINUOUS_AGENTS
        raise GoalEnvError(f"This agent cannot act in {space}. Use one of {', '.join(fitting)}.")
    low, high = action.bounds()
    if kind != "discrete" and (not action.is_bounded or not (low < high).all()):
        raise GoalEnvError(
            f"The action space ranges from {low.ravel().tolist()} to {high.ravel().tolist()}, but this agent needs finite "
            f"bounds, the lower below the upper. Use gymnasium.wrappers.RescaleAction."
        )
