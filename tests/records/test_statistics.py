import numpy as np
import pytest

from hindsight_rl.records.statistics import (
    bootstrap_interval,
    finite_points,
    interquartile_mean,
    mean,
    mean_window,
    median_curve,
    moving_mean,
    thin,
)


def test_a_moving_mean_is_over_past_values():
    assert moving_mean(np.array([2.0, 4.0, 6.0, 0.0]), 2).tolist() == [2.0, 3.0, 5.0, 3.0]
    assert moving_mean(np.array([2.0, 4.0]), 1).tolist() == [2.0, 4.0]
    assert [mean_window(n) for n in (0, 10, 100, 100_000)] == [1, 1, 5, 50]


def test_thinning_keeps_spikes_and_order():
    x, y = np.arange(10_000.0), np.zeros(10_000)
    y[[1234, 7777]] = 9.0, -9.0
    thin_x, thin_y = thin(x, y, 100)
    assert len(thin_x) <= 100
    assert (np.diff(thin_x) > 0).all()
    assert thin_y[thin_x == 1234] == 9.0
    assert thin_y[thin_x == 7777] == -9.0
    assert thin(x[:50], y[:50], 100)[0].tolist() == x[:50].tolist()


def test_points_that_are_not_finite_are_left_out():
    x, y = finite_points(np.array([1.0, np.nan, 3.0, 4.0]), np.array([1.0, 2.0, np.inf, 4.0]))
    assert (x.tolist(), y.tolist()) == ([1.0, 4.0], [1.0, 4.0])


def test_median_of_three_curves_of_which_one_ends_early():
    x = np.array([0.0, 2.0])
    curves = [(x, np.array([0.0, 2.0])), (x, np.array([4.0, 4.0])), (np.array([0.0, 1.0]), np.array([3.0, 9.0]))]
    grid, median, low, high = median_curve(curves, 3)
    assert grid.tolist() == [0.0, 1.0, 2.0]
    assert median.tolist() == [3.0, 4.0, 4.0]
    assert low.tolist() == [0.0, 1.0, 2.0]
    assert high.tolist() == [4.0, 9.0, 9.0]


def test_an_interquartile_mean_excludes_a_quarter_at_each_end():
    assert interquartile_mean(np.array([9.0, 1.0, 3.0, 5.0])) == 4.0
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0  # a quarter of three is less than one
    assert interquartile_mean(np.array([[0.0, 1.0, 2.0, 3.0, 100.0], [5.0] * 5])).tolist() == [2.0, 5.0]


@pytest.mark.parametrize("count", range(1, 14))
def test_an_interquartile_mean_is_scipys_trimmed_mean(count):
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(count).random(count)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-15)


def test_the_interval_of_a_mean_is_that_of_scipys_bootstrap():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(0).random(12)
    ours = bootstrap_interval([values], mean, np.random.default_rng(1))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", random_state=2)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)


def test_bootstrap_samples_are_drawn_within_each_task():
    """Two tasks with runs that agree: every sample has as many zeros as ones."""
    assert bootstrap_interval([np.zeros(5), np.ones(5)], mean, np.random.default_rng(0)) == (0.5, 0.5)
    pooled = bootstrap_interval([np.array([0.0] * 5 + [1.0] * 5)], mean, np.random.default_rng(0))
    assert pooled == (0.2, 0.8)  # 2 and 8 of 10: the percentiles of a binomial


def test_the_same_seed_gives_the_same_interval():
    values = np.arange(6.0)
    first, again = (
        bootstrap_interval([values], interquartile_mean, np.random.default_rng(3), samples=50) for _ in range(2)
    )
    assert first == again
    assert first[0] < interquartile_mean(values) < first[1]
