"""From a Batch of NumPy arrays to the tensors that networks see: flat, normalised, actions in [-1, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import GoalEnvError, OptionError, ShapeError
from ..records import Batch, Episode, GoalSpec
from .losses import return_range
from .normalizer import Normalizer
from .options import AgentOptions
from .policy import PolicyKind, PolicySpec, PolicyWeights

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Transitions:
    """P batches of B transitions as float32 tensors, each (P, B, n).

    inputs: what the actor sees, a view of critic_inputs, which hold the action besides. next_inputs: what the actor sees
    after the step. discount: what the next value counts, 0 where the step ended the episode for good.
    """

    inputs: Tensor
    critic_inputs: Tensor
    next_inputs: Tensor
    reward: Tensor
    discount: Tensor


class Inputs:
    """Turns batches of one task into Transitions, by the statistics of the episodes seen so far."""

    def __init__(self, spec: GoalSpec, options: AgentOptions, device: torch.device) -> None:
        _check_action(spec)
        self.spec, self.options, self.device = spec, options, device
        self.normalizer = Normalizer(spec.observation.size, spec.goal.size, options.normalizer_eps)
        self.size = spec.observation.size + spec.goal.size * (2 if options.sees_achieved_goal else 1)
        low, high = (bound.ravel() for bound in spec.action.bounds())
        self._action_mean = ((high + low) / 2).astype(np.float32)
        self._action_scale = (2 / (high - low)).astype(np.float32)
        self._mean = torch.empty(self.size + spec.action.size, device=device)
        self._scale = torch.empty_like(self._mean)
        self.refresh()

    def observe(self, episode: Episode) -> None:
        """Take the episode up into the running statistics."""
        self.normalizer.update(episode)
        self.refresh()

    def refresh(self) -> None:
        """Bring the tensors in line with the normalizer, after it changed."""
        mean, scale = self.mean_and_scale()
        self._mean.copy_(torch.from_numpy(np.concatenate((mean, self._action_mean))))
        self._scale.copy_(torch.from_numpy(np.concatenate((scale, self._action_scale))))

    def mean_and_scale(self) -> tuple[Array, Array]:
        """float32 mean and scale of what the actor sees; 0 and 1 where inputs are not normalised."""
        if not self.options.normalize:
            return np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        return self.normalizer.mean_and_scale(self.options.sees_achieved_goal)

    def transitions(self, batch: Batch, n_batches: int) -> Transitions:
        """The batch as tensors; (n_batches, B, ...) arrays, or (B, ...) where n_batches is 1. Raises ShapeError."""
        if batch.reward.ndim == 1 and n_batches == 1:
            batch = batch[None]
        if batch.reward.ndim != 2 or len(batch) != n_batches:
            raise ShapeError(
                f"an update takes {n_batches} batches at once, so reward must have the shape ({n_batches}, B), got "
                f"{batch.reward.shape}: sample that many, for instance with sample_many({n_batches}, batch_size)"
            )
        goal, action = self._tensor(batch.goal, self.spec.goal.size), self._tensor(batch.action, self.spec.action.size)
        parts = self._seen(batch.observation, batch.achieved_goal, goal)
        next_parts = self._seen(batch.next_observation, batch.next_achieved_goal, goal)
        critic_inputs = self._normalized(torch.cat((*parts, action), -1))
        discount = self._tensor(batch.terminated, 1).mul(-self.options.discount).add_(self.options.discount)
        return Transitions(
            inputs=critic_inputs[..., : self.size],
            critic_inputs=critic_inputs,
            next_inputs=self._normalized(torch.cat(next_parts, -1)),
            reward=self._tensor(batch.reward, 1),
            discount=discount,
        )

    def _seen(self, observation: Array, achieved_goal: Array, goal: Tensor) -> list[Tensor]:
        parts = [self._tensor(observation, self.spec.observation.size), goal]
        return [*parts, self._tensor(achieved_goal, self.spec.goal.size)] if self.options.sees_achieved_goal else parts

    def _normalized(self, values: Tensor) -> Tensor:
        """In place. Bounds do to an action what moments do to an observation: one operation serves both."""
        size, clip = values.shape[-1], self.options.normalizer_clip
        values.sub_(self._mean[:size]).mul_(self._scale[:size])
        return values.clamp_(-clip, clip) if self.options.normalize else values

    def _tensor(self, values: Array, size: int) -> Tensor:
        """(P, B, ...) of any dtype as a float32 tensor (P, B, size) on the device; it may share the array's memory."""
        writeable = values if values.flags.writeable else values.copy()
        flat = torch.from_numpy(writeable.reshape(*values.shape[:2], size))
        return flat.to(self.device, torch.float32, non_blocking=True)


def policy_spec(spec: GoalSpec, options: AgentOptions, kind: PolicyKind) -> PolicySpec:
    """The policy that an agent with these options publishes for this task."""
    low, high = spec.action.bounds()
    return PolicySpec(
        observation_size=spec.observation.size,
        goal_size=spec.goal.size,
        action_shape=spec.action.shape,
        action_dtype=spec.action.dtype,
        action_low=tuple(low.ravel().tolist()),
        action_high=tuple(high.ravel().tolist()),
        hidden=options.hidden,
        layer_norm=options.actor_layer_norm,
        sees_achieved_goal=options.sees_achieved_goal,
        kind=kind,
        normalizer_clip=options.normalizer_clip if options.normalize else None,
    )


def policy_weights(actor: Tensor, inputs: Inputs) -> PolicyWeights:
    """NumPy copies of the actor's flat weights and of what its inputs are normalised by."""
    return PolicyWeights(actor.cpu().numpy().copy(), *inputs.mean_and_scale())


def value_range(spec: GoalSpec, options: AgentOptions) -> tuple[float, float]:
    """What values are held within: the returns that the task's rewards can produce, if so wished and known, or anything."""
    if not options.clip_targets:
        return -math.inf, math.inf
    return return_range(spec.reward_low, spec.reward_high, options.discount)


def choose_device(name: str) -> torch.device:
    """The device of the option `device`; raises OptionError where a GPU is asked for and there is none."""
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError("device is 'cuda', but torch finds no GPU here: use device='auto' or 'cpu'")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def _check_action(spec: GoalSpec) -> None:
    action = spec.action
    if action.n_values is not None or np.dtype(action.dtype).kind != "f":
        kind = f"Discrete({action.n_values})" if action.n_values is not None else f"of the dtype {action.dtype}"
        raise GoalEnvError(
            f"the action space is {kind}, but this agent acts in a bounded Box of floats: "
            f"use an agent for discrete actions, or another environment"
        )
    low, high = action.bounds()
    if not action.is_bounded or not (low < high).all():
        raise GoalEnvError(
            f"the action space ranges from {low.ravel().tolist()} to {high.ravel().tolist()}, but this agent needs finite "
            f"bounds, the lower below the upper: wrap the environment in gymnasium.wrappers.RescaleAction"
        )
