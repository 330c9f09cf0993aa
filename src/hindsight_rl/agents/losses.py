"""The formulas of the agents as functions of tensors. Each loss comes with its gradient, for the networks' backward pass.

Shapes: E members of an ensemble, B rows, A elements of an action, N quantiles. Losses are means over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..options.agent import ActorCriticOptions, AgentOptions
from ..records import GoalSpec
from ..records.statistics import return_range
from .policy import LOG_STD_RANGE
from .preprocessor import Transitions

Loss = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]  # of value, target and weight; and its gradient


def value_range(spec: GoalSpec, options: AgentOptions) -> tuple[float, float]:
    """Return the range to which targets are clipped: the possible returns, or infinite without `clip_targets`."""
    if not options.clip_targets:
        return -math.inf, math.inf
    low, high = return_range(spec.reward_low, spec.reward_high, options.discount)
    largest = torch.finfo(torch.float32).max  # a bound beyond it cannot be compared with float32 values
    return low if low >= -largest else -math.inf, high if high <= largest else math.inf


def td_target(reward: Tensor, discount: Tensor, next_value: Tensor, low: float, high: float) -> Tensor:
    """Return reward + discount * next_value, clipped to the range of possible returns.

    reward, discount: (..., B, 1); discount is 0 if the transition terminated. next_value: (..., B, n).
    """
    return torch.addcmul(reward, discount, next_value).clamp_(low, high)


def random_members(values: Tensor, n_members: int | None, generator: torch.Generator) -> Tensor:
    """Return a random subset of an ensemble's values (E, B, n) (REDQ, Chen et al. 2021), or all of them for None."""
    if n_members is None:
        return values
    return values[torch.randperm(len(values), generator=generator, device=values.device)[:n_members]]


