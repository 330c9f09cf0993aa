from types import SimpleNamespace

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.columns import Units
from hindsight_rl.structure.contact import (
    Contact,
    _certain,
    _rank_tools,
    find_positions,
    measure_contact,
)
from hindsight_rl.structure.steps import Steps


def test_a_tool_that_is_always_as_high_as_the_object_is_found_in_the_right_order():
    rng = np.random.default_rng(0)
    puck = rng.uniform(-0.1, 0.1, (400, 3)) * (1, 1, 0)
    tool = rng.uniform(-0.5, 0.5, (400, 3)) * (1, 1, 0) + (0, 0, 0.05)
    onsets = np.arange(0, 400, 40)
    tool[onsets] = puck[onsets] + (0, 0, 0.04)
    steps = SimpleNamespace(
        next_observation=tool,
        next_achieved_goal=puck,
        moved=np.isin(np.arange(400), onsets).astype(float),
        goal_std=0.1,
    )
    heights = np.abs(tool[:, None, :] - puck[:, 2:, None])[:, 0]
    nearer = np.median(heights[onsets], 0) / np.median(heights, 0)
    assert nearer[2] > max(nearer[:2])  # the height alone says nothing, and both other columns seem better
    ranked = _rank_tools(steps, onsets, [0, 1, 2])
    assert ranked[0][1] == (0, 1, 2)
    assert _certain(ranked) == (0, 1, 2)


def test_the_likelihood_of_a_tool_follows_from_how_seldom_it_is_as_near():
    """By hand: of four steps of rest, none is as near as the first onset and one as the second, so m = (1 + 2) / 2 / 5."""
    tool = np.array([0.5, 2, 3, 4, 0.2, 1.0])[:, None]
    still = np.zeros((6, 1))
    steps = SimpleNamespace(
        next_observation=np.hstack([tool, tool + 1]),
        next_achieved_goal=still,
        moved=np.array([0, 0, 0, 0, 1, 1.0]),
        goal_std=1,
    )
    ranked = {tool: likelihood for likelihood, tool in _rank_tools(steps, np.array([4, 5]), [0, 1])}
    assert ranked[(0,)] == pytest.approx(-2 * (1 + np.log(0.3)))


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        ([], None),
        ([(np.log(20) + 1e-9, (0,))], (0,)),
        ([(np.log(20) - 1e-9, (0,))], None),  # 20 times as likely as chance
        ([(np.log(40) + 1e-9, (0,)), (np.log(2), (1,))], (0,)),
        ([(np.log(40) - 1e-9, (0,)), (np.log(2), (1,))], None),  # and as the next best choice
        ([(np.log(40) - 1e-9, (0,)), (-9.0, (1,))], None),  # of two choices that are compared
    ],
)
def test_a_tool_is_certain_if_it_is_20_times_as_likely(ranked, expected):
    assert _certain(ranked) == expected


def test_the_evidence_says_what_was_compared():
    """A mean over onsets: single ones may be farther away."""
    evidence = Contact((0, 1), (2, 3), 5, (0.1, 0.2, 0.9), 1.0).evidence()
    assert evidence.startswith(
        "columns 0, 1 were near columns 2, 3 on average where the goal moved from rest, in 5 episodes ("
    )


def test_contact_at_no_distance_has_the_tolerance_of_a_usual_step():
    tool = np.tile([0.0, 1.0, 2.0, 3.0], 3)[:, None]  # a cursor that takes the object at 2 along, to 4
    puck = np.tile([2.0, 2.0, 2.0, 3.0], 3)[:, None]
    seen, then = np.column_stack([tool, puck]), np.column_stack([tool + 1, np.tile([2.0, 2.0, 3.0, 4.0], 3)])
    then[:, 0] = then[:, 1]
    goal, episode = np.repeat([3.0, 4.0, 5.0], 4)[:, None], np.repeat([0, 1, 2], 4)
    steps = Steps(seen, np.ones((12, 1)), then, puck, then[:, 1:], goal, episode)
    contact = measure_contact(steps, (0,), (1,))
    assert contact.distances == (1, 1, 1)
    assert contact.subgoal(Units.same(2)).tolerance == 0.75


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_gap_to_an_object_is_no_position_though_the_object_starts_where_it_always_does(order):
    """Columns: the tool, which actions move, the gap, and the object, which slides in steps of its own."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(6):
        actions = rng.uniform(-1, 1, (30, 1))
        tool = rng.uniform(-1, 1) + np.append(0, 0.1 * actions.cumsum())
        slides = np.where(np.arange(30) % 10 == 9, rng.normal(size=30), 0)
        place = np.append(0, slides.cumsum())
        seen = np.stack([np.stack([tool, place - tool], 1)[:, k] for k in order] + [place], 1)
        goal = np.full((31, 1), rng.uniform(-1, 1))
        episodes.append(Episode(seen, place[:, None], goal, actions, np.zeros(30)))
    assert find_positions(Steps.from_episodes(episodes), [0, 1]) == [order.index(0)]
