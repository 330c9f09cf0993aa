"""n-step returns: what the next few steps pay under the goal of a sample, and what is seen after them."""

from __future__ import annotations

import numpy as np

from ..errors import OptionError
from ..records import Array, Batch


def fold_steps(steps: Batch, steps_left: Array, discount: float, batch: Batch) -> None:
    """Write the n-step return of every sample into `batch`, whose arrays are (B, ...) and whose `discount` is there.

    steps: (n, B), the steps one by one under the goal of the first; those behind the end of the episode repeat its last.
    steps_left: (B,), of the first. A sample reaches over m steps, as many as there are until the episode ends, until one
    terminates, or n. `reward` becomes their discounted sum, next_observation and next_achieved_goal what was seen after the
    last, `terminated` whether that one terminated, and `discount` discount**m, or 0 where it did: a time limit bootstraps.
    Not corrected for the policy that acts now (Hessel et al. 2018).
    """
    n, size = steps.reward.shape
    place = np.arange(n)[:, None]
    ended_before = np.cumsum(steps.terminated, axis=0) > steps.terminated
    is_used = (place < steps_left) & ~ended_before
    n_used = is_used.sum(axis=0)
    last = n_used - 1, np.arange(size)
    batch.reward[:] = np.where(is_used, discount**place * steps.reward, 0.0).sum(axis=0)
    for name in ("terminated", "next_observation", "next_achieved_goal"):
        getattr(batch, name)[:] = getattr(steps, name)[last]
    if batch.discount is not None:
        batch.discount[:] = np.where(batch.terminated, 0.0, discount**n_used)


def check_discount(discount: float) -> float:
    """`discount` as a float; raises OptionError unless it is a number from 0 to 1."""
    if isinstance(discount, bool) or not isinstance(discount, int | float) or not 0 <= discount <= 1:
        raise OptionError(f"discount is {discount!r}, but a number from 0 to 1 is needed")
    return float(discount)
