"""The convolutions of a network in torch. They are slow enough for torch's autograd to do their gradients at no loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .images import Encoding, convolution_views


@dataclass(slots=True)
class EncoderTape:
    """What a backward pass needs: the features, and the weights they were made with."""

    features: Tensor
    weights: Tensor


class Encoder:
    """Turns the pixels of inputs into features, by weights that are a slice of a network's flat vector.

    An ensemble shares it, and its gradient is that of all members together.
    """

    def __init__(self, encoding: Encoding, flat: Tensor, gradient: Tensor) -> None:
        self.encoding, self.flat, self.gradient = encoding, flat, gradient
        self.convolutions = convolution_views(flat, encoding.sizes)
        self._pixels = torch.from_numpy(encoding.pixel_columns).to(flat.device)
        self._others = torch.from_numpy(encoding.other_columns).to(flat.device)

    def record(self, x: Tensor) -> tuple[Tensor, EncoderTape]:
        """What the hidden layers see of inputs (B, columns), (B, output_size), and the tape for `weight_gradient`."""
        weights = self.flat.detach().requires_grad_()
        with torch.enable_grad():
            image = x[:, self._pixels]
            for weight, bias in convolution_views(weights, self.encoding.sizes):
                image = torch.nn.functional.conv2d(image, weight, bias, stride=2, padding=1).relu()
            features = image.flatten(1)
        return torch.cat((features.detach(), x[:, self._others]), 1), EncoderTape(features, weights)

    def weight_gradient(self, tape: EncoderTape, of_features: Tensor) -> None:
        """Write the gradient of the weights, given that of the features, (B, features)."""
        self.gradient.copy_(torch.autograd.grad(tape.features, tape.weights, of_features)[0])
