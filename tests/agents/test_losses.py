import math

import pytest
import torch

from hindsight.agents.losses import (
    deterministic_policy_loss,
    entropy_coefficient_gradient,
    lowest,
    lowest_value,
    mean_value,
    return_range,
    sample_squashed_gaussian,
    smoothed_action,
    soft_policy_loss,
    squared_error,
    td_target,
)


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


@pytest.mark.parametrize(
    ("reward_range", "expected"),
    [
        ((-1.0, 0.0), (-50.0, 0.0)),  # sparse
        ((0.0, 1.0), (0.0, 50.0)),
        ((1.0, 2.0), (1.0, 100.0)),  # an episode may end after one reward of 1
        ((-2.0, -1.0), (-100.0, -1.0)),
        ((-math.inf, 0.0), (-math.inf, 0.0)),
        ((-math.inf, math.inf), (-math.inf, math.inf)),
    ],
)
def test_the_range_of_returns(reward_range, expected):
    assert return_range(*reward_range, discount=0.98) == pytest.approx(expected)


def test_a_target_is_held_within_the_range_and_stops_at_an_end():
    reward = column(-1.0, -1.0, -1.0, 0.0)
    discount = column(0.9, 0.0, 0.9, 0.9)  # the second transition ended its episode
    next_value = column(-4.0, -4.0, -100.0, 5.0)
    target = td_target(reward, discount, next_value, -10.0, 0.0)
    torch.testing.assert_close(target, column(-4.6, -1.0, -10.0, 0.0))


def test_the_lowest_of_an_ensemble():
    values = torch.stack((column(1.0, 5.0), column(2.0, 3.0), column(0.0, 4.0)))
    generator = torch.Generator().manual_seed(0)
    assert lowest(values, None, generator).flatten().tolist() == [0, 3]
    drawn = {tuple(lowest(values, 2, generator).flatten().tolist()) for _ in range(100)}
    assert drawn == {(1.0, 3.0), (0.0, 4.0), (0.0, 3.0)}  # of members 1 and 2, 1 and 3, 2 and 3


def test_values_that_a_policy_climbs():
    values = torch.stack((column(1.0, 5.0), column(2.0, 3.0)))
    value, gradient = lowest_value(values)
    assert value.flatten().tolist() == [1, 3]
    assert gradient.flatten().tolist() == [1, 0, 0, 1]
    value, gradient = mean_value(values)
    assert value.flatten().tolist() == [1.5, 4]
    assert gradient.flatten().tolist() == [0.5] * 4


def test_the_squared_error_sums_over_members_and_averages_over_rows():
    value = torch.stack((column(1.0, 2.0), column(0.0, 0.0)))
    loss, gradient = squared_error(value, column(0.0, 4.0))
    assert loss == (1 + 4) / 2 + 16 / 2
    assert gradient.flatten().tolist() == [1, -2, 0, -4]


def test_smoothing_noise_is_clipped_and_so_is_the_action():
    generator = torch.Generator().manual_seed(0)
    smoothed = smoothed_action(torch.zeros(10000), 0.2, 0.5, generator)
    assert smoothed.std().item() == pytest.approx(0.2, rel=0.05)
    assert smoothed.abs().max() == 0.5
    assert smoothed_action(torch.full((1000,), 0.9), 0.2, 0.5, generator).max() == 1
    assert smoothed_action(torch.full((3,), 0.9), 0.0, 0.5, generator).tolist() == pytest.approx([0.9] * 3)


def test_the_deterministic_policy_loss_by_hand_and_by_autograd():
    before = torch.tensor([[0.3, -0.2], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    action = before.tanh()
    slope = torch.tensor([[2.0, -1.0], [0.5, 0.0]], dtype=torch.float64)
    value = (slope * action).sum(1, keepdim=True)
    expected = -value.mean() + 0.5 * action.square().mean()
    (expected_gradient,) = torch.autograd.grad(expected, before)
    loss, gradient = deterministic_policy_loss(action.detach(), value.detach(), slope, action_l2=0.5)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient)
    assert gradient[1, 1] == 0  # nothing to gain and no action: no gradient
    loss, _ = deterministic_policy_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0]]), torch.zeros(1, 2), 0.5)
    assert loss == -3 + 0.5 * 0.5


def test_a_squashed_gaussian_has_the_density_of_torch_distributions():
    output = torch.tensor([[0.3, -2.0, 0.1, -0.5], [4.0, 0.0, 1.0, -3.0]], dtype=torch.float64)
    sample = sample_squashed_gaussian(output, torch.Generator().manual_seed(0))
    mean, log_deviation = output.chunk(2, -1)
    base = torch.distributions.Normal(mean, log_deviation.exp())
    squash = torch.distributions.transforms.TanhTransform(cache_size=1)
    expected = torch.distributions.TransformedDistribution(base, squash)
    torch.testing.assert_close(sample.log_density[:, 0], expected.log_prob(sample.action).sum(-1), rtol=1e-8, atol=1e-8)
    assert torch.equal(sample.is_free, torch.ones(2, 2, dtype=torch.bool))


def test_a_squashed_gaussian_by_hand():
    # deviation e^-20 is as good as none: the action is tanh(mean), the density that of its middle
    sample = sample_squashed_gaussian(torch.tensor([[0.5, -99.0]], dtype=torch.float64), torch.Generator().manual_seed(0))
    assert sample.action.item() == pytest.approx(math.tanh(0.5))
    assert not sample.is_free.item()
    noise = torch.randn(1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).item()
    expected = -0.5 * noise**2 + 20 - 0.5 * math.log(2 * math.pi) - math.log(1 - math.tanh(0.5) ** 2)
    assert sample.log_density.item() == pytest.approx(expected, abs=1e-6)
    far = sample_squashed_gaussian(torch.tensor([[300.0, 0.0]]), torch.Generator().manual_seed(0))
    assert torch.isfinite(far.log_density).all()


def test_the_soft_policy_loss_by_autograd():
    output = torch.tensor([[0.3, -0.2, 0.1, 5.0], [1.0, 0.0, -1.0, -0.3]], dtype=torch.float64)
    slope = torch.tensor([[2.0, -1.0], [0.5, 0.0]], dtype=torch.float64)
    coefficient = torch.tensor(0.3, dtype=torch.float64)
    sample = sample_squashed_gaussian(output, torch.Generator().manual_seed(0))
    value = (slope * sample.action).sum(1, keepdim=True)
    loss, gradient = soft_policy_loss(sample, value, slope, coefficient, action_l2=0.2)

    leaf = output.clone().requires_grad_()
    tracked = sample_squashed_gaussian(leaf, torch.Generator().manual_seed(0))
    value = (slope * tracked.action).sum(1, keepdim=True)
    expected = (coefficient * tracked.log_density - value).mean() + 0.2 * tracked.action.square().mean()
    (expected_gradient,) = torch.autograd.grad(expected, leaf)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient)
    assert gradient[0, 3] == 0  # a log deviation beyond its range is held there


def test_the_entropy_coefficient_rises_while_entropy_is_too_low():
    log_density = column(3.0, 5.0)  # an entropy of -4
    assert entropy_coefficient_gradient(log_density, target_entropy=-2.0).tolist() == [-2.0]  # descending it raises
    assert entropy_coefficient_gradient(log_density, target_entropy=-6.0).tolist() == [2.0]
