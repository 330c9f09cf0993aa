import pytest
import torch
from plain_agents import load_flat, make_mlp, read_flat
from torch import nn

from hindsight_rl.agents.networks import (
    Adam,
    Architecture,
    Network,
    TargetUpdate,
    allocate,
    combine_outputs,
)
from hindsight_rl.errors import OptionError

SIZES = [(5, 7, 6, 1), (5, 7, 6, 3), (5, 2), (5, 1)]


def make_pair(sizes, n_members, layer_norm, dtype):
    """A network with random weights, and torch modules with the same weights."""
    generator = torch.Generator().manual_seed(0)
    architecture = Architecture(sizes, n_members, layer_norm)
    network = Network(architecture, torch.zeros(architecture.n_weights, dtype=dtype))
    network.initialize(generator)
    modules = [make_mlp(sizes, layer_norm).to(dtype) for _ in range(n_members)]
    load_flat(modules, network.flat, sizes)
    return network, modules


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("n_members", [1, 2, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_outputs_and_gradients_equal_autograd(sizes, n_members, layer_norm, dtype, tolerance):
    network, modules = make_pair(sizes, n_members, layer_norm, dtype)
    x = torch.randn(9, sizes[0], dtype=dtype, generator=torch.Generator().manual_seed(1))
    of_output = torch.randn(n_members, 9, sizes[-1], dtype=dtype, generator=torch.Generator().manual_seed(2))
    output, tape = network.forward(x)
    gradient = network.weight_gradient(tape, of_output)
    input_gradient = network.input_gradient(tape, of_output)

    copies = [x.clone().requires_grad_() for _ in modules]  # one copy each keeps the gradients apart
    expected = torch.stack([module(copy) for module, copy in zip(modules, copies, strict=True)])
    expected.backward(of_output)
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(output, expected.detach(), **close)
    torch.testing.assert_close(gradient, read_flat(modules, sizes, of_gradient=True), **close)
    torch.testing.assert_close(input_gradient, torch.stack([copy.grad for copy in copies]), **close)
    torch.testing.assert_close(network.input_gradient(tape, of_output, 3), input_gradient[..., 3:], **close)
    torch.testing.assert_close(network(x), output, rtol=0, atol=0)


def test_rows_may_be_a_view_with_gaps_and_differ_between_members():
    network, modules = make_pair((5, 7, 1), 2, False, torch.float64)
    wide = torch.randn(9, 8, dtype=torch.float64)
    torch.testing.assert_close(network(wide[:, :5])[1], modules[1](wide[:, :5]).detach())
    own = torch.randn(2, 9, 5, dtype=torch.float64)
    torch.testing.assert_close(network(own)[1], modules[1](own[1]).detach())


def test_a_network_of_some_members_shares_the_weights():
    network, _ = make_pair((5, 7, 1), 3, False, torch.float64)
    alone = Network(network.architecture, network.flat, slice(1, 2))
    x = torch.randn(9, 5, dtype=torch.float64)
    output, tape = alone.forward(x)
    torch.testing.assert_close(output[0], network(x)[1])
    _, whole_tape = network.forward(x)
    of_output = torch.zeros(3, 9, 1, dtype=torch.float64)
    of_output[1] = 1.0
    whole = network.input_gradient(whole_tape, of_output)
    torch.testing.assert_close(alone.input_gradient(tape, torch.ones_like(output))[0], whole[1])
    network.flat.zero_()
    assert alone(x).count_nonzero() == 0


def test_networks_are_allocated_one_after_another():
    flat, (first, second) = allocate([Architecture((2, 1)), Architecture((3, 2), 2)], torch.device("cpu"))
    assert flat.shape == (3 + 2 * 8,)
    flat.fill_(1.0)
    assert (first.flat.sum(), second.flat.sum()) == (3, 16)
    assert second.layers[0][0].sum() == 12


def test_networks_of_too_many_weights_are_refused():
    with pytest.raises(OptionError, match=r"100,000,040,000,001 weights.*Reduce `hidden`"):
        allocate([Architecture((1, 10**7, 10**7, 1))], torch.device("cpu"))


def test_combine_outputs():
    network, _ = make_pair((5, 7, 6, 3), 1, True, torch.float64)
    matrix = torch.tensor([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]], dtype=torch.float64)
    combined = Network(Architecture((5, 7, 6, 2), 1, True), combine_outputs(network, matrix))
    x = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(combined(x), network(x) @ matrix.T)


def test_initial_weights_equal_linear_layers_and_the_last_is_scaled():
    _, (network,) = allocate([Architecture((100, 50, 400), last_layer_scale=0.1)], torch.device("cpu"))
    network.initialize(torch.Generator().manual_seed(0))
    (weight1, bias1), (weight2, bias2) = network.layers
    for tensor, bound in ((weight1, 0.1), (bias1, 0.1), (weight2, 0.1 / 50**0.5), (bias2, 0.1 / 50**0.5)):
        assert 0.9 * bound < tensor.abs().max() <= bound
        assert abs(tensor.mean()) < 0.2 * bound
    again = allocate([Architecture((100, 50, 400), last_layer_scale=0.1)], torch.device("cpu"))[1][0]
    again.initialize(torch.Generator().manual_seed(0))
    assert torch.equal(again.flat, network.flat)


def test_adam_equals_torch():
    weights = torch.linspace(-1, 1, 7)
    parameter = nn.Parameter(weights.clone())
    adam, reference = Adam(weights, 0.01), torch.optim.Adam([parameter], lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        gradient = torch.randn(7, generator=generator)
        parameter.grad = gradient.clone()
        adam.step(gradient)
        reference.step()
    torch.testing.assert_close(weights, parameter.data, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("limit", "expected"), [(1.0, [0.6, 0.8]), (10.0, [3.0, 4.0])])
def test_a_gradient_is_clipped_to_a_norm(limit, expected):
    adam = Adam(torch.zeros(2), 0.1, gradient_clip=limit)
    gradient = torch.tensor([3.0, 4.0])
    adam.step(gradient)
    torch.testing.assert_close(gradient, torch.tensor(expected))
    torch.testing.assert_close(adam.first, torch.tensor(expected) * 0.1)


def test_clipping_a_zero_gradient_is_finite():
    adam = Adam(torch.ones(2), 0.1, gradient_clip=1.0)
    adam.step(torch.zeros(2))
    assert adam.weights.tolist() == [1, 1]


def test_polyak_update():
    target, online = torch.tensor([0.0, 4.0]), torch.tensor([1.0, 0.0])
    step = TargetUpdate(target, online, tau=0.25, period=1)
    step.step()
    assert target.tolist() == [0.25, 3.0]
    step.step()
    assert target.tolist() == [0.4375, 2.25]


def test_targets_are_copied_once_per_period():
    target, online = torch.zeros(2), torch.tensor([0.1, -3.0])
    step = TargetUpdate(target, online, tau=1.0, period=3)
    step.step()
    step.step()
    assert target.tolist() == [0, 0]
    step.step()
    assert torch.equal(target, online)
    online.fill_(7.0)
    step.step()
    assert target[1] == -3
