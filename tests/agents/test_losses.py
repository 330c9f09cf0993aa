import math

import pytest
import torch

from hindsight_rl.agents.losses import (
    absolute_td_error,
    deterministic_policy_loss,
    dueling_matrix,
    entropy_coefficient_gradient,
    huber_loss,
    mean_value,
    min_value,
    quantile_huber_loss,
    quantile_mean_matrix,
    random_members,
    sample_squashed_gaussian,
    smoothed_action,
    soft_policy_loss,
    squared_loss,
    td_target,
    truncated_quantiles,
)


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_a_target_is_clipped_and_stops_at_termination():
    reward = column(-1.0, -1.0, -1.0, 0.0)
    discount = column(0.9, 0.0, 0.9, 0.9)  # the second transition terminated
    next_value = column(-4.0, -4.0, -100.0, 5.0)
    target = td_target(reward, discount, next_value, -10.0, 0.0)
    torch.testing.assert_close(target, column(-4.6, -1.0, -10.0, 0.0))


def test_min_and_mean_values_and_their_gradients():
    values = torch.stack((column(1.0, 5.0), column(2.0, 3.0)))
    value, gradient = min_value(values)
    assert value.flatten().tolist() == [1, 3]
    assert gradient.flatten().tolist() == [1, 0, 0, 1]
    value, gradient = mean_value(values)
    assert value.flatten().tolist() == [1.5, 4]
    assert gradient.flatten().tolist() == [0.5] * 4
    value, gradient = mean_value(torch.tensor([[[1.0, 2.0]], [[3.0, 6.0]]]))  # two quantiles each
    assert (value.tolist(), gradient.flatten().tolist()) == ([[3]], [0.25] * 4)


def test_the_squared_loss_sums_over_members_and_averages_over_rows():
    value = torch.stack((column(1.0, 2.0), column(0.0, 0.0)))
    loss, gradient = squared_loss(value, column(0.0, 4.0))
    assert loss == (1 + 4) / 2 + 16 / 2
    assert gradient.flatten().tolist() == [1, -2, 0, -4]


def test_the_huber_loss_is_linear_beyond_one():
    value = torch.stack((column(0.5, 3.0), column(0.0, -2.0)))
    loss, gradient = huber_loss(value, column(0.0, 0.0))
    assert loss == (0.5 * 0.25 + 2.5 + 0 + 1.5) / 2
    assert gradient.flatten().tolist() == [0.25, 0.5, 0, -0.5]


@pytest.mark.parametrize("error", [squared_loss, huber_loss, quantile_huber_loss])
def test_a_weight_multiplies_the_loss_of_its_row(error):
    generator = torch.Generator().manual_seed(0)
    value, target = (torch.randn(*shape, generator=generator) for shape in ((2, 3, 1), (3, 1)))
    weight = column(0.0, 1.0, 2.0).float()
    loss, gradient = error(value, target, weight)
    rows = [1, 2, 2]  # without the first, the last one twice
    expected, expected_gradient = error(value[:, rows], target[rows])
    torch.testing.assert_close(loss, expected)
    assert gradient[:, 0].count_nonzero() == 0
    torch.testing.assert_close(gradient[:, 1], expected_gradient[:, 0])
    torch.testing.assert_close(gradient[:, 2], expected_gradient[:, 1] + expected_gradient[:, 2])


def test_the_quantile_huber_loss_by_hand():
    # quantiles at 1/4 and 3/4; errors of the first: 2 and -0.5, of the second: 1 and -1.5
    value, target = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[2.0, -0.5]])
    loss, gradient = quantile_huber_loss(value, target)
    first, second = (0.25 * 1.5 + 0.75 * 0.125) / 2, (0.75 * 0.5 + 0.25 * 1.0) / 2
    assert loss == pytest.approx(first + second)
    assert gradient.flatten().tolist() == pytest.approx([-(0.25 * 1 - 0.75 * 0.5) / 2, -(0.75 * 1 - 0.25 * 1) / 2])


