import numpy as np
import pytest

from hindsight.report.curves import covered_share, middle, moving_mean, rate, thin, window_of


def test_a_moving_mean_looks_back():
    assert moving_mean(np.array([2.0, 4.0, 6.0, 0.0]), 2).tolist() == [2.0, 3.0, 5.0, 3.0]
    assert moving_mean(np.array([2.0, 4.0]), 1).tolist() == [2.0, 4.0]
    assert [window_of(n) for n in (0, 10, 100, 100_000)] == [1, 1, 5, 50]


def test_thinning_keeps_spikes_and_order():
    x, y = np.arange(10_000.0), np.zeros(10_000)
    y[[1234, 7777]] = 9.0, -9.0
    thin_x, thin_y = thin(x, y, 100)
    assert len(thin_x) <= 100
    assert (np.diff(thin_x) > 0).all()
    assert thin_y[thin_x == 1234] == 9.0
    assert thin_y[thin_x == 7777] == -9.0
    assert thin(x[:50], y[:50], 100)[0].tolist() == x[:50].tolist()


def test_rates_are_of_what_passed_since():
    assert rate(np.array([10.0, 30.0, 30.0]), np.array([1.0, 2.0, 2.0])) == pytest.approx([10.0, 20.0, np.nan], nan_ok=True)


def test_the_middle_of_three_curves_of_which_one_ends_early():
    x = np.array([0.0, 2.0])
    curves = [(x, np.array([0.0, 2.0])), (x, np.array([4.0, 4.0])), (np.array([0.0, 1.0]), np.array([3.0, 9.0]))]
    grid, median, low, high = middle(curves, 3)
    assert grid.tolist() == [0.0, 1.0, 2.0]
    assert median.tolist() == [3.0, 4.0, 4.0]
    assert low.tolist() == [0.0, 1.0, 2.0]
    assert high.tolist() == [4.0, 9.0, 9.0]


def test_covered_cells_are_those_that_were_asked_for_and_reached():
    asked = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert covered_share(asked, np.array([[0.1, 0.1], [0.2, 0.2], [5.0, 5.0]]), 2) == 0.25
    assert covered_share(asked, asked, 2) == 1.0
    assert covered_share(asked, np.full((1, 2), np.nan), 2) == 0.0
