"""DQN (Mnih et al. 2015), also double (van Hasselt et al. 2016) and dueling (Wang et al. 2016), and QR-DQN.

QR-DQN learns the distribution of returns by quantile regression (Dabney et al. 2018).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import OptionError
from ..options.agent import DQNOptions, QRDQNOptions
from ..records import GoalSpec
from . import losses
from .algorithm import Algorithm
from .networks import MOST_WEIGHTS, Adam, combine_outputs
from .preprocessor import Transitions


class DQN(Algorithm):
    """One network returns the quantiles of every action's return. The best action has the highest mean.

    DQN has one quantile per action, its value. The outputs of dueling DQN are a state value and advantages. With
    QRDQNOptions it is QR-DQN.
    """

    def __init__(self, spec: GoalSpec, options: DQNOptions | QRDQNOptions, seed: int) -> None:
        if isinstance(options, QRDQNOptions):
            self._loss, n_quantiles, dueling = losses.quantile_huber_loss, options.n_quantiles, False
        else:
            self._loss, n_quantiles, dueling = losses.VALUE_LOSSES[options.critic_error], 1, options.dueling
        n_actions = spec.action.n_values or 0
        _check_matrices(n_actions, n_quantiles, dueling)
        super().__init__(spec, options, seed)
        self._double, self._has_subgoals, self._shape = options.double, bool(options.subgoals), (n_actions, n_quantiles)
        self._dueling = losses.dueling_matrix(n_actions).to(self.device) if dueling else None
        self._actor_matrix = losses.quantile_mean_matrix(*self._shape).to(self.device) if n_quantiles > 1 else self._dueling
        (self.critic,), (self.target_critic,) = self.networks, self.targets
        self.adam = Adam(self.weights, options.learning_rate, options.gradient_clip)
        self.tensors |= self.adam.tensors("adam")

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """Update the critic and the target network."""
        batch = transitions[0]
        target = self._td_target(batch)
        outputs, tape = self.critic.forward(batch.inputs)
        quantiles, index = self._quantiles(outputs), self._index(batch.action[None])
        value = quantiles.gather(2, index)[:, :, 0]
        loss, gradient = self._loss(value, target, batch.weight)
        of_outputs = torch.zeros_like(quantiles).scatter_(2, index, gradient.unsqueeze(2)).flatten(2)
        self.adam.step(
            self.critic.weight_gradient(tape, of_outputs if self._dueling is None else of_outputs @ self._dueling)
        )
        self.target_update.step()
        metrics = {"critic_loss": loss, "q_mean": value.mean()}
        if batch.weight is not None:
            metrics["priority"] = losses.absolute_td_error(value, target)[None]
        return metrics

    def _td_target(self, batch: Transitions) -> Tensor:
        """Return samples of the target distribution, (B, N), equally likely."""
        quantiles = selection = self._quantiles(self.target_critic(batch.next_inputs))
        if self._double or self._has_subgoals:  # with subgoals, the policy may act for another goal than the row's
            chooses = self.critic if self._double else self.target_critic
            selection = self._quantiles(chooses(batch.next_policy_inputs))
        best = selection.mean(3).argmax(2, keepdim=True)
        next_value = quantiles.gather(2, self._index(best))[0, :, 0]
        return losses.td_target(batch.reward, batch.discount, next_value, *self.value_range)

    def _quantiles(self, outputs: Tensor) -> Tensor:
        """Return the quantiles of each action's return, (1, B, actions, N)."""
        return (outputs if self._dueling is None else outputs @ self._dueling.T).view(1, -1, *self._shape)

    def _index(self, action: Tensor) -> Tensor:
        """Return the index, (1, B, 1, N), of the quantiles of actions (1, B, 1)."""
        return action.unsqueeze(3).expand(-1, -1, -1, self._shape[1])

    def value(self, inputs: Tensor) -> Tensor:
        """Return the mean return of the best action, (N,), for network inputs (N, n)."""
        return self._quantiles(self.critic(inputs))[0].mean(2).amax(1)

    def actor_weights(self) -> Tensor:
        """Return the flat weights of a network that returns the mean return of each action."""
        return self.weights if self._actor_matrix is None else combine_outputs(self.critic, self._actor_matrix)


def _check_matrices(n_actions: int, n_quantiles: int, dueling: bool) -> None:
    """Raise OptionError if the matrices between outputs and values would be larger than any network."""
    size = n_actions * (n_actions + 1 if dueling else n_actions * n_quantiles if n_quantiles > 1 else 0)
    if size > MOST_WEIGHTS:
        raise OptionError(
            f"{n_actions:,} actions are too many with dueling=True or {n_quantiles} quantiles. Use DQN without dueling."
        )
