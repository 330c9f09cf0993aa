"""DDPG: deep deterministic policy gradient (Lillicrap et al. 2016), as hindsight was first used with."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import DDPGOptions
from ..records import GoalSpec
from .inputs import Inputs, Transitions, actor_architecture, choose_device, critic_architecture, policy_spec, value_range
from .losses import absolute_error, deterministic_policy_loss, lowest, mean_value, squared_error, td_target
from .networks import Adam, TargetStep, allocate, initialize
from .policy import Exploration


class DDPG:
    """The critic learns towards the target networks' value; the actor climbs the critic, or the mean of several."""

    options_type = DDPGOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: DDPGOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "deterministic", options.actor_layer_norm)
        self.inputs = Inputs(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)

        actor = actor_architecture(self.policy_spec)
        critics = critic_architecture(self.policy_spec, options, 1, options.n_critics)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.targets, (self.target_actor, self.target_critics) = allocate([actor, critics], device)
        initialize(self.actor, self.generator, last_layer_scale=0.1)
        initialize(self.critics, self.generator)
        self.targets.copy_(self.weights)

        actor_rate = options.actor_learning_rate or options.learning_rate
        self.actor_adam = Adam(self.actor.flat, actor_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.optimizers = (self.actor_adam, self.critic_adam)
        self.target_step = TargetStep(self.targets, self.weights, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_step.n_calls}
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """One step of the critic, of the actor and of the targets."""
        batch = transitions[0]
        target = self._target(batch)
        critic_loss, value = self._update_critics(batch, target)
        actor_loss = self._update_actor(batch.inputs)
        self.target_step.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = absolute_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions) -> Tensor:
        """What the critics should say, (B, 1)."""
        action = self.target_actor(batch.next_acting_inputs)[0].tanh_()
        values = self.target_critics(torch.cat((batch.next_inputs, action), 1))
        next_value = lowest(values, self.options.n_target_critics, self.generator)
        return td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _update_critics(self, batch: Transitions, target: Tensor) -> tuple[Tensor, Tensor]:
        value, tape = self.critics.record(batch.critic_inputs)
        loss, gradient = squared_error(value, target, batch.weight)
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

    def value(self, inputs: Tensor) -> Tensor:
        """What the critics expect of the policy's action, on average; inputs: (N, n). (N,)."""
        action = self.actor(inputs)[0].tanh_()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def policy(self) -> Tensor:
        """The flat weights that acting needs."""
        return self.actor.flat

    def exploration(self, env_steps: int) -> Exploration:
        """How to act while collecting: always alike."""
        return Exploration(self.options.random_eps, self.options.noise)
