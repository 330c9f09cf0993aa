"""Pipeline: which transforms the samples of a buffer go through, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import OptionError
from ..options import ReplayOptions
from ..records.reward_scale import UNIT_RANGE, RewardScale
from ..task_structure.samples import SubgoalTransform, SymmetryTransform
from ..task_structure.subgoals import Subgoals
from ..task_structure.symmetries import SymmetryGroup
from .rows import finite_number, fraction_of_one
from .sampler import Transform
from .strategies import RewardFunction, Termination, choose_termination
from .timeline import Timeline
from .transforms import NStepReturn, RewardTransform, WeightTransform, with_info


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The parts of a buffer that its transforms are made of.

    discount: per step, for n-step returns and for what follows an end.
    rewards: of a failure and of a success. Samples with a subgoal get them.
    scale: converts all rewards to units of the task; None: they stay those of the environment.
    """

    compute_reward: RewardFunction
    termination: Termination
    options: ReplayOptions
    discount: float
    subgoals: Sequence[str]
    rewards: tuple[float, float]
    symmetries: SymmetryGroup
    scale: RewardScale | None = None

    def returns(self, timeline: Timeline) -> Transform:
        """Return the transform that recomputes the rewards of samples of `timeline`: of one step, or of n_steps."""
        rewards = RewardTransform(
            self.compute_reward,
            self.termination,
            timeline.rows["desired_goal"],
            self.options.extra_reward,
            self.options.tolerance_levels,
            self.options.reward == "recompute",
            self.scale,
            self.discount,
        )
        n_steps = self.options.n_steps
        return rewards if n_steps == 1 else NStepReturn(timeline, rewards, n_steps, self.discount)

    def transforms(self, timeline: Timeline, weights: WeightTransform) -> tuple[Transform, ...]:
        """Return all transforms: rewards, subgoals, symmetries, importance weights."""
        transforms, symmetries = [self.returns(timeline)], self.symmetries
        subgoals = Subgoals(self.subgoals, timeline.spec)
        if subgoals:
            rewards, fraction = UNIT_RANGE if self.scale else self.rewards, self.options.subgoal_fraction
            transforms.append(SubgoalTransform(timeline.rows, subgoals, fraction, rewards, symmetries))
        if len(symmetries) > 1 and not subgoals.has_objects:
            transforms.append(SymmetryTransform(symmetries))
        return (*transforms, weights) if self.options.prioritized else tuple(transforms)

    @property
    def extras(self) -> tuple[str, ...]:
        """The further arrays of a batch, see `Sampler`."""
        return ("discount",) if self.options.n_steps > 1 else ()

    def with_scale(self, scale: RewardScale | None, dtype: str) -> Pipeline:
        """Return the pipeline with a scale. Raises OptionError unless it can convert rewards that are stored in `dtype`."""
        if not isinstance(scale, RewardScale | None):
            raise OptionError(f"reward_scale must be a RewardScale or None, got {scale!r}.")
        if scale is not None:
            scale.require_distinct(dtype)
        if scale is not None and self.discount == 1:
            raise OptionError(
                "reward_scale needs a discount below 1, got 1: the sum of all rewards after an end is infinite."
            )
        return replace(self, scale=scale)


def make_pipeline(
    functions: Sequence[RewardFunction | None],
    options: ReplayOptions,
    discount: float,
    subgoals: Sequence[str],
    rewards: tuple[float | None, float],
    symmetries: SymmetryGroup,
) -> Pipeline:
    """Return the pipeline of a buffer, whose arguments these are, without a scale of rewards. Raises OptionError.

    functions: compute_reward, compute_terminated, compute_success. rewards: failure_reward, success_reward.
    """
    compute_reward, terminated, success = (with_info(function, options.info_keys) for function in functions)
    failure_reward, success_reward = rewards
    high = finite_number("success_reward", success_reward)
    low = high - 1.0 if failure_reward is None else finite_number("failure_reward", failure_reward)
    termination = choose_termination(options.relabel_terminated, terminated, success, high)
    discount = fraction_of_one("discount", discount)
    return Pipeline(
        compute_reward, termination, options, discount, check_subgoals(subgoals, options), (low, high), symmetries
    )


def check_subgoals(subgoals: Sequence[str], options: ReplayOptions) -> tuple[str, ...]:
    """Return `subgoals`. Raises OptionError for options that do not fit them."""
    wanted = {"relabel_at": "sample", "extra_reward": False, "n_steps": 1} if subgoals else {}
    for name, value in wanted.items():
        if getattr(options, name) != value:
            raise OptionError(f"{name} must be {value!r} with subgoals, got {getattr(options, name)!r}.")
    return tuple(subgoals)
