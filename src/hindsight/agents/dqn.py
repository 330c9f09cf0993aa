"""DQN: deep Q-learning (Mnih et al. 2015), double (van Hasselt et al. 2016), and dueling (Wang et al. 2016) where asked."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options import DQNOptions
from ..records import GoalSpec
from .inputs import Inputs, Transitions, choose_device, critic_architecture, policy_spec, value_range
from .losses import ERRORS, absolute_error, dueling_matrix, td_target
from .networks import Adam, TargetStep, allocate, initialize, with_outputs
from .policy import Exploration


class DQN:
    """One network values every action; it learns towards what the target network says of the best next one."""

    options_type = DQNOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: DQNOptions, seed: int) -> None:
        self.options = options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "discrete", options.critic_layer_norm)
        self.inputs = Inputs(self.policy_spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)

        n_actions = self.policy_spec.n_actions
        self.dueling = dueling_matrix(n_actions).to(device) if options.dueling else None
        critic = critic_architecture(self.policy_spec, options, n_actions + options.dueling)
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
        values = self._values(outputs)
        action = batch.action[None]
        value = values.gather(2, action)
        loss, gradient = ERRORS[self.options.critic_error](value, target, batch.weight)
        of_values = torch.zeros_like(values).scatter_(2, action, gradient)
        of_outputs = of_values if self.dueling is None else of_values @ self.dueling
        self.adam.step(self.critic.weight_gradient(tape, of_outputs))
        self.target_step.step()
        metrics = {"critic_loss": loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = absolute_error(value, target)[None]
        return metrics

    def _target(self, batch: Transitions) -> Tensor:
        """What the critic should say of the action taken, (B, 1)."""
        values = self._values(self.target_critic(batch.next_inputs))
        judge = self._values(self.critic(batch.next_inputs)) if self.options.double else values
        next_value = values.gather(2, judge.argmax(2, keepdim=True))[0]
        return td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _values(self, outputs: Tensor) -> Tensor:
        """What each action is worth, (1, B, actions)."""
        return outputs if self.dueling is None else outputs @ self.dueling.T

    def value(self, inputs: Tensor) -> Tensor:
        """What the critic expects of the best action; inputs: (N, n). (N,)."""
        return self._values(self.critic(inputs))[0].amax(1)

    def policy(self) -> Tensor:
        """The flat weights that acting needs: those of a network whose outputs are the values of the actions."""
        return self.weights if self.dueling is None else with_outputs(self.critic, self.dueling)

    def exploration(self, env_steps: int) -> Exploration:
        """How to act while collecting: with fewer random actions as time goes on."""
        return Exploration(self.options.eps_at(env_steps), noise=0.0)
