"""QR-DQN: Q-learning of the distribution of returns by quantile regression (Dabney et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import QRDQNOptions
from ..records import GoalSpec
from . import losses
from .networks import Adam, TargetUpdate, allocate, choose_device, combine_outputs, critic_architecture
from .policy import Exploration
from .preprocessor import Preprocessor, Transitions, make_policy_spec


class QRDQN:
    """One network returns the quantiles of every action's return. The best action has the highest mean."""

    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: QRDQNOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = make_policy_spec(spec, options, "discrete", options.critic_layer_norm)
        self.preprocessor = Preprocessor(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)

        self.shape = (self.policy_spec.n_actions, options.n_quantiles)
        self.mean_matrix = losses.quantile_mean_matrix(*self.shape).to(device)
        critic = critic_architecture(self.policy_spec, options, self.shape[0] * self.shape[1])
        self.weights, (self.critic,) = allocate([critic], device)
        self.targets, (self.target_critic,) = allocate([critic], device)
        self.critic.initialize(self.generator)
        self.targets.copy_(self.weights)

        self.adam = Adam(self.weights, options.learning_rate, options.gradient_clip)
        self.target_update = TargetUpdate(self.targets, self.weights, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_update.n_calls}
        self.tensors |= self.adam.tensors("adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update the critic and the target."""
        batch = transitions[0]
        target = self._target(batch)
        outputs, tape = self.critic.forward(batch.inputs)
        quantiles = outputs.view(1, -1, *self.shape)
        index = self._quantile_index(batch.action[None])
        value = quantiles.gather(2, index)[:, :, 0]
        loss, gradient = losses.quantile_huber_loss(value, target, batch.weight)
        of_quantiles = torch.zeros_like(quantiles).scatter_(2, index, gradient.unsqueeze(2))
        self.adam.step(self.critic.weight_gradient(tape, of_quantiles.flatten(2)))
        self.target_update.step()
        metrics = {"critic_loss": loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = losses.absolute_td_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions) -> Tensor:
        """Return samples of the target distribution, (B, N), equally likely."""
        quantiles = self.target_critic(batch.next_inputs).view(1, -1, *self.shape)
        selection = self.critic(batch.next_inputs).view(1, -1, *self.shape) if self.options.double else quantiles
        best = selection.mean(3).argmax(2, keepdim=True)
        next_value = quantiles.gather(2, self._quantile_index(best))[0, :, 0]
        return losses.td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _quantile_index(self, action: Tensor) -> Tensor:
        """Return the index, (1, B, 1, N), of the quantiles of actions (1, B, 1)."""
        return action.unsqueeze(3).expand(-1, -1, -1, self.shape[1])

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean return of the best action, (N,), for network inputs (N, n)."""
        return self.critic(inputs)[0].view(-1, *self.shape).mean(2).amax(1)

    def policy(self) -> Tensor:
        """Return the flat weights of a network that returns the mean return of each action."""
        return combine_outputs(self.critic, self.mean_matrix)

    def exploration(self, env_steps: int) -> Exploration:
        """Return epsilon-greedy exploration, with the epsilon of this step."""
        return Exploration(self.options.eps_at(env_steps), noise=0.0)
