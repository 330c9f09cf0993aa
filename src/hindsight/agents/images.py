"""A small stack of convolutions through which images go before the hidden layers: its shape, and how to act through it.

NumPy only; `encoder` is the same in torch, for learning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Encoding:
    """Convolutions of 3 x 3 pixels with a stride of 2 and a border of zeros, ReLU after each, over all images at once.

    pixel_columns: (channels, height, width), where in a network's input each pixel lies; the images of an input are stacked
    as channels, so that the first convolution compares state and goal pixel by pixel. other_columns: what is no pixel.
    channels: of the convolutions. What comes out: the features, flat, then the other columns.
    """

    pixel_columns: Array
    other_columns: Array
    channels: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The channels of the image and of each convolution."""
        return (self.pixel_columns.shape[0], *self.channels)

    @property
    def n_features(self) -> int:
        """How many numbers the images become; each convolution halves height and width, rounded up."""
        halved = 2 ** len(self.channels)
        height, width = (math.ceil(side / halved) for side in self.pixel_columns.shape[1:])
        return int(self.sizes[-1] * height * width)

    @property
    def output_size(self) -> int:
        """How many numbers the hidden layers see."""
        return self.n_features + len(self.other_columns)

    @property
    def n_weights(self) -> int:
        """How many numbers the convolutions have."""
        return sum((9 * n_in + 1) * n_out for n_in, n_out in itertools.pairwise(self.sizes))

    def place_after_images(self, column: int) -> int:
        """Where a column of the input that lies behind all pixels is in the output."""
        return column - self.pixel_columns.size + self.n_features


def convolution_views(flat: Any, sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """Each convolution's weight (outputs, inputs, 3, 3) and bias (outputs,): views of a flat vector, of NumPy or torch."""
    views, start = [], 0
    for n_in, n_out in itertools.pairwise(sizes):
        middle, stop = start + 9 * n_in * n_out, start + (9 * n_in + 1) * n_out
        views.append((flat[start:middle].reshape(n_out, n_in, 3, 3), flat[middle:stop]))
        start = stop
    return views


def encode(encoding: Encoding, convolutions: Sequence[tuple[Array, Array]], x: Array) -> Array:
    """What the hidden layers see of inputs (*leading, columns): (*leading, output_size)."""
    image = x[..., encoding.pixel_columns].reshape(-1, *encoding.pixel_columns.shape)
    for weight, bias in convolutions:
        rows, channels, height, width = image.shape
        bordered = np.zeros((rows, channels, height + 2, width + 2), x.dtype)
        bordered[:, :, 1:-1, 1:-1] = image
        windows = np.lib.stride_tricks.sliding_window_view(bordered, (3, 3), (2, 3))[:, :, ::2, ::2]
        outputs = np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))) + bias  # (rows, height, width, channels)
        image = np.moveaxis(np.maximum(outputs, 0.0), 3, 1)
    features = image.reshape(*x.shape[:-1], encoding.n_features)
    return np.concatenate((features, x[..., encoding.other_columns]), -1)
