"""From a Batch of NumPy arrays to tensors for the networks: flat, normalized, actions in [-1, 1] or as indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import ShapeError
from ..records import Batch, Episode
from .layout import Normalizer
from .policy import PolicySpec

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Transitions:
    """P batches of B transitions as float32 tensors, each (P, B, n).

    inputs: network input before the step.
    action: in [-1, 1], or int64 indices for a Discrete space.
    critic_inputs: `inputs` and, unless it is an index, the action.
    next_inputs: network input after the step.
    next_policy_inputs: input of the policy that chooses the next action; with subgoals its goal may differ.
    reward: (P, B, 1).
    discount: factor of the next value, 0 if the step terminated the episode.
    weight: factor of a row's critic loss; None: all the same.
    n_demonstrations: the last so many rows of each batch are demonstrations.
    """

    inputs: Tensor
    action: Tensor
    critic_inputs: Tensor
    next_inputs: Tensor
    next_policy_inputs: Tensor
    reward: Tensor
    discount: Tensor
    weight: Tensor | None
    n_demonstrations: int = 0

    def __getitem__(self, index: int | slice) -> Transitions:
        """Return one of the batches, (B, n) each, or a slice of them."""
        values: list[Any] = [getattr(self, field) for field in self.__slots__]
        selected: list[Any] = [value[index] if isinstance(value, Tensor) else value for value in values]
        return Transitions(*selected)


class Preprocessor:
    """Converts batches to Transitions. Inputs are normalized by running statistics of all episodes."""

    def __init__(self, spec: PolicySpec, device: torch.device) -> None:
        self.spec, self.options, self.device = spec, spec.options, device
        self.normalizer = Normalizer(spec.layout, spec.parsed_subgoals)
        self.size = spec.layout.size
        center, half_width = spec.action_range
        self._action_size = 0 if spec.n_actions else spec.task.action.size
        self._action_mean = center.astype(np.float32)[: self._action_size]
        self._action_scale = (1 / half_width).astype(np.float32)[: self._action_size]
        self._mean = torch.empty(self.size + self._action_size, device=device)
        self._scale = torch.empty_like(self._mean)
        self.refresh()

    def observe(self, episode: Episode) -> None:
        """Add an episode to the running statistics, if inputs are normalized."""
        if self.options.normalize:
            self.normalizer.update(episode)
            self.refresh()

    def refresh(self) -> None:
        """Copy mean and scale of the normalizer to the device."""
        mean, scale = self.normalizer.mean_and_scale()
        self._mean.copy_(torch.from_numpy(np.concatenate((mean, self._action_mean))))
        self._scale.copy_(torch.from_numpy(np.concatenate((scale, self._action_scale))))

    def transitions(self, batch: Batch, n_batches: int) -> Transitions:
        """Return the batch as tensors. Raises ShapeError.

        batch: arrays (n_batches, B, ...), or (B, ...) if n_batches is 1.
        """
        if batch.reward.ndim == 1 and n_batches == 1:
            batch = batch[None]
        if batch.reward.ndim != 2 or len(batch) != n_batches:
            raise ShapeError(
                f"An update needs {n_batches} batches: expected shape ({n_batches}, B) for `reward`, got "
                f"{batch.reward.shape}. Sample them with sample_many({n_batches}, batch_size)."
            )
        action = batch.action if self._action_size else None
        subgoal = np.zeros(batch.reward.shape, np.int64) if batch.subgoal is None else batch.subgoal
        critic_inputs = self._inputs(batch.observation, batch.achieved_goal, batch.goal, subgoal, action)
        next_inputs = self._inputs(batch.next_observation, batch.next_achieved_goal, batch.goal, subgoal)
        return Transitions(
            inputs=critic_inputs[..., : self.size],
            action=critic_inputs[..., self.size :] if self._action_size else self._action_index(batch.action),
            critic_inputs=critic_inputs,
            next_inputs=next_inputs,
            next_policy_inputs=self._next_policy_inputs(batch, subgoal) if self.spec.parsed_subgoals else next_inputs,
            reward=self._column(batch.reward),
            discount=self._discount(batch),
            weight=None if batch.weight is None else self._column(batch.weight),
            n_demonstrations=batch.n_demonstrations,
        )

    def policy_inputs(self, observation: Array, achieved_goal: Array, desired_goal: Array) -> Tensor:
        """Return the network input of N rows, (N, n), for the task's own goal."""
        subgoal = np.zeros((1, len(observation)), np.int64)
        return self._inputs(observation[None], achieved_goal[None], desired_goal[None], subgoal)[0]

    def _next_policy_inputs(self, batch: Batch, subgoal: Array) -> Tensor:
        acting, achieved_goal, goal = self.spec.parsed_subgoals.acting_goals(
            batch.next_observation, batch.next_achieved_goal, batch.goal, subgoal
        )
        return self._inputs(batch.next_observation, achieved_goal, goal, acting)

    def _inputs(
        self, observation: Array, achieved_goal: Array, goal: Array, subgoal: Array, action: Array | None = None
    ) -> Tensor:
        """Return the normalized input, with the action after it. One operation scales both."""
        leading = goal.shape[:2]
        actions = () if action is None else (action.reshape(*leading, self._action_size),)
        columns = self.spec.layout.assemble(leading, observation, achieved_goal, goal, *actions, subgoal=subgoal)
        values, size = torch.from_numpy(columns).to(self.device, non_blocking=True), columns.shape[-1]
        values.sub_(self._mean[:size]).mul_(self._scale[:size])
        clip = self.options.normalizer_clip
        return values.clamp_(-clip, clip) if self.options.normalize else values

    def _action_index(self, action: Array) -> Tensor:
        index = action.astype(np.int64) - int(self.spec.task.action.low[0])
        return torch.from_numpy(index).unsqueeze(-1).to(self.device, non_blocking=True)

    def _discount(self, batch: Batch) -> Tensor:
        if batch.discount is not None:
            return self._column(batch.discount)
        return self._column(batch.terminated).mul(-self.options.discount).add_(self.options.discount)

    def _column(self, values: Array) -> Tensor:
        """Return (P, B) values as a float32 tensor (P, B, 1) on the device, which may share the array's memory."""
        writeable = values if values.flags.writeable else values.copy()
        return torch.from_numpy(writeable).unsqueeze(-1).to(self.device, torch.float32, non_blocking=True)
