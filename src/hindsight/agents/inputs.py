"""From a Batch of NumPy arrays to the tensors that networks see: flat, normalised, actions in [-1, 1] or counted from 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import GoalEnvError, OptionError, ShapeError
from ..options import CONTINUOUS_AGENTS, DISCRETE_AGENTS, ActorCriticOptions, AgentOptions
from ..records import ArraySpec, Batch, Episode, GoalSpec
from ..records.subgoals import acting_goals
from .losses import return_range
from .networks import Architecture
from .normalizer import Normalizer
from .policy import PolicyKind, PolicySpec

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Transitions:
    """P batches of B transitions as float32 tensors, each (P, B, n).

    inputs: what a policy sees. action: in [-1, 1], or int64 counted from 0 where actions are chosen. critic_inputs: inputs
    and, where it is numbers, the action. next_inputs: the same after the step. next_acting_inputs: what the policy sees
    where it chooses the next action: another subgoal, where it is the turn of that. discount: what the next value counts, 0
    where the step ended the episode for good. weight: what a row counts in the critics' loss; None where all count alike.
    """

    inputs: Tensor
    action: Tensor
    critic_inputs: Tensor
    next_inputs: Tensor
    next_acting_inputs: Tensor
    reward: Tensor
    discount: Tensor
    weight: Tensor | None

    def __getitem__(self, batch: int) -> Transitions:
        """One of the batches, (B, n) each."""
        return Transitions(
            self.inputs[batch],
            self.action[batch],
            self.critic_inputs[batch],
            self.next_inputs[batch],
            self.next_acting_inputs[batch],
            self.reward[batch],
            self.discount[batch],
            None if self.weight is None else self.weight[batch],
        )


class Inputs:
    """Turns batches of one task into Transitions, by the statistics of the episodes seen so far."""

    def __init__(self, spec: PolicySpec, options: AgentOptions, device: torch.device) -> None:
        self.spec, self.options, self.device = spec, options, device
        self.normalizer = Normalizer(spec.layout, options.normalizer_eps, spec.parsed_subgoals)
        self.size = spec.layout.size
        low, high = (bound.ravel() for bound in spec.action.bounds())
        self._action_size = 0 if spec.n_actions else spec.action.size
        self._action_mean = ((high + low) / 2).astype(np.float32)[: self._action_size]
        self._action_scale = (2 / (high - low)).astype(np.float32)[: self._action_size]
        self._mean = torch.empty(self.size + self._action_size, device=device)
        self._scale = torch.empty_like(self._mean)
        self.refresh()

    def observe(self, episode: Episode) -> None:
        """Take the episode up into the running statistics, where inputs are normalised by them."""
        if self.options.normalize:
            self.normalizer.update(episode)
            self.refresh()

    def moments_of(self, episodes: Sequence[Episode]) -> Array:
        """The statistics of these episodes alone, as one vector; empty ones where inputs are not normalised by them."""
        alone = Normalizer(self.spec.layout, self.options.normalizer_eps, self.spec.parsed_subgoals)
        for episode in episodes if self.options.normalize else ():
            alone.update(episode)
        return alone.to_vector()

    def observe_moments(self, moments: Array) -> None:
        """Take the statistics of some episodes up into the running ones."""
        self.normalizer.merge_vector(moments)
        self.refresh()

    def refresh(self) -> None:
        """Bring the tensors in line with the normalizer, after it changed."""
        mean, scale = self.normalizer.mean_and_scale()
        self._mean.copy_(torch.from_numpy(np.concatenate((mean, self._action_mean))))
        self._scale.copy_(torch.from_numpy(np.concatenate((scale, self._action_scale))))

    def transitions(self, batch: Batch, n_batches: int) -> Transitions:
        """The batch as tensors; (n_batches, B, ...) arrays, or (B, ...) where n_batches is 1. Raises ShapeError."""
        if batch.reward.ndim == 1 and n_batches == 1:
            batch = batch[None]
        if batch.reward.ndim != 2 or len(batch) != n_batches:
            raise ShapeError(
                f"an update takes {n_batches} batches at once, so reward must have the shape ({n_batches}, B), got "
                f"{batch.reward.shape}: sample that many, for instance with sample_many({n_batches}, batch_size)"
            )
        action = batch.action if self._action_size else None
        subgoal = np.zeros(batch.reward.shape, np.int64) if batch.subgoal is None else batch.subgoal
        critic_inputs = self._seen(batch.observation, batch.achieved_goal, batch.goal, subgoal, action)
        next_inputs = self._seen(batch.next_observation, batch.next_achieved_goal, batch.goal, subgoal)
        return Transitions(
            inputs=critic_inputs[..., : self.size],
            action=critic_inputs[..., self.size :] if self._action_size else self._choice(batch.action),
            critic_inputs=critic_inputs,
            next_inputs=next_inputs,
            next_acting_inputs=self._seen_to_act(batch, subgoal) if self.spec.parsed_subgoals else next_inputs,
            reward=self._tensor(batch.reward),
            discount=self._discount(batch),
            weight=None if batch.weight is None else self._tensor(batch.weight),
        )

    def _seen_to_act(self, batch: Batch, subgoal: Array) -> Tensor:
        """What the policy sees after the step, where it may be the turn of another subgoal than the row's own."""
        turn, achieved_goal, goal = acting_goals(
            self.spec.parsed_subgoals, batch.next_observation, batch.next_achieved_goal, batch.goal, subgoal
        )
        return self._seen(batch.next_observation, achieved_goal, goal, turn)

    def rows(self, observation: Array, achieved_goal: Array, desired_goal: Array) -> Tensor:
        """What a policy sees of so many rows, (N, ...) each: (N, n)."""
        subgoal = np.zeros((1, len(observation)), np.int64)
        return self._seen(observation[None], achieved_goal[None], desired_goal[None], subgoal)[0]

    def _seen(
        self, observation: Array, achieved_goal: Array, goal: Array, subgoal: Array, action: Array | None = None
    ) -> Tensor:
        """Bounds do to an action what moments do to an observation: one operation serves both."""
        leading = goal.shape[:2]
        actions = () if action is None else (action.reshape(*leading, self._action_size),)
        columns = self.spec.layout.assemble(leading, observation, achieved_goal, goal, *actions, subgoal=subgoal)
        values, size = torch.from_numpy(columns).to(self.device, non_blocking=True), columns.shape[-1]
        values.sub_(self._mean[:size]).mul_(self._scale[:size])
        clip = self.options.normalizer_clip
        return values.clamp_(-clip, clip) if self.options.normalize else values

    def _choice(self, action: Array) -> Tensor:
        counted = action.astype(np.int64) - int(self.spec.action.low[0])
        return torch.from_numpy(counted).unsqueeze(-1).to(self.device, non_blocking=True)

    def _discount(self, batch: Batch) -> Tensor:
        if batch.discount is not None:
            return self._tensor(batch.discount)
        return self._tensor(batch.terminated).mul(-self.options.discount).add_(self.options.discount)

    def _tensor(self, values: Array) -> Tensor:
        """(P, B) of any dtype as a float32 tensor (P, B, 1) on the device; it may share the array's memory."""
        writeable = values if values.flags.writeable else values.copy()
        return torch.from_numpy(writeable).unsqueeze(-1).to(self.device, torch.float32, non_blocking=True)


