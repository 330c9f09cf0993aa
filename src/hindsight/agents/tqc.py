"""TQC: truncated quantile critics, the soft actor-critic that drops the most hopeful returns (Kuznetsov et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..options import TQCOptions
from ..records import GoalSpec
from .inputs import Inputs, Transitions, actor_architecture, choose_device, critic_architecture, policy_spec, value_range
from .losses import (
    absolute_error,
    drawn,
    entropy_coefficient_gradient,
    lowest_quantiles,
    mean_value,
    quantile_error,
    sample_squashed_gaussian,
    soft_policy_loss,
    td_target,
)
from .networks import Adam, TargetStep, allocate, initialize
from .policy import Exploration


class TQC:
    """Critics learn quantiles of the return of acting well and unpredictably; the actor climbs the mean of them all."""

    options_type = TQCOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: TQCOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "squashed_gaussian", options.actor_layer_norm)
        self.inputs = Inputs(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)
        self.target_entropy = -float(spec.action.size) if options.target_entropy is None else options.target_entropy

        actor = actor_architecture(self.policy_spec)
        critics = critic_architecture(self.policy_spec, options, options.n_quantiles, options.n_critics)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.targets, (self.target_critics,) = allocate([critics], device)
        initialize(self.actor, self.generator, last_layer_scale=0.1)
        initialize(self.critics, self.generator)
        self.targets.copy_(self.critics.flat)
        self.log_coefficient = torch.full((1,), math.log(options.entropy_coefficient), device=device)

        actor_rate = options.actor_learning_rate or options.learning_rate
        entropy_rate = options.learning_rate if options.entropy_learning_rate is None else options.entropy_learning_rate
        self.actor_adam = Adam(self.actor.flat, actor_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.entropy_adam = Adam(self.log_coefficient, entropy_rate)
        self.optimizers = (self.actor_adam, self.critic_adam, self.entropy_adam)
        self.target_step = TargetStep(self.targets, self.critics.flat, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_step.n_calls}
        self.tensors |= {"log_coefficient": self.log_coefficient} | self.entropy_adam.tensors("entropy_adam")
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """One step of the critics, of the actor, of the entropy coefficient and of the targets."""
        batch, coefficient = transitions[0], self.log_coefficient.exp()[0]
        target = self._target(batch, coefficient)
        critic_loss, value = self._update_critics(batch, target)
        actor_loss, log_density = self._update_actor(batch.inputs, coefficient)
        self.entropy_adam.step(entropy_coefficient_gradient(log_density, self.target_entropy))
        self.target_step.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        metrics |= {"entropy_coefficient": coefficient, "entropy": -log_density.mean()}
        if batch.weight is not None:
            metrics["priority"] = absolute_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions, coefficient: Tensor) -> Tensor:
        """The returns that the critics should expect, equally likely, (B, quantiles that are kept).

        The range of returns bounds the next value before the entropy is added, which no reward bounds.
        """
        options = self.options
        sample = sample_squashed_gaussian(self.actor(batch.next_acting_inputs)[0], self.generator)
        quantiles = self.target_critics(torch.cat((batch.next_inputs, sample.action), 1))
        quantiles = drawn(quantiles, options.n_target_critics, self.generator)
        next_value = lowest_quantiles(quantiles, options.top_quantiles_to_drop_per_net).clamp_(*self.value_range)
        soft_value = torch.addcmul(next_value, coefficient, sample.log_density, value=-1.0)
        return td_target(batch.reward, batch.discount, soft_value, -math.inf, math.inf)

    def _update_critics(self, batch: Transitions, target: Tensor) -> tuple[Tensor, Tensor]:
        value, tape = self.critics.record(batch.critic_inputs)
        loss, gradient = quantile_error(value, target, batch.weight)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        return loss, value

    def _update_actor(self, inputs: Tensor, coefficient: Tensor) -> tuple[Tensor, Tensor]:
        output, tape = self.actor.record(inputs)
        sample = sample_squashed_gaussian(output[0], self.generator)
        values, critic_tape = self.critics.record(torch.cat((inputs, sample.action), 1))
        value, of_values = mean_value(values)
        value_gradient = self.critics.input_gradient(critic_tape, of_values, self.inputs.size).sum(0)
        loss, gradient = soft_policy_loss(sample, value, value_gradient, coefficient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss, sample.log_density

    def value(self, inputs: Tensor) -> Tensor:
        """What the critics expect of the policy's middle action, on average; inputs: (N, n). (N,)."""
        action = self.actor(inputs)[0].chunk(2, -1)[0].tanh()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def policy(self) -> Tensor:
        """The flat weights that acting needs."""
        return self.actor.flat

    def exploration(self, env_steps: int) -> Exploration:
        """How to act while collecting: always alike."""
        return Exploration(self.options.random_eps, self.options.noise, samples=True)
