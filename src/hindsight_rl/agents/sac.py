"""SAC: soft actor-critic with a learnt entropy coefficient (Haarnoja et al. 2018a and 2018b), and TQC.

TQC, truncated quantile critics, drops the largest quantiles of the target (Kuznetsov et al. 2020).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..options.agent import SACOptions, TQCOptions
from ..records import GoalSpec
from . import losses
from .algorithm import ActorCritic
from .networks import Adam
from .preprocessor import Transitions


class SAC(ActorCritic):
    """Critics learn return plus entropy. The actor, a squashed Gaussian, maximizes their minimum.

    With random target critics (REDQ, Chen et al. 2021) the actor maximizes the mean of all critics. With TQCOptions it is
    TQC: critics learn quantiles, and the actor maximizes their mean.
    """

    def __init__(self, spec: GoalSpec, options: SACOptions, seed: int) -> None:
        super().__init__(spec, options, seed)
        if isinstance(options, TQCOptions):
            self.critic_loss = losses.quantile_huber_loss
        elif options.n_target_critics is None:
            self.actor_value = losses.min_value
        self.target_entropy = -float(spec.action.size) if options.target_entropy is None else options.target_entropy
        self.log_coefficient = torch.full((1,), math.log(options.entropy_coefficient), device=self.device)
        entropy_rate = options.learning_rate if options.entropy_learning_rate is None else options.entropy_learning_rate
        self.entropy_adam = Adam(self.log_coefficient, entropy_rate)
        self.tensors |= {"log_coefficient": self.log_coefficient} | self.entropy_adam.tensors("entropy_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update critics, actor, entropy coefficient and target networks."""
        batch, coefficient = transitions[0], self.log_coefficient.exp()[0]
        target = self._td_target(batch, coefficient)
        value, critic_loss = self.update_critics(batch, target)
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
        if isinstance(self.options, TQCOptions):
            next_value = losses.truncated_quantiles(values, self.options.top_quantiles_to_drop_per_net)
        else:
            next_value = values.amin(0)
        soft_value = torch.addcmul(next_value.clamp_(*self.value_range), coefficient, sample.log_density, value=-1.0)
        return losses.td_target(batch.reward, batch.discount, soft_value, -math.inf, math.inf)

    def _update_actor(self, batch: Transitions, coefficient: Tensor) -> tuple[Tensor, Tensor]:
        output, tape = self.actor.forward(batch.inputs)
        sample = losses.sample_squashed_gaussian(output[0], self.generator)
        value, value_gradient = self.value_of_actions(batch, sample.action)
        loss, gradient = losses.soft_policy_loss(sample, value, value_gradient, coefficient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss, sample.log_density
