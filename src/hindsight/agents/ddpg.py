"""DDPG: deep deterministic policy gradient (Lillicrap et al. 2016), the agent of the first HER paper."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import DDPGOptions
from ..records import GoalSpec
from . import losses
from .cloning import clone
from .networks import Adam, TargetUpdate, actor_architecture, allocate, choose_device, critic_architecture
from .policy import Exploration
from .preprocessor import Preprocessor, Transitions, make_policy_spec


class DDPG:
    """Critics learn the minimum of the target critics; the actor maximizes the mean of the critics."""

    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: DDPGOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = make_policy_spec(spec, options, "deterministic", options.actor_layer_norm)
        self.preprocessor = Preprocessor(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)

        actor = actor_architecture(self.policy_spec)
        critics = critic_architecture(self.policy_spec, options, 1, options.n_critics)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.target_weights, (self.target_actor, self.target_critics) = allocate([actor, critics], device)
        self.actor.initialize(self.generator, last_layer_scale=0.1)
        self.critics.initialize(self.generator)
        self.target_weights.copy_(self.weights)

        self.actor_adam = Adam(self.actor.flat, options.actor_learning_rate or options.learning_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.target_update = TargetUpdate(self.target_weights, self.weights, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.target_weights, "target_calls": self.target_update.n_calls}
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update critics, actor and target networks."""
        batch = transitions[0]
        target = self._td_target(batch)
        value, tape = self.critics.forward(batch.critic_inputs)
        critic_loss, gradient = losses.squared_loss(value, target, batch.weight)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        del tape, gradient  # the actor's update reuses their memory while it is in the cache
        actor_loss = self._update_actor(batch)
        self.target_update.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = losses.absolute_td_error(value, target)[None]
        return metrics

    def _td_target(self, batch: Transitions) -> Tensor:
        """Return the TD target of the critics, (B, 1)."""
        action = self.target_actor(batch.next_policy_inputs)[0].tanh_()
        values = self.target_critics(torch.cat((batch.next_inputs, action), 1))
        next_value = losses.ensemble_min(values, self.options.n_target_critics, self.generator)
        return losses.td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _update_actor(self, batch: Transitions) -> Tensor:
        inputs = batch.inputs
        output, tape = self.actor.forward(inputs)
        action = output[0].tanh()
        values, critic_tape = self.critics.forward(torch.cat((inputs, action), 1))
        value, of_values = losses.mean_value(values)
        value_gradient = self.critics.input_gradient(critic_tape, of_values, self.preprocessor.size).sum(0)
        value, value_gradient = clone(batch, action, value, value_gradient, self._mean_value, self.options)
        loss, gradient = losses.deterministic_policy_loss(action, value, value_gradient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss

    def _mean_value(self, critic_inputs: Tensor) -> Tensor:
        return losses.mean_value(self.critics(critic_inputs))[0]

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean of the critics for the actor's action, (N,), for network inputs (N, n)."""
        action = self.actor(inputs)[0].tanh_()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def actor_weights(self) -> Tensor:
        """Return the flat weights of the actor."""
        return self.actor.flat

    def exploration(self, env_steps: int) -> Exploration:
        """Return the exploration, which is the same at every step."""
        return Exploration(self.options.random_eps, self.options.noise)