def policy_spec(spec: GoalSpec, options: AgentOptions, kind: PolicyKind, layer_norm: bool) -> PolicySpec:
    """The policy that an agent with these options publishes for this task; GoalEnvError where it cannot act in it."""
    _check_action(spec.action, kind)
    return PolicySpec(
        observation=spec.observation,
        goal=spec.goal,
        action=spec.action,
        hidden=options.hidden,
        layer_norm=layer_norm,
        observe_achieved_goal=options.observe_achieved_goal,
        goal_features=options.goal_features,
        kind=kind,
        normalizer_clip=options.normalizer_clip if options.normalize else None,
        image_channels=options.image_channels,
        hidden_observation=options.hidden_observation,
        hidden_goal=options.hidden_goal,
        column_differences=options.column_differences,
        subgoals=options.subgoals if isinstance(options, ActorCriticOptions) else (),
    )


def actor_architecture(spec: PolicySpec) -> Architecture:
    """The network that acts."""
    return Architecture(spec.layer_sizes, 1, spec.layer_norm, spec.encoding)


def critic_architecture(spec: PolicySpec, options: AgentOptions, n_outputs: int, n_members: int = 1) -> Architecture:
    """Networks that judge what the policy sees, and where an action is numbers the action too."""
    action_size = 0 if spec.n_actions else spec.action.size
    encoding = spec.layout.encoding(spec.image_channels, action_size)
    n_inputs = encoding.output_size if encoding else spec.input_size + action_size
    return Architecture((n_inputs, *options.hidden, n_outputs), n_members, options.critic_layer_norm, encoding)


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


def _check_action(action: ArraySpec, kind: PolicyKind) -> None:
    if action.n_values is None and np.dtype(action.dtype).kind != "f":
        raise GoalEnvError(
            f"the action space is of the dtype {action.dtype}, but agents act in a bounded Box of floats or choose from a "
            f"Discrete space: wrap the environment in a gymnasium.wrappers.TransformAction"
        )
    if (action.n_values is not None) != (kind == "discrete"):
        wanted, agents = (
            ("in a bounded Box of floats", DISCRETE_AGENTS) if action.n_values else ("by choice", CONTINUOUS_AGENTS)
        )
        space = f"Discrete({action.n_values})" if action.n_values else f"a Box of the shape {action.shape}"
        raise GoalEnvError(
            f"the action space is {space}, but this agent acts {wanted}: use one that fits, {', '.join(agents)}"
        )
    low, high = action.bounds()
    if kind != "discrete" and (not action.is_bounded or not (low < high).all()):
        raise GoalEnvError(
            f"the action space ranges from {low.ravel().tolist()} to {high.ravel().tolist()}, but this agent needs finite "
            f"bounds, the lower below the upper: wrap the environment in gymnasium.wrappers.RescaleAction"
        )
