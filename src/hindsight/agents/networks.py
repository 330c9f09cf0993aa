"""Networks whose weights are slices of one flat vector: ensembles of MLPs, Adam, and the step of the targets.

Gradients are computed here by hand rather than by torch's autograd, for its bookkeeping takes a third of the time of an
update of small networks. A network's backward pass is a loop of matrix products that writes into one flat gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .encoder import Encoder, EncoderTape
from .images import Encoding
from .policy import LAYER_NORM_EPS, count_weights, layer_views


@dataclass(frozen=True)
class Architecture:
    """An ensemble of `n_members` equal MLPs with ReLU between the layers, LayerNorm before each ReLU where asked.

    Where inputs hold images, one encoder comes before all members.
    """

    sizes: tuple[int, ...]  # of the MLP's input, the hidden layers and the output
    n_members: int = 1
    layer_norm: bool = False
    encoding: Encoding | None = None

    @property
    def n_weights(self) -> int:
        """The length of the flat vector."""
        return count_weights(self.sizes, self.n_members) + self.n_encoder_weights

    @property
    def n_encoder_weights(self) -> int:
        """How many of them, the first ones, are the encoder's."""
        return self.encoding.n_weights if self.encoding else 0


@dataclass(slots=True)
class Tape:
    """What a backward pass needs of the forward pass: each layer's input, and where there is LayerNorm what it saw."""

    inputs: list[Tensor]  # (E, B, layer's inputs) each
    norms: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)  # before LayerNorm, mean, 1 / deviation
    encoder: EncoderTape | None = None


class Network:
    """An ensemble of E MLPs over the flat vector `flat`, which is shared and never replaced.

    members: which of the architecture's members take part; all by default.
    x: (B, inputs), the same for all members, or without images (E, B, inputs). Outputs: (E, B, outputs).
    """

    def __init__(self, architecture: Architecture, flat: Tensor, members: slice = slice(None)) -> None:
        self.architecture = architecture
        self.flat = flat
        self.gradient = torch.zeros_like(flat)
        n_first, encoding = architecture.n_encoder_weights, architecture.encoding
        self.encoder = Encoder(encoding, flat[:n_first], self.gradient[:n_first]) if encoding else None
        self.layers = _member_views(architecture, flat[n_first:], members)
        self._gradients = _member_views(architecture, self.gradient[n_first:], members)
        self._hidden = [(weight.transpose(1, 2), bias.unsqueeze(1)) for weight, bias in self.layers[:-1]]
        self._last_weight, self._last_bias = self.layers[-1][0], self.layers[-1][1].unsqueeze(2)

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs, (E, B, outputs)."""
        return self.record(x)[0]

    def record(self, x: Tensor) -> tuple[Tensor, Tape]:
        """The outputs, and the tape from which `weight_gradient` and `input_gradient` work."""
        encoder_tape = None
        if self.encoder:
            x, encoder_tape = self.encoder.record(x)
        tape = Tape([x.expand(len(self._last_weight), *x.shape[-2:])], encoder=encoder_tape)
        for weight, bias in self._hidden:
            hidden = torch.baddbmm(bias, tape.inputs[-1], weight)
            if self.architecture.layer_norm:
                before = hidden
                hidden, mean, scale = torch.native_layer_norm(before, before.shape[-1:], None, None, LAYER_NORM_EPS)
                tape.norms.append((before, mean, scale))
            tape.inputs.append(hidden.relu_())
        # The outputs are few: as wide rows they take BLAS a third of the time that they take as narrow columns.
        rows = torch.baddbmm(self._last_bias, self._last_weight, tape.inputs[-1].transpose(1, 2))
        return rows.transpose(1, 2), tape

    def weight_gradient(self, tape: Tape, gradient: Tensor) -> Tensor:
        """The gradient of all weights, flat, given that of the outputs; overwritten by the next call."""
        for i, of_output in self._output_gradients(tape, gradient):
            weight, bias = self._gradients[i]
            torch.sum(of_output, 1, out=bias)
            torch.bmm(of_output.transpose(1, 2), tape.inputs[i], out=weight)
        if self.encoder and tape.encoder:
            of_features = _times(of_output, self.layers[0][0][:, :, : self.encoder.encoding.n_features])
            self.encoder.weight_gradient(tape.encoder, of_features.sum(0))
        return self.gradient

    def input_gradient(self, tape: Tape, gradient: Tensor, start: int = 0) -> Tensor:
        """The gradient of the inputs from column `start` on, (E, B, inputs - start), given that of the outputs.

        Where there are images, `start` is a column behind all of them.
        """
        *_, (_, of_first_layer) = self._output_gradients(tape, gradient)
        start = self.encoder.encoding.place_after_images(start) if self.encoder else start
        return _times(of_first_layer, self.layers[0][0][:, :, start:])

    def _output_gradients(self, tape: Tape, gradient: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Each layer's number and the gradient of its outputs, from the last layer to the first."""
        for i in range(len(self.layers) - 1, 0, -1):
            yield i, gradient
            gradient = _times(gradient, self.layers[i][0])
            gradient = torch.ops.aten.threshold_backward(gradient, tape.inputs[i], 0)
            if self.architecture.layer_norm:
                gradient = _through_layer_norm(gradient, *tape.norms[i - 1])
        yield 0, gradient


