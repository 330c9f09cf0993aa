"""One model that hypotheses are tested with, on episodes that it did not see."""

import numpy as np
import pytest

from hindsight_rl.structure.model import Difference, DisplacementModel


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
    assert model.compare(flipped).is_above(0.25, 2)


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
