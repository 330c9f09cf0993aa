"""Agent: what every algorithm offers to the rest of the library: updates, weights of its policy, its state as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError, InputError
from ..options.agent import ActorCriticOptions
from ..records import OBSERVATION_KEYS, Array
from ..records.exploration import Exploration
from ..records.reward_scale import RewardScale, scale_as_array, scale_from_array
from ..task_structure.state_planner import StatePlanner
from ..task_structure.tabular_model import NO_PATH
from ..task_structure.waypoints import Waypoints
from .policy import PolicyWeights

if TYPE_CHECKING:  # only the algorithms load torch
    from torch import Tensor

    from ..records import Batch, Episode
    from .dqn import DQN
    from .preprocessor import Transitions
    from .sac import SAC
    from .td3 import TD3


class Agent:
    """One algorithm, with its update count and the EMA of its policy.

    algorithm: `learn` is one update, always the same operations, all on the device, so that a CUDA graph can capture it.
        `weights` is one flat vector, `tensors` all that the next update depends on besides normalizer and generator.
    policy_ema: rate of the exponential moving average, ema += rate * (policy - ema) per update; 1 disables it. Evaluation
        and saved policies use the EMA, which varies less between updates. Collection uses the policy itself.

    reward_scale: that of the rewards in the batches, set by whoever samples them; None: not known yet. It is kept with the
        agent because values, and so all further updates, belong to it. The agent itself does not convert rewards.
    """

    def __init__(self, algorithm: DQN | TD3 | SAC, policy_ema: float = 1.0) -> None:
        self.algorithm = algorithm
        self.policy_spec = algorithm.policy_spec
        self.batches_per_update = algorithm.batches_per_update
        self.n_updates = 0  # critic updates so far
        self.reward_scale: RewardScale | None = None
        self.policy_ema = policy_ema
        self._ema = algorithm.actor_weights().clone() if policy_ema < 1 else None
        self._tensors = algorithm.tensors | ({} if self._ema is None else {"policy_ema": self._ema})
        self.plan_paths(self.policy_spec.options.n_waypoints)
        sizes = self.policy_spec.planner_sizes
        self.planner = StatePlanner(sizes) if sizes else None

    def plan_paths(self, n_waypoints: int, is_followed: bool = True) -> None:
        """Have so many waypoints from now on, with the same networks; none is known yet.

        is_followed: whether evaluation and saved policies act for them.
        """
        options = self.policy_spec.options.model_copy(update={"n_waypoints": n_waypoints})
        self.policy_spec = replace(self.policy_spec, options=options)
        self.waypoints = Waypoints.unknown(n_waypoints, self.policy_spec.task.goal.size)
        self.follows_paths = is_followed

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Run one update and return its metrics, () tensors, which are not finite once the weights are not.

        batch: arrays (batches_per_update, B, ...), or (B, ...) if batches_per_update is 1; actions in the environment's
            units. If it has weights, the metric "priority" is the absolute TD error, (batches_per_update, B).
        """
        return self._learn(self.algorithm.preprocessor.transitions(batch, self.batches_per_update))

    def updates(self, batch: Batch) -> list[dict[str, Tensor]]:
        """Run n updates and return their metrics. This is faster than n calls of `update`, with the same result.

        batch: arrays (n * batches_per_update, B, ...), otherwise as for `update`.
        """
        size = self.batches_per_update
        transitions = self.algorithm.preprocessor.transitions(batch, max(1, len(batch) // size) * size)
        return [self._learn(transitions[first : first + size]) for first in range(0, len(batch), size)]

    def _learn(self, transitions: Transitions) -> dict[str, Tensor]:
        metrics = self.algorithm.learn(transitions)
        self.n_updates += self.batches_per_update
        if self._ema is not None:
            self._ema.lerp_(self.algorithm.actor_weights(), self.policy_ema)
        return metrics

    def observe(self, episode: Episode) -> None:
        """Add an episode to the statistics that normalize the inputs, and to what plans over states."""
        if self.planner is not None:
            self.planner.add(episode, int(self.policy_spec.task.action.low[0]))
        self.algorithm.preprocessor.observe(episode)

    def exploration(self, is_random: bool, env_steps: int = 0) -> Exploration:
        """Return the exploration for collecting.

        is_random: whether all actions are random (before the first update).
        env_steps: environment steps of the run so far.
        """
        options = self.policy_spec.options
        decay = options.exploration_decay if env_steps >= options.exploration_decay_start else 1.0
        noise = options.noise if isinstance(options, ActorCriticOptions) else 0.0
        plans = options.n_waypoints > 0 or self.plans_states
        return Exploration(
            random_eps=decay * options.eps_at(env_steps),
            noise=decay * noise,
            is_random=is_random,
            samples=self.policy_spec.kind == "squashed_gaussian",
            exploration_episodes=options.exploration_episodes if plans and not is_random else 0.0,
            random_action_repeat=options.random_action_repeat,
        )

    @property
    def plans_states(self) -> bool:
        """Whether paths over states are planned: states recur, or rules predict them."""
        return self.planner is not None and (self.planner.recurs or self.planner.predicts)

    def knows_path(self, episode: Episode) -> bool:
        """Return whether a planned path leads from the start of an episode to its desired goal."""
        if self.planner is None or not self.plans_states:
            return False
        seen, achieved, desired = (getattr(episode, key)[0] for key in OBSERVATION_KEYS)
        return self.planner.action(seen, achieved, desired, self.policy_spec.options.discount) != NO_PATH

    def values(self, episode: Episode) -> Array:
        """Return the critics' value of the greedy action before each step of an episode, (T,), for the task's own goal.

        It is in the units of the rewards in the batches.
        """
        rows = (getattr(episode, key)[:-1] for key in OBSERVATION_KEYS)
        return np.asarray(self.algorithm.value(self.algorithm.preprocessor.policy_inputs(*rows)).cpu().numpy())

    def policy_weights(self) -> PolicyWeights:
        """Return copies of the weights for evaluation: the EMA if there is one, otherwise the policy."""
        weights = self._copy(self.algorithm.actor_weights() if self._ema is None else self._ema)
        return weights if self.follows_paths else weights.without_paths()

    def collecting_weights(self) -> PolicyWeights:
        """Return copies of the weights for collecting: the policy."""
        return self._copy(self.algorithm.actor_weights())

    def _copy(self, flat: Tensor) -> PolicyWeights:
        mean, scale = self.algorithm.preprocessor.normalizer.mean_and_scale()
        plan = {} if self.planner is None else self.planner.plan()
        positions, table = self.waypoints.waypoints, self.waypoints.next_waypoint
        return PolicyWeights(flat.cpu().numpy().copy(), mean, scale, positions, table, **plan)

    def input_statistics(self) -> dict[str, float]:
        """Return running mean and standard deviation, averaged over observation (`stats_o`) and goal (`stats_g`)."""
        return self.algorithm.preprocessor.normalizer.summary()

    def is_finite(self) -> bool:
        """Return whether no weight is NaN or infinite. This waits for the device."""
        return bool(self.algorithm.weights.isfinite().all())

    def state_dict(self) -> dict[str, Array]:
        """Return copies of everything that the next updates depend on, bit for bit."""
        return self._state_of_fixed_shapes() | ({} if self.planner is None else self.planner.arrays())

    def _state_of_fixed_shapes(self) -> dict[str, Array]:
        return {
            **{name: tensor.cpu().numpy().copy() for name, tensor in self._tensors.items()},
            **self.algorithm.preprocessor.normalizer.state_dict(),
            "generator": self.algorithm.generator.get_state().numpy().copy(),
            "n_updates": np.array(self.n_updates, np.int64),
            "reward_scale": scale_as_array(self.reward_scale),
            **(asdict(self.waypoints) if self.policy_spec.options.n_waypoints else {}),
        }

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore a `state_dict`. Raises FileError if it does not fit; nothing is changed then."""
        planner = None if self.planner is None else _restored_planner(state, self.planner)
        of_planner = {} if planner is None else planner.arrays()
        _check_state({n: a for n, a in state.items() if n not in of_planner}, self._state_of_fixed_shapes())
        scale = scale_from_array(state["reward_scale"])
        generator, preprocessor = self.algorithm.generator, self.algorithm.preprocessor
        try:
            generator.set_state(generator.get_state().new_tensor(state["generator"]))
        except RuntimeError as problem:
            raise FileError(f"The state of the random generator is damaged ({problem}).") from None
        for name, tensor in self._tensors.items():
            tensor.copy_(tensor.new_tensor(state[name]))
        preprocessor.normalizer.load_state_dict(state)
        preprocessor.refresh()
        self.n_updates, self.reward_scale, self.planner = int(state["n_updates"]), scale, planner
        if self.policy_spec.options.n_waypoints:
            self.waypoints = Waypoints(state["waypoints"], state["next_waypoint"])


def _restored_planner(state: Mapping[str, Array], planner: StatePlanner) -> StatePlanner:
    try:
        return StatePlanner.restore({name: state[name] for name in planner.arrays()}, planner.sizes)
    except (KeyError, ValueError, InputError) as problem:
        raise FileError(f"The visited states are missing or damaged ({problem}).") from None


def _check_state(state: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    shapes, expected_shapes = ({n: f"{a.shape} {a.dtype}" for n, a in arrays.items()} for arrays in (state, expected))
    wrong = [
        f"{name} (expected {expected_shapes.get(name, 'nothing')}, got {shapes.get(name, 'nothing')})"
        for name in sorted(expected_shapes.keys() | shapes.keys())
        if expected_shapes.get(name) != shapes.get(name)
    ]
    if wrong:
        raise FileError(f"The state is of another agent, other options or another task: {', '.join(wrong)}.")
