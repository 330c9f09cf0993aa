"""Rules of a grid or a puzzle: decision trees that predict how an action changes a state, and what can be reached by them.

In many tasks a few rules say what an action does: a move succeeds unless a wall is there, a box moves if the agent stands
beside it. A tree (Breiman et al. 1984) for each action finds them from the observed transitions. It splits states by their
columns and by the differences of columns. What it learned in some states holds in others, so paths
are found through states that were never visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..records import Array

MOST_NODES, MOST_STATE_CHANGES = 2_000, 100  # of all trees; with more, noise is learned, and this takes long
MOST_TRANSITIONS = 24_000  # of a search: a box, an agent and a fetched key on a grid of 7x7 cells have 19,208
LEAF = -1  # as the feature of a node
MANY_COLUMNS = 40  # with more, differences are too many


@dataclass(frozen=True, eq=False)
class Rules:
    """A decision tree for each action, which predicts the change of a state.

    nodes: (M, 5) int32: feature, threshold, the node if the feature is at most the threshold, the node otherwise, and the
        number of the change, which counts where the feature is LEAF. Node i is the root of action i.
    changes: (K, n) int32, what is added to a state.
    lowest, highest: (n,) int32, range of the states. A path does not leave it.
    """

    nodes: Array
    changes: Array
    lowest: Array
    highest: Array

    @classmethod
    def none(cls, n_columns: int) -> Rules:
        """Return no rules."""
        columns = np.zeros(n_columns, np.int32)
        return cls(np.zeros((0, 5), np.int32), columns[None], columns, columns)

    @classmethod
    def fit(cls, states: Array, transitions: Array, n_actions: int) -> Rules:
        """Return the rules of observed transitions. Of several results of an action in a state, the most frequent counts.

        states: (N, n) int32. transitions: (E, 4) int32, state, action, next state and how often, see `TabularModel`.
        """
        order = np.lexsort((-transitions[:, 3], transitions[:, 1], transitions[:, 0]))
        _, first = np.unique(transitions[order][:, :2], axis=0, return_index=True)
        state, action, following, _ = transitions[order][first].T
        made = np.concatenate([np.zeros_like(states[:1]), states[following] - states[state]])
        changes, number = np.unique(made, axis=0, return_inverse=True)
        none, number = int(number.ravel()[0]), number.ravel()[1:]
        if len(changes) > MOST_STATE_CHANGES:
            return cls.none(states.shape[1])
        rules = cls(np.zeros((0, 5), np.int32), changes, states.min(0), states.max(0))
        nodes = [[LEAF, 0, 0, 0, none] for _ in range(n_actions)]  # of an action that was never tried, no change
        # values as their numbers in order: a few of them may lie far apart
        values, ranks = zip(*(np.unique(each, return_inverse=True) for each in rules._features(states).T), strict=True)
        features = np.column_stack([each.ravel() for each in ranks])
        for each in range(n_actions):
            if (action == each).any():
                _grow(nodes, each, features[state[action == each]], number[action == each])
            if len(nodes) > MOST_NODES:
                return cls.none(states.shape[1])
        for node in nodes:
            if node[0] != LEAF:
                node[1] = int(values[node[0]][node[1]])
        return cls(np.array(nodes, np.int32), changes, rules.lowest, rules.highest)

    def check(self, n_columns: int, n_actions: int) -> None:
        """Raise InputError if arrays have wrong sizes, or if nodes name others that do not come after them."""
        shapes = {"nodes": 5, "changes": n_columns}
        for name, size in shapes.items():
            array = getattr(self, name)
            if array.ndim != 2 or array.shape[1] != size or array.dtype != np.int32:
                raise InputError(f"Expected shape (N, {size}) and int32 for `{name}`, got {array.shape} {array.dtype}.")
        for name in ("lowest", "highest"):
            array = getattr(self, name)
            if array.shape != (n_columns,) or array.dtype != np.int32:
                raise InputError(f"Expected shape ({n_columns},) and int32 for `{name}`, got {array.shape} {array.dtype}.")
        if not len(self.nodes):
            return
        feature, _, left, right, change = self.nodes.T
        n_nodes, inner = len(self.nodes), feature != LEAF
        n_features = n_columns + len(self._pairs[0])
        is_tree = (left[inner] > np.flatnonzero(inner)).all() and (right[inner] > np.flatnonzero(inner)).all()
        is_tree &= max(left.max(), right.max()) < n_nodes and n_nodes >= n_actions
        if not is_tree or feature.min() < LEAF or feature.max() >= n_features:
            raise InputError("Expected trees whose nodes come after those that name them.")
        if change.min() < 0 or change.max() >= len(self.changes):
            raise InputError("Expected changes that the rules have.")

    @cached_property
    def _pairs(self) -> tuple[Array, Array]:
        """The columns that share values, at least two, whose differences are features too: whole numbers of 32 bits."""
        n, lowest, highest = len(self.lowest), self.lowest.astype(np.int64), self.highest.astype(np.int64)
        first, second = np.triu_indices(n if n <= MANY_COLUMNS else 0, 1)
        share = np.maximum(lowest[first], lowest[second]) < np.minimum(highest[first], highest[second])
        widest = np.maximum(highest[first] - lowest[second], highest[second] - lowest[first])
        share &= widest <= np.iinfo(np.int32).max
        return first[share], second[share]

    def _features(self, states: Array) -> Array:
        first, second = self._pairs
        return np.concatenate([states, states[:, first] - states[:, second]], 1)

    def predict(self, states: Array, action: Array) -> Array:
        """Return the next states, (N, n) int32. states: (N, n) int32. action: (N,), counted from 0."""
        features, rows = self._features(states), np.arange(len(states))
        at = np.asarray(action, np.int64)
        while True:
            feature, threshold, left, right, change = self.nodes[at].T
            is_inner = feature != LEAF
            if not is_inner.any():
                return np.asarray(states + self.changes[change])
            goes_left = features[rows, feature] <= threshold  # LEAF is the last feature, which does not count
            at = np.where(is_inner, np.where(goes_left, left, right), at)

    def reach(self, state: Array, n_actions: int, n_steps: int) -> tuple[Array, Array]:
        """Return the states that can be reached from a state, and the transitions of a `TabularModel` between them.

        state: (n,) int32, the first of them. n_steps: at most. With more than MOST_TRANSITIONS, those that are near.
        """
        key = np.random.default_rng(0).integers(-(2**62), 2**62, len(state))
        frontier = state[None].astype(np.int32)
        states, transitions, number = [frontier], [], {int(frontier[0] @ key): 0}
        for _ in range(n_steps):
            first, n_before = len(number) - len(frontier), len(number)
            if not len(frontier) or n_before * n_actions > MOST_TRANSITIONS:
                break
            at, action = np.repeat(np.arange(len(frontier)), n_actions), np.tile(np.arange(n_actions), len(frontier))
            following = self.predict(frontier[at], action)
            inside = ((following >= self.lowest) & (following <= self.highest)).all(1)
            at, action, following = at[inside], action[inside], following[inside]
            reached = np.array([number.setdefault(code, len(number)) for code in (following @ key).tolist()], np.int32)
            transitions.append(np.stack([first + at, action, reached, np.ones_like(reached)], 1))
            _, new = np.unique(reached, return_index=True)
            frontier = following[new[reached[new] >= n_before]]
            states.append(frontier)
        return np.concatenate(states), np.concatenate(transitions).astype(np.int32)


def _grow(nodes: list[list[int]], root: int, features: Array, change: Array) -> None:
    """Grow the tree of one action below a root. features: (N, F), from 0. change: (N,), numbers of changes."""
    open_nodes = [(root, np.arange(len(change)))]
    while open_nodes and len(nodes) <= MOST_NODES:
        node, rows = open_nodes.pop()
        counts = np.bincount(change[rows])
        nodes[node][4] = int(counts.argmax())
        split = None if counts.max() == len(rows) else _best_split(features[rows], change[rows])
        if split is None:
            continue
        feature, threshold = split
        goes_left = features[rows, feature] <= threshold
        nodes[node][:4] = feature, threshold, len(nodes), len(nodes) + 1
        open_nodes += [(len(nodes), rows[goes_left]), (len(nodes) + 1, rows[~goes_left])]
        nodes += [[LEAF, 0, 0, 0, 0], [LEAF, 0, 0, 0, 0]]


def _best_split(features: Array, change: Array) -> tuple[int, int] | None:
    """Return the feature and the threshold with the purest sides (Gini), None if no feature varies."""
    _, change = np.unique(change, return_inverse=True)
    n_changes, best, found = int(change.max()) + 1, -np.inf, None
    lowest, n_values = features.min(0), np.ptp(features, axis=0) + 1
    for feature in np.flatnonzero(n_values > 1).tolist():
        cell = (features[:, feature] - lowest[feature]) * n_changes + change
        table = np.bincount(cell, minlength=n_values[feature] * n_changes).reshape(-1, n_changes).cumsum(0).astype(float)
        left, total = table[:-1], table[-1]
        n_left = left.sum(1)
        purity = (left**2).sum(1) / n_left + ((total - left) ** 2).sum(1) / (len(change) - n_left)
        at = int(purity.argmax())
        if purity[at] > best:
            best, found = purity[at], (feature, int(lowest[feature]) + at)
    return found
