import numpy as np
import pytest

from hindsight_rl.agents.forward import ImageEncoding, convolution_views, encode


def make_encoding(channels=(1,), length=2):
    """One number, an image of one channel from column 1 on, one number."""
    pixels = 1 + np.arange(length * length).reshape(1, length, length)
    return ImageEncoding(pixels, np.array([0, 1 + length * length]), channels)


def test_sizes():
    encoding = make_encoding((4, 8), length=7)
    assert encoding.sizes == (1, 4, 8)
    assert encoding.n_features == 8 * 2 * 2  # 7, 4, 2
    assert encoding.output_size == 34
    assert encoding.n_weights == 4 * (9 + 1) + 8 * (4 * 9 + 1)
    assert encoding.output_column(50) == 33  # the column after 1 + 49 is the last output column
    assert make_encoding((), length=3).n_features == 9


def test_convolution_views_have_the_weight_before_the_bias():
    (first, bias1), (second, bias2) = convolution_views(np.arange(1000), (1, 2, 3))
    assert (first.shape, second.shape) == ((2, 1, 3, 3), (3, 2, 3, 3))
    assert (first[1, 0, 0, 0], bias1.tolist()) == (9, [18, 19])
    assert (second[0, 0, 0, 0], bias2.tolist()) == (20, [74, 75, 76])


def test_one_convolution_by_hand():
    # The image 1 2 / 3 4 under one window: the first row and column are padding, the middle is the 1.
    weight = np.array([[[[100, 100, 100], [100, 1, 10], [100, 1000, 5]]]], float)
    x = np.array([7.0, 1, 2, 3, 4, 8])
    assert encode(make_encoding(), [(weight, np.array([0.5]))], x).tolist() == [1 + 20 + 3000 + 20 + 0.5, 7, 8]
    assert encode(make_encoding(), [(-weight, np.array([0.5]))], x)[0] == 0  # ReLU


def test_the_stride_is_two():
    weight = np.zeros((1, 1, 3, 3))
    weight[0, 0, 1, 1] = 1.0
    x = np.arange(27.0)
    observed = encode(make_encoding(length=5), [(weight, np.zeros(1))], x)
    assert observed.tolist() == [1, 3, 5, 11, 13, 15, 21, 23, 25, 0, 26]


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (0,)])
def test_any_leading_axes(leading):
    encoding = make_encoding((4, 8), length=6)
    rng = np.random.default_rng(0)
    convolutions = convolution_views(rng.normal(size=encoding.n_weights), encoding.sizes)
    x = rng.normal(size=(*leading, 38))
    observed = encode(encoding, convolutions, x)
    assert observed.shape == (*leading, encoding.output_size)
    if leading and leading[0]:
        np.testing.assert_allclose(observed[-1], encode(encoding, convolutions, x[-1]))
