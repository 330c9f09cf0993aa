import itertools

import numpy as np
import torch
from plain_agents import make_mlp
from torch import nn

from hindsight_rl.agents.forward import ImageEncoding, convolution_views, encode, layer_views
from hindsight_rl.agents.networks import Architecture, Network

IMAGE_SIZE = (7, 6)


def make_network(n_members, channels=(3, 4)):
    """A network with one number, two channels of 7 x 6 pixels, two numbers, and one hidden layer."""
    pixels = 1 + np.arange(2 * 42).reshape(2, *IMAGE_SIZE)
    encoding = ImageEncoding(pixels, np.array([0, 85, 86]), channels)
    architecture = Architecture((encoding.output_size, 5, 2), n_members, encoding=encoding)
    network = Network(architecture, torch.zeros(architecture.n_weights, dtype=torch.float64))
    network.initialize(torch.Generator().manual_seed(0))
    return network


def make_modules(network):
    """The same network as torch modules."""
    architecture = network.architecture
    sizes = architecture.encoding.sizes
    convolutions = [nn.Conv2d(n_in, n_out, 3, 2, 1).double() for n_in, n_out in itertools.pairwise(sizes)]
    for module, (weight, bias) in zip(convolutions, convolution_views(network.flat, sizes), strict=True):
        module.weight.data.copy_(weight)
        module.bias.data.copy_(bias)
    mlps = [make_mlp(architecture.sizes, False).double() for _ in range(architecture.n_members)]
    views = layer_views(network.flat[architecture.n_encoder_weights :], architecture.sizes, architecture.n_members)
    for member, mlp in enumerate(mlps):
        for module, (weight, bias) in zip((mlp[0], mlp[2]), views, strict=True):
            module.weight.data.copy_(weight[member])
            module.bias.data.copy_(bias[member])
    return convolutions, mlps


def test_outputs_and_gradients_equal_autograd():
    network = make_network(2)
    convolutions, mlps = make_modules(network)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(9, 87, dtype=torch.float64, generator=generator)
    of_output = torch.randn(2, 9, 2, dtype=torch.float64, generator=generator)
    output, tape = network.forward(x)
    gradient = network.weight_gradient(tape, of_output).clone()
    input_gradient = network.input_gradient(tape, of_output, 85)

    image = x[:, 1:85].reshape(9, 2, *IMAGE_SIZE)
    for convolution in convolutions:
        image = convolution(image).relu()
    last = [x[:, 85:].clone().requires_grad_() for _ in mlps]
    expected = torch.stack([mlp(torch.cat((image.flatten(1), x[:, :1], e), 1)) for mlp, e in zip(mlps, last, strict=True)])
    expected.backward(of_output)
    torch.testing.assert_close(output, expected.detach())
    of_convolutions = [p.grad.flatten() for module in convolutions for p in (module.weight, module.bias)]
    torch.testing.assert_close(gradient[: network.architecture.n_encoder_weights], torch.cat(of_convolutions))
    of_layers = layer_views(gradient[network.architecture.n_encoder_weights :], network.architecture.sizes, 2)
    for member, mlp in enumerate(mlps):
        for module, (weight, bias) in zip((mlp[0], mlp[2]), of_layers, strict=True):
            torch.testing.assert_close(weight[member], module.weight.grad)
            torch.testing.assert_close(bias[member], module.bias.grad)
    torch.testing.assert_close(input_gradient, torch.stack([e.grad for e in last]))


def test_outputs_follow_the_weights_and_track_no_gradient():
    network = make_network(1)
    x = torch.randn(4, 87, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    before = network(x)
    network.encoder.flat.mul_(2.0)
    assert not torch.equal(network(x), before)
    assert not network(x).requires_grad


def test_numpy_and_torch_encode_alike():
    network = make_network(1)
    x = torch.randn(4, 87, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    encoding = network.architecture.encoding
    observed = encode(encoding, convolution_views(network.flat.numpy(), encoding.sizes), x.numpy())
    np.testing.assert_allclose(observed, network.encoder.forward(x)[0].numpy(), atol=1e-12)


def test_initial_convolutions_equal_torch():
    network = make_network(1, channels=(50, 60))
    (first, bias), (second, _) = network.encoder.convolutions
    for tensor, bound in ((first, 18**-0.5), (bias, 18**-0.5), (second, 450**-0.5)):
        assert 0.9 * bound < tensor.abs().max() <= bound