def allocate(architectures: Sequence[Architecture], device: torch.device) -> tuple[Tensor, list[Network]]:
    """A flat vector of zeros that holds the weights of several networks one after another, and those networks."""
    flat = torch.zeros(sum(a.n_weights for a in architectures), device=device)
    parts: tuple[Tensor, ...] = torch.split(flat, [a.n_weights for a in architectures])
    return flat, [Network(a, part) for a, part in zip(architectures, parts, strict=True)]


def initialize(network: Network, generator: torch.Generator, last_layer_scale: float = 1.0) -> None:
    """Weights and biases uniform within 1 / sqrt(inputs of the layer), as torch.nn.Linear; the last layer's scaled.

    A small last layer starts an actor near the middle of its range, where tanh still has a slope.
    """
    convolutions = network.encoder.convolutions if network.encoder else []
    for weight, bias in convolutions + network.layers:
        bound = weight[0, 0].numel() ** -0.5 if weight.dim() == 3 else weight[0].numel() ** -0.5
        weight.uniform_(-bound, bound, generator=generator)
        bias.uniform_(-bound, bound, generator=generator)
    for tensor in network.layers[-1]:
        tensor.mul_(last_layer_scale)


def with_outputs(network: Network, matrix: Tensor) -> Tensor:
    """The flat weights of a network, one member, whose outputs are `matrix` (new, old) times those of `network`."""
    weight, bias = network.layers[-1]
    before = network.flat[: -weight.numel() - bias.numel()]
    return torch.cat((before, (matrix @ weight[0]).flatten(), matrix @ bias[0]))


class Adam:
    """Adam (Kingma and Ba 2015) on one flat vector of weights: a step is one fused operation.

    average: what is done to each gradient first, in place, where several learn together.
    """

    average: Callable[[Tensor], None] | None = None

    def __init__(self, weights: Tensor, learning_rate: float, gradient_clip: float | None = None) -> None:
        self.weights = weights
        self.learning_rate, self.gradient_clip = learning_rate, gradient_clip
        self.first, self.second = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.n_steps = torch.zeros((), device=self.weights.device)

    def step(self, gradient: Tensor) -> None:
        """Move the weights against `gradient`, whose norm is first cut to `gradient_clip` in place."""
        if self.average is not None:
            self.average(gradient)
        if self.gradient_clip is not None:
            gradient.mul_((self.gradient_clip / gradient.norm()).clamp_(max=1.0))
        self.n_steps.add_(1)
        torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls, without 25 us of its Python
            [self.weights], [gradient], [self.first], [self.second], [], [self.n_steps],
            lr=self.learning_rate, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def tensors(self, name: str) -> dict[str, Tensor]:
        """The live moments and step count, under "name/..."."""
        return {f"{name}/first": self.first, f"{name}/second": self.second, f"{name}/n_steps": self.n_steps}


class TargetStep:
    """Moves target weights towards the online ones: target += tau * (online - target), at every `period`-th call."""

    def __init__(self, target: Tensor, online: Tensor, tau: float, period: int) -> None:
        self.target, self.online, self.tau, self.period = target, online, tau, period
        self.n_calls = torch.zeros((), dtype=torch.int64, device=target.device)

    def step(self) -> None:
        """Count one call, and move if it is the turn; the turn is a tensor, so that no call runs other operations."""
        if self.period == 1:
            self.target.lerp_(self.online, self.tau)
            return
        self.n_calls.add_(1)
        share = torch.where(self.n_calls % self.period == 0, self.tau, 0.0)
        self.target.lerp_(self.online, share)


def _member_views(architecture: Architecture, flat: Tensor, members: slice) -> list[tuple[Tensor, Tensor]]:
    views = layer_views(flat, architecture.sizes, architecture.n_members)
    return [(weight[members], bias[members]) for weight, bias in views]


def _times(gradient: Tensor, weight: Tensor) -> Tensor:
    """(E, B, n) times (E, n, m); where n is 1 that is an outer product, faster by broadcasting."""
    return gradient * weight if gradient.shape[2] == 1 else torch.bmm(gradient, weight)


def _through_layer_norm(gradient: Tensor, before: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    result: tuple[Tensor, ...] = torch.ops.aten.native_layer_norm_backward(
        gradient, before, before.shape[-1:], mean, scale, None, None, [True, False, False]
    )
    return result[0]
