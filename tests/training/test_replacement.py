"""Which agents may be replaced."""

from types import SimpleNamespace

import numpy as np
import pytest

from hindsight_rl.records.reward_scale import RewardScale
from hindsight_rl.training.replacement import is_poor
from hindsight_rl.training.unguided_success import WINDOW, UnguidedSuccess

SPARSE, DENSE = RewardScale(0, -1), RewardScale(0, -1, is_sparse=False)


@pytest.mark.parametrize(
    ("scale", "first", "last", "poor"),
    [
        (DENSE, -1.0, -0.1, False),  # it is near its goals, and only not exact
        (DENSE, -1.0, -1.0, True),
        (DENSE, -1.0, -2.0, True),
        (SPARSE, -1.0, -0.9, True),  # actions cost less, but no goal is met
        (None, -1.0, -0.1, True),
    ],
)
def test_an_agent_that_never_succeeds_is_poor_unless_its_distances_are_smaller(scale, first, last, poor):
    noise = 0.1 * np.random.default_rng(0).standard_normal(2 * WINDOW)
    rewards = np.repeat([first, last], WINDOW) + noise
    episodes = [SimpleNamespace(reward=np.full(5, reward)) for reward in rewards]
    run = SimpleNamespace(
        success=UnguidedSuccess([False] * WINDOW),
        agent=SimpleNamespace(reward_scale=scale),
        buffer=SimpleNamespace(timeline=SimpleNamespace(episodes=lambda: episodes)),
    )
    assert is_poor(run) is poor
