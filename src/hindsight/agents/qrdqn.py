"""QR-DQN: Q-learning of the whole distribution of returns, by quantile regression (Dabney et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import QRDQNOptions
from ..records import GoalSpec
from .inputs import Inputs, Transitions, choose_device, critic_architecture, policy_spec, value_range
from .losses import absolute_error, mean_matrix, quantile_error, td_target
from .networks import Adam, TargetStep, allocate, initialize, with_outputs
from .policy import Exploration


class QRDQN:
    """One network gives quantiles of every action's return; actions are judged by their mean."""

    options_type = QRDQNOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: QRDQNOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "discrete", options.critic_layer_norm)
        self.inputs = Inputs(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)

        self.shape = (self.policy_spec.n_actions, options.n_quantiles)
        self.mean = mean_matrix(*self.shape).to(device)
        critic = critic_architecture(self.policy_spec, options, self.shape[0] * self.shape[1])
        self.weights, (self.critic,) = allocate([critic], device)
        self.targets, (self.target_critic,) = allocate([critic], device)
        initialize(self.critic, self.generator)
        self.targets.copy_(self.weights)

        self.adam = Adam(self.weights, options.learning_rate, options.gradient_clip)
        self.optimizers = (self.adam,)
        self.target_step = TargetStep(self.targets, self.weights, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_step.n_calls}
        self.tensors |= self.adam.tensors("adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """One step of the critic and of the target."""
        batch = transitions[0]
        target = self._target(batch)
        outputs, tape = self.critic.record(batch.inputs)
        quantiles = outputs.view(1, -1, *self.shape)
        chosen = self._places(batch.action[None])
        value = quantiles.gather(2, chosen)[:, :, 0]
        loss, gradient = quantile_error(value, target, batch.weight)
        of_quantiles = torch.zeros_like(quantiles).scatter_(2, chosen, gradient.unsqueeze(2))
        self.adam.step(self.critic.weight_gradient(tape, of_quantiles.flatten(2)))
        self.target_step.step()
        metrics = {"critic_loss": loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = absolute_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions) -> Tensor:
        """The returns that the critic should expect of the action taken, equally likely, (B, N)."""
        quantiles = self.target_critic(batch.next_inputs).view(1, -1, *self.shape)
        judge = self.critic(batch.next_inputs).view(1, -1, *self.shape) if self.options.double else quantiles
        best = judge.mean(3).argmax(2, keepdim=True)
        next_value = quantiles.gather(2, self._places(best))[0, :, 0]
        return td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _places(self, action: Tensor) -> Tensor:
        """Where the quantiles of the actions (1, B, 1) lie among all, (1, B, 1, N)."""
        return action.unsqueeze(3).expand(-1, -1, -1, self.shape[1])

    def value(self, inputs: Tensor) -> Tensor:
        """What the critic expects of the best action, on average; inputs: (N, n). (N,)."""
        return self.critic(inputs)[0].view(-1, *self.shape).mean(2).amax(1)

    def policy(self) -> Tensor:
        """The flat weights that acting needs: those of a network whose outputs are the means of the actions' quantiles."""
        return with_outputs(self.critic, self.mean)

    def exploration(self, env_steps: int) -> Exploration:
        """How to act while collecting: with fewer random actions as time goes on."""
        return Exploration(self.options.eps_at(env_steps), noise=0.0)
