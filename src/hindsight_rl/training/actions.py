"""Which recorded actions a policy can take: with `action_scale` it uses a part of their range."""

from __future__ import annotations

import numpy as np

from ..agents.policy import PolicySpec
from ..records import Array

ROUNDING = 1e-5  # relative, by which a stored action may exceed the range


def can_take(policy: PolicySpec, action: Array) -> bool:
    """Return whether all these actions, (T, *action), are in the range that the policy uses."""
    if policy.n_actions:
        return True
    middle, half_width = policy.action_range
    distance = np.abs(action.reshape(len(action), -1) - middle)
    return bool((distance <= half_width * (1 + ROUNDING)).all())
