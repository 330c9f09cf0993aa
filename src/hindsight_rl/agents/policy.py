"""The policy: observations and goals in, actions out, in NumPy. Workers, evaluation and robots need no torch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import GoalEnvError, InputError, OptionError
from ..options import CONTINUOUS_AGENTS, DISCRETE_AGENTS
from ..options.agent import ActorCriticOptions, AgentOptions, ChoiceOptions, PolicyKind
from ..records import Array, ArraySpec, GoalSpec
from ..records.exploration import GREEDY, Exploration
from ..task_structure.state_planner import StatePlanner
from ..task_structure.subgoals import TASK, Subgoals
from ..task_structure.tabular_model import NO_PATH
from ..task_structure.waypoints import GOAL, Waypoints
from .forward import Architecture, encode, layer_norm
from .layout import Layout

Observed = tuple[Array, Array, Array]  # observation, achieved goal, desired goal

LOG_STD_RANGE = (-20.0, 2.0)  # of a Gaussian policy, before squashing
TANH_MARGIN = 1e-6  # the density of an action at a bound is taken this far inside it


@dataclass(frozen=True)
class PolicySpec:
    """Everything about a policy except its weights.

    task: shapes and bounds of observations, goals and actions.
    options: of the agent; its `policy_kind` says how the policy acts.

    Raises GoalEnvError if the agent cannot act in this action space, and what Layout and Subgoals raise.
    """

    task: GoalSpec
    options: AgentOptions

    def __post_init__(self) -> None:
        _check_action(self.task.action, self.kind)
        _ = self.layout, self.parsed_subgoals  # raise if they are wrong
        self._check_waypoints()

    def _check_waypoints(self) -> None:
        goal, n = self.task.goal, self.options.n_waypoints
        if n and (self.subgoals or len(goal.shape) != 1 or np.dtype(goal.dtype).kind != "f"):
            raise OptionError(
                f"n_waypoints is {n}, but waypoints need goals that are vectors of floats, and no subgoals. Got goals of "
                f"shape {goal.shape} and {goal.dtype}, and {len(self.subgoals)} subgoals. Set n_waypoints=0."
            )

    @property
    def kind(self) -> PolicyKind:
        """The meaning of the last layer, see `AgentOptions`."""
        return self.options.policy_kind

    @cached_property
    def layout(self) -> Layout:
        """Return the columns of the network input."""
        goal, subgoals = self.task.goal, self.parsed_subgoals
        if subgoals.n_added:
            goal = ArraySpec((goal.size + subgoals.n_added,), goal.dtype)
        return Layout(self.task.observation, goal, self.options, subgoals.n_indices)

    @property
    def subgoals(self) -> tuple[str, ...]:
        """Return the texts of the subgoals, see `hindsight_rl.task_structure.subgoals`."""
        return self.options.subgoals

    @cached_property
    def parsed_subgoals(self) -> Subgoals:
        """Return the subgoals in their order."""
        return Subgoals(self.subgoals, self.task, self.options.hidden_observation)

    @property
    def n_actions(self) -> int:
        """Return the number of actions of a Discrete action space, 0 for other spaces."""
        return self.task.action.n_values or 0

    @property
    def planner_sizes(self) -> tuple[int, int, int] | None:
        """Return the sizes of the `StatePlanner`: columns of a state, those of the achieved goal, and actions.

        None if the policy does not plan over visited states.
        """
        if not (isinstance(self.options, ChoiceOptions) and self.options.plan_states):
            return None
        return self.task.observation.size + self.task.goal.size, self.task.goal.size, self.n_actions

    @cached_property
    def action_range(self) -> tuple[Array, Array]:
        """Return middle and half width of the range of each number of an action, float64, so actions reach the bounds."""
        low, high = (bound.ravel() for bound in self.task.action.bounds())
        scale = self.options.action_scale if isinstance(self.options, ActorCriticOptions) else 1.0
        return (high + low) / 2, scale * (high - low) / 2

    @cached_property
    def architecture(self) -> Architecture:
        """Return the architecture of the network that acts."""
        options = self.options
        n_outputs = self.n_actions or self.task.action.size * (2 if self.kind == "squashed_gaussian" else 1)
        layer_norm = options.actor_layer_norm if isinstance(options, ActorCriticOptions) else options.critic_layer_norm
        return self.network(n_outputs, layer_norm)

    def network(self, n_outputs: int, layer_norm: bool, n_others: int = 0, n_members: int = 1) -> Architecture:
        """Return the architecture of a network whose inputs are those of the policy and `n_others` after them."""
        encoding = self.layout.encoding(self.options.image_channels, n_others)
        n_inputs = encoding.output_size if encoding else self.layout.size + n_others
        return Architecture((n_inputs, *self.options.hidden, n_outputs), n_members, layer_norm, encoding)

    def check(self, weights: PolicyWeights) -> None:
        """Raise InputError if weights do not fit.

        The spec of a file may name any sizes, so nothing of these sizes is allocated before they equal those of arrays.
        """
        n_inputs = self.layout.size
        for name in ("input_mean", "input_scale"):
            _check_vector(name, getattr(weights, name), n_inputs)
        _check_vector("flat", weights.flat, self.architecture.n_weights)  # it lists the columns of images
        n, positions, table = self.options.n_waypoints, weights.waypoints, weights.next_waypoint
        is_table = table.shape == (n, n) and bool(((table >= GOAL) & (table < n)).all())
        if n and (positions.shape != (n, self.task.goal.size) or not is_table):
            raise InputError(f"Expected {n} waypoints and a table of them, got {positions.shape} and {table.shape}.")


def _check_vector(name: str, array: Array, size: int) -> None:
    if array.shape != (size,) or array.dtype != np.float32:
        raise InputError(f"Expected shape ({size},) and float32 for `{name}`, got {array.shape} {array.dtype}.")


def _check_action(action: ArraySpec, kind: PolicyKind) -> None:
    if action.n_values is None and np.dtype(action.dtype).kind != "f":
        raise GoalEnvError(
            f"Expected float or Discrete actions, got {action.dtype}. If they are MultiDiscrete or MultiBinary, wrap the "
            f"environment in hindsight_rl.DiscreteActions. Else use gymnasium.wrappers.TransformAction."
        )
    if (action.n_values is not None) != (kind == "discrete"):
        space = f"Discrete({action.n_values})" if action.n_values else f"a Box of shape {action.shape}"
        fitting = DISCRETE_AGENTS if action.n_values else CONTINUOUS_AGENTS
        raise GoalEnvError(f"This agent cannot act in {space}. Use one of {', '.join(fitting)}.")
    low, high = np.asarray(action.low), np.asarray(action.high)
    if kind != "discrete" and (not action.is_bounded or not (low < high).all()):
        raise GoalEnvError(
            f"Expected finite action bounds, the lower below the upper, got {action.low} to {action.high}. "
            f"Declare such bounds, or use gymnasium.wrappers.TransformAction."
        )


@dataclass(frozen=True, eq=False, repr=False)
class PolicyWeights:
    """The numbers of a policy, float32.

    flat: (n_weights,), read by `convolution_views` (with images) and `layer_views`.
    input_mean, input_scale: (input_size,) each; the network sees (x - mean) * scale.
    waypoints, next_waypoint: of `Waypoints`; empty without waypoints.
    visited_states and all after it: the plan of a `StatePlanner`, int32; empty while it has none. state_columns: empty if
        all columns are planned with.
    """

    flat: Array
    input_mean: Array
    input_scale: Array
    waypoints: Array = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    next_waypoint: Array = field(default_factory=lambda: np.zeros((0, 0), np.int16))
    visited_states: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    transitions: Array = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    rule_nodes: Array = field(default_factory=lambda: np.zeros((0, 5), np.int32))
    rule_changes: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    rule_ranges: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    state_columns: Array = field(default_factory=lambda: np.zeros(0, np.int32))

    def without_paths(self) -> PolicyWeights:
        """Return the weights of a policy that acts for each goal itself, and for no waypoint."""
        return replace(self, next_waypoint=np.full_like(self.next_waypoint, GOAL))

    @property
    def has_plan(self) -> bool:
        """Return whether the policy plans over states."""
        return len(self.visited_states) > 0 or len(self.rule_nodes) > 0

    def __repr__(self) -> str:
        return f"PolicyWeights({self.flat.size:,} weights, {self.input_mean.size} inputs)"


class Policy:
    """A policy that acts for one observation or for many."""

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        self._center, self._half_width = spec.action_range
        self._size, self._dtype = spec.task.action.size, np.dtype(spec.task.action.dtype)
        self._layers: list[tuple[Array, Array]] = []
        self._encoding, self._layer_norm = spec.architecture.encoding, spec.architecture.layer_norm
        self._clip = spec.options.normalizer_clip if spec.options.normalize else None
        self.planner: StatePlanner | None = None  # once there is a plan
        self.follows_paths = True  # if not, waypoints are left out

    def load(self, weights: PolicyWeights) -> None:
        """Use these weights from now on, without a copy. Raises InputError if they do not fit."""
        self.spec.check(weights)
        self._waypoints = Waypoints(weights.waypoints, weights.next_waypoint) if self.spec.options.n_waypoints else None
        sizes = self.spec.planner_sizes
        self.planner = StatePlanner.from_plan(vars(weights), sizes) if sizes and weights.has_plan else None
        self._convolutions, layers = self.spec.architecture.views(weights.flat)
        self._layers = [(weight[0].T, bias[0]) for weight, bias in layers]
        self._mean, self._scale = weights.input_mean, weights.input_scale

    def act(
        self,
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        exploration: Exploration | None = None,
        generator: np.random.Generator | None = None,
    ) -> Array:
        """Return the action for one observation, or the actions for N (every array has a leading axis then).

        Actions have the environment's units, shape and dtype; a Discrete action for one observation is a NumPy integer.
        The last bits may differ between one and N observations, because a matrix product sums in another order.

        exploration: None for the greedy action.
        generator: random generator, needed with `exploration`.

        Raises InputError without generator or weights.
        """
        if exploration is not None and generator is None:
            raise InputError("Exploration needs a random generator. Pass generator=numpy.random.default_rng(seed).")
        leading, observed = self._leading(observation), (observation, achieved_goal, desired_goal)
        if self.spec.kind == "discrete":
            index = self._discrete_action(leading, observed, exploration or GREEDY, generator)
            action = index + int(self.spec.task.action.low[0])
        else:
            unit_action = self._continuous_action(leading, observed, exploration or GREEDY, generator)
            action = unit_action * self._half_width + self._center
        shaped = np.asarray(action).astype(self._dtype).reshape((*leading, *self.spec.task.action.shape))
        return shaped[()]  # a Discrete action becomes a number: environments use it as a key

    predict = act  # SB3's name, but not its call: three arrays in, the action alone out. HER.predict is called as in SB3

    def distribution(
        self, observation: Array, achieved_goal: Array, desired_goal: Array, exploration: Exploration | None = None
    ) -> Array | tuple[Array, Array]:
        """Return the action distribution for one observation or for N.

        A "discrete" policy returns probabilities, (..., n_actions), as `act` samples with this exploration; without
        exploration 1 for the greedy action. (Stable-Baselines2 returned a softmax of the values, from which no action was
        sampled.) A "squashed_gaussian" policy returns mean and standard deviation before tanh, (..., action size) each.
        Raises InputError for a "deterministic" policy.
        """
        leading = self._leading(observation)
        observed = observation, achieved_goal, desired_goal
        if self.spec.kind == "squashed_gaussian":
            return self._mean_and_std(self._outputs(leading, observed))
        if self.spec.kind == "deterministic":
            raise InputError("A deterministic policy has no distribution. Use `act` or `predict`.")
        greedy = (self._best_action(leading, observed)[..., None] == np.arange(self.spec.n_actions)).astype(np.float64)
        eps = 0.0 if exploration is None else 1.0 if exploration.is_random else exploration.random_eps
        return np.asarray((1.0 - eps) * greedy + eps / self.spec.n_actions)

    def log_probability(
        self,
        observation: Array,
        achieved_goal: Array,
        desired_goal: Array,
        action: Array,
        exploration: Exploration | None = None,
    ) -> Array:
        """Return the log probability ("discrete") or log density ("squashed_gaussian") of actions, () or (N,).

        action: in the environment's units; -inf for an action outside the space.
        exploration: for a "discrete" policy, as in `distribution`; a density is that of the sampled policy.

        Raises InputError for a "deterministic" policy.
        """
        leading = self._leading(observation)
        distribution = self.distribution(observation, achieved_goal, desired_goal, exploration)
        with np.errstate(divide="ignore"):
            if not isinstance(distribution, tuple):
                actions = np.arange(self.spec.n_actions) + int(self.spec.task.action.low[0])
                is_taken = np.asarray(action).reshape((*leading, 1)) == actions
                return np.asarray(np.log((distribution * is_taken).sum(-1)))
            unit_action = (np.asarray(action).reshape((*leading, self._size)) - self._center) / self._half_width
            return self._log_density(unit_action, *distribution)

    def _log_density(self, action: Array, mean: Array, std: Array) -> Array:
        """Return the log density per unit of the environment of actions in [-1, 1], (...)."""
        inside = np.clip(action, -1.0 + TANH_MARGIN, 1.0 - TANH_MARGIN)  # tanh rounds to the bounds
        log_gaussian = -0.5 * np.square((np.arctanh(inside) - mean) / std) - np.log(std * np.sqrt(2.0 * np.pi))
        log_slope = np.log1p(-np.square(inside)) + np.log(self._half_width)
        return np.asarray(np.where((np.abs(action) <= 1.0).all(-1), (log_gaussian - log_slope).sum(-1), -np.inf))

    def _leading(self, observation: Array) -> tuple[int, ...]:
        """Return the axes before those of one observation: none or one."""
        shape = np.shape(observation)
        return shape[: len(shape) - len(self.spec.task.observation.shape)]

    def _discrete_action(self, leading: tuple[int, ...], observed: Observed, exploration: Exploration, rng: Any) -> Array:
        """Return the index of the action, counted from 0, (*leading,)."""
        if exploration.is_random:
            return np.asarray(rng.integers(self.spec.n_actions, size=leading))
        index = self._best_action(leading, observed, self._is_guided(exploration, rng))
        if exploration.random_eps > 0:
            is_random = rng.random(leading) < exploration.random_eps
            index = np.where(is_random, rng.integers(self.spec.n_actions, size=leading), index)
        return index

    @staticmethod
    def _is_guided(exploration: Exploration, rng: Any) -> bool:
        """Return whether this step acts for the first subgoal that is not met."""
        return exploration.guided_fraction > 0 and bool(rng.random() < exploration.guided_fraction)

    def _best_action(self, leading: tuple[int, ...], observed: Observed, is_guided: bool = False) -> Array:
        """Return the index of the best action, (*leading,): where known paths lead to the goal, that of the plan."""
        best = np.asarray(self._outputs(leading, observed, is_guided).argmax(-1))
        planner = self.planner
        if planner is None:
            return best
        discount = self.spec.options.discount
        rows = zip(*observed, strict=True) if leading else [observed]
        planned = np.array([planner.action(seen, achieved, goal, discount) for seen, achieved, goal in rows])
        planned = planned.reshape(leading)
        return np.where(planned == NO_PATH, best, planned)

    def _continuous_action(self, leading: tuple[int, ...], observed: Observed, exploration: Exploration, rng: Any) -> Array:
        """Return the action in [-1, 1], (*leading, action size)."""
        size = (*leading, self._size)
        if exploration.is_random:
            return np.asarray(exploration.random_scale * rng.uniform(-1.0, 1.0, size))
        output = self._outputs(leading, observed, self._is_guided(exploration, rng))
        if exploration.samples and self.spec.kind == "squashed_gaussian":
            mean, std = self._mean_and_std(output)
            action = np.tanh(mean + std * rng.standard_normal(mean.shape, np.float32))
        else:
            action = np.tanh(output[..., : self._size])
        if exploration.noise > 0:
            noisy = action + exploration.noise * rng.standard_normal(size)
            action = np.minimum(np.maximum(noisy, -1.0), 1.0)
        if exploration.random_eps > 0:
            is_random = rng.random((*leading, 1)) < exploration.random_eps
            action = np.where(is_random, rng.uniform(-1.0, 1.0, size), action)
        return np.asarray(action)

    def inputs(self, leading: tuple[int, ...], observed: Observed, is_guided: bool = False) -> Array:
        """Return the normalized network input, (*leading, input_size) float32.

        leading: the axes before those of one observation.
        observed: observations, achieved goals and desired goals; subgoals replace the goals as in `Subgoals.acting_goals`.
        """
        observation, achieved_goal, goal = map(np.asarray, observed)
        subgoals, subgoal = self.spec.parsed_subgoals, TASK
        if self._waypoints is not None and self.follows_paths:
            goal = self._waypoints.toward(achieved_goal, goal)
        if subgoals and leading:
            of_task = np.full(leading, TASK)
            subgoal, achieved_goal, goal = subgoals.acting_goals(observation, achieved_goal, goal, of_task, is_guided)
        elif subgoals:
            subgoal, achieved_goal, goal = subgoals.acting_goal(observation, achieved_goal, goal, is_guided)
        observation, achieved_goal, goal = subgoals.seen(subgoal, observation, achieved_goal, goal)
        x: Array = self.spec.layout.assemble(leading, observation, achieved_goal, goal, subgoal=subgoal)
        x -= self._mean
        x *= self._scale
        if self._clip is not None:
            np.minimum(np.maximum(x, -self._clip, out=x), self._clip, out=x)
        return x

    def _outputs(self, leading: tuple[int, ...], observed: Observed, is_guided: bool = False) -> Array:
        """Return the last layer's outputs, (*leading, outputs)."""
        if not self._layers:
            raise InputError("This policy has no weights yet. Call load(weights) first.")
        x = self.inputs(leading, observed, is_guided)
        if self._encoding:
            x = encode(self._encoding, self._convolutions, x)
        for weight, bias in self._layers[:-1]:
            x = np.dot(x, weight)
            x += bias
            if self._layer_norm:
                x = layer_norm(x)
            np.maximum(x, 0.0, out=x)
        weight, bias = self._layers[-1]
        return np.asarray(np.dot(x, weight) + bias)

    def _mean_and_std(self, output: Array) -> tuple[Array, Array]:
        mean, log_std = output[..., : self._size], output[..., self._size :]
        low, high = LOG_STD_RANGE
        return mean, np.exp(np.minimum(np.maximum(log_std, low), high))  # np.clip takes several times as long
