"""SAC: soft actor-critic with a learnt entropy coefficient (Haarnoja et al. 2018a and 2018b), and TQC.

TQC, truncated quantile critics, drops the largest quantiles of the target (Kuznetsov et al. 2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ..options import SACOptions, TQCOptions
from ..records import GoalSpec
from . import losses
from .networks import Adam, TargetUpdate, allocate, architectures, choose_device
from .policy import PolicySpec
from .preprocessor import Preprocessor, Transitions


class SAC:
    """Critics learn quantiles of return plus entropy. The actor, a squashed Gaussian, maximizes their minimum or mean.

    critic_loss: of the critics' outputs.
    next_value: maps the target critics' outputs (E, B, N) to samples of the next value, (B, K).
    actor_value: maps the critics' outputs to the value that the actor maximizes, (B, 1), and its gradient.
    """

    batches_per_update = 1

    def __init__(
        self,
        spec: GoalSpec,
        options: SACOptions,
        seed: int,
        *,
        critic_loss: losses.Loss,
        next_value: Callable[[Tensor], Tensor],
        actor_value: Callable[[Tensor], tuple[Tensor, Tensor]],
    ) -> None:
        self.options = options
        self._critic_loss, self._next_value, self._actor_value = critic_loss, next_value, actor_value
        device = choose_device(options.device)
        self.policy_spec = PolicySpec(spec, options)
        self.preprocessor = Preprocessor(self.policy_spec, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)
        self.target_entropy = -float(spec.action.size) if options.target_entropy is None else options.target_entropy

        actor, critics = architectures(self.policy_spec)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.target_weights, (self.target_critics,) = allocate([critics], device)
        self.actor.initialize(self.generator, last_layer_scale=0.1)
        self.critics.initialize(self.generator)
        self.target_weights.copy_(self.critics.flat)
        self.log_coefficient = torch.full((1,), math.log(options.entropy_coefficient), device=device)

        entropy_rate = options.learning_rate if options.entropy_learning_rate is None else options.entropy_learning_rate
        self.actor_adam = Adam(self.actor.flat, options.actor_learning_rate or options.learning_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.entropy_adam = Adam(self.log_coefficient, entropy_rate)
        self.target_update = TargetUpdate(self.target_weights, self.critics.flat, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.target_weights, "target_calls": self.target_update.n_calls}
        self.tensors |= {"log_coefficient": self.log_coefficient} | self.entropy_adam.tensors("entropy_adam")
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update critics, actor, entropy coefficient and target networks."""
        batch, coefficient = transitions[0], self.log_coefficient.exp()[0]
        target = self._td_target(batch, coefficient)
        value, tape = self.critics.forward(batch.critic_inputs)
        critic_loss, gradient = self._critic_loss(value, target, batch.weight)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        del tape, gradient  # the actor's update reuses their memory while it is in the cache
        actor_loss, log_density = self._update_actor(batch, coefficient)
        self.entropy_adam.step(losses.entropy_coefficient_gradient(log_density, self.target_entropy))
        self.target_update.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        metrics |= {"entropy_coefficient": coefficient, "entropy": -log_density.mean()}
        if batch.weight is not None:
            metrics["priority"] = losses.absolute_td_error(value, target)[None]
        return metrics

    def _td_target(self, batch: Transitions, coefficient: Tensor) -> Tensor:
        """Return samples of the target distribution of the critics, (B, K), equally likely.

        The next value is clipped before the entropy is added, because rewards do not bound the entropy (as in REDQ with
        HER, Hiraoka 2023).
        """
        sample = losses.sample_squashed_gaussian(self.actor(batch.next_policy_inputs)[0], self.generator)
        values = self.target_critics(torch.cat((batch.next_inputs, sample.action), 1))
        values = losses.random_members(values, self.options.n_target_critics, self.generator)
        next_value = self._next_value(values).clamp_(*self.value_range)
        soft_value = torch.addcmul(next_value, coefficient, sample.log_density, value=-1.0)
        return losses.td_target(batch.reward, batch.discount, soft_value, -math.inf, math.inf)

    def _update_actor(self, batch: Transitions, coefficient: Tensor) -> tuple[Tensor, Tensor]:
        inputs = batch.inputs
        output, tape = self.actor.forward(inputs)
        sample = losses.sample_squashed_gaussian(output[0], self.generator)
        values, critic_tape = self.critics.forward(torch.cat((inputs, sample.action), 1))
        value, of_values = self._actor_value(values)
        value_gradient = self.critics.input_gradient(critic_tape, of_values, self.preprocessor.size).sum(0)
        value, value_gradient = losses.clone(batch, sample.action, value, value_gradient, self._critic_value, self.options)
        loss, gradient = losses.soft_policy_loss(sample, value, value_gradient, coefficient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss, sample.log_density

    def _critic_value(self, critic_inputs: Tensor) -> Tensor:
        return self._actor_value(self.critics(critic_inputs))[0]

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean of the critics for the actor's mean action, (N,), for network inputs (N, n)."""
        action = self.actor(inputs)[0].chunk(2, -1)[0].tanh()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def actor_weights(self) -> Tensor:
        """Return the flat weights of the actor."""
        return self.actor.flat


def make_sac(spec: GoalSpec, options: SACOptions, seed: int) -> SAC:
    """Return SAC. With random target critics (REDQ, Chen et al. 2021) the actor maximizes the mean of all critics."""
    return SAC(
        spec,
        options,
        seed,
        critic_loss=losses.squared_loss,
        next_value=partial(torch.amin, dim=0),
        actor_value=losses.min_value if options.n_target_critics is None else losses.mean_value,
    )


def make_tqc(spec: GoalSpec, options: TQCOptions, seed: int) -> SAC:
    """Return TQC."""
    return SAC(
        spec,
        options,
        seed,
        critic_loss=losses.quantile_huber_loss,
        next_value=partial(losses.truncated_quantiles, n_dropped=options.top_quantiles_to_drop_per_net),
        actor_value=losses.mean_value,
    )
