"""Acting from flat weights in NumPy: a worker, a robot or an evaluation needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError
from ..options import GoalFeatures
from ..records import ArraySpec, GoalSpec
from ..records.subgoals import TASK, Subgoal, acting_goals, parse_subgoals
from .images import Encoding, convolution_views, encode
from .layout import Layout

Array = npt.NDArray[Any]
PolicyKind = Literal["deterministic", "squashed_gaussian", "discrete"]
Seen = tuple[Array, Array, Array]  # observation, achieved goal, desired goal

LAYER_NORM_EPS = 1e-5
_ARRAYS = ("observation", "goal", "action")
TANH_MARGIN = 1e-6  # how far from its bounds an action is taken to be where its density is asked for
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

    observation, goal, action: as in GoalSpec. kind: what the last layer means: the action before tanh; mean and log
    deviation of it; or a value for each of the actions that can be chosen. normalizer_clip: None where inputs are not held
    within a range. hidden_observation, hidden_goal: as in Layout. subgoals: as `hindsight.records.subgoals` writes them.
    """

    observation: ArraySpec
    goal: ArraySpec
    action: ArraySpec
    hidden: tuple[int, ...]
    layer_norm: bool
    observe_achieved_goal: bool
    goal_features: GoalFeatures
    kind: PolicyKind
    normalizer_clip: float | None
    image_channels: tuple[int, ...]
    hidden_observation: tuple[int, ...] = ()
    hidden_goal: tuple[int, ...] = ()
    subgoals: tuple[str, ...] = ()
    column_differences: tuple[str, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """Which columns of the input hold what."""
        return Layout(
            self.observation,
            self.goal,
            self.observe_achieved_goal,
            self.goal_features,
            self.hidden_observation,
            self.hidden_goal,
            len(self.subgoals),
            self.column_differences,
        )

    @cached_property
    def parsed_subgoals(self) -> tuple[Subgoal, ...]:
        """The goals on the way, in their order; raises OptionError where the task cannot have them."""
        return parse_subgoals(self.subgoals, GoalSpec(self.observation, self.goal, self.action))

    @property
    def input_size(self) -> int:
        """How many numbers the policy sees."""
        return self.layout.size

    @property
    def n_actions(self) -> int:
        """How many actions there are to choose from; 0 where an action is numbers."""
        return self.action.n_values or 0

    @cached_property
    def encoding(self) -> Encoding | None:
        """How images become numbers before the hidden layers; None where there are none."""
        return self.layout.encoding(self.image_channels)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """The sizes of input, behind the images' convolutions, hidden layers and output."""
        outputs = self.n_actions or self.action.size * (2 if self.kind == "squashed_gaussian" else 1)
        return (self.encoding.output_size if self.encoding else self.input_size, *self.hidden, outputs)

    @property
    def n_weights(self) -> int:
        """How many numbers its flat vector has: those of the convolutions first, where there are images."""
        return count_weights(self.layer_sizes) + (self.encoding.n_weights if self.encoding else 0)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        arrays = {name: getattr(self, name).to_json() for name in _ARRAYS}
        return {f.name: getattr(self, f.name) for f in fields(self)} | arrays

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PolicySpec:
        """The inverse of `to_json`, from text or not; raises FileError where something is missing or malformed."""
        try:
            observation, goal, action = (ArraySpec.from_json(data[name]) for name in _ARRAYS)
            spec = cls(
                observation=observation,
                goal=goal,
                action=action,
                hidden=tuple(int(n) for n in data["hidden"]),
                layer_norm=bool(data["layer_norm"]),
                observe_achieved_goal=bool(data["observe_achieved_goal"]),
                goal_features=data["goal_features"],
                kind=data["kind"],
                normalizer_clip=None if data["normalizer_clip"] is None else float(data["normalizer_clip"]),
                image_channels=tuple(int(n) for n in data["image_channels"]),
                hidden_observation=tuple(int(n) for n in data["hidden_observation"]),
                hidden_goal=tuple(int(n) for n in data["hidden_goal"]),
                subgoals=tuple(str(text) for text in data["subgoals"]),
                column_differences=tuple(str(text) for text in data["column_differences"]),
            )
            parse_subgoals(spec.subgoals, GoalSpec(observation, goal, action))
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(
                f"the description of a policy is malformed ({problem!r}): the file is not ours, or damaged"
            ) from None
        for name, known in (("kind", get_args(PolicyKind)), ("goal_features", get_args(GoalFeatures))):
            if getattr(spec, name) not in known:
                raise FileError(
                    f"a policy's {name} is {getattr(spec, name)!r}, which this version does not know: upgrade hindsight-rl"
                )
        if (spec.kind == "discrete") != (spec.n_actions > 0):
            raise FileError(f"the policy is {spec.kind}, but its action space is {spec.action}: the file is damaged")
        return spec


@dataclass(frozen=True, eq=False)
class PolicyWeights:
    """The numbers of a policy, float32: input_mean and input_scale (input_size,), and `flat` (n_weights,).

    flat: the weights of the convolutions, where there are images, as `convolution_views` reads them, then those that
    `layer_views` reads.
    """

    flat: Array
    input_mean: Array
    input_scale: Array


@dataclass(frozen=True)
class Exploration:
    """How to depart from the best known action.

    random_eps: probability of a uniformly random action instead. noise: standard deviation of Gaussian noise, in half
    widths of the action range. is_random: every action is uniformly random. samples: a stochastic policy draws its action.
    guided_episodes: probability that an episode is led to the subgoals; guided_fraction: probability that a step of such an episode
    acts for the first subgoal that is not met. random_action_repeat: a random action is held for 1 to so many steps; who acts in an
    episode sees to that, for a policy forgets each step.
    """

    random_eps: float
    noise: float
    is_random: bool = False
    samples: bool = False
    guided_episodes: float = 0.0
    guided_fraction: float = 0.0
    random_action_repeat: int = 1

    def without_random(self) -> Exploration:
        """The same between random actions that are held."""
        return replace(self, random_eps=0.0, is_random=False)

    @property
    def burst_probability(self) -> float:
        """Of beginning to hold a random action at a step that is free, so that a share random_eps of all are random."""
        if self.is_random:
            return 1.0
        mean = (1 + self.random_action_repeat) / 2
        return self.random_eps / (mean - self.random_eps * (mean - 1))

    def left_alone(self) -> Exploration:
        """For an episode that is not led: with half the noise, since it shows how well the policy does by itself."""
        return replace(self.less(0.5), guided_fraction=0.0)

    def less(self, share: float) -> Exploration:
        """With this share of the random actions and of the noise."""
        return replace(self, random_eps=self.random_eps * share, noise=self.noise * share)


class Policy:
    """A policy that acts on one environment at a time (`act`) or on many rows (`predict`)."""

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        low, high = (bound.ravel() for bound in spec.action.bounds())
        self._center, self._half_width = (high + low) / 2, (high - low) / 2  # float64: bounds are met exactly
        self._size, self._dtype = spec.action.size, np.dtype(spec.action.dtype)
        self._layers: list[tuple[Array, Array]] = []
        self._encoding = spec.encoding

    def load(self, weights: PolicyWeights) -> None:
        """Act by these weights from now on; the layers are views of them. Raises InputError where they do not fit."""
        wanted = {
            "flat": self.spec.n_weights,
            "input_mean": self.spec.input_size,
            "input_scale": self.spec.input_size,
        }
        for name, size in wanted.items():
            array = getattr(weights, name)
            if array.shape != (size,) or array.dtype != np.float32:
                raise InputError(f"{name} is {array.shape} {array.dtype}, but this policy needs ({size},) float32")
        n_layer_weights = count_weights(self.spec.layer_sizes)
        views = layer_views(weights.flat[-n_layer_weights:], self.spec.layer_sizes)
        self._layers = [(weight[0].T, bias[0]) for weight, bias in views]
        self._convolutions = convolution_views(weights.flat, self._encoding.sizes) if self._encoding else []
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

        A Discrete action is a NumPy integer. A generator goes with an exploration. Raises InputError without it, or where
        weights are needed and none loaded.
        """
        return self._action((), (observation, achieved_goal, desired_goal), exploration, generator)

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
        return self._action((len(observation),), (observation, achieved_goal, desired_goal), exploration, generator)

    def distribution(
        self, observation: Array, achieved_goal: Array, desired_goal: Array, exploration: Exploration | None = None
    ) -> Array | tuple[Array, Array]:
        """How likely each action is, for one observation or for N.

        A "discrete" policy: probabilities, (..., n_actions), in the order of the actions. Without exploration that is 1 for
        the best action and 0 for all others, with it what `act` draws from. (Stable-Baselines2 gave a softmax of the
        values, by which no action was ever drawn.) A "squashed_gaussian" one: the mean and the deviation of the Gaussian
        before it is squashed, (..., action's size) each. Raises InputError for a "deterministic" policy.
        """
        leading = self._leading(observation)
        outputs = self._outputs(leading, (observation, achieved_goal, desired_goal))
        if self.spec.kind == "squashed_gaussian":
            return self._moments(outputs)
        if self.spec.kind == "deterministic":
            raise InputError(
                "a deterministic policy has no distribution: it always takes the action that act and predict give"
            )
        best = np.eye(self.spec.n_actions)[outputs.argmax(-1)]
        eps = 0.0 if exploration is None else 1.0 if exploration.is_random else exploration.random_eps
        return np.asarray((1.0 - eps) * best + eps / self.spec.n_actions)

    def log_probability(
        self,
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        action: Array,
        exploration: Exploration | None = None,
    ) -> Array:
        """The log of how likely `action` is, in the environment's units; a () or (N,) array.

        A "discrete" policy: of its probability, by `distribution`. A "squashed_gaussian" one: of its density as the policy
        samples, whatever else explores. -inf for what is no action of the environment. Raises InputError for a
        "deterministic" policy.
        """
        leading = self._leading(observation)
        parts = self.distribution(observation, achieved_goal, desired_goal, exploration)
        with np.errstate(divide="ignore"):
            if not isinstance(parts, tuple):
                actions = np.arange(self.spec.n_actions) + int(self.spec.action.low[0])
                is_it = np.asarray(action).reshape((*leading, 1)) == actions
                return np.asarray(np.log((parts * is_it).sum(-1)))
            unit = (np.asarray(action).reshape((*leading, self._size)) - self._center) / self._half_width
            return self._log_density(unit, *parts)

    def _log_density(self, unit: Array, mean: Array, deviation: Array) -> Array:
        """Per unit of the environment, of actions in [-1, 1]; those at a bound count as just within, for tanh rounds."""
        within = np.clip(unit, -1.0 + TANH_MARGIN, 1.0 - TANH_MARGIN)
        log_gaussian = -0.5 * np.square((np.arctanh(within) - mean) / deviation) - np.log(deviation * np.sqrt(2.0 * np.pi))
        log_slope = np.log1p(-np.square(within)) + np.log(self._half_width)
        return np.asarray(np.where((np.abs(unit) <= 1.0).all(-1), (log_gaussian - log_slope).sum(-1), -np.inf))

    def _leading(self, observation: Array) -> tuple[int, ...]:
        """The axes before those of one observation: none or one."""
        return np.shape(observation)[: np.ndim(observation) - len(self.spec.observation.shape)]

    def _action(
        self, leading: tuple[int, ...], seen: Seen, exploration: Exploration | None, generator: np.random.Generator | None
    ) -> Array:
        if exploration is not None and generator is None:
            raise InputError("an exploring policy needs a random generator: pass generator=numpy.random.default_rng(seed)")
        if self.spec.kind == "discrete":
            action = self._choice(leading, seen, exploration, generator) + int(self.spec.action.low[0])
        else:
            action = self._unit_action(leading, seen, exploration, generator) * self._half_width + self._center
        shaped = np.asarray(action).astype(self._dtype).reshape((*leading, *self.spec.action.shape))
        return shaped[()]  # a Discrete action becomes a number: environments look things up by it

    def _choice(
        self, leading: tuple[int, ...], seen: Seen, exploration: Exploration | None, generator: np.random.Generator | None
    ) -> Array:
        """The number of the action, counted from 0, (*leading,)."""
        if exploration is None or generator is None:
            return self._best(leading, seen)
        if exploration.is_random:
            return np.asarray(generator.integers(self.spec.n_actions, size=leading))
        choice = self._best(leading, seen)
        if exploration.random_eps > 0:
            is_random = generator.random(leading) < exploration.random_eps
            choice = np.where(is_random, generator.integers(self.spec.n_actions, size=leading), choice)
        return choice

    def _best(self, leading: tuple[int, ...], seen: Seen) -> Array:
        return np.asarray(self._outputs(leading, seen).argmax(-1))

    def _unit_action(
        self, leading: tuple[int, ...], seen: Seen, exploration: Exploration | None, generator: np.random.Generator | None
    ) -> Array:
        """The action in [-1, 1], (*leading, action's size)."""
        if exploration is None or generator is None:
            return self._squash(self._outputs(leading, seen))
        size = (*leading, self._size)
        if exploration.is_random:
            return np.asarray(generator.uniform(-1.0, 1.0, size))
        led = exploration.guided_fraction > 0 and bool(generator.random() < exploration.guided_fraction)
        output = self._outputs(leading, seen, led)
        action = self._sample(output, generator) if exploration.samples else self._squash(output)
        if exploration.noise > 0:
            noisy = action + exploration.noise * generator.standard_normal(size)
            action = np.minimum(np.maximum(noisy, -1.0), 1.0)
        if exploration.random_eps > 0:
            is_random = generator.random((*leading, 1)) < exploration.random_eps
            action = np.where(is_random, generator.uniform(-1.0, 1.0, size), action)
        return action

    def inputs(self, leading: tuple[int, ...], seen: Seen, led: bool = False) -> Array:
        """What the network sees of observations, achieved and desired goals: (*leading, input_size) float32, normalised.

        With subgoals, the goals of that whose turn it is, by `subgoals.acting_goals`.
        """
        subgoal: Array | int = TASK
        if self.spec.parsed_subgoals:
            observation, achieved_goal, goal = map(np.asarray, seen)
            of_the_task = np.full(leading, TASK)
            subgoal, achieved_goal, goal = acting_goals(
                self.spec.parsed_subgoals, observation, achieved_goal, goal, of_the_task, led
            )
            seen = (observation, achieved_goal, goal)
        x = self.spec.layout.assemble(leading, *seen, subgoal=subgoal)
        x -= self._mean
        x *= self._scale
        if self.spec.normalizer_clip is not None:
            np.minimum(np.maximum(x, -self.spec.normalizer_clip, out=x), self.spec.normalizer_clip, out=x)
        return x

    def _outputs(self, leading: tuple[int, ...], seen: Seen, led: bool = False) -> Array:
        """The last layer's outputs, (*leading, outputs)."""
        if not self._layers:
            raise InputError("this policy has no weights yet: call load(weights) first")
        x = self.inputs(leading, seen, led)
        if self._encoding:
            x = encode(self._encoding, self._convolutions, x)
        for weight, bias in self._layers[:-1]:
            x = np.dot(x, weight)
            x += bias
            if self.spec.layer_norm:
                x = _layer_norm(x)
            np.maximum(x, 0.0, out=x)
        weight, bias = self._layers[-1]
        return np.asarray(np.dot(x, weight) + bias)

    def _squash(self, output: Array) -> Array:
        return np.asarray(np.tanh(output[..., : self._size]))

    def _sample(self, output: Array, generator: np.random.Generator) -> Array:
        if self.spec.kind == "deterministic":
            return self._squash(output)
        mean, deviation = self._moments(output)
        return np.asarray(np.tanh(mean + deviation * generator.standard_normal(mean.shape, np.float32)))

    def _moments(self, output: Array) -> tuple[Array, Array]:
        mean, log_deviation = np.split(output, 2, axis=-1)
        return mean, np.exp(np.clip(log_deviation, *LOG_DEVIATION_RANGE))


def _layer_norm(x: Array) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    return np.asarray(x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + LAYER_NORM_EPS))
