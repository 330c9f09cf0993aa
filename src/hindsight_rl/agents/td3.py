"""TD3: twin delayed deep deterministic policy gradient (Fujimoto et al. 2018), and DDPG (Lillicrap et al. 2016).

DDPG is the agent of the first HER paper.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..options.agent import DDPGOptions, TD3Options
from ..records import GoalSpec
from . import losses
from .algorithm import ActorCritic
from .networks import Network
from .preprocessor import Transitions


class TD3(ActorCritic):
    """Each critic learns the minimum of the target critics' values at the target action plus clipped noise.

    The actor maximizes the first critic. It is updated after `policy_period` updates of the critics (SB3: `policy_delay`),
    and so are the target networks.

    With DDPGOptions it is DDPG: without noise and delay, and the actor maximizes the mean of all critics.
    """

    def __init__(self, spec: GoalSpec, options: TD3Options | DDPGOptions, seed: int) -> None:
        super().__init__(spec, options, seed, n_targets=2)
        self.target_actor, _ = self.targets
        if isinstance(options, TD3Options):
            self.batches_per_update = options.policy_period
            self.actor_critics = Network(self.critics.architecture, self.critics.flat, slice(0, 1))

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update the critics on each of `policy_period` batches, then the actor and the target networks.

        The actor learns from the last batch. Returns the metrics of the last batch and, with prioritized replay, the
        `priority` of all batches, (P, B).
        """
        td_errors = []
        for i, target in enumerate(self._td_targets(transitions)):
            batch = transitions[i]
            value, critic_loss = self.update_critics(batch, target)
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
        if isinstance(self.options, TD3Options) and self.options.target_noise:
            noise, clip = self.options.target_noise, self.options.target_noise_clip
            action = losses.smoothed_action(action, noise, clip, self.generator)
        values = self.target_critics(torch.cat((next_inputs, action), 1))
        next_value = losses.random_members(values, self.options.n_target_critics, self.generator).amin(0)
        next_value = next_value.view_as(transitions.reward)
        return losses.td_target(transitions.reward, transitions.discount, next_value, *self.value_range)

    def _update_actor(self, batch: Transitions) -> Tensor:
        output, tape = self.actor.forward(batch.inputs)
        action = output[0].tanh()
        value, value_gradient = self.value_of_actions(batch, action)
        loss, gradient = losses.deterministic_policy_loss(action, value, value_gradient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss
