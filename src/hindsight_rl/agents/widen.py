"""Let an agent see columns that were hidden from it, without losing anything that it has learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..options import AgentOptions
from ..records import Array
from .agent import Agent
from .forward import Architecture
from .networks import architectures

OF_LAST_NETWORKS = ("targets", "critic_adam")  # names of tensors for the last networks; all others begin with the first one


def can_widen(before: AgentOptions, after: AgentOptions) -> bool:
    """Return whether an agent with the first options can go on with the second ones: these only hide fewer columns."""
    hidden, still_hidden = before.hidden_observation, after.hidden_observation
    is_same = before.model_copy(update={"hidden_observation": still_hidden}) == after
    return is_same and set(still_hidden) < set(hidden) and not before.categories


def take_over(wide: Agent, narrow: Agent) -> None:
    """Let a new agent go on where another one is that sees fewer columns: it chooses the same actions.

    The weights of the further inputs are 0, so the functions stay the same (as in Net2Net, Chen et al. 2016), and so are
    their moments of Adam. wide: with options that `can_widen`, and without updates.
    """
    columns = narrow.policy_spec.layout.columns_in(wide.policy_spec.layout)
    numbers = _numbers(architectures(wide.policy_spec), columns, wide.policy_spec.layout.size)
    state = narrow.state_dict()
    for name, array in wide.state_dict().items():
        known = state[name]
        if known.shape != array.shape:
            last = name.split("/")[0] in OF_LAST_NETWORKS
            at = numbers[-len(known) :] - (wide.algorithm.weights.numel() - len(array)) if last else numbers[: len(known)]
            state[name] = np.zeros_like(array)
            state[name][at] = known
    wide.load_state_dict(state)
    wide.follows_paths = narrow.follows_paths


def _numbers(wide: Sequence[Architecture], columns: Array, n_columns: int) -> Array:
    """Return where the flat vector of wide networks has each weight of networks that see some of its columns.

    columns: which of the `n_columns` inputs, before further ones such as the action, these see.
    """
    found, start = [], 0
    for architecture in wide:
        (weight, bias), *others = architecture.views(start + np.arange(architecture.n_weights))[1]
        seen = np.append(columns, np.arange(n_columns, weight.shape[-1]))
        found += [weight[..., seen], bias, *(part for layer in others for part in layer)]
        start += architecture.n_weights
    return np.concatenate([part.ravel() for part in found])