def test_the_quantile_huber_loss_by_autograd():
    generator = torch.Generator().manual_seed(0)
    value = torch.randn(2, 4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    target, weight = torch.randn(4, 5, dtype=torch.float64, generator=generator), torch.rand(4, 1, dtype=torch.float64)
    level = torch.tensor([1 / 6, 3 / 6, 5 / 6], dtype=torch.float64)[:, None]
    error = target[:, None, :] - value[..., None]
    share = torch.where(error < 0, 1 - level, level)
    huber = torch.where(error.abs() <= 1, 0.5 * error.square(), error.abs() - 0.5)
    expected = ((share * huber).mean(-1).sum(-1) * weight[:, 0]).mean(1).sum()
    (expected_gradient,) = torch.autograd.grad(expected, value)
    loss, gradient = quantile_huber_loss(value.detach(), target, weight)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient)


def test_quantiles_descend_to_those_of_the_samples():
    value, samples = torch.zeros(1, 1, 4), torch.linspace(0, 100, 1001)[None]
    for _ in range(3000):
        value -= quantile_huber_loss(value, samples)[1]
    torch.testing.assert_close(value[0, 0], torch.tensor([12.5, 37.5, 62.5, 87.5]), rtol=0, atol=0.5)


def test_the_absolute_td_error_compares_means():
    value = torch.tensor([[[1.0, 3.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]])
    target = torch.tensor([[0.0, 2.0, 4.0], [5.0, 5.0, 5.0]])
    assert absolute_td_error(value, target).tolist() == [(0 + 2) / 2, (5 + 4) / 2]


def test_the_largest_quantiles_are_dropped_from_the_pool_of_all_critics():
    values = torch.tensor([[[1.0, 9.0, 3.0]], [[2.0, 8.0, 7.0]]])
    assert truncated_quantiles(values, 1).sort().values.tolist() == [[1, 2, 3, 7]]
    assert truncated_quantiles(values, 0).sort().values.tolist() == [[1, 2, 3, 7, 8, 9]]


def test_random_members_are_distinct():
    values, generator = torch.arange(3.0).view(3, 1, 1), torch.Generator().manual_seed(0)
    assert random_members(values, None, generator) is values
    pairs = {tuple(sorted(random_members(values, 2, generator).flatten().tolist())) for _ in range(100)}
    assert pairs == {(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)}


def test_dueling_matrix():
    outputs = torch.tensor([10.0, 1.0, 2.0, 6.0])
    assert (outputs @ dueling_matrix(3).T).tolist() == [8, 9, 13]  # the advantages' mean is 3


def test_quantile_mean_matrix():
    assert (torch.tensor([1.0, 3.0, 10.0, 20.0]) @ quantile_mean_matrix(2, 2).T).tolist() == [2, 15]


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
    assert gradient[1, 1] == 0  # no value gradient and action 0: no gradient
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
    assert torch.equal(sample.is_inside, torch.ones(2, 2, dtype=torch.bool))


def test_a_squashed_gaussian_by_hand():
    # a standard deviation of e^-20 is almost 0: the action is tanh(mean)
    sample = sample_squashed_gaussian(torch.tensor([[0.5, -99.0]], dtype=torch.float64), torch.Generator().manual_seed(0))
    assert sample.action.item() == pytest.approx(math.tanh(0.5))
    assert not sample.is_inside.item()
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
    assert gradient[0, 3] == 0  # a log standard deviation outside its range has no gradient


def test_the_entropy_coefficient_rises_while_entropy_is_too_low():
    log_density = column(3.0, 5.0)  # an entropy of -4
    assert entropy_coefficient_gradient(log_density, target_entropy=-2.0).tolist() == [
        -2.0
    ]  # gradient descent increases the coefficient
    assert entropy_coefficient_gradient(log_density, target_entropy=-6.0).tolist() == [2.0]
