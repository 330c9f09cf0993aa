"""DDPG: deep deterministic policy gradient (Lillicrap et al. 2016), as hindsight was first used with."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..records import Batch, Episode, GoalSpec
from .inputs import Array, Inputs, Transitions, choose_device, policy_spec, policy_weights, value_range
from .losses import deterministic_policy_loss, lowest, mean_value, squared_error, td_target
from .networks import Adam, Architecture, TargetStep, allocate, initialize
from .options import DDPGOptions
from .policy import Exploration, PolicyWeights
from .state import AgentState


class DDPG:
    """The critic learns towards the target networks' value; the actor climbs the critic, or the mean of several."""

    options_type = DDPGOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: DDPGOptions, seed: int) -> None:
        self.spec, self.options = spec, options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "deterministic")
        self.inputs = Inputs(spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)

        actor = Architecture(self.policy_spec.layer_sizes, 1, options.actor_layer_norm)
        critic_sizes = (self.inputs.size + spec.action.size, *options.hidden, 1)
        critics = Architecture(critic_sizes, options.n_critics, options.critic_layer_norm)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.targets, (self.target_actor, self.target_critics) = allocate([actor, critics], device)
        initialize(self.actor, self.generator, last_layer_scale=0.1)
        initialize(self.critics, self.generator)
        self.targets.copy_(self.weights)

        actor_rate = options.actor_learning_rate or options.learning_rate
        self.actor_adam = Adam(self.actor.flat, actor_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.target_step = TargetStep(self.targets, self.weights, options.tau, options.target_period)
        tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_step.n_calls}
        tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")
        self.state = AgentState(tensors, self.inputs.normalizer, self.generator)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One step of the critic, of the actor and of the targets.

        batch: arrays (1, B, ...) or (B, ...), actions in the environment's units. Returns metrics, () tensors; they are not
        finite once the weights are not.
        """
        metrics = self._learn(self.inputs.transitions(batch, self.batches_per_update))
        self.state.n_updates += 1
        return metrics

    def _learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """The part of an update that never leaves the device: always the same operations, fit for a CUDA graph."""
        critic_loss, value = self._update_critics(transitions.critic_inputs[0], self._target(transitions))
        actor_loss = self._update_actor(transitions.inputs[0])
        self.target_step.step()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}

    def _target(self, transitions: Transitions) -> Tensor:
        """What the critics should say, (B, 1)."""
        next_inputs = transitions.next_inputs[0]
        action = self.target_actor(next_inputs)[0].tanh_()
        values = self.target_critics(torch.cat((next_inputs, action), 1))
        next_value = lowest(values, self.options.n_target_critics, self.generator)
        return td_target(transitions.reward[0], transitions.discount[0], next_value, *self.value_range)

    def _update_critics(self, critic_inputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        value, tape = self.critics.record(critic_inputs)
        loss, gradient = squared_error(value, target)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        return loss, value

    def _update_actor(self, inputs: Tensor) -> Tensor:
        output, tape = self.actor.record(inputs)
        action = output[0].tanh()
        values, critic_tape = self.critics.record(torch.cat((inputs, action), 1))
        value, of_values = mean_value(values)
        value_gradient = self.critics.input_gradient(critic_tape, of_values, self.inputs.size).sum(0)
        loss, gradient = deterministic_policy_loss(action, value, value_gradient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss

    def observe(self, episode: Episode) -> None:
        """Take an episode up into the statistics that inputs are normalised by."""
        self.inputs.observe(episode)

    def exploration(self, is_random: bool) -> Exploration:
        """How to act while collecting; `is_random` for the warm-up."""
        return Exploration(self.options.random_eps, self.options.noise, is_random)

    def policy_weights(self) -> PolicyWeights:
        """Copies of what acting needs."""
        return policy_weights(self.actor.flat, self.inputs)

    @property
    def n_updates(self) -> int:
        """Critic steps so far."""
        return self.state.n_updates

    def is_finite(self) -> bool:
        """Whether no weight is NaN or infinite; waits for the device."""
        return bool(torch.isfinite(self.weights).all())

    def state_dict(self) -> dict[str, Array]:
        """Copies of everything needed to go on bit for bit."""
        return self.state.state_dict()

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take a `state_dict` back; raises FileError, naming the difference, before anything is changed."""
        self.state.load_state_dict(state)
        self.inputs.refresh()
