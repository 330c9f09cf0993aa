"""An agent that sees more columns acts as before, keeps on learning as before, and then learns from these columns."""

import numpy as np
import pytest
from test_agents import assert_same, critics_of, make, make_batch, make_episode, random_options

from hindsight_rl.agents import AGENT_NAMES
from hindsight_rl.agents.policy import Policy
from hindsight_rl.agents.widen import can_widen, take_over

RELATIVE = {"goal_features": "relative", "hidden_goal": (0,), "column_differences": ("3-1",)}


def narrow_and_wide(name, updates=3):
    """A trained agent that sees columns 0, 3 and 5, and a new one that sees 0, 1, 3, 4 and 5 and takes over from it."""
    options = random_options(name) | RELATIVE | {"policy_ema": 0.5}
    narrow = make(name, hidden_observation=(1, 2, 4), **options)
    wide = make(name, seed=5, hidden_observation=(2,), **options)
    for step in range(updates):
        narrow.observe(make_episode(step))
        narrow.update(make_batch(narrow, seed=step))
    take_over(wide, narrow)
    return narrow, wide


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_widened_agent_has_the_same_actions_and_values(name):
    narrow, wide = narrow_and_wide(name)
    episode, policies = make_episode(7, steps=50), []
    for agent in (narrow, wide):
        policies.append(Policy(agent.policy_spec))
        policies[-1].load(agent.policy_weights())
    observed = [getattr(episode, key) for key in ("observation", "achieved_goal", "desired_goal")]
    np.testing.assert_allclose(policies[0].predict(*observed), policies[1].predict(*observed), atol=1e-6)
    np.testing.assert_allclose(narrow.values(episode), wide.values(episode), atol=1e-5)
    assert (narrow.n_updates, narrow.reward_scale) == (wide.n_updates, wide.reward_scale)
    parts = [f"normalizer/{part}_{kind}" for part in ("observation", "goal") for kind in ("count", "mean", "squares")]
    before, after = narrow.state_dict(), wide.state_dict()
    assert_same({part: before[part] for part in parts}, {part: after[part] for part in parts})


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_each_moment_of_adam_stays_with_its_weight(name):
    """Gradients of the weights that both have are the same, so one update changes all of them alike."""
    narrow, wide = narrow_and_wide(name)
    for agent in (narrow, wide):
        agent.update(make_batch(agent, seed=9))
    layers, ((first, bias), *others) = critics_of(narrow).layers, critics_of(wide).layers
    both = first[..., [0, 2, 4, *range(5, first.shape[-1])]]  # what both see: 3 of 5 columns, and all that follow them
    for one, other in zip(layers, [(both, bias), *others], strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-5)
        np.testing.assert_allclose(one[1], other[1], atol=1e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_widened_agent_learns_from_the_columns_that_it_sees_now(name):
    _, wide = narrow_and_wide(name)
    first_weights = critics_of(wide).layers[0][0]
    assert not first_weights[..., [1, 3]].any()
    wide.update(make_batch(wide, seed=9))
    assert first_weights[..., [1, 3]].all()


def test_only_fewer_hidden_columns_can_be_taken_over():
    options = [
        make("td3", hidden_observation=hidden, **RELATIVE).policy_spec.options for hidden in [(1, 2), (2,), (3,), ()]
    ]
    both, one, another, none = options
    assert can_widen(both, one)
    assert can_widen(both, none)
    assert not can_widen(one, both)
    assert not can_widen(both, both)
    assert not can_widen(both, another)
    assert not can_widen(both, one.model_copy(update={"discount": 0.5}))
