"""TD3: twin delayed deep deterministic policy gradient (Fujimoto et al. 2018), and DDPG (Lillicrap et al. 2016).

DDPG is the agent of the first HER paper.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import ActorCriticOptions, DDPGOptions, TD3Options
from ..records import GoalSpec
from . import losses
from .networks import Adam, Network, TargetUpdate, allocate, architectures, choose_device
from .policy import PolicySpec
from .preprocessor import Preprocessor, Transitions


class TD3:
    """Each critic learns the minimum of the target critics' values at the target action plus clipped noise.

    The actor maximizes the mean of some of the critics.

    policy_period: critic updates before the actor and the target networks are updated (SB3: `policy_delay`).
    target_noise: standard deviation of the noise and its largest value; None: no noise.
    actor_critics: the critics whose mean the actor maximizes.
    """

    def __init__(
        self,
        spec: GoalSpec,
        options: ActorCriticOptions,
        seed: int,
        *,
        policy_period: int,
        target_noise: tuple[float, float] | None,
        actor_critics: slice,
    ) -> None:
        self.options, self.batches_per_update, self._target_noise = options, policy_period, target_noise
        device = choose_device(options.device)
        self.policy_spec = PolicySpec(spec, options)
        self.preprocessor = Preprocessor(self.policy_spec, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)

        actor, critics = architectures(self.policy_spec)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.target_weights, (self.target_actor, self.target_critics) = allocate([actor, critics], device)
        self._actor_critics = Network(critics, self.critics.flat, actor_critics)
        self.actor.initialize(self.generator, last_layer_scale=0.1)
        self.critics.initialize(self.generator)
        self.target_weights.copy_(self.weights)

        self.actor_adam = Adam(self.actor.flat, options.actor_learning_rate or options.learning_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.target_update = TargetUpdate(self.target_weights, self.weights, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.target_weights, "target_calls": self.target_update.n_calls}
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update the critics on each of `policy_period` batches, then the actor and the target networks.

        The actor learns from the last batch. Returns the metrics of the last batch and, with prioritized replay, the
        `priority` of all batches, (P, B).
        """
        td_errors = []
        for i, target in enumerate(self._td_targets(transitions)):
            batch = transitions[i]
            value, tape = self.critics.forward(batch.critic_inputs)
            critic_loss, gradient = losses.squared_loss(value, target, batch.weight)
            self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
            del tape, gradient  # the actor's update reuses their memory while it is in the cache
            if batch.weight is not None:
                td_errors.append(losses.absolute_td_error(value, target))
        actor_loss = self._update_actor(batch)
        self.target_update.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        return metrics | ({"priority": torch.stack(td_errors)} if td_errors else {})

    def _td_targets(self, transitions: Transitions) -> Tensor:
        """Return the TD targets of the critics, (P, B, 1), for all batches: target networks change only after them."""
        next_inputs = transitions.next_inputs.flatten(0, 1)
        action = self.target_actor(transitions.next_policy_inputs.flatten(0, 1))[0].tanh_()
        if self._target_noise:
            action = losses.smoothed_action(action, *self._target_noise, self.generator)
        values = self.target_critics(torch.cat((next_inputs, action), 1))
        next_value = losses.random_members(values, self.options.n_target_critics, self.generator).amin(0)
        next_value = next_value.view_as(transitions.reward)
        return losses.td_target(transitions.reward, transitions.discount, next_value, *self.value_range)

    def _update_actor(self, batch: Transitions) -> Tensor:
        inputs = batch.inputs
        output, tape = self.actor.forward(inputs)
        action = output[0].tanh()
        values, critic_tape = self._actor_critics.forward(torch.cat((inputs, action), 1))
        value, of_values = losses.mean_value(values)
        value_gradient = self._actor_critics.input_gradient(critic_tape, of_values, self.preprocessor.size).sum(0)
        value, value_gradient = losses.clone(batch, action, value, value_gradient, self._critic_value, self.options)
        loss, gradient = losses.deterministic_policy_loss(action, value, value_gradient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss

    def _critic_value(self, critic_inputs: Tensor) -> Tensor:
        return losses.mean_value(self._actor_critics(critic_inputs))[0]

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean of the critics for the actor's action, (N,), for network inputs (N, n)."""
        action = self.actor(inputs)[0].tanh_()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def actor_weights(self) -> Tensor:
        """Return the flat weights of the actor."""
        return self.actor.flat


def make_td3(spec: GoalSpec, options: TD3Options, seed: int) -> TD3:
    """Return TD3, whose actor maximizes the first critic."""
    return TD3(
        spec,
        options,
        seed,
        policy_period=options.policy_period,
        target_noise=(options.target_noise, options.target_noise_clip),
        actor_critics=slice(0, 1),
    )


def make_ddpg(spec: GoalSpec, options: DDPGOptions, seed: int) -> TD3:
    """Return DDPG: without noise on the target's action, without delay; the actor maximizes the mean of all critics."""
    return TD3(spec, options, seed, policy_period=1, target_noise=None, actor_critics=slice(None))
