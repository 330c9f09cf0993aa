"""What the algorithms share: networks with their targets and optimizers, and for an actor the steps of an update."""

from __future__ import annotations

import torch
from torch import Tensor

from ..options.agent import ActorCriticOptions, AgentOptions
from ..records import GoalSpec
from . import losses
from .networks import Adam, TargetUpdate, allocate, architectures, choose_device
from .policy import PolicySpec
from .preprocessor import Preprocessor, Transitions


class Algorithm:
    """The networks of an algorithm, with initial weights, and what an update needs besides.

    n_targets: how many networks have a target network; they are the last ones.
    """

    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: AgentOptions, seed: int, n_targets: int = 1) -> None:
        self.options, self.policy_spec = options, PolicySpec(spec, options)
        self.device = choose_device(options.device)
        self.preprocessor = Preprocessor(self.policy_spec, self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.value_range = losses.value_range(spec, options)

        found = architectures(self.policy_spec)
        self.weights, self.networks = allocate(found, self.device)
        self.target_weights, self.targets = allocate(found[-n_targets:], self.device)
        for network in self.networks:
            network.initialize(self.generator)
        online = self.weights[-len(self.target_weights) :]
        self.target_weights.copy_(online)
        self.target_update = TargetUpdate(self.target_weights, online, options.tau, options.target_period)
        self.tensors = {"weights": self.weights, "targets": self.target_weights, "target_calls": self.target_update.n_calls}


class ActorCritic(Algorithm):
    """An algorithm with an actor and critics.

    critic_loss: of the critics' outputs.
    actor_critics, actor_value: the critics that the actor maximizes, and their value, (B, 1), with its gradient.
    """

    options: ActorCriticOptions

    def __init__(self, spec: GoalSpec, options: ActorCriticOptions, seed: int, n_targets: int = 1) -> None:
        super().__init__(spec, options, seed, n_targets)
        self.actor, self.critics = self.networks
        self.target_critics = self.targets[-1]
        self.critic_loss: losses.Loss = losses.squared_loss
        self.actor_critics, self.actor_value = self.critics, losses.mean_value
        rate = options.learning_rate
        self.actor_adam = Adam(self.actor.flat, options.actor_learning_rate or rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, rate, options.gradient_clip)
        self.tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")

    def update_critics(self, batch: Transitions, target: Tensor) -> tuple[Tensor, Tensor]:
        """Update the critics toward a target, (B, K), and return their outputs before, (E, B, N), and the loss, ()."""
        value, tape = self.critics.forward(batch.critic_inputs)
        loss, gradient = self.critic_loss(value, target, batch.weight)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        return value, loss

    def value_of_actions(self, batch: Transitions, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the actor maximizes, (B, 1), and its gradient with respect to its actions, (B, A).

        It is the value of the actions, minus the loss of behaviour cloning for demonstrations.
        """
        values, tape = self.actor_critics.forward(torch.cat((batch.inputs, action), 1))
        value, of_values = self.actor_value(values)
        gradient = self.actor_critics.input_gradient(tape, of_values, self.preprocessor.size).sum(0)
        return losses.clone(batch, action, value, gradient, self._critic_value, self.options)

    def _critic_value(self, critic_inputs: Tensor) -> Tensor:
        return self.actor_value(self.actor_critics(critic_inputs))[0]

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean of the critics for the actor's action without noise, (N,), for network inputs (N, n)."""
        action = self.actor(inputs)[0, :, : self.policy_spec.task.action.size].tanh()
        return self.critics(torch.cat((inputs, action), 1)).mean((0, 2))

    def actor_weights(self) -> Tensor:
        """Return the flat weights of the actor."""
        return self.actor.flat
