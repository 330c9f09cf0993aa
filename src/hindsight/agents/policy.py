"""Acting from flat weights in NumPy: a worker, a robot or an evaluation needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError

Array = npt.NDArray[Any]
PolicyKind = Literal["deterministic", "squashed_gaussian"]

LAYER_NORM_EPS = 1e-5
LOG_DEVIATION_RANGE = (-20.0, 2.0)  # of a stochastic policy, before squashing


def layer_views(flat: Any, sizes: Sequence[int], n_members: int = 1) -> list[tuple[Any, Any]]:
    """Each layer's weight (n_members, outputs, inputs) and bias (n_members, outputs), as views of a flat vector.

    This is the one place that says how weights lie in a vector: layer after layer, the weight before the bias. `flat`:
    contiguous, (count_weights(sizes, n_members),), a NumPy array or a torch tensor.
    """
    views, start = [], 0
    for n_in, n_out in itertools.pairwise(sizes):
        middle, stop = start + n_members * n_in * n_out, start + n_members * (n_in + 1) * n_out
        views.append((flat[start:middle].reshape(n_members, n_out, n_in), flat[middle:stop].reshape(n_members, n_out)))
        start = stop
    return views


def count_weights(sizes: Sequence[int], n_members: int = 1) -> int:
    """How many numbers the layers between `sizes` have, weights and biases of all members."""
    return n_members * sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise(sizes))


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """Everything about a policy but its numbers.

    kind: what the last layer means: the action before tanh, or mean and log deviation of it. action_low, action_high:
    flat, one per element. normalizer_clip: None where inputs are not held within a range.
    """

    observation_size: int
    goal_size: int
    action_shape: tuple[int, ...]
    action_dtype: str
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    hidden: tuple[int, ...]
    layer_norm: bool
    sees_achieved_goal: bool
    kind: PolicyKind
    normalizer_clip: float | None

    @property
    def input_size(self) -> int:
        """How many numbers the policy sees: observation, goal and, where it is seen, the achieved goal."""
        return self.observation_size + self.goal_size * (2 if self.sees_achieved_goal else 1)

    @property
    def action_size(self) -> int:
        """How many numbers an action has."""
        return len(self.action_low)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """The sizes of input, hidden layers and output."""
        outputs = self.action_size * (2 if self.kind == "squashed_gaussian" else 1)
        return (self.input_size, *self.hidden, outputs)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PolicySpec:
        """The inverse of `to_json`, from text or not; raises FileError where something is missing or malformed."""
        try:
            spec = cls(
                observation_size=int(data["observation_size"]),
                goal_size=int(data["goal_size"]),
                action_shape=tuple(int(n) for n in data["action_shape"]),
                action_dtype=np.dtype(str(data["action_dtype"])).name,
                action_low=tuple(float(x) for x in data["action_low"]),
                action_high=tuple(float(x) for x in data["action_high"]),
                hidden=tuple(int(n) for n in data["hidden"]),
                layer_norm=bool(data["layer_norm"]),
                sees_achieved_goal=bool(data["sees_achieved_goal"]),
                kind=data["kind"],
                normalizer_clip=None if data["normalizer_clip"] is None else float(data["normalizer_clip"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(
                f"the description of a policy is malformed ({problem!r}): the file is not ours, or damaged"
            ) from None
        if spec.kind not in ("deterministic", "squashed_gaussian"):
            raise FileError(
                f"the policy is of the kind {spec.kind!r}, which this version does not know: upgrade hindsight-rl"
            )
        return spec


@dataclass(frozen=True, eq=False)
class PolicyWeights:
    """The numbers of a policy, float32: `flat` as `layer_views` reads it; input_mean and input_scale (input_size,)."""

    flat: Array
    input_mean: Array
    input_scale: Array


@dataclass(frozen=True)
class Exploration:
    """How to depart from the best known action.

    random_eps: probability of a uniformly random action instead. noise: standard deviation of Gaussian noise, in half
    widths of the action range. is_random: every action is uniformly random. samples: a stochastic policy draws its action.
    """

    random_eps: float
    noise: float
    is_random: bool = False
    samples: bool = False


class Policy:
    """A policy that acts on one environment at a time (`act`) or on many rows (`predict`)."""

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        self._center = (np.array(spec.action_high) + np.array(spec.action_low)) / 2  # float64: bounds are met exactly
        self._half_width = (np.array(spec.action_high) - np.array(spec.action_low)) / 2
        self._dtype = np.dtype(spec.action_dtype)
        self._layers: list[tuple[Array, Array]] = []

    def load(self, weights: PolicyWeights) -> None:
        """Act by these weights from now on; the layers are views of them. Raises InputError where they do not fit."""
        wanted = {
            "flat": count_weights(self.spec.layer_sizes),
            "input_mean": self.spec.input_size,
            "input_scale": self.spec.input_size,
        }
        for name, size in wanted.items():
            array = getattr(weights, name)
            if array.shape != (size,) or array.dtype != np.float32:
                raise InputError(f"{name} is {array.shape} {array.dtype}, but this policy needs ({size},) float32")
        self._layers = [(weight[0].T, bias[0]) for weight, bias in layer_views(weights.flat, self.spec.layer_sizes)]
        self._mean, self._scale = weights.input_mean, weights.input_scale

    def act(
        self,
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        exploration: Exploration | None = None,
        generator: np.random.Generator | None = None,
    ) -> Array:
        """The action for one observation, in the environment's units, shape and dtype; the best known one by default.

        A generator goes with an exploration. Raises InputError without it, or where weights are needed and none loaded.
        """
        action = self._unit_action((), observation, achieved_goal, desired_goal, exploration, generator)
        return self._in_units(action).reshape(self.spec.action_shape)

    def predict(
        self,
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        exploration: Exploration | None = None,
        generator: np.random.Generator | None = None,
    ) -> Array:
        """As `act`, for N observations at once: every array has a leading axis, so has the answer.

        Its last bits may differ from those of `act`: a product of matrices sums in another order.
        """
        rows = len(observation)
        action = self._unit_action((rows,), observation, achieved_goal, desired_goal, exploration, generator)
        return self._in_units(action).reshape(rows, *self.spec.action_shape)

    def _unit_action(
        self,
        leading: tuple[int, ...],
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        exploration: Exploration | None,
        generator: np.random.Generator | None,
    ) -> Array:
        """The action in [-1, 1], (*leading, action_size)."""
        if exploration is None:
            return self._squash(self._outputs(leading, observation, achieved_goal, desired_goal))
        if generator is None:
            raise InputError("an exploring policy needs a random generator: pass generator=numpy.random.default_rng(seed)")
        size = (*leading, self.spec.action_size)
        if exploration.is_random:
            return np.asarray(generator.uniform(-1.0, 1.0, size))
        output = self._outputs(leading, observation, achieved_goal, desired_goal)
        action = self._sample(output, generator) if exploration.samples else self._squash(output)
        if exploration.noise > 0:
            noisy = action + exploration.noise * generator.standard_normal(size)
            action = np.minimum(np.maximum(noisy, -1.0), 1.0)
        if exploration.random_eps > 0:
            is_random = generator.random((*leading, 1)) < exploration.random_eps
            action = np.where(is_random, generator.uniform(-1.0, 1.0, size), action)
        return action

    def _outputs(self, leading: tuple[int, ...], observation: Array, achieved_goal: Array, desired_goal: Array) -> Array:
        """The last layer's outputs, (*leading, outputs)."""
        if not self._layers:
            raise InputError("this policy has no weights yet: call load(weights) first")
        spec, after = self.spec, self.spec.observation_size + self.spec.goal_size
        x = np.empty((*leading, spec.input_size), np.float32)
        x[..., : spec.observation_size] = np.reshape(observation, (*leading, spec.observation_size))
        x[..., spec.observation_size : after] = np.reshape(desired_goal, (*leading, spec.goal_size))
        if spec.sees_achieved_goal:
            x[..., after:] = np.reshape(achieved_goal, (*leading, spec.goal_size))
        x -= self._mean
        x *= self._scale
        if spec.normalizer_clip is not None:
            np.minimum(np.maximum(x, -spec.normalizer_clip, out=x), spec.normalizer_clip, out=x)
        for weight, bias in self._layers[:-1]:
            x = np.dot(x, weight)
            x += bias
            if spec.layer_norm:
                x = _layer_norm(x)
            np.maximum(x, 0.0, out=x)
        weight, bias = self._layers[-1]
        return np.asarray(np.dot(x, weight) + bias)

    def _in_units(self, action: Array) -> Array:
        return np.asarray((action * self._half_width + self._center).astype(self._dtype))

    def _squash(self, output: Array) -> Array:
        return np.asarray(np.tanh(output[..., : self.spec.action_size]))

    def _sample(self, output: Array, generator: np.random.Generator) -> Array:
        if self.spec.kind == "deterministic":
            return self._squash(output)
        mean, log_deviation = np.split(output, 2, axis=-1)
        deviation = np.exp(np.clip(log_deviation, *LOG_DEVIATION_RANGE))
        return np.asarray(np.tanh(mean + deviation * generator.standard_normal(mean.shape, np.float32)))


def _layer_norm(x: Array) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    return np.asarray(x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + LAYER_NORM_EPS))
