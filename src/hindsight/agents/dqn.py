"""DQN: deep Q-learning (Mnih et al. 2015), also double (van Hasselt et al. 2016) and dueling (Wang et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import DQNOptions
from ..records import GoalSpec
from . import losses
from .networks import Adam, TargetUpdate, allocate, choose_device, combine_outputs, critic_architecture
from .policy import Exploration
from .preprocessor import Preprocessor, Transitions, make_policy_spec


class DQN:
    """One network returns the value of every action. Its target is the target network's value of the best next action."""

    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: DQNOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = make_policy_spec(spec, options, "discrete", options.critic_layer_norm)
        self.preprocessor = Preprocessor(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)

        n_actions = self.policy_spec.n_actions
        self.dueling = losses.dueling_matrix(n_actions).to(device) if options.dueling else None
        critic = critic_architecture(self.policy_spec, options, n_actions + options.dueling)
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
        values, action = self._values(outputs), batch.action[None]
        value = values.gather(2, action)
        loss, gradient = losses.VALUE_LOSSES[self.options.critic_error](value, target, batch.weight)
        of_values = torch.zeros_like(values).scatter_(2, action, gradient)
        of_outputs = of_values if self.dueling is None else of_values @ self.dueling
        self.adam.step(self.critic.weight_gradient(tape, of_outputs))
        self.target_update.step()
        metrics = {"critic_loss": loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = losses.absolute_td_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions) -> Tensor:
        """Return the target of the value of the action, (B, 1)."""
        values = self._values(self.target_critic(batch.next_inputs))
        selection = self._values(self.critic(batch.next_inputs)) if self.options.double else values
        next_value = values.gather(2, selection.argmax(2, keepdim=True))[0]
        return losses.td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _values(self, outputs: Tensor) -> Tensor:
        """Return the value of each action, (1, B, actions)."""
        return outputs if self.dueling is None else outputs @ self.dueling.T

    def value(self, inputs: Tensor) -> Tensor:
        """Return the value of the best action, (N,), for network inputs (N, n)."""
        return self._values(self.critic(inputs))[0].amax(1)

    def policy(self) -> Tensor:
        """Return the flat weights of a network that returns the value of each action."""
        return self.weights if self.dueling is None else combine_outputs(self.critic, self.dueling)

    def exploration(self, env_steps: int) -> Exploration:
        """Return epsilon-greedy exploration, with the epsilon of this step."""
        return Exploration(self.options.eps_at(env_steps), noise=0.0)
