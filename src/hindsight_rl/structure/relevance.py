"""Which observation columns help to predict how the achieved goal moves. The others can be hidden from the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .steps import Steps, at_equal_intervals, standardize

WIDTH = 100  # random Fourier features (Rahimi and Recht 2007) of the regression
FOLDS = 3  # of whole episodes
MIN_GAIN = 0.03  # more columns are kept only if they lower the held-out error by this fraction
EXPLAINED = 0.35  # held-out error up to which columns may be hidden
PATIENCE = 2  # further columns that are tried after the best: some help only together
MOST_STEPS = 1_500  # steps that models are fitted to; those in which the goal moves come first


@dataclass(frozen=True)
class Relevance:
    """Columns that predict how the achieved goal and the tool move.

    columns: those that were chosen, in the order of their use, the given ones first. error: held-out mean squared error of
    the moves with these columns, in units of their variance. error_all: the same with all columns.
    """

    columns: tuple[int, ...]
    error: float
    error_all: float

    @property
    def is_enough(self) -> bool:
        """Whether the columns explain the moves. If not, some of the others may matter in a way that is not seen yet."""
        return self.error <= EXPLAINED

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        listed = ", ".join(map(str, sorted(self.columns)))
        return (
            f"columns {listed} predict the moves of goal and tool with a held-out error of {self.error:.2f} of their "
            f"variance, all columns with {self.error_all:.2f}"
        )


def find_relevant_columns(steps: Steps, tool: Sequence[int], first: Sequence[int], candidates: Sequence[int]) -> Relevance:
    """Choose columns one by one, each time the one that lowers the held-out error of the goal's and tool's moves most.

    tool: columns of the tool. first: columns that are used in any case. candidates: columns to choose from.
    Every model also sees the action.
    """
    chosen_steps = _informative_steps(steps)
    episode = steps.episode[chosen_steps]
    move = (steps.next_achieved_goal - steps.achieved_goal)[chosen_steps]
    moves = np.concatenate([move, steps.change[:, list(tool)][chosen_steps]], axis=1)
    target = moves / (moves.std(0) + 1e-12)
    action = standardize(steps.action[chosen_steps])
    columns = standardize(steps.observation[chosen_steps])

    def error(used: Sequence[int]) -> float:
        return prediction_error(np.column_stack([columns[:, list(used)], action]), target, episode)

    error_all = error(range(steps.n_columns))
    path, left = list(first), [column for column in candidates if column not in first]
    errors = [error(path)]
    best = 0  # index of the smallest error so far; a later one must be smaller by MIN_GAIN
    while left and (errors[best] > error_all or len(errors) - best <= PATIENCE):
        trials = {column: error([*path, column]) for column in left}
        column = min(trials, key=trials.__getitem__)
        path.append(column)
        left.remove(column)
        errors.append(trials[column])
        if errors[-1] <= (1 - MIN_GAIN) * errors[best]:
            best = len(errors) - 1
    return Relevance(tuple(path[: len(first) + best]), errors[best], error_all)


def prediction_error(
    inputs: Array, target: Array, episode: Array, fitted: slice = slice(None), tested: slice = slice(None)
) -> float:
    """Return the mean squared error of ridge regression on random Fourier features, on episodes that it did not see.

    inputs: (N, k), standardized. target: (N, m). episode: (N,) numbers; FOLDS folds of whole episodes are held out in turn.
    fitted, tested: the rows that are fitted to, and those that are tested.
    """
    total, fold_of, n_tested = 0.0, episode % FOLDS, len(target[tested])
    for fold in range(FOLDS):
        features = random_features(inputs, WIDTH, fold)
        seen, is_seen = features[fitted], fold_of[fitted] != fold
        known = seen[is_seen]
        weights = np.linalg.solve(known.T @ known + np.eye(features.shape[1]), known.T @ target[fitted][is_seen])
        is_held_out = fold_of[tested] == fold
        total += float(np.square(features[tested][is_held_out] @ weights - target[tested][is_held_out]).sum())
    return float(total / (n_tested * target.shape[1]))


def random_features(inputs: Array, width: int, seed: int) -> Array:
    """Return `width` random Fourier features of inputs (N, k), the inputs and 1: (N, width + k + 1)."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(inputs.shape[1], width)) * 0.9 / np.sqrt(inputs.shape[1])
    phases = rng.uniform(0, 2 * np.pi, width)
    return np.column_stack([np.cos(inputs @ directions + phases), inputs, np.ones(len(inputs))])


def _informative_steps(steps: Steps) -> Array:
    """Return the steps in which the goal moves most, and as many at equal intervals, in order, (M,)."""
    by_move = np.argsort(-steps.move, kind="stable")[: MOST_STEPS // 2]
    regular = at_equal_intervals(len(steps), MOST_STEPS // 2)
    return np.unique(np.concatenate([by_move, regular]))
