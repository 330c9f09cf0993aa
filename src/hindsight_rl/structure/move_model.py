"""A model of the next move, which measures what further steps, or fewer columns, do to its held-out error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Array
from .relevance import FOLDS, random_features
from .steps import CLIP

RIDGES = (1.0, 10.0, 100.0)  # strengths of the penalty; with one alone, any further steps may help, as they smooth a model
LARGEST = 2.0  # times the 90 % quantile: rare jumps, as from a wall, must not outweigh all other steps


class MoveModel:
    """Ridge regression of the change of all columns in a step, on random features of columns and actions.

    values: (N, columns + actions), around 0. change: (N, columns). episode: (N,) numbers; whole ones are held out in turn.
    width: the number of random features.
    """

    def __init__(self, values: Array, change: Array, episode: Array, width: int) -> None:
        self._values = np.clip(values / np.maximum(np.sqrt(np.square(values).mean(0)), 1e-12), -CLIP, CLIP)
        usual = np.quantile(np.abs(change), 0.9, axis=0)
        self._change = np.clip(change / np.maximum(usual, 1e-12), -LARGEST, LARGEST)
        self._is_held_out, self._width = [episode % FOLDS == fold for fold in range(FOLDS)], width
        self._features = self._features_of(self._values)
        self._fits = self._fit(self._features, self._change)
        self._error = self._held_out_error(self._features, self._fits)

    def error_with(self, signs: Array) -> float:
        """Return the held-out error with mirrored steps added, relative to that without. signs: (columns + actions,)."""
        mirrored = self._features_of(self._values * signs)
        fits = self._fit(mirrored, self._change * signs[: self._change.shape[1]])
        both = [(gram + more, target + other) for (gram, target), (more, other) in zip(self._fits, fits, strict=True)]
        return self._held_out_error(self._features, both) / max(self._error, 1e-300)

    def error_without(self, number: int) -> float:
        """Return the held-out error of a model that does not see a column or action, relative to that of one that does."""
        features = self._features_of(self._values * (np.arange(self._values.shape[1]) != number))
        return self._held_out_error(features, self._fit(features, self._change)) / max(self._error, 1e-300)

    def _features_of(self, values: Array) -> Array:
        return random_features(values, self._width, seed=0)

    def _fit(self, features: Array, change: Array) -> list[tuple[Array, Array]]:
        """Return for each fold the products of its features with themselves, and with what they predict."""
        fitted = [(features[~held_out], change[~held_out]) for held_out in self._is_held_out]
        return [(inputs.T @ inputs, inputs.T @ targets) for inputs, targets in fitted]

    def _held_out_error(self, features: Array, fits: Sequence[tuple[Array, Array]]) -> float:
        return min(self._error_of(features, fits, ridge) for ridge in RIDGES)

    def _error_of(self, features: Array, fits: Sequence[tuple[Array, Array]], ridge: float) -> float:
        total = 0.0
        for held_out, (gram, target) in zip(self._is_held_out, fits, strict=True):
            predicted = features[held_out] @ np.linalg.solve(gram + ridge * np.eye(len(gram)), target)
            total += float(np.square(predicted - self._change[held_out]).sum())
        return total
