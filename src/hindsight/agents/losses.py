"""The formulas of the agents, on tensors alone. A loss comes with its gradient, which the networks carry on.

Shapes: E members of an ensemble, B rows, A numbers of an action, N quantiles. Losses are means over the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .policy import LOG_DEVIATION_RANGE


def return_range(reward_low: float, reward_high: float, discount: float) -> tuple[float, float]:
    """The lowest and the highest return of rewards within a range: an endless episode's, or that of a last step.

    For rewards of -1 and 0 it is -1 / (1 - discount) and 0. Infinite where the reward has no bound.
    """
    horizon = 1.0 / (1.0 - discount)
    return min(reward_low, reward_low * horizon), max(reward_high, reward_high * horizon)


def td_target(reward: Tensor, discount: Tensor, next_value: Tensor, low: float, high: float) -> Tensor:
    """reward + discount * next_value, held within [low, high]; all (..., B, 1), `discount` 0 where the episode ended."""
    return torch.addcmul(reward, discount, next_value).clamp_(low, high)


def drawn(values: Tensor, n_members: int | None, generator: torch.Generator) -> Tensor:
    """`n_members` of an ensemble's values (E, B, n), drawn at random (REDQ, Chen et al. 2021); all of them when None."""
    if n_members is None:
        return values
    return values[torch.randperm(len(values), generator=generator, device=values.device)[:n_members]]


def lowest(values: Tensor, n_members: int | None, generator: torch.Generator) -> Tensor:
    """The lowest value in an ensemble (E, B, 1), or among `n_members` drawn at random. (B, 1)."""
    return drawn(values, n_members, generator).amin(0)


