"""Which columns of a state a plan needs: others, as a count of the steps, make each state look like a new one."""

from __future__ import annotations

import numpy as np

from ..records import Array

LEAST_MERGED = 20  # transitions that become equal without a column, before it is left out
MOST_COMPARED = 1_000_000  # numbers of all transitions that are compared: about a second


def find_state_columns(states: Array, transitions: Array, n_goal_columns: int) -> list[int]:
    """Return the columns without the needless ones, ascending. Those of the achieved goal, the last ones, stay.

    A column is needless if others say what follows as well: states that differ in it alone lead to states that differ
    in it alone, by each action. Such a minimal model is also called a bisimulation (Givan, Dean and Greig 2003). Where
    outcomes are random this is never so for certain, and all columns stay.

    states: (N, n) int32. transitions: (E, 4) int32, state, action, next state and how often, see `TabularModel`.
    """
    n = states.shape[1]
    kept = [*np.flatnonzero(np.ptp(states[:, :-n_goal_columns], axis=0)).tolist(), *range(n - n_goal_columns, n)]
    compared = transitions[:: 1 + len(transitions) * n // MOST_COMPARED]
    # each state becomes one number, to which each column adds its share
    shares = np.random.default_rng(0).integers(-(2**62), 2**62, n + 1)
    before, after = states[compared[:, 0]] * shares[:n], states[compared[:, 2]] * shares[:n]
    given, result = before[:, kept].sum(1) + compared[:, 1] * shares[n], after[:, kept].sum(1)
    n_given, n_other = _count(given, result)
    while True:
        without = {c: _count(given - before[:, c], result - after[:, c]) for c in kept if c < n - n_goal_columns}
        needless = {c: left for c, (left, other) in without.items() if n_given - left >= LEAST_MERGED and other <= n_other}
        if not needless:
            return kept
        column = min(needless, key=lambda c: needless[c])
        kept.remove(column)
        given, result = given - before[:, column], result - after[:, column]
        n_given, n_other = without[column]


def _count(given: Array, result: Array) -> tuple[int, int]:
    """Return how many different states and actions there are, and how many transitions have no usual result.

    The usual result is the most frequent one of a state and an action. given, result: (E,) numbers of states with actions,
    and of next states.
    """
    _, given = np.unique(given, return_inverse=True)
    _, result = np.unique(result, return_inverse=True)
    pairs, count = np.unique(given * (result.max() + 1) + result, return_counts=True)
    usual = np.zeros(given.max() + 1, np.int64)
    np.maximum.at(usual, pairs // (result.max() + 1), count)
    return len(usual), len(given) - int(usual.sum())
