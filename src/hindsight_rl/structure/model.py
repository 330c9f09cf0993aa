"""The model that hypotheses about a task are tested with: small networks that predict the displacements of a step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from ..records import Array, Finding, FindingKind
from .steps import ERROR_RATE, HELD_OUT, MOST_DEVIATIONS, MOSTLY, TINY, Steps, at_equal_intervals

WIDTH, BATCH, UPDATES, LEARNING_RATE = 64, 256, 800, 2e-3  # half a second; batches of 192 hid a column that matters later
# for columns; with 1 networks ignore those that seldom matter: fuel, which ends one day, adds 8 +- 2 % instead of 17 +- 3 %
WEIGHT_DECAY = 0.1
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999  # of Adam: the usual ones
MOST_MODEL_STEPS = 3_000  # of which half are those in which the goal moves most
COMPARED_STEPS = MOST_MODEL_STEPS // HELD_OUT  # among which the nearest to a step is sought: among all that takes seconds
ORDERS = 2  # in which values of other steps are taken: with one alone, chance widens the intervals


@dataclass(frozen=True)
class Difference:
    """How much larger the held-out loss is under a hypothesis, relative to it: mean and standard error over episodes.

    loss: the held-out loss without the hypothesis, relative to the variance of what is predicted.
    """

    mean: float
    error: float
    loss: float = float("nan")

    def is_below(self, margin: float, n_tested: int) -> bool:
        """Whether the difference is below a margin for certain. n_tested: hypotheses that share one error rate."""
        return self.interval(n_tested)[1] < margin

    def is_above(self, margin: float, n_tested: int) -> bool:
        """Whether the difference is above a margin for certain."""
        return self.interval(n_tested)[0] > margin

    def interval(self, n_tested: int) -> tuple[float, float]:
        """Return the interval whose ends `is_above` and `is_below` compare with a margin."""
        width = NormalDist().inv_cdf(1 - ERROR_RATE / n_tested) * self.error
        return self.mean - width, self.mean + width

    def explain(self, changed: str, usual: str, margin: float, n_tested: int) -> str:
        """Return the figures in words. changed, usual: of which steps or inputs the losses are, as "without it"."""
        return (
            f"held-out error {self.loss * (1 + self.mean):.3f} +- {self.loss * self.error:.3f} {changed}, {self.loss:.3f} "
            f"{usual}: {self.in_percent(margin, n_tested)}"
        )

    def in_percent(self, margin: float, n_tested: int) -> str:
        """Return the difference, its interval and the largest one that is accepted."""
        mean, low, high, most = (_percent(value) for value in (self.mean, *self.interval(n_tested), margin))
        return f"{mean} % (interval {low} to {high} %, at most {most} % is accepted)"

    def as_finding(
        self, kind: FindingKind, name: str, verdict: str, reason: str, *, n_tested: int, margin: float
    ) -> Finding:
        """Return a finding with this difference and its interval. margin: the largest difference that is accepted."""
        low, high = self.interval(n_tested)
        return Finding(kind, name, verdict, reason, (), self.mean, low, high, margin)

    def __str__(self) -> str:
        """Return it in percent."""
        return f"{_percent(self.mean)} +- {_percent(self.error).removeprefix('+')} %"


def _percent(value: float) -> str:
    return f"{value:+.0%}".removesuffix("%")


class DisplacementModel:
    """Predicts displacements (N, m) from what is seen and done in a step (N, k), with two hidden layers.

    A hypothesis about the task changes inputs or targets, or both. If it is true, the loss on episodes that the networks
    did not see stays the same: the networks are not fitted again. episode: (N,) numbers. weight_decay: of the networks.
    """

    def __init__(self, inputs: Array, targets: Array, episode: Array, weight_decay: float = WEIGHT_DECAY) -> None:
        self._weight_decay = weight_decay
        self._mean, deviation = inputs.mean(0), inputs.std(0)
        self._deviation = np.where(deviation > 0, deviation, np.inf)
        self._usual = np.maximum(targets.std(0), TINY)
        _, self._episode = np.unique(episode, return_inverse=True)
        self._fold, self.inputs, self.targets = self._episode % HELD_OUT, inputs, targets
        self._layers = self._fit(self._scaled(inputs), self._clipped(targets))
        self._loss = self.losses(inputs, targets)

    @property
    def unexplained(self) -> float:
        """The held-out loss, relative to the variance of the targets."""
        return float(self._loss.sum() / max(np.square(self._clipped(self.targets)).mean(1).sum(), TINY))

    def is_near(self, inputs: Array) -> Array:
        """Return which inputs (N, k) are as near to a step of another episode as half of the steps are, (N,) bool."""
        return np.asarray(self._to_nearest(inputs) <= self._usual_distance)

    @cached_property
    def _usual_distance(self) -> float:
        return float(np.quantile(self._to_nearest(self.inputs), MOSTLY))

    def _to_nearest(self, inputs: Array) -> Array:
        """Return the squared distance from inputs to the nearest one of COMPARED_STEPS steps in other episodes, (N,)."""
        compared = at_equal_intervals(len(self.inputs), COMPARED_STEPS)
        return np.asarray(self._distances(inputs, self._episode, compared).min(1))

    def _distances(self, inputs: Array, episode: Array, compared: Array) -> Array:
        """Return squared distances from inputs (N, k), of episodes (N,), to compared steps (M,) of others, (N, M)."""
        here, there = self._scaled(inputs), self._scaled(self.inputs[compared])
        square = squared_distances(here, there)
        square[episode[:, None] == self._episode[compared]] = np.inf
        return square

    def compare(self, inputs: Array, targets: Array, counts: Array | None = None) -> Difference:
        """Return how the loss differs with these inputs (N, k) and targets (N, m) of the same steps.

        counts: which steps count, (N,) bool; None: all.
        """
        return self.growth(inputs, targets, targets.shape[1], np.inf, counts)[0]

    def growth(
        self, inputs: Array, targets: Array, n_first: int, margin: float, counts: Array | None = None
    ) -> tuple[Difference, int | None]:
        """Return how the loss of the first `n_first` targets differs, or that of the others if it grows more.

        The others count relative to the variance of each: some are predicted well, some are noise. If one of them grows by
        more than `margin` for certain, it alone counts, and the second value is its number. Otherwise that is None.
        counts: which steps count, (N,) bool; None: all.
        """
        counts = np.ones(len(inputs), bool) if counts is None else counts
        before, after, variance = self._squares(inputs, targets, counts)
        first, n_episodes = slice(n_first), self._episode[-1] + 1
        usual = before[:, first].mean(1)
        of_first = self._relative(after[:, first].mean(1) - usual, usual.sum() / n_episodes)
        others = [
            column for column in range(n_first, before.shape[1]) if variance[column] > 0
        ]  # 0: constant in each episode
        each = {column: self._relative(after[:, column] - before[:, column], variance[column]) for column in others}
        if refuting := [column for column in others if each[column].is_above(margin, len(others))]:
            worst = max(refuting, key=lambda column: each[column].mean)
            return each[worst], worst
        if not others:
            return of_first, None
        scaled = (after[:, others] - before[:, others]) / variance[others]
        return max(of_first, self._relative(scaled.mean(1), 1.0), key=lambda found: found.mean + found.error), None

    def growth_of(self, some: Sequence[int], inputs: Array, targets: Array, counts: Array) -> Difference:
        """Return how the loss of some targets differs, each relative to its variance. inputs, targets, counts: as above."""
        before, after, variance = (each[..., some] for each in self._squares(inputs, targets, counts))
        return self._relative(((after - before) / np.maximum(variance, TINY)).mean(1), 1.0)

    def _squares(self, inputs: Array, targets: Array, counts: Array) -> tuple[Array, Array, Array]:
        """Return the squared errors (N, m) of the steps as they are and with these inputs and targets, 0 where none counts.

        The third array is the variance of each target, (m,), in the steps of an episode that count.
        """
        pairs = (self.inputs, self.targets), (inputs, targets)
        before, after = (np.square(self._errors(*pair)) * counts[:, None] for pair in pairs)
        variance = np.square(self._clipped(self.targets))[counts].sum(0) / (self._episode[-1] + 1)
        return before, after, variance

    def without(self, columns: Array | list[int]) -> Difference:
        """Return how the loss differs if some inputs are those of other steps, which say nothing about this one."""
        rng, losses = np.random.default_rng(0), []
        for _ in range(ORDERS):
            inputs = self.inputs.copy()
            inputs[:, columns] = inputs[rng.permutation(len(inputs))][:, columns]
            losses.append(self.losses(inputs, self.targets))
        return self._difference(np.mean(losses, axis=0))

    def fitted_without(self, columns: Array | list[int]) -> DisplacementModel:
        """Return a model whose networks never see some inputs: others may say the same."""
        seen = np.setdiff1d(np.arange(self.inputs.shape[1]), columns)
        return DisplacementModel(self.inputs[:, seen], self.targets, self._episode, self._weight_decay)

    def difference_to(self, other: DisplacementModel) -> Difference:
        """Return how the loss of another model of the same steps differs."""
        return self._difference(other._loss)

    def _difference(self, losses: Array) -> Difference:
        """losses: (episodes,)."""
        return mean_and_error((losses - self._loss) / max(self._loss.mean(), TINY), self.unexplained)

    def _relative(self, growth: Array, usual: float) -> Difference:
        """growth: (N,), of the squared error of each step. usual: of an episode; 0: nothing is known."""
        if usual == 0:
            return Difference(0.0, np.inf, self.unexplained)
        return mean_and_error(np.bincount(self._episode, growth) / max(usual, TINY), self.unexplained)

    def losses(self, inputs: Array, targets: Array) -> Array:
        """Return the squared held-out error of each episode with these inputs (N, k) and targets (N, m), (episodes,)."""
        return np.bincount(self._episode, np.square(self._errors(inputs, targets)).mean(1))

    def _errors(self, inputs: Array, targets: Array) -> Array:
        """Return the held-out error of each target in each step, (N, m), in its standard deviations."""
        x = self._scaled(inputs)
        errors: Array = _forward(self._layers, x)[self._fold, np.arange(len(x))] - self._clipped(targets)
        return errors

    def _scaled(self, inputs: Array) -> Array:
        scaled: Array = np.clip((inputs - self._mean) / self._deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return scaled.astype(np.float32)

    def _clipped(self, targets: Array) -> Array:
        clipped: Array = np.clip(targets / self._usual, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return clipped.astype(np.float32)

    def _fit(self, x: Array, y: Array) -> list[Array]:
        """Return weights and biases of each layer, of all folds at once: (folds, inputs, outputs), (folds, 1, outputs).

        Adam with decoupled weight decay (Loshchilov and Hutter 2019) on all of them as one vector: for networks this small
        it takes a third of the time of torch.
        """
        rng = np.random.default_rng(0)
        initial: list[Array] = []
        for n_in, n_out in itertools.pairwise((x.shape[1], WIDTH, WIDTH, y.shape[1])):
            initial += [rng.uniform(-1, 1, (HELD_OUT, n_in, n_out)) / np.sqrt(n_in), np.zeros((HELD_OUT, 1, n_out))]
        vector = np.concatenate([each.ravel() for each in initial]).astype(np.float32)
        gradient, mean, square = np.empty_like(vector), np.zeros_like(vector), np.zeros_like(vector)
        layers, gradients = (_views(each, initial) for each in (vector, gradient))
        fitted = [np.flatnonzero(self._fold != fold) for fold in range(HELD_OUT)]
        for update in range(1, UPDATES + 1):
            rows = np.stack([rng.choice(each, BATCH) for each in fitted])
            _backward(layers, x[rows], y[rows], gradients)
            mean += (1 - MEAN_DECAY) * (gradient - mean)
            square += (1 - SQUARE_DECAY) * (gradient * gradient - square)
            vector *= 1 - LEARNING_RATE * self._weight_decay
            step = LEARNING_RATE / (1 - MEAN_DECAY**update)
            vector -= step * mean / (np.sqrt(square / (1 - SQUARE_DECAY**update)) + 1e-8)
        return layers


def mean_and_error(relative: Array, loss: float = float("nan")) -> Difference:
    """Return mean and standard error over episodes. relative: (episodes,). loss: see `Difference`."""
    return Difference(float(relative.mean()), float(relative.std(ddof=1) / np.sqrt(len(relative))), loss)


def squared_distances(here: Array, there: Array) -> Array:
    """Return the squared distances between the rows of here (N, k) and those of there (M, k), (N, M)."""
    return np.asarray(np.square(here).sum(1)[:, None] + np.square(there).sum(1) - 2 * here @ there.T)


def _views(vector: Array, like: list[Array]) -> list[Array]:
    """Return consecutive pieces of a vector in the shapes of arrays."""
    pieces = np.split(vector, np.cumsum([each.size for each in like])[:-1])
    return [piece.reshape(each.shape) for piece, each in zip(pieces, like, strict=True)]


def _backward(layers: list[Array], x: Array, y: Array, out: list[Array]) -> None:
    """Write the gradient of the mean squared error of each fold. x: (folds, N, k). y: (folds, N, m). out: as `layers`."""
    seen = [x]
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        hidden = seen[-1] @ weight
        hidden += bias
        seen.append(np.maximum(hidden, 0, out=hidden))
    change = seen[-1] @ layers[-2]
    change += layers[-1] - y
    change *= np.float32(2 / y[0].size)
    ones = np.ones((1, x.shape[1]), np.float32)  # a product with them takes a fraction of the time of a sum
    for at in range(len(layers) - 2, -1, -2):
        inputs = seen[at // 2]
        np.matmul(inputs.transpose(0, 2, 1), change, out=out[at])
        np.matmul(ones, change, out=out[at + 1])
        if at:
            change = change @ layers[at].transpose(0, 2, 1)
            change *= inputs > 0


def _forward(layers: list[Array], x: Array) -> Array:
    """Return the outputs (folds, N, m) for inputs (N, k) or (folds, N, k)."""
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        x = (x @ weight + bias).clip(min=0)
    outputs: Array = x @ layers[-2] + layers[-1]
    return outputs


def informative_steps(steps: Steps, among: Array | None = None) -> Array:
    """Return the steps in which the goal moves most, and as many at equal intervals, in order, (M,).

    among: which steps to choose from, (N,) bool; None: all.
    """
    chosen = np.arange(len(steps)) if among is None else np.flatnonzero(among)
    by_move = np.argsort(-steps.moved[chosen], kind="stable")[: MOST_MODEL_STEPS // 2]
    regular = at_equal_intervals(len(chosen), MOST_MODEL_STEPS // 2)
    return np.asarray(chosen[np.union1d(by_move, regular)])


def inputs_of(
    observation: Array, action: Array, columns: Sequence[int], tool: Sequence[int], positions: Sequence[int]
) -> Array:
    """Return what models see of steps: columns, the gaps between tool and positions, and the action, (N, inputs).

    tool: empty without an object; then there are no gaps.
    """
    gap = observation[:, list(positions[: len(tool)])] - observation[:, list(tool)]
    return np.column_stack([observation[:, list(columns)], gap, action])