def lowest_value(values: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest value in an ensemble (E, B, 1) for a policy to climb: (B, 1), and d (its sum) / d values, (E, B, 1)."""
    value, member = values.min(0, keepdim=True)
    return value[0], torch.zeros_like(values).scatter_(0, member, 1.0)


def mean_value(values: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over an ensemble and its quantiles (E, B, N) for a policy to climb: (B, 1), and d (its sum) / d values."""
    members, _, quantiles = values.shape
    return values.mean((0, 2)).unsqueeze(1), torch.full_like(values, 1.0 / (members * quantiles))


def squared_error(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The squared error of (E, B, 1) against (B, 1), each row times its `weight` (B, 1) where there is one.

    Returns the loss, a sum over the ensemble and a mean over rows, and d loss / d value.
    """
    difference = value - target
    return _over_rows(difference.square(), difference, 2.0, weight)


def huber_error(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """As `squared_error`, but half of it up to an error of 1, and linear beyond (Huber 1964; Mnih et al. 2015)."""
    difference = value - target
    slope = difference.clamp(-1.0, 1.0)
    return _over_rows(slope * (difference - 0.5 * slope), slope, 1.0, weight)


ERRORS = {"squared": squared_error, "huber": huber_error}


def quantile_error(value: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The quantile Huber loss (Dabney et al. 2018, equation 10) of N quantiles against K samples of the target.

    value: (E, B, N), the quantiles at (i + 1/2) / N. target: (B, K). weight: (B, 1). Returns the loss, a sum over ensemble
    and quantiles and a mean over samples and rows, and d loss / d value.
    """
    samples, quantiles = target.shape[-1], value.shape[-1]
    # Three numbers per pair, in one piece of memory: allocated apart they cost more than all that is done with them.
    error, slope, slope_above = value.new_empty(3, *value.shape, samples)
    torch.sub(target.unsqueeze(1), value.unsqueeze(3), out=error)
    torch.clamp(error, -1.0, 1.0, out=slope)
    torch.clamp(slope, min=0.0, out=slope_above)
    # A sample above a quantile counts by the quantile's level, one below by 1 - level: two sums save choosing pair by pair.
    level = (torch.arange(quantiles, dtype=value.dtype, device=value.device) + 0.5) / quantiles
    of_all, of_those_above, share = 1.0 - level, 2.0 * level - 1.0, torch.full_like(target[0], 1.0 / samples)
    minus_of_value = of_all * (slope @ share) + of_those_above * (slope_above @ share)
    half_way = error.add_(slope, alpha=-0.5)
    loss = of_all * (slope.mul_(half_way) @ share) + of_those_above * (slope_above.mul_(half_way) @ share)
    return _over_rows(loss, minus_of_value, -1.0, weight)


def _over_rows(loss: Tensor, slope: Tensor, factor: float, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sum of `loss` (E, B, n) over the number of rows, and its gradient, made of slope * factor, in place."""
    if weight is not None:
        loss, slope = loss * weight, slope * weight
    rows = loss.shape[1]
    return loss.sum() / rows, slope.mul_(factor / rows)


def absolute_error(value: Tensor, target: Tensor) -> Tensor:
    """How far each row's mean value (E, B, N) is from its mean target (B, K), averaged over the ensemble. (B,)."""
    return (value.mean(-1) - target.mean(-1)).abs().mean(0)


def lowest_quantiles(values: Tensor, n_dropped: int) -> Tensor:
    """An ensemble's quantiles (E, B, N) in one row, less the E * n_dropped largest (Kuznetsov et al. 2020); unsorted."""
    members, rows, quantiles = values.shape
    pooled = values.transpose(0, 1).reshape(rows, members * quantiles)
    return pooled.topk(members * (quantiles - n_dropped), largest=False, sorted=False).values


def dueling_matrix(n_actions: int) -> Tensor:
    """What makes action values of (state value, advantages): value + advantage - mean advantage (Wang et al. 2016).

    (n_actions, 1 + n_actions), to be applied to the right of outputs, transposed.
    """
    return torch.cat((torch.ones(n_actions, 1), torch.eye(n_actions) - 1.0 / n_actions), 1)


def mean_matrix(n_actions: int, n_quantiles: int) -> Tensor:
    """What makes action values of quantiles: their mean. (n_actions, n_actions * n_quantiles), as `dueling_matrix`."""
    return torch.eye(n_actions).repeat_interleave(n_quantiles, 1) / n_quantiles


def smoothed_action(action: Tensor, noise: float, clip: float, generator: torch.Generator) -> Tensor:
    """The action plus clipped Gaussian noise, within [-1, 1] (target policy smoothing, Fujimoto et al. 2018)."""
    draw = torch.randn(action.shape, generator=generator, dtype=action.dtype, device=action.device)
    return draw.mul_(noise).clamp_(-clip, clip).add_(action).clamp_(-1.0, 1.0)


def deterministic_policy_loss(
    action: Tensor, value: Tensor, value_gradient: Tensor, action_l2: float
) -> tuple[Tensor, Tensor]:
    """The loss -value + action_l2 * mean(action^2), and its gradient before the tanh that made `action`.

    action: (B, A), tanh of the actor's output. value: (B, 1). value_gradient: (B, A), d (sum of value) / d action.
    """
    rows, size = action.shape
    square = action.square()
    loss = action_l2 * square.mean() - value.mean()
    of_action = action * (2.0 * action_l2 / size) - value_gradient
    return loss, of_action * (1.0 - square) / rows


@dataclass(slots=True)
class GaussianSample:
    """Actions drawn from a squashed Gaussian, and what the gradient needs.

    action: (B, A) in (-1, 1). log_density: (B, 1). spread: (B, A), deviation times noise. is_free: (B, A), whether the log
    deviation is inside its range, so that a gradient passes.
    """

    action: Tensor
    log_density: Tensor
    spread: Tensor
    is_free: Tensor


def sample_squashed_gaussian(output: Tensor, generator: torch.Generator) -> GaussianSample:
    """tanh(mean + deviation * noise) and the log of its density (Haarnoja et al. 2018, appendix C).

    output: (B, 2A), mean and log deviation. log(1 - tanh(u)^2) is taken as 2 (log 2 - u - softplus(-2u)): always finite.
    """
    mean, raw_log_deviation = output.chunk(2, -1)
    log_deviation = raw_log_deviation.clamp(*LOG_DEVIATION_RANGE)
    noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
    spread = log_deviation.exp() * noise
    before = mean + spread
    log_slope = 2.0 * (math.log(2.0) - before - torch.nn.functional.softplus(-2.0 * before))
    log_gaussian = -0.5 * noise.square() - log_deviation - 0.5 * math.log(2.0 * math.pi)
    log_density = (log_gaussian - log_slope).sum(-1, keepdim=True)
    return GaussianSample(before.tanh(), log_density, spread, log_deviation == raw_log_deviation)


def soft_policy_loss(
    sample: GaussianSample, value: Tensor, value_gradient: Tensor, coefficient: Tensor, action_l2: float
) -> tuple[Tensor, Tensor]:
    """The loss coefficient * log_density - value + action_l2 * mean(action^2), and its gradient for the actor's output.

    value: (B, 1) at the sampled action. value_gradient: (B, A), d (sum of value) / d action. coefficient: (). The gradient
    is (B, 2A), for mean and log deviation, with the noise held (the reparametrisation of Haarnoja et al. 2018).
    """
    action = sample.action
    rows, size = action.shape
    square = action.square()
    loss = (coefficient * sample.log_density - value).mean() + action_l2 * square.mean()
    of_action = action * (2.0 * action_l2 / size) - value_gradient
    of_mean = of_action * (1.0 - square) + 2.0 * coefficient * action
    of_log_deviation = (of_mean * sample.spread - coefficient) * sample.is_free
    return loss, torch.cat((of_mean, of_log_deviation), -1) / rows


def entropy_coefficient_gradient(log_density: Tensor, target_entropy: float) -> Tensor:
    """d/d log(coefficient) of -log(coefficient) * mean(log_density + target_entropy), (1,): up while entropy is too low."""
    return -(log_density.mean() + target_entropy).reshape(1)
