"""TD3: twin delayed deep deterministic policy gradient (Fujimoto et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..records import Batch, Episode, GoalSpec
from .inputs import Array, Inputs, Transitions, choose_device, policy_spec, policy_weights, value_range
from .losses import deterministic_policy_loss, lowest, smoothed_action, squared_error, td_target
from .networks import Adam, Architecture, Network, TargetStep, allocate, initialize
from .options import TD3Options
from .policy import Exploration, PolicyWeights
from .state import AgentState


class TD3:
    """Critics learn towards the lower of two smoothed target values; the actor follows, once in `policy_period` updates."""

    options_type = TD3Options

    def __init__(self, spec: GoalSpec, options: TD3Options, seed: int) -> None:
        self.spec, self.options = spec, options
        device = choose_device(options.device)
        self.batches_per_update = options.policy_period
        self.policy_spec = policy_spec(spec, options, "deterministic")
        self.inputs = Inputs(spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)

        actor = Architecture(self.policy_spec.layer_sizes, 1, options.actor_layer_norm)
        critic_sizes = (self.inputs.size + spec.action.size, *options.hidden, 1)
        critics = Architecture(critic_sizes, options.n_critics, options.critic_layer_norm)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.targets, (self.target_actor, self.target_critics) = allocate([actor, critics], device)
        self.first_critic = Network(critics, self.critics.flat, slice(0, 1))
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
        """One critic step on each of `policy_period` batches, then a step of the actor, on the last, and of the targets.

        batch: arrays (policy_period, B, ...), actions in the environment's units. Returns metrics, () tensors, of the last
        batch; they are not finite once the weights are not.
        """
        metrics = self._learn(self.inputs.transitions(batch, self.batches_per_update))
        self.state.n_updates += self.batches_per_update
        return metrics

    def _learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """The part of an update that never leaves the device: always the same operations, fit for a CUDA graph."""
        targets = self._targets(transitions)
        for critic_inputs, target in zip(transitions.critic_inputs, targets, strict=True):
            critic_loss, value = self._update_critics(critic_inputs, target)
        actor_loss = self._update_actor(transitions.inputs[-1])
        self.target_step.step()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}

    def _targets(self, transitions: Transitions) -> Tensor:
        """What the critics should say, (P, B, 1), for all batches at once: the target networks stand still meanwhile."""
        options, next_inputs = self.options, transitions.next_inputs.flatten(0, 1)
        action = self.target_actor(next_inputs)[0].tanh_()
        action = smoothed_action(action, options.target_noise, options.target_noise_clip, self.generator)
        values = self.target_critics(torch.cat((next_inputs, action), 1))
        next_value = lowest(values, options.n_target_critics, self.generator).view_as(transitions.reward)
        return td_target(transitions.reward, transitions.discount, next_value, *self.value_range)

    def _update_critics(self, critic_inputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        value, tape = self.critics.record(critic_inputs)
        loss, gradient = squared_error(value, target)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        return loss, value

    def _update_actor(self, inputs: Tensor) -> Tensor:
        output, tape = self.actor.record(inputs)
        action = output[0].tanh()
        value, critic_tape = self.first_critic.record(torch.cat((inputs, action), 1))
        value_gradient = self.first_critic.input_gradient(critic_tape, torch.ones_like(value), self.inputs.size)
        loss, gradient = deterministic_policy_loss(action, value, value_gradient[0], self.options.action_l2)
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
