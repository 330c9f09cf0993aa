import numpy as np
import pytest

from hindsight.report.statistics import estimate, interquartile_mean, mean


def test_an_interquartile_mean_leaves_out_a_quarter_at_either_end():
    assert interquartile_mean(np.array([9.0, 1.0, 3.0, 5.0])) == 4.0
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0  # a quarter of three is less than one
    assert interquartile_mean(np.array([[0.0, 1.0, 2.0, 3.0, 100.0], [5.0] * 5])).tolist() == [2.0, 5.0]


@pytest.mark.parametrize("count", range(1, 14))
def test_it_is_scipys_trimmed_mean(count):
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(count).random(count)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-15)


def test_the_interval_of_a_mean_is_that_of_scipys_bootstrap():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(0).random(12)
    mine = estimate([values], mean, np.random.default_rng(1))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", random_state=2)
    assert mine.value == pytest.approx(values.mean())
    assert (mine.low, mine.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)


def test_draws_are_made_within_each_task():
    """Two tasks, each of whose runs agree: whatever is drawn, half of the values are 0 and half are 1."""
    found = estimate([np.zeros(5), np.ones(5)], mean, np.random.default_rng(0))
    assert (found.value, found.low, found.high, found.is_sure) == (0.5, 0.5, 0.5, False)
    pooled = estimate([np.array([0.0] * 5 + [1.0] * 5)], mean, np.random.default_rng(0))
    assert (pooled.low, pooled.high) == (0.2, 0.8)  # 2 and 8 of 10: the percentiles of a binomial


def test_the_same_generator_gives_the_same_interval():
    values = [np.arange(6.0)]
    first, again = (estimate(values, interquartile_mean, np.random.default_rng(3), draws=50) for _ in range(2))
    assert first == again
    assert first.low < first.value < first.high
