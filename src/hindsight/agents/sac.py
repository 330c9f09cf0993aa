"""SAC: soft actor-critic with a learnt entropy coefficient (Haarnoja et al. 2018, both papers)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ..records import Batch, Episode, GoalSpec
from .inputs import Array, Inputs, Transitions, choose_device, policy_spec, policy_weights, value_range
from .losses import (
    entropy_coefficient_gradient,
    lowest,
    lowest_value,
    mean_value,
    sample_squashed_gaussian,
    soft_policy_loss,
    squared_error,
    td_target,
)
from .networks import Adam, Architecture, TargetStep, allocate, initialize
from .options import SACOptions
from .policy import Exploration, PolicyWeights
from .state import AgentState


class SAC:
    """Critics learn the value of acting well and unpredictably; the actor is a squashed Gaussian that climbs the lowest."""

    options_type = SACOptions
    batches_per_update = 1

    def __init__(self, spec: GoalSpec, options: SACOptions, seed: int) -> None:
        self.spec, self.options = spec, options
        device = choose_device(options.device)
        self.policy_spec = policy_spec(spec, options, "squashed_gaussian")
        self.inputs = Inputs(spec, options, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.value_range = value_range(spec, options)
        self.target_entropy = -float(spec.action.size) if options.target_entropy is None else options.target_entropy

        actor = Architecture(self.policy_spec.layer_sizes, 1, options.actor_layer_norm)
        critic_sizes = (self.inputs.size + spec.action.size, *options.hidden, 1)
        critics = Architecture(critic_sizes, options.n_critics, options.critic_layer_norm)
        self.weights, (self.actor, self.critics) = allocate([actor, critics], device)
        self.targets, (self.target_critics,) = allocate([critics], device)
        initialize(self.actor, self.generator, last_layer_scale=0.1)
        initialize(self.critics, self.generator)
        self.targets.copy_(self.critics.flat)
        self.log_coefficient = torch.full((1,), math.log(options.entropy_coefficient), device=device)

        actor_rate = options.actor_learning_rate or options.learning_rate
        entropy_rate = options.learning_rate if options.entropy_learning_rate is None else options.entropy_learning_rate
        self.actor_adam = Adam(self.actor.flat, actor_rate, options.gradient_clip)
        self.critic_adam = Adam(self.critics.flat, options.learning_rate, options.gradient_clip)
        self.entropy_adam = Adam(self.log_coefficient, entropy_rate)
        self.target_step = TargetStep(self.targets, self.critics.flat, options.tau, options.target_period)
        tensors = {"weights": self.weights, "targets": self.targets, "target_calls": self.target_step.n_calls}
        tensors |= {"log_coefficient": self.log_coefficient} | self.entropy_adam.tensors("entropy_adam")
        tensors |= self.actor_adam.tensors("actor_adam") | self.critic_adam.tensors("critic_adam")
        self.state = AgentState(tensors, self.inputs.normalizer, self.generator)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One step of the critics, of the actor, of the entropy coefficient and of the targets.

        batch: arrays (1, B, ...) or (B, ...), actions in the environment's units. Returns metrics, () tensors; they are not
        finite once the weights are not.
        """
        metrics = self._learn(self.inputs.transitions(batch, self.batches_per_update))
        self.state.n_updates += 1
        return metrics

    def _learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """The part of an update that never leaves the device: always the same operations, fit for a CUDA graph."""
        coefficient = self.log_coefficient.exp()[0]
        critic_loss, value = self._update_critics(transitions.critic_inputs[0], self._target(transitions, coefficient))
        actor_loss, log_density = self._update_actor(transitions.inputs[0], coefficient)
        self.entropy_adam.step(entropy_coefficient_gradient(log_density, self.target_entropy))
        self.target_step.step()
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "q_mean": value.mean()}
        return metrics | {"entropy_coefficient": coefficient, "entropy": -log_density.mean()}

    def _target(self, transitions: Transitions, coefficient: Tensor) -> Tensor:
        """What the critics should say, (B, 1).

        The range of returns bounds the next value before the entropy is added, which no reward bounds (as REDQ with
        hindsight does, Hiraoka 2023).
        """
        next_inputs = transitions.next_inputs[0]
        sample = sample_squashed_gaussian(self.actor(next_inputs)[0], self.generator)
        values = self.target_critics(torch.cat((next_inputs, sample.action), 1))
        next_value = lowest(values, self.options.n_target_critics, self.generator).clamp_(*self.value_range)
        soft_value = torch.addcmul(next_value, coefficient, sample.log_density, value=-1.0)
        return td_target(transitions.reward[0], transitions.discount[0], soft_value, -math.inf, math.inf)

    def _update_critics(self, critic_inputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        value, tape = self.critics.record(critic_inputs)
        loss, gradient = squared_error(value, target)
        self.critic_adam.step(self.critics.weight_gradient(tape, gradient))
        return loss, value

    def _update_actor(self, inputs: Tensor, coefficient: Tensor) -> tuple[Tensor, Tensor]:
        output, tape = self.actor.record(inputs)
        sample = sample_squashed_gaussian(output[0], self.generator)
        values, critic_tape = self.critics.record(torch.cat((inputs, sample.action), 1))
        value, of_values = lowest_value(values) if self.options.n_target_critics is None else mean_value(values)
        value_gradient = self.critics.input_gradient(critic_tape, of_values, self.inputs.size).sum(0)
        loss, gradient = soft_policy_loss(sample, value, value_gradient, coefficient, self.options.action_l2)
        self.actor_adam.step(self.actor.weight_gradient(tape, gradient[None]))
        return loss, sample.log_density

    def observe(self, episode: Episode) -> None:
        """Take an episode up into the statistics that inputs are normalised by."""
        self.inputs.observe(episode)

    def exploration(self, is_random: bool) -> Exploration:
        """How to act while collecting; `is_random` for the warm-up."""
        return Exploration(self.options.random_eps, self.options.noise, is_random, samples=True)

    def policy_weights(self) -> PolicyWeights:
        """Copies of what acting needs."""
        return policy_weights(self.actor.flat, self.inputs)

    @property
    def n_updates(self) -> int:
        """Critic steps so far."""
        return self.state.n_updates

    def is_finite(self) -> bool:
        """Whether no weight is NaN or infinite; waits for the device."""
        return bool(torch.isfinite(self.weights).all())

    def state_dict(self) -> dict[str, Array]:
        """Copies of everything needed to go on bit for bit."""
        return self.state.state_dict()

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take a `state_dict` back; raises FileError, naming the difference, before anything is changed."""
        self.state.load_state_dict(state)
        self.inputs.refresh()
