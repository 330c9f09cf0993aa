"""Behaviour cloning of demonstrations with a Q-filter (Nair et al. 2018), as a part of the actor's loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..options import ActorCriticOptions
from .preprocessor import Transitions


def clone(
    batch: Transitions,
    action: Tensor,
    value: Tensor,
    value_gradient: Tensor,
    critic: Callable[[Tensor], Tensor],
    options: ActorCriticOptions,
) -> tuple[Tensor, Tensor]:
    """Return `value` and its gradient with the cloning loss subtracted: then the actor's loss has this term.

    The term is bc_weight * mean over the demonstrations of |action - demonstrated action|^2. With `q_filter` it is 0 where
    the critic values the policy's action at least as much as the demonstrated one.

    batch: the last n_demonstrations rows are demonstrations. Without any, value and gradient are returned as they are.
    action: (B, A), of the policy. value: (B, 1) of these actions. value_gradient: (B, A), d sum(value) / d action.
    critic: maps critic inputs (N, n) to values (N, 1), as `value` was computed.
    """
    n = batch.n_demonstrations
    if not n or not options.bc_weight:
        return value, value_gradient
    difference = action[-n:] - batch.action[-n:]
    weight = torch.full_like(value[-n:], options.bc_weight * len(value) / n)  # `value` is averaged over all rows
    if options.q_filter:
        weight *= critic(batch.critic_inputs[-n:]) > value[-n:]
    value, value_gradient = value.clone(), value_gradient.clone()
    value[-n:] -= weight * difference.square().sum(1, keepdim=True)
    value_gradient[-n:] -= 2.0 * weight * difference
    return value, value_gradient
