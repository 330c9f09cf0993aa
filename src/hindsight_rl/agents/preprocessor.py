"""From a Batch of NumPy arrays to tensors for the networks: flat, normalized, actions in [-1, 1] or as indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ShapeError
from ..records import Array, Batch, Episode
from ..records.statistics import FLOAT32_ROUNDING
from ..task_structure.subgoals import Subgoals
from .layout import Block, Feature, Layout, feature_of
from .policy import PolicySpec

GOAL_FRACTION = 0.1  # of the standard deviation of the goals: columns that vary less may be noise
FIXED_MEAN_AND_SCALE: dict[Feature, tuple[float, float]] = {  # these features are not normalized by statistics
    "bit": (0.5, 2.0),  # 0 and 1 become -1 and 1
    "one_hot": (0.0, 1.0),
    "image": (0.0, 1.0 / 255.0),
    "agreement": (0.0, 1.0),
}


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
        self._mean, self._scale = torch.empty(2, self.size + self._action_size, device=device)
        self._mean[self.size :] = torch.from_numpy(center[: self._action_size])
        self._scale[self.size :] = torch.from_numpy(1 / half_width[: self._action_size])
        self.refresh()

    def observe(self, episode: Episode) -> None:
        """Add an episode to the running statistics, if inputs are normalized."""
        if self.options.normalize:
            self.normalizer.update(episode)
            self.refresh()

    def refresh(self) -> None:
        """Copy mean and scale of the normalizer to the device."""
        mean, scale = self.normalizer.mean_and_scale()
        self._mean[: self.size] = torch.from_numpy(mean)
        self._scale[: self.size] = torch.from_numpy(scale)

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
        if batch.place is not None:
            batch = replace(batch, goal=np.concatenate((batch.goal, batch.place), -1))
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
        observation, achieved_goal, goal = self.spec.parsed_subgoals.seen(subgoal, observation, achieved_goal, goal)
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


class RunningMoments:
    """Mean and variance of each column over all rows so far, in float64.

    Batches are merged as in Chan, Golub and LeVeque 1979, which never subtracts two large sums of squares.
    """

    def __init__(self, size: int) -> None:
        self.count = np.zeros((), np.float64)
        self.mean = np.zeros(size, np.float64)
        self.squares = np.zeros(size, np.float64)  # sum of squared differences from the mean

    def update(self, rows: Array) -> None:
        """Add rows, (N, size), any dtype."""
        if len(rows) == 0:
            return
        mean = rows.mean(axis=0, dtype=np.float64)
        difference, total = mean - self.mean, self.count + len(rows)
        self.mean += difference * (len(rows) / total)
        self.squares += np.square(rows - mean).sum(axis=0) + np.square(difference) * (self.count * len(rows) / total)
        self.count[...] = total

    def standard_deviation(self) -> Array:
        """Return the standard deviation of each column, (size,); 1 before the first row."""
        return np.asarray(np.sqrt(self.squares / self.count)) if self.count else np.ones_like(self.mean)


class Normalizer:
    """Running moments of the numeric observations, and of all goals together, those of subgoals included.

    Networks see x as clip((x - mean) * scale) with scale = 1 / max(standard deviation, least deviation). Before the first
    episode mean is 0 and scale is 1. Bits, one-hot values and images have a fixed mean and scale.

    The least deviation keeps noise small: that of resting objects, and the rounding of float32. It is `normalizer_eps`, or
    GOAL_FRACTION of the standard deviation of the goals if that is smaller, so that goals in kilometres are seen like
    those in metres.
    """

    def __init__(self, layout: Layout, subgoals: Subgoals) -> None:
        self.layout, self.subgoals = layout, subgoals
        self.moments = {
            name: RunningMoments(array.size if feature_of(array) == "number" else 0)
            for name, array in (("observation", layout.observation), ("goal", layout.goal))
        }

    def update(self, episode: Episode) -> None:
        """Add every row of an episode, the last one included, with each object that networks see in the first place."""
        goals = self.subgoals.all_goals(episode.observation, episode.achieved_goal, episode.desired_goal)
        for columns, dimensions in self.subgoals.orders:
            self._add("observation", episode.observation[columns])
            for goal in goals:
                self._add("goal", goal[dimensions])

    def mean_and_scale(self) -> tuple[Array, Array]:
        """Return float32 mean and scale of the network input, (layout.size,) each."""
        parts = [np.broadcast_to(self._mean_and_scale(block), (2, block.size)) for block in self.layout.blocks]
        mean, scale = np.concatenate(parts, 1, dtype=np.float32)
        return mean, scale

    def summary(self) -> dict[str, float]:
        """Return stats_o/mean, stats_o/std, stats_g/mean and stats_g/std: means over the columns of observation and goal.

        The names are those of OpenAI baselines. Arrays that are not numeric or have no rows yet are left out.
        """
        known = {f"stats_{n[0]}": m for n, m in self.moments.items() if m.mean.size and m.count}
        means = {f"{name}/mean": float(moments.mean.mean()) for name, moments in known.items()}
        return means | {f"{name}/std": float(moments.standard_deviation().mean()) for name, moments in known.items()}

    def state_dict(self) -> dict[str, Array]:
        """Return copies of all moments, under "normalizer/..."."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore the moments of `state_dict`; the caller has checked names and shapes."""
        for name, array in self._arrays().items():
            array[...] = state[name]

    def _add(self, name: str, values: Array) -> None:
        moments = self.moments[name]
        if moments.mean.size:
            moments.update(np.asarray(values, np.float64).reshape(len(values), moments.mean.size))

    def _mean_and_scale(self, block: Block) -> Array:
        """Return mean and scale of the columns of a block, (2, block.size), or (2, 1) if all have the same."""
        is_difference = block.feature == "difference"
        feature = feature_of(getattr(self.layout, block.source)) if is_difference else block.feature
        if feature in FIXED_MEAN_AND_SCALE:
            mean_and_scale = np.array(FIXED_MEAN_AND_SCALE[feature])[:, None]
        else:
            moments = self.moments[block.source]
            deviation = np.maximum(moments.standard_deviation(), self._least_deviation(moments))
            mean_and_scale = np.stack([moments.mean, 1.0 / deviation])[:, self._columns(block)]
        if is_difference:
            mean_and_scale[0] = 0.0  # without its mean subtracted, a difference is 0 at the goal
        return mean_and_scale

    def _columns(self, block: Block) -> Any:
        """Return an index of the columns of the block's source that have its deviations."""
        if block.feature != "difference":
            visible = self.layout.visible[block.source]
            return slice(None) if visible is None else visible
        return slice(None) if block.source == "goal" else list(self.layout.differences.columns)

    def _least_deviation(self, moments: RunningMoments) -> Array:
        """Return the least number that each column is divided by, (size,)."""
        goals, eps = self.moments["goal"], self.layout.options.normalizer_eps
        deviation, size = (float(np.linalg.norm(values)) for values in (goals.standard_deviation(), goals.mean))
        least = min(eps, GOAL_FRACTION * deviation) if deviation > FLOAT32_ROUNDING * size else eps
        return np.maximum(least, FLOAT32_ROUNDING * np.abs(moments.mean))

    def _arrays(self) -> dict[str, Array]:
        return {
            f"normalizer/{name}_{kind}": getattr(moments, kind)
            for name, moments in self.moments.items()
            for kind in ("count", "mean", "squares")
        }
