"""Networks with weights in one flat vector: ensembles of MLPs, Adam, and the update of target networks.

Gradients are computed by hand, because the bookkeeping of torch's autograd takes a third of an update of small networks. A
backward pass is a loop of matrix products that writes into one flat gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..errors import OptionError
from ..options.agent import ActorCriticOptions, DQNOptions, QRDQNOptions, TQCOptions
from .forward import LAYER_NORM_EPS, Architecture, ImageEncoding, convolution_views
from .policy import PolicySpec

MOST_WEIGHTS = 1 << 28  # 1 GiB of float32; with targets, gradients and moments of Adam an agent needs about six times that


EncoderTape = tuple[Tensor, Tensor]  # features, and the weights that autograd tracked


class Encoder:
    """Convolutions over the pixels of the inputs, shared by all members of an ensemble.

    Autograd computes their gradients; its overhead is small beside them.

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
        with torch.inference_mode(False), torch.enable_grad():
            weights = self.flat.detach().requires_grad_()
            features = self._features(x, weights)
        return torch.cat((features.detach(), x[:, self._others]), 1), (features, weights)

    def weight_gradient(self, tape: EncoderTape, of_features: Tensor) -> None:
        """Write the gradient of the weights, given that of the features, (B, features)."""
        self.gradient.copy_(torch.autograd.grad(*tape, of_features)[0])

    def _features(self, x: Tensor, weights: Tensor) -> Tensor:
        image = x[:, self._pixels]
        for weight, bias in convolution_views(weights, self.encoding.sizes):
            image = torch.nn.functional.conv2d(image, weight, bias, stride=2, padding=1).relu()
        return image.flatten(1)


@dataclass(slots=True)
class Tape:
    """What the backward pass needs from the forward pass.

    inputs: each layer's input, (E, B, inputs).
    norms: for each LayerNorm its input, its mean and 1 / standard deviation.
    """

    inputs: list[Tensor]
    norms: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)
    encoder: EncoderTape | None = None


