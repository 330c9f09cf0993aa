from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.contact import Contact
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.workspace import find_reach, find_workspace, whole_episodes


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
        ([[0, 1], [0, -20]], 1, 0, False),  # one episode is no evidence
        ([[0, 1], [0, -20], [0, -20]], 2, 0, True),
    ],
)
def test_an_object_leaves_if_it_leaves_and_does_not_come_back(paths, left, back, is_left):
    steps = steps_of(*paths)
    workspace = find_workspace(steps, steps)
    assert (workspace.n_left, workspace.n_back, workspace.is_left) == (left, back, is_left)
    assert f"in {left} of {len(paths)} episodes" in workspace.evidence()


def test_episodes_that_were_cut_short_do_not_count():
    """An object that left the range in one of them might have come back."""
    length_and_end = [(2, False), (3, False), (1, True), (3, True)]
    episodes = [
        Episode(np.zeros((n + 1, 1)), np.zeros((n + 1, 1)), np.zeros((n + 1, 1)), np.zeros((n, 1)), np.zeros(n), ended)
        for n, ended in length_and_end
    ]
    assert whole_episodes(episodes) == episodes[1:]


CONTACT = Contact(tool=(1,), object_columns=(0,), n_onsets=9, distances=(0.5, 0.5, 0.5), in_reach=0.0, moves_on=1.0)


def with_tool(steps):
    """The same steps with a second column, a tool that goes from -1 to 1."""
    tool = np.linspace(-1, 1, len(steps))[:, None]
    seen = {name: np.column_stack([getattr(steps, name), tool]) for name in ("observation", "next_observation")}
    return replace(steps, **seen)


@pytest.mark.parametrize(
    ("paths", "left", "again", "is_left"),
    [
        ([[0, 1, 3, 3, 3, 3], [0, 2, 2, 2, 2]], 2, 0, True),
        ([[0, 1, 3, 3, 3, 3], [0, 2, 2, 2, 2, 3]], 2, 1, False),  # something touched it there
        ([[0, 1, 3, 4, 5, 6], [0, 1, 1, 1, 1]], 0, 0, False),  # it moves on; it rests within reach
        ([[0, 3, 3], [0, 3, 3]], 0, 0, False),  # not for two steps
    ],
)
def test_an_object_leaves_if_it_rests_farther_away_than_the_tool_gets(paths, left, again, is_left):
    steps = with_tool(steps_of(*paths))
    reach = find_reach(steps, steps, CONTACT)
    assert (reach.n_left, reach.n_back, reach.is_left) == (left, again, is_left)
    assert reach.options() == {
        "lowest_achieved": pytest.approx((-1.5,), abs=0.05),
        "highest_achieved": pytest.approx((1.5,), abs=0.05),
        "rest_displacement": 0.004,  # of goals at -3 and 5
    }
    assert f"came to rest farther away than the tool got in {left} of 2 episodes" in reach.evidence()
