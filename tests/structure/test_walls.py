"""Walls that a symmetry leads through."""

import numpy as np
import pytest

from hindsight_rl.structure.steps import FEWEST_EPISODES
from hindsight_rl.structure.walls import Stops
from hindsight_rl.task_structure.symmetries import Symmetry

MIRROR = Symmetry.identity(2, 1, 1)  # of the goal, which column 1 holds
MIRROR.observation.factor[1] = MIRROR.goal.factor[0] = MIRROR.action.factor[0] = -1.0


def stops(walls, n_episodes=FEWEST_EPISODES):
    """Each episode goes through -2, -1.9, ..., 2 in both directions, and is stopped before a wall that it meets."""
    places = np.linspace(-2, 2, 41)
    position = np.tile(np.concatenate([places, places]), n_episodes)[:, None]
    free = np.tile(np.repeat([0.1, -0.1], 41), n_episodes)[:, None]
    is_stopped = np.isclose(position[..., None] + free[..., None] / 2, walls).any(-1)
    episode = np.repeat(np.arange(n_episodes), 82)
    return Stops(position, np.where(is_stopped, 0.0, free), free, episode)


@pytest.mark.parametrize(("walls", "lost"), [((-1.05, 1.05), 0.0), ((1.05,), 1.0), ((-1.05, 1.05, 0.55), 1 / 3)])
def test_the_fraction_of_stopped_steps_that_a_mirror_frees(walls, lost):
    found = stops(walls).lost(MIRROR, [1], 2)
    assert (found.mean, found.error) == (pytest.approx(lost), pytest.approx(0.0, abs=1e-9))


@pytest.mark.parametrize(("walls", "n_episodes"), [((), FEWEST_EPISODES), ((1.05,), FEWEST_EPISODES - 1)])
def test_nothing_is_known_of_walls_that_few_episodes_met(walls, n_episodes):
    found = stops(walls, n_episodes).lost(MIRROR, [1], 2)
    assert (found.mean, found.error) == (0.0, np.inf)