class Network:
    """An ensemble of E MLPs; its weights are views of the vector `flat`.

    flat: (n_weights,), shared with the optimizer and never replaced.
    members: the members of the ensemble that take part, all by default.

    x: (B, inputs), the same for all members, or without images (E, B, inputs). Outputs: (E, B, outputs).
    """

    def __init__(self, architecture: Architecture, flat: Tensor, members: slice = slice(None)) -> None:
        self.architecture = architecture
        self.flat = flat
        self.gradient = torch.zeros_like(flat)
        n_first, encoding = architecture.n_encoder_weights, architecture.encoding
        self.encoder = Encoder(encoding, flat[:n_first], self.gradient[:n_first]) if encoding else None
        self.layers, self._gradients = (
            [(weight[members], bias[members]) for weight, bias in architecture.views(vector)[1]]
            for vector in (flat, self.gradient)
        )
        self._hidden = [(weight.transpose(1, 2), bias.unsqueeze(1)) for weight, bias in self.layers[:-1]]
        self._last_weight, self._last_bias = self.layers[-1][0], self.layers[-1][1].unsqueeze(2)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw weights and biases uniformly within 1 / sqrt(inputs of the layer), as torch.nn.Linear does."""
        convolutions = self.encoder.convolutions if self.encoder else []
        for weight, bias in convolutions + self.layers:
            bound = (weight.numel() / bias.numel()) ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
            bias.uniform_(-bound, bound, generator=generator)
        for tensor in self.layers[-1]:
            tensor.mul_(self.architecture.last_layer_scale)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs, (E, B, outputs). Without a tape, each layer reuses the memory of the last but one."""
        x = self._expanded(self.encoder(x) if self.encoder else x)
        for weight, bias in self._hidden:
            x = torch.baddbmm(bias, x, weight)
            if self.architecture.layer_norm:
                x = torch.native_layer_norm(x, x.shape[-1:], None, None, LAYER_NORM_EPS)[0]
            x = x.relu_()
        return self._outputs(x)

    def forward(self, x: Tensor) -> tuple[Tensor, Tape]:
        """Return the outputs, and the tape for `weight_gradient` and `input_gradient`."""
        x, encoder_tape = self.encoder.forward(x) if self.encoder else (x, None)
        tape = Tape([self._expanded(x)], encoder=encoder_tape)
        for weight, bias in self._hidden:
            hidden = torch.baddbmm(bias, tape.inputs[-1], weight)
            if self.architecture.layer_norm:
                before = hidden
                hidden, mean, scale = torch.native_layer_norm(before, before.shape[-1:], None, None, LAYER_NORM_EPS)
                tape.norms.append((before, mean, scale))
            tape.inputs.append(hidden.relu_())
        return self._outputs(tape.inputs[-1]), tape

    def _expanded(self, x: Tensor) -> Tensor:
        """Return the input of each member, (E, B, inputs)."""
        return x.expand(len(self._last_weight), *x.shape[-2:])

    def _outputs(self, x: Tensor) -> Tensor:
        # There are few outputs. BLAS computes them as long rows in a third of the time of narrow columns.
        return torch.baddbmm(self._last_bias, self._last_weight, x.transpose(1, 2)).transpose(1, 2)

    def weight_gradient(self, tape: Tape, gradient: Tensor) -> Tensor:
        """Return the gradient of all weights, flat, given that of the outputs. The next call overwrites it."""
        for i, of_output in self._output_gradients(tape, gradient):
            weight, bias = self._gradients[i]
            torch.sum(of_output, 1, out=bias)
            torch.bmm(of_output.transpose(1, 2), tape.inputs[i], out=weight)
        if self.encoder and tape.encoder:
            of_features = _matmul(of_output, self.layers[0][0][:, :, : self.encoder.encoding.n_features])
            self.encoder.weight_gradient(tape.encoder, of_features.sum(0))
        return self.gradient

    def input_gradient(self, tape: Tape, gradient: Tensor, start: int = 0) -> Tensor:
        """Return the gradient of the inputs from column `start` on, (E, B, inputs - start), given that of the outputs.

        start: with images, a column after all pixels.
        """
        *_, (_, of_first_layer) = self._output_gradients(tape, gradient)
        start = self.encoder.encoding.output_column(start) if self.encoder else start
        return _matmul(of_first_layer, self.layers[0][0][:, :, start:])

    def _output_gradients(self, tape: Tape, gradient: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield each layer's index and the gradient of its outputs, from the last layer to the first."""
        for i in range(len(self.layers) - 1, 0, -1):
            yield i, gradient
            gradient = _matmul(gradient, self.layers[i][0])
            torch.ops.aten.threshold_backward.grad_input(gradient, tape.inputs[i], 0, grad_input=gradient)
            if self.architecture.layer_norm:
                before, mean, scale = tape.norms[i - 1]
                gradient = torch.ops.aten.native_layer_norm_backward(
                    gradient, before, before.shape[-1:], mean, scale, None, None, [True, False, False]
                )[0]
        yield 0, gradient


def architectures(spec: PolicySpec) -> list[Architecture]:
    """Return the architectures of an agent's networks: actor and critics, or the one network of an agent that chooses.

    The input of critics is the policy's and then the action, unless that is an index.
    """
    options = spec.options
    n_quantiles = options.n_quantiles if isinstance(options, QRDQNOptions | TQCOptions) else 1
    if isinstance(options, ActorCriticOptions):
        critics = spec.network(n_quantiles, options.critic_layer_norm, spec.task.action.size, options.n_critics)
        return [replace(spec.architecture, last_layer_scale=0.1), critics]
    is_dueling = isinstance(options, DQNOptions) and options.dueling
    return [spec.network(spec.n_actions * n_quantiles + is_dueling, options.critic_layer_norm)]


def choose_device(name: str) -> torch.device:
    """Return the device of the option `device`. Raises OptionError for "cuda" without a GPU."""
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise OptionError("device is 'cuda', but torch finds no GPU. Use device='auto' or 'cpu'.")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def allocate(architectures: Sequence[Architecture], device: torch.device) -> tuple[Tensor, list[Network]]:
    """Return a flat vector of zeros for the weights of several networks, one after another, and those networks.

    Raises OptionError for more than MOST_WEIGHTS.
    """
    n_weights = sum(a.n_weights for a in architectures)
    if n_weights > MOST_WEIGHTS:
        raise OptionError(f"The networks would have {n_weights:,} weights; at most {MOST_WEIGHTS:,}. Reduce `hidden`.")
    flat = torch.zeros(n_weights, device=device)
    parts: tuple[Tensor, ...] = torch.split(flat, [a.n_weights for a in architectures])
    return flat, [Network(a, part) for a, part in zip(architectures, parts, strict=True)]


def combine_outputs(network: Network, matrix: Tensor) -> Tensor:
    """Return flat weights of a network with the outputs `matrix` (new, old) times those of `network`, one member."""
    weight, bias = network.layers[-1]
    others = network.flat[: -weight.numel() - bias.numel()]
    return torch.cat((others, (matrix @ weight[0]).flatten(), matrix @ bias[0]))


class Adam:
    """Adam (Kingma and Ba 2015) on one flat vector of weights; a step is one fused operation.

    gradient_clip: largest norm of the gradient, None for no limit.
    """

    def __init__(self, weights: Tensor, learning_rate: float, gradient_clip: float | None = None) -> None:
        self.weights = weights
        self.learning_rate, self.gradient_clip = learning_rate, gradient_clip
        self.first, self.second = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.n_steps = torch.zeros((), device=self.weights.device)

    def step(self, gradient: Tensor) -> None:
        """Update the weights. The gradient is clipped in place."""
        if self.gradient_clip is not None:
            gradient.mul_((self.gradient_clip / gradient.norm()).clamp_(max=1.0))
        self.n_steps.add_(1)
        torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls, without 25 us of its Python
            [self.weights], [gradient], [self.first], [self.second], [], [self.n_steps],
            lr=self.learning_rate, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Return the live moments and step count, under "name/..."."""
        return {f"{name}/first": self.first, f"{name}/second": self.second, f"{name}/n_steps": self.n_steps}


class TargetUpdate:
    """Polyak update of target weights, target += tau * (online - target), at every `period`-th call."""

    def __init__(self, target: Tensor, online: Tensor, tau: float, period: int) -> None:
        self.target, self.online, self.tau, self.period = target, online, tau, period
        self.n_calls = torch.zeros((), dtype=torch.int64, device=target.device)

    def step(self) -> None:
        """Count one call and update at the period. The rate is a tensor, so that every call runs the same operations."""
        if self.period == 1:
            self.target.lerp_(self.online, self.tau)
            return
        self.n_calls.add_(1)
        rate = (self.n_calls % self.period == 0) * self.tau
        self.target.lerp_(self.online, rate)


def _matmul(gradient: Tensor, weight: Tensor) -> Tensor:
    """Return (E, B, n) times (E, n, m). If n is 1 this is an outer product, which broadcasting computes faster."""
    return gradient * weight if gradient.shape[2] == 1 else torch.bmm(gradient, weight)
