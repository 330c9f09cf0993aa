import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.parts import find_workspace
from hindsight_rl.structure.steps import Steps


def steps_of(*paths, goals=((-3.0,), (5.0,))):
    """Steps of episodes along one axis, with goals in turn."""
    episodes = []
    for k, path in enumerate(paths):
        positions, steps = np.array(path, float)[:, None], len(path) - 1
        goal = np.tile(goals[k % len(goals)], (steps + 1, 1))
        episodes.append(Episode(positions, positions, goal, np.zeros((steps, 1)), np.zeros(steps)))
    return Steps.from_episodes(episodes)


def test_the_range_holds_goals_and_starts_and_a_margin():
    """From the goal -3 to the start 9: 12, of which a quarter is added at both ends."""
    steps = steps_of([9, 1], [0, 20])
    assert find_workspace(steps, steps).options() == {"lowest_achieved": (-6.0,), "highest_achieved": (12.0,)}


def test_the_range_is_rounded_relative_to_its_size():
    steps = steps_of([1000.3, 1000.4], [1000.5, 1000.7], goals=((1000.123456,), (1001.0,)))
    assert find_workspace(steps, steps).options() == {"lowest_achieved": (999.9043,), "highest_achieved": (1001.2191,)}


@pytest.mark.parametrize(
    ("paths", "left", "back", "is_left"),
    [
        ([[0, 1], [0, 20], [0, 20, 30]], 2, 0, True),
        ([[0, 1], [0, 20, 0], [0, 20, 30]], 2, 1, False),  # what comes back is not lost
        ([[0, 1]] * 10 + [[0, 20]], 1, 0, False),  # a rare accident
        ([[0, 1], [0, -20]], 1, 0, True),
    ],
)
def test_an_object_leaves_if_it_leaves_and_does_not_come_back(paths, left, back, is_left):
    steps = steps_of(*paths)
    workspace = find_workspace(steps, steps)
    assert (workspace.n_left, workspace.n_back, workspace.is_left) == (left, back, is_left)
    assert f"in {left} of {len(paths)} episodes" in workspace.evidence()
