import pytest
import torch

from hindsight_rl.agents.losses import clone, deterministic_policy_loss, sample_squashed_gaussian, soft_policy_loss
from hindsight_rl.agents.preprocessor import Transitions
from hindsight_rl.options.agent import ActorCriticOptions

INPUTS, ACTIONS, ROWS = 3, 2, 5


def transitions(n_demonstrations):
    generator = torch.Generator().manual_seed(1)
    draw = [torch.randn(ROWS, n, generator=generator, dtype=torch.float64) for n in (INPUTS, ACTIONS, 1)]
    inputs, action, column = draw[0], draw[1].tanh(), draw[2]
    together = torch.cat((inputs, action), 1)
    return Transitions(inputs, action, together, inputs, inputs, column, column, None, n_demonstrations)


def critic(critic_inputs):
    """A smooth made-up value."""
    return (critic_inputs.sum(1, keepdim=True) * 0.7).sin() + critic_inputs[:, -1:].square()


def cloned(batch, action, options):
    """Return value and value gradient with the cloning term, from a critic that autograd differentiates."""
    leaf = action.detach().requires_grad_()
    value = critic(torch.cat((batch.inputs, leaf), 1))
    [gradient] = torch.autograd.grad(value.sum(), leaf)
    return clone(batch, action, value.detach(), gradient, critic, options)


def cloning_loss(batch, action, options):
    """Return the term as its definition says it."""
    n = batch.n_demonstrations
    distance = (action[-n:] - batch.action[-n:]).square().sum(1, keepdim=True)
    if options.q_filter:
        is_better = critic(batch.critic_inputs[-n:]) > critic(torch.cat((batch.inputs, action), 1))[-n:]
        distance = distance * is_better.detach()
    return options.bc_weight * distance.mean()


@pytest.mark.parametrize("q_filter", [False, True])
@pytest.mark.parametrize("n", [1, 3, ROWS])
def test_the_gradient_of_a_deterministic_policy_is_that_of_autograd(n, q_filter):
    batch, options = transitions(n), ActorCriticOptions(bc_weight=2.5, q_filter=q_filter, action_l2=0.3)
    output = torch.randn(ROWS, ACTIONS, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    action = output.tanh()
    expected = -critic(torch.cat((batch.inputs, action), 1)).mean() + 0.3 * action.square().mean()
    expected = expected + cloning_loss(batch, action, options)
    [expected_gradient] = torch.autograd.grad(expected, output)
    action = action.detach()
    loss, gradient = deterministic_policy_loss(action, *cloned(batch, action, options), 0.3)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient)


def test_the_gradient_of_a_squashed_gaussian_is_that_of_autograd():
    batch, options = transitions(3), ActorCriticOptions(bc_weight=2.5, action_l2=0.0)
    output = torch.randn(ROWS, 2 * ACTIONS, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    coefficient = torch.tensor(0.2, dtype=torch.float64)

    def sample(output):
        return sample_squashed_gaussian(output, torch.Generator().manual_seed(3))

    leaf = output.clone().requires_grad_()
    drawn = sample(leaf)
    expected = (coefficient * drawn.log_density - critic(torch.cat((batch.inputs, drawn.action), 1))).mean()
    expected = expected + cloning_loss(batch, drawn.action, options)
    [expected_gradient] = torch.autograd.grad(expected, leaf)
    drawn = sample(output)
    loss, gradient = soft_policy_loss(drawn, *cloned(batch, drawn.action, options), coefficient, 0.0)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient)


def test_the_q_filter_leaves_out_actions_that_are_not_better():
    batch, options = transitions(2), ActorCriticOptions(bc_weight=1.0)
    action = torch.zeros(ROWS, ACTIONS, dtype=torch.float64)
    value, no_gradient = torch.zeros(ROWS, 1, dtype=torch.float64), torch.zeros_like(action)
    values = torch.tensor([[1.0], [0.0]])  # of the demonstrated actions; those of the policy are worth 0
    value, gradient = clone(batch, action, value, no_gradient, lambda critic_inputs: values, options)
    distance = batch.action[3].square().sum()
    torch.testing.assert_close(value[:, 0], torch.tensor([0, 0, 0, -2.5 * distance, 0], dtype=torch.float64))
    torch.testing.assert_close(gradient[3], 5 * batch.action[3])  # 2 * 5 rows / 2 demonstrations
    assert not gradient[[0, 1, 2, 4]].any()


@pytest.mark.parametrize(("n", "weight"), [(0, 1.0), (2, 0.0)])
def test_without_demonstrations_or_weight_nothing_changes(n, weight):
    action, value = torch.ones(ROWS, ACTIONS), torch.ones(ROWS, 1)
    found = clone(transitions(n), action, value, action, critic, ActorCriticOptions(bc_weight=weight))
    assert found[0] is value
    assert found[1] is action
