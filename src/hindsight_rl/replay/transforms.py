"""Transforms: the steps of the sampler's pipeline after the gather, one small class each, and the pipeline that they form.

Rewards and terminations of relabelled samples, n-step returns, and importance weights. Those of subgoals and symmetries are
in `task_structure.samples`. A transform is called as transform(batch, draw, rng) and changes the batch in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from ..errors import GoalEnvError, OptionError
from ..options import ReplayOptions
from ..records import Array, Batch
from ..records.reward_scale import UNIT_RANGE, GuardedReward, RewardScale
from ..task_structure.samples import SubgoalTransform, SymmetryTransform
from ..task_structure.subgoals import Subgoals
from ..task_structure.symmetries import SymmetryGroup
from .kernels import gather, write_rewards
from .rows import BatchMemory, Draw, as_bytes, finite_number, fraction_of_one, read_only
from .sampler import RandomNumbers, Transform
from .strategies import AS_STORED, RewardFunction, Termination, choose_termination
from .timeline import Timeline


@dataclass(frozen=True, eq=False)
class RewardTransform:
    """Recompute the rewards and terminations of relabelled samples with the functions of the environment.

    With `tolerance_levels` the reward is graded: it becomes the mean of 1 + tolerance_levels rewards. They are those of the
    achieved goal, and of the goals at 1/2, 1/4, ... of its difference to the desired goal. If a distance decides, these are
    rewards with 2, 4, ... times the tolerance.

    desired_goals: those of all rows. extra_reward: whether the part of a reward that compute_reward leaves out, such as a
        penalty for a crash, is added under every goal; else relabelled samples lack it.
    recomputes_all: whether samples with their own goal get the reward of compute_reward too, instead of the stored one.
    scale: converts the rewards of all samples to units of the task, and adds to those of an end what follows it; None:
        rewards stay those of the environment. discount: per step, for what follows an end, below 1.
    """

    compute_reward: RewardFunction
    termination: Termination
    desired_goals: Array
    extra_reward: bool = False
    tolerance_levels: int = 0
    recomputes_all: bool = False
    scale: RewardScale | None = None
    discount: float = 0.0

    def __call__(self, batch: Batch, draw: Draw, rng: RandomNumbers) -> None:
        """Overwrite reward and terminated where relabelled. The functions get read-only views.

        Raises GoalEnvError if a function returns what cannot be used.
        """
        achieved, goal, info = draw.reward_arguments
        task_reward = recomputed = reward = _call(self.compute_reward, "compute_reward", achieved, goal, info)
        if self.scale is not None and not self.scale.is_unit:
            recomputed = reward = self._in_units(task_reward)
            batch.reward[:] = self._in_units(batch.reward)
        if self.extra_reward:
            own_goal = read_only(self.desired_goals[batch.row])
            reward = recomputed + batch.reward - self._rewards(achieved, own_goal, info)
        is_written = np.ones_like(batch.is_relabelled) if self.recomputes_all else batch.is_relabelled
        if self.tolerance_levels:
            reward = np.where(is_written, reward, batch.reward) + self._graded_part(recomputed, achieved, goal, info)
            is_written = np.ones_like(is_written)
        if not write_rewards(reward, batch.reward, is_written):
            raise GoalEnvError("compute_reward must return finite rewards for every achieved goal, got NaN or infinity.")
        if self.termination is not AS_STORED:
            self._terminate(batch, achieved, goal, info, task_reward)
        if self.scale is not None:
            self._add_after_ends(self.scale, batch, achieved, goal, info, recomputed)

    def _call_reward(self, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
        return _call(self.compute_reward, "compute_reward", achieved, goal, info)

    def _in_units(self, rewards: Array) -> Array:
        """Return rewards in units of the task if there is a scale. Those that are in it already are returned themselves."""
        return rewards if self.scale is None else self.scale.to_units(rewards)

    def _rewards(self, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
        return self._in_units(self._call_reward(achieved, goal, info))

    def _add_after_ends(
        self, scale: RewardScale, batch: Batch, achieved: Array, goal: Array, info: dict[str, Array], reward: Array
    ) -> None:
        """Add what follows an end to the reward of the last step. reward: without extra reward, not graded.

        An end is a success if the reward is as good as if the achieved goal was the desired one. Rewards of more
        than two values show that less well: there it is what ends relabelled samples, if that is known.
        """
        ended = np.flatnonzero(batch.terminated)
        if not len(ended):
            return
        at, of_ended = read_only(achieved[ended]), {key: values[ended] for key, values in info.items()}
        if not scale.is_sparse and self.termination.keeps_events and self.termination is not AS_STORED:
            is_success = self._is_end(at, read_only(goal[ended]), of_ended)
        else:
            is_success = reward[ended] > self._rewards(at, at, of_ended) - 0.5
        batch.reward[ended] += scale.after_end(is_success) * self.discount / (1.0 - self.discount)

    def _graded_part(self, reward: Array, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
        """Return what nearer achieved goals add to the rewards, (B,), so that the sum is the mean of all.

        Where compute_reward cannot answer for a nearer goal, the reward of the sample stands for it.
        """
        total, ask = reward.astype(np.float64), GuardedReward(self.compute_reward)
        for k in range(1, self.tolerance_levels + 1):
            nearer = read_only((goal + (achieved - goal) * 0.5**k).astype(achieved.dtype))
            rewards = ask(nearer, goal, info)
            total += self._ask_each(ask, nearer, goal, info, reward) if rewards is None else self._in_units(rewards)
        return np.asarray(total / (1 + self.tolerance_levels) - reward)

    def _ask_each(self, ask: GuardedReward, nearer: Array, goal: Array, info: dict[str, Array], reward: Array) -> Array:
        """Return the rewards of goals that are asked for one by one, (B,), and `reward` where there is no answer."""
        parts = (slice(i, i + 1) for i in range(len(goal)))
        answers = [ask(nearer[part], goal[part], {k: v[part] for k, v in info.items()}) for part in parts]
        pairs = zip(reward, answers, strict=True)
        return np.array([own if answer is None else self._in_units(answer)[0] for own, answer in pairs])

    def _terminate(self, batch: Batch, achieved: Array, goal: Array, info: dict[str, Array], reward: Array) -> None:
        """Overwrite terminated where relabelled. reward: of the task, without extra reward, which does not decide success.

        An episode that its own goal did not end was ended by an event, such as a crash. That ends it under every goal.
        """
        ended = np.flatnonzero(batch.is_relabelled & batch.terminated) if self.termination.keeps_events else ()
        np.copyto(batch.terminated, self._is_end(achieved, goal, info, reward), where=batch.is_relabelled)
        if len(ended):
            own = achieved[ended], read_only(self.desired_goals[batch.row[ended]]), {k: v[ended] for k, v in info.items()}
            batch.terminated[ended[~self._is_end(*own)]] = True

    def _is_end(self, achieved: Array, goal: Array, info: dict[str, Array], reward: Array | None = None) -> Array:
        """Return which steps end at these goals. reward: for these goals; None: it is computed if it is needed."""
        function, least_reward = self.termination.function, self.termination.least_reward
        if function is not None:
            return _call(function, "compute_terminated (or compute_success)", achieved, goal, info).astype(np.bool_)
        if reward is None:
            reward = self._call_reward(achieved, goal, info)
        return np.asarray(reward.astype(np.float32) >= np.float32(least_reward))


def _call(function: RewardFunction, name: str, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
    """Return what a function of the environment returns, (B,) numbers. Raises GoalEnvError if that cannot be used."""
    try:
        values = np.asarray(function(achieved, goal, info))
    except GoalEnvError:  # it names the call
        raise
    except Exception as problem:
        if "read-only" in str(problem):
            raise GoalEnvError(f"{name} must not write into its arguments ({problem}). Let it work on copies.") from problem
        error, entries = f"{type(problem).__name__}: {problem}", ", ".join(info) or "no entries"
        fix = _fix(name, problem)
        raise GoalEnvError(f"{name} failed for {len(goal)} goals and an info with {entries} ({error}). {fix}.") from problem
    if values.shape != (len(goal),) or values.dtype.kind not in "fiub":
        wanted, got = f"numbers of shape ({len(goal)},) for {len(goal)} goals", f"shape {values.shape} of {values.dtype}"
        raise GoalEnvError(f"{name} must return {wanted}, got {got}. Vectorize it, or let make_buffer wrap it.")
    return values


def _fix(name: str, problem: Exception) -> str:
    """Return what may be done about a function that fails. A KeyError is about info, others may be about the batch."""
    info = "If it reads others, name them in the option info_keys" if name == "compute_reward" else "Correct it"
    is_key = isinstance(problem, KeyError)
    return info if is_key else f"If it accepts one goal only, vectorize it, or let make_buffer wrap it. {info}"


class NStepReturn:
    """Replace one-step samples by n-step returns under the goal of the sample, without off-policy correction.

    A sample spans m steps: up to n, fewer if the episode ends or terminates before. `reward` becomes the discounted sum,
    next_observation and next_achieved_goal those after the last step, `terminated` that of the last step, and `discount`
    becomes discount**m, or 0 where the last step terminated (Hessel et al. 2018).
    """

    def __init__(self, timeline: Timeline, rewards: RewardTransform, n_steps: int, discount: float) -> None:
        self._timeline, self._rewards, self._n_steps, self._discount = timeline, rewards, n_steps, discount
        self._ring = as_bytes(timeline.rows)
        self._memory = cache(lambda shape: BatchMemory(timeline.rows.dtype, shape))

    def __call__(self, batch: Batch, draw: Draw, rng: RandomNumbers) -> None:
        """Gather the next steps of each sample, recompute their rewards, and sum them."""
        steps_left = self._timeline.steps_left[batch.row]
        steps = self._next_steps(batch, draw, steps_left)
        self._rewards(steps.flat, steps, rng)
        sum_steps(steps.batch, steps_left, self._discount, batch)

    def _next_steps(self, batch: Batch, draw: Draw, steps_left: Array) -> Draw:
        """Return the steps of each sample under its goal, (n, B); those behind the end repeat the last step."""
        n, size = self._n_steps, len(batch)
        steps: Draw = self._memory((n, size)).allocate()
        steps.batch.row[:] = batch.row + np.minimum(np.arange(n)[:, None], steps_left - 1)
        steps.batch.is_relabelled[:] = batch.is_relabelled
        steps.goal_at.reshape(n, size)[:] = draw.goal_at
        gather(self._ring, self._timeline.rows.itemsize, steps.flat.row, steps.goal_at, steps.plan)
        return steps


def sum_steps(steps: Batch, steps_left: Array, discount: float, batch: Batch) -> None:
    """Write the n-step returns of `steps`, arrays (n, B, ...), into `batch`, arrays (B, ...), see NStepReturn.

    steps_left: (B,), of the first steps.
    """
    n, size = steps.reward.shape
    step = np.arange(n)[:, None]
    terminated_before = np.cumsum(steps.terminated, axis=0) > steps.terminated
    is_used = (step < steps_left) & ~terminated_before
    n_used = is_used.sum(axis=0)
    last = n_used - 1, np.arange(size)
    batch.reward[:] = np.where(is_used, discount**step * steps.reward, 0.0).sum(axis=0)
    for name in ("terminated", "next_observation", "next_achieved_goal"):
        getattr(batch, name)[:] = getattr(steps, name)[last]
    if batch.discount is not None:
        batch.discount[:] = np.where(batch.terminated, 0.0, discount**n_used)


def with_info(function: Any, info_keys: Sequence[str]) -> Any:
    """Return `function`, wrapped if Numba compiled it: it then gets info=None, because Numba has no type for a dict.

    Raises OptionError for a compiled function if there are info_keys.
    """
    if not isinstance(function, Dispatcher):
        return function
    if info_keys:
        raise OptionError(f"A compiled function gets no info, but info_keys are {', '.join(info_keys)}. Do not compile it.")
    return lambda achieved, goal, info: function(achieved, goal, None)


class WeightTransform:
    """Set the importance weights (N * P(i)) ** -beta, divided by the maximum of the batch (Schaul et al. 2016).

    N is the number of transitions, and P(i) is the probability of sample i: its priority divided by the sum of all. The
    division cancels N and the sum.
    It is the last transform, because it replaces `row` by write positions, which `update_priorities` needs.
    beta: 0 (no correction) to 1 (full correction). It may be changed at any time.
    """

    def __init__(self, timeline: Timeline, beta: float) -> None:
        self._timeline, self.beta = timeline, beta

    def __call__(self, batch: Batch, draw: Draw, rng: RandomNumbers) -> None:
        """Set `weight` and `row` of the batch. Without priorities, nothing changes."""
        if self._timeline.priorities is None:
            return
        if self.beta:  # else all weights are 1, and the priorities need not be read
            values = self._timeline.priorities.values(draw.batch.row)
            draw.batch.weight = ((values.min(axis=-1, keepdims=True) / values) ** self.beta).astype(np.float32)
        else:
            draw.batch.weight = np.ones(draw.batch.row.shape, np.float32)
        if self._timeline.wraps:
            batch.row[:] = self._timeline.positions(batch.row)


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
    functions: Mapping[str, RewardFunction | None],
    options: ReplayOptions,
    discount: float,
    subgoals: Sequence[str],
    rewards: tuple[float | None, float],
    symmetries: SymmetryGroup,
) -> Pipeline:
    """Return the pipeline of a buffer, whose arguments these are, without a scale of rewards. Raises OptionError.

    functions: compute_reward, compute_terminated and compute_success, by name. rewards: failure_reward, success_reward.
    """
    _check_subgoals(subgoals, options)
    compute_reward, terminated, success = (with_info(each, options.info_keys) for each in functions.values())
    failure_reward, success_reward = rewards
    high = finite_number("success_reward", success_reward)
    low = high - 1.0 if failure_reward is None else finite_number("failure_reward", failure_reward)
    termination = choose_termination(options.relabel_terminated, terminated, success, high)
    discount = fraction_of_one("discount", discount)
    return Pipeline(compute_reward, termination, options, discount, tuple(subgoals), (low, high), symmetries)


def _check_subgoals(subgoals: Sequence[str], options: ReplayOptions) -> None:
    """Raise OptionError for options that do not fit subgoals."""
    wanted = {"relabel_at": "sample", "extra_reward": False, "n_steps": 1} if subgoals else {}
    for name, value in wanted.items():
        if getattr(options, name) != value:
            raise OptionError(f"{name} must be {value!r} with subgoals, got {getattr(options, name)!r}.")


def achieved_fraction(compute_reward: RewardFunction, batch: Batch) -> float | None:
    """See `HindsightBuffer.already_achieved_fraction`. compute_reward: without info."""
    here, ask = batch.is_relabelled, GuardedReward(compute_reward)
    if not here.any():
        return None
    achieved, goal = batch.achieved_goal[here], batch.goal[here]
    pairs = (achieved, goal), (goal, goal), (achieved, np.roll(goal, 1, axis=0))
    rewards = [found for pair in pairs if (found := ask(*pair, {})) is not None]
    if len(rewards) < len(pairs):
        return None
    before, at_goal, _ = rewards
    is_rewarded = at_goal > np.min(rewards)
    return float(np.mean((before >= at_goal) & is_rewarded)) if is_rewarded.any() else None
