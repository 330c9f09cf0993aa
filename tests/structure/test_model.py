"""One model that hypotheses are tested with, on episodes that it did not see."""

import numpy as np
import pytest

from hindsight_rl.structure.model import Difference, DisplacementModel, _backward, _forward


@pytest.fixture(scope="module")
def model():
    """What happens depends on two of three inputs; the last target is noise."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1_500, 3))
    targets = np.column_stack([inputs[:, 0] * np.abs(inputs[:, 1]), rng.normal(size=1_500)])
    return DisplacementModel(inputs, targets, np.repeat(np.arange(30), 50) * 7)


def test_what_is_noise_stays_unexplained(model):
    assert model.unexplained == pytest.approx(0.55, abs=0.1)  # half of the variance, and some


def test_inputs_that_matter_are_missed(model):
    assert [model.without([column]).is_above(0.1, 3) for column in range(3)] == [True, True, False]
    assert model.without([2]).is_below(0.05, 3)


def test_a_true_symmetry_makes_no_difference(model):
    mirrored, flipped = model.targets * [-1, 1], model.inputs * [-1, 1, 1]
    assert model.compare(flipped, mirrored).is_below(0.25, 2)
    assert model.compare(flipped, model.targets).is_above(0.25, 2)


def test_a_symmetry_that_one_visible_column_breaks_does_not_hold():
    """A mirror changes the sign of the first input and of the displacement. A light goes on where that input is above 1."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(3_000, 2))
    displacement, light, noise = inputs[:, 0] * np.abs(inputs[:, 1]), inputs[:, 0] > 1, rng.normal(size=3_000)
    model = DisplacementModel(inputs, np.column_stack([displacement, light, noise]), np.repeat(np.arange(30), 100))
    flipped, targets = inputs * [-1, 1], model.targets * [-1, 1, 1]
    loss, target = model.growth(flipped, targets, n_first=1, margin=0.35)
    assert target == 1
    assert loss.is_above(0.35, 2)
    loss, _ = model.growth(flipped, np.column_stack([targets[:, 0], inputs[:, 0] < -1, noise]), n_first=1, margin=0.35)
    assert loss.is_below(0.35, 2)


def test_the_same_steps_give_the_same_model(model):
    again = DisplacementModel(model.inputs, model.targets, np.repeat(np.arange(30), 50))
    assert again.unexplained == model.unexplained


def test_a_difference_is_certain_by_its_standard_error_and_the_number_of_tests():
    difference = Difference(0.1, 0.05)
    assert difference.is_below(0.19, 1)  # 1.64 standard errors: 0.182
    assert not difference.is_below(0.18, 1)
    assert not difference.is_below(0.19, 2)  # 1.96: 0.198
    assert difference.is_above(0.01, 1)
    assert not difference.is_above(0.02, 1)
    assert str(difference) == "+10 +- 5 %"


def test_the_gradient_of_the_networks_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    shapes = [(3, 2, 4), (3, 1, 4), (3, 4, 4), (3, 1, 4), (3, 4, 2), (3, 1, 2)]
    layers, gradient = [rng.normal(size=shape) for shape in shapes], [np.empty(shape) for shape in shapes]
    x, y = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 5, 2))
    _backward(layers, x, y, gradient)

    def loss():
        return np.square(_forward(layers, x) - y).mean((1, 2)).sum()

    for layer, found in zip(layers, gradient, strict=True):
        layer[0, 0, 1] += 1e-6
        above = loss()
        layer[0, 0, 1] -= 2e-6
        below = loss()
        layer[0, 0, 1] += 1e-6
        assert found[0, 0, 1] == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-7)


def test_inputs_are_near_if_another_episode_was_as_near_as_half_of_the_steps_are(model):
    """Against distances of all pairs, in standard deviations."""
    seen, episode = model.inputs[:1_000], np.repeat(np.arange(30), 50)[:1_000]
    small = DisplacementModel(seen, model.targets[:1_000], episode)

    def to_nearest(inputs):
        gap = np.square((inputs[:, None] - seen) / seen.std(0)).sum(2)
        return np.where(episode[:, None] == episode, np.inf, gap).min(1)

    for inputs in (seen, seen * [-1, 1, 1], seen + np.array([3, 0, 0])):
        expected = to_nearest(inputs) <= np.quantile(to_nearest(seen), 0.5)
        assert (small.is_near(inputs) == expected).mean() > 0.99  # up to rounding
    assert small.is_near(seen).mean() == pytest.approx(0.5, abs=0.01)
    assert small.is_near(seen + np.array([9, 0, 0])).sum() == 0


def test_only_steps_that_count_are_compared(model):
    """Half of the targets change their signs. Where they do not, nothing differs."""
    is_wrong = np.arange(1_500) < 750
    targets = np.where(is_wrong[:, None], -model.targets, model.targets)
    assert model.compare(model.inputs, targets, ~is_wrong).mean == pytest.approx(0)
    assert model.compare(model.inputs, targets, is_wrong).is_above(0.35, 1)
    nothing = model.compare(model.inputs, targets, np.zeros(1_500, bool))
    assert not nothing.is_above(0.35, 1)
    assert not nothing.is_below(0.35, 1)
