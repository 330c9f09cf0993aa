"""The convolutions of a network in torch. Autograd computes their gradients; its overhead is small beside them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .images import ImageEncoding, convolution_views


@dataclass(slots=True)
class EncoderTape:
    """What the backward pass needs: the features, and the weights that autograd tracked."""

    features: Tensor
    weights: Tensor


class Encoder:
    """Convolutions over the pixels of the inputs, shared by all members of an ensemble.

    flat: the weights, a slice of the network's flat vector.
    gradient: the memory of their gradient, summed over all members.
    """

    def __init__(self, encoding: ImageEncoding, flat: Tensor, gradient: Tensor) -> None:
        self.encoding, self.flat, self.gradient = encoding, flat, gradient
        self.convolutions = convolution_views(flat, encoding.sizes)
        self._pixels = torch.from_numpy(encoding.pixel_columns).to(flat.device)
        self._others = torch.from_numpy(encoding.other_columns).to(flat.device)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the inputs of the first hidden layer, (B, output_size), for network inputs (B, columns)."""
        return torch.cat((self._features(x, self.flat), x[:, self._others]), 1)

    def forward(self, x: Tensor) -> tuple[Tensor, EncoderTape]:
        """Return the same outputs, and the tape for `weight_gradient`."""
        weights = self.flat.detach().requires_grad_()
        with torch.enable_grad():
            features = self._features(x, weights)
        return torch.cat((features.detach(), x[:, self._others]), 1), EncoderTape(features, weights)

    def weight_gradient(self, tape: EncoderTape, of_features: Tensor) -> None:
        """Write the gradient of the weights, given that of the features, (B, features)."""
        self.gradient.copy_(torch.autograd.grad(tape.features, tape.weights, of_features)[0])

    def _features(self, x: Tensor, weights: Tensor) -> Tensor:
        image = x[:, self._pixels]
        for weight, bias in convolution_views(weights, self.encoding.sizes):
            image = torch.nn.functional.conv2d(image, weight, bias, stride=2, padding=1).relu()
        return image.flatten(1)
