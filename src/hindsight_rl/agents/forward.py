"""The weights of layers and convolutions as views of one flat vector, and the forward pass in NumPy.

`networks` is the same in torch, for learning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array

LAYER_NORM_EPS = 1e-5


Views = list[tuple[Any, Any]]  # weight and bias of each layer, as views of one flat NumPy array or torch tensor


def layer_views(flat: Any, sizes: Sequence[int], n_members: int = 1) -> Views:
    """Return each layer's weight (n_members, outputs, inputs) and bias (n_members, outputs) as views of a flat vector.

    The vector holds layer after layer, the weight before the bias.

    flat: contiguous, (count_weights(sizes, n_members),), a NumPy array or a torch tensor.
    sizes: of the input, the hidden layers and the output.
    """
    return _views(flat, [(n_members, n_out, n_in) for n_in, n_out in itertools.pairwise(sizes)], n_bias_axes=2)


def convolution_views(flat: Any, sizes: Sequence[int]) -> Views:
    """Return each convolution's weight (outputs, inputs, 3, 3) and bias (outputs,) as views of a flat array or tensor."""
    return _views(flat, [(n_out, n_in, 3, 3) for n_in, n_out in itertools.pairwise(sizes)], n_bias_axes=1)


def _views(flat: Any, shapes: Sequence[tuple[int, ...]], n_bias_axes: int) -> Views:
    """Return weights of these shapes; the bias of each has its first axes."""
    views, start = [], 0
    for shape in shapes:
        of_bias = shape[:n_bias_axes]
        middle = start + math.prod(shape)
        stop = middle + math.prod(of_bias)
        views.append((flat[start:middle].reshape(shape), flat[middle:stop].reshape(of_bias)))
        start = stop
    return views


def count_weights(sizes: Sequence[int], n_members: int = 1) -> int:
    """Return the number of weights and biases of all layers and members."""
    return n_members * sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise(sizes))


@dataclass(frozen=True, eq=False)
class ImageEncoding:
    """Shapes of a stack of 3 x 3 convolutions with stride 2, zero padding and ReLU.

    All images of an input are stacked as channels: the first convolution compares state and goal pixel by pixel. The output
    is the flat features, then the columns that are no pixels.

    pixel_columns: (channels, height, width), the input column of each pixel.
    other_columns: the input columns that are no pixels.
    channels: output channels of each convolution.
    """

    pixel_columns: Array
    other_columns: Array
    channels: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the channels of the image and of each convolution."""
        return (self.pixel_columns.shape[0], *self.channels)

    @property
    def n_features(self) -> int:
        """Return the number of features; each convolution halves height and width, rounded up."""
        stride = 2 ** len(self.channels)
        height, width = (math.ceil(length / stride) for length in self.pixel_columns.shape[1:])
        return int(self.sizes[-1] * height * width)

    @property
    def output_size(self) -> int:
        """Return the number of inputs of the first hidden layer."""
        return self.n_features + len(self.other_columns)

    @property
    def n_weights(self) -> int:
        """Return the number of weights and biases of all convolutions."""
        return sum((9 * n_in + 1) * n_out for n_in, n_out in itertools.pairwise(self.sizes))

    def output_column(self, column: int) -> int:
        """Return the output column of an input column that comes after all pixels."""
        return column - self.pixel_columns.size + self.n_features


@dataclass(frozen=True)
class Architecture:
    """An ensemble of `n_members` equal MLPs with ReLU. The weights are one flat vector, that of the encoder first.

    sizes: of the MLP's input, the hidden layers and the output.
    layer_norm: whether LayerNorm (without scale and shift) comes before each ReLU.
    encoding: with images, the convolutions before the MLPs, shared by all members.
    last_layer_scale: factor of the last layer's first weights; a small one starts an actor near 0, where tanh has a slope.
    """

    sizes: tuple[int, ...]
    n_members: int = 1
    layer_norm: bool = False
    encoding: ImageEncoding | None = None
    last_layer_scale: float = 1.0

    @property
    def n_weights(self) -> int:
        """Return the length of the flat vector."""
        return self.n_encoder_weights + count_weights(self.sizes, self.n_members)

    @property
    def n_encoder_weights(self) -> int:
        """Return how many of them, the first ones, belong to the encoder."""
        return self.encoding.n_weights if self.encoding else 0

    def views(self, flat: Any) -> tuple[Views, Views]:
        """Return the convolutions and the layers as views of the flat vector."""
        convolutions = convolution_views(flat, self.encoding.sizes) if self.encoding else []
        return convolutions, layer_views(flat[self.n_encoder_weights :], self.sizes, self.n_members)


def encode(encoding: ImageEncoding, convolutions: Sequence[tuple[Array, Array]], x: Array) -> Array:
    """Return the inputs of the first hidden layer, (*leading, output_size), for network inputs (*leading, columns)."""
    image = x[..., encoding.pixel_columns].reshape(-1, *encoding.pixel_columns.shape)
    for weight, bias in convolutions:
        rows, channels, height, width = image.shape
        padded = np.zeros((rows, channels, height + 2, width + 2), x.dtype)
        padded[:, :, 1:-1, 1:-1] = image
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
        outputs = np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))) + bias  # (rows, height, width, channels)
        image = np.moveaxis(np.maximum(outputs, 0.0), 3, 1)
    features = image.reshape(*x.shape[:-1], encoding.n_features)
    return np.concatenate((features, x[..., encoding.other_columns]), -1)


def layer_norm(x: Array) -> Array:
    """Return rows (..., n) with mean 0 and variance 1, without scale and shift."""
    x = x - _mean(x)
    return np.asarray(x / np.sqrt(_mean(np.square(x)) + LAYER_NORM_EPS))


def _mean(x: Array) -> Any:
    """Return the mean over the last axis, (..., 1), or one number for one row: `x.mean` takes three times as long there."""
    total = np.add.reduce(x) if x.ndim == 1 else np.add.reduce(x, axis=-1, keepdims=True)
    return total / x.shape[-1]