def min_value(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the minimum (B, 1) over an ensemble (E, B, 1), and d sum(minimum) / d values, (E, B, 1)."""
    value, member = values.min(0, keepdim=True)
    return value[0], torch.zeros_like(values).scatter_(0, member, 1.0)


def mean_value(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean (B, 1) over an ensemble and its quantiles (E, B, N), and d sum(mean) / d values."""
    members, _, quantiles = values.shape
    return values.mean((0, 2)).unsqueeze(1), torch.full_like(values, 1.0 / (members * quantiles))


def squared_loss(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the squared error, summed over the ensemble and averaged over rows, and d loss / d value.

    value: (E, B, 1). target: (B, 1). weight: (B, 1), a factor of each row's loss.
    """
    error = value - target
    return _mean_over_rows(error.square(), error, 2.0, weight)


def huber_loss(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the Huber loss: half the squared error up to 1, linear beyond (Mnih et al. 2015). As `squared_loss`."""
    error = value - target
    slope = error.clamp(-1.0, 1.0)
    return _mean_over_rows(slope * (error - 0.5 * slope), slope, 1.0, weight)


VALUE_LOSSES = {"squared": squared_loss, "huber": huber_loss}


def quantile_huber_loss(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the quantile Huber loss (Dabney et al. 2018, equation 10) and d loss / d value.

    The loss is a sum over ensemble and quantiles and a mean over samples and rows.

    value: (E, B, N), the quantiles at levels (i + 1/2) / N.
    target: (B, K), samples of the target.
    weight: (B, 1), a factor of each row's loss.
    """
    samples, quantiles = target.shape[-1], value.shape[-1]
    # One allocation for three numbers per pair: three allocations cost more than the arithmetic.
    error, slope, slope_above = value.new_empty(3, *value.shape, samples)
    torch.sub(target.unsqueeze(1), value.unsqueeze(3), out=error)
    torch.clamp(error, -1.0, 1.0, out=slope)
    torch.clamp(slope, min=0.0, out=slope_above)
    # A sample above a quantile has the weight `level`, one below 1 - level. Two sums avoid a choice per pair.
    level = (torch.arange(quantiles, dtype=value.dtype, device=value.device) + 0.5) / quantiles
    of_all, of_above, average = 1.0 - level, 2.0 * level - 1.0, torch.full_like(target[0], 1.0 / samples)
    minus_of_value = of_all * (slope @ average) + of_above * (slope_above @ average)
    half_way = error.add_(slope, alpha=-0.5)
    loss = of_all * (slope.mul_(half_way) @ average) + of_above * (slope_above.mul_(half_way) @ average)
    return _mean_over_rows(loss, minus_of_value, -1.0, weight)


def _mean_over_rows(loss: Tensor, slope: Tensor, factor: float, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the sum of `loss` (E, B, n) over the number of rows, and its gradient: slope * factor, in place."""
    if weight is not None:
        loss, slope = loss * weight, slope * weight
    rows = loss.shape[1]
    return loss.sum() / rows, slope.mul_(factor / rows)


def absolute_td_error(value: Tensor, target: Tensor) -> Tensor:
    """Return |mean value - mean target| of each row, averaged over the ensemble, (B,). value: (E, B, N). target: (B, K)."""
    return (value.mean(-1) - target.mean(-1)).abs().mean(0)


def truncated_quantiles(values: Tensor, n_dropped: int) -> Tensor:
    """Return an ensemble's quantiles (E, B, N) pooled, without the E * n_dropped largest (Kuznetsov et al. 2020).

    The result is (B, E * (N - n_dropped)), unsorted.
    """
    members, rows, quantiles = values.shape
    pooled = values.transpose(0, 1).reshape(rows, members * quantiles)
    return pooled.topk(members * (quantiles - n_dropped), largest=False, sorted=False).values


def dueling_matrix(n_actions: int) -> Tensor:
    """Return the matrix M, (n_actions, 1 + n_actions), with Q = M @ (state value, advantages) (Wang et al. 2016).

    Q is value + advantage - mean advantage.
    """
    return torch.cat((torch.ones(n_actions, 1), torch.eye(n_actions) - 1.0 / n_actions), 1)


def quantile_mean_matrix(n_actions: int, n_quantiles: int) -> Tensor:
    """Return the matrix, (n_actions, n_actions * n_quantiles), that maps all quantiles to each action's mean."""
    return torch.eye(n_actions).repeat_interleave(n_quantiles, 1) / n_quantiles


def smoothed_action(action: Tensor, noise: float, clip: float, generator: torch.Generator) -> Tensor:
    """Return the action plus clipped Gaussian noise, within [-1, 1] (target policy smoothing, Fujimoto et al. 2018)."""
    draw = torch.randn(action.shape, generator=generator, dtype=action.dtype, device=action.device)
    return draw.mul_(noise).clamp_(-clip, clip).add_(action).clamp_(-1.0, 1.0)


def deterministic_policy_loss(
    action: Tensor, value: Tensor, value_gradient: Tensor, action_l2: float
) -> tuple[Tensor, Tensor]:
    """Return the loss -value + action_l2 * mean(action^2), and its gradient with respect to the actor's output.

    action: (B, A), tanh of the actor's output.
    value: (B, 1). value_gradient: (B, A), d sum(value) / d action.
    """
    rows, size = action.shape
    square = action.square()
    loss = action_l2 * square.mean() - value.mean()
    of_action = action * (2.0 * action_l2 / size) - value_gradient
    return loss, of_action * (1.0 - square) / rows


@dataclass(slots=True)
class GaussianSample:
    """Actions sampled from a squashed Gaussian, and what their gradient needs.

    action: (B, A) in (-1, 1). log_density: (B, 1).
    scaled_noise: (B, A), standard deviation times noise.
    is_inside: (B, A), whether the log standard deviation is inside its range, so that its gradient is not 0.
    """

    action: Tensor
    log_density: Tensor
    scaled_noise: Tensor
    is_inside: Tensor


def sample_squashed_gaussian(output: Tensor, generator: torch.Generator) -> GaussianSample:
    """Return tanh(mean + std * noise) and its log density (Haarnoja et al. 2018, appendix C).

    output: (B, 2A), mean and log standard deviation.

    log(1 - tanh(u)^2) is computed as 2 (log 2 - u - softplus(-2u)), which is always finite.
    """
    mean, raw_log_std = output.chunk(2, -1)
    log_std = raw_log_std.clamp(*LOG_STD_RANGE)
    noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
    scaled_noise = log_std.exp() * noise
    before = mean + scaled_noise
    log_slope = 2.0 * (math.log(2.0) - before - torch.nn.functional.softplus(-2.0 * before))
    log_gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
    log_density = (log_gaussian - log_slope).sum(-1, keepdim=True)
    return GaussianSample(before.tanh(), log_density, scaled_noise, log_std == raw_log_std)


def soft_policy_loss(
    sample: GaussianSample, value: Tensor, value_gradient: Tensor, coefficient: Tensor, action_l2: float
) -> tuple[Tensor, Tensor]:
    """Return the loss coefficient * log_density - value + action_l2 * mean(action^2), and d loss / d actor output, (B, 2A).

    The gradient holds the noise fixed (reparametrization, Haarnoja et al. 2018).

    value: (B, 1) of the sampled action. value_gradient: (B, A), d sum(value) / d action.
    coefficient: (), the entropy coefficient.
    """
    action = sample.action
    rows, size = action.shape
    square = action.square()
    loss = (coefficient * sample.log_density - value).mean() + action_l2 * square.mean()
    of_action = action * (2.0 * action_l2 / size) - value_gradient
    of_mean = of_action * (1.0 - square) + 2.0 * coefficient * action
    of_log_std = (of_mean * sample.scaled_noise - coefficient) * sample.is_inside
    return loss, torch.cat((of_mean, of_log_std), -1) / rows


def entropy_coefficient_gradient(log_density: Tensor, target_entropy: float) -> Tensor:
    """Return d/d log(coefficient) of -log(coefficient) * mean(log_density + target_entropy), (1,).

    The coefficient grows while the entropy is below its target.
    """
    return -(log_density.mean() + target_entropy).reshape(1)


def clone(
    batch: Transitions,
    action: Tensor,
    value: Tensor,
    value_gradient: Tensor,
    critic: Callable[[Tensor], Tensor],
    options: ActorCriticOptions,
) -> tuple[Tensor, Tensor]:
    """Return `value` and its gradient with the loss of behaviour cloning subtracted, with a Q-filter (Nair et al. 2018).

    The term is bc_weight * mean over the demonstrations of |action - demonstrated action|^2. With `q_filter` it is 0 where
    the critic values the policy's action at least as much as the demonstrated one.

    batch: the last n_demonstrations rows are demonstrations. Without any, value and gradient are returned as they are.
    action: (B, A), of the policy. value: (B, 1) of these actions. value_gradient: (B, A), d sum(value) / d action.
    critic: maps critic inputs (N, n) to values (N, 1), as `value` was computed.
    """
    n = batch.n_demonstrations
    if not n or not options.bc_weight:
        return value, value_gradient
    difference = action[-n:] - batch.action[-n:]
    weight = torch.full_like(value[-n:], options.bc_weight * len(value) / n)  # `value` is averaged over all rows
    if options.q_filter:
        weight *= critic(batch.critic_inputs[-n:]) > value[-n:]
    value, value_gradient = value.clone(), value_gradient.clone()
    value[-n:] -= weight * difference.square().sum(1, keepdim=True)
    value_gradient[-n:] -= 2.0 * weight * difference
    return value, value_gradient
