from dataclasses import replace

import numpy as np
import pytest
from pusher import COLUMNS, SPEC, Pusher, play, repeated_random_actions

from hindsight_rl.records import ArraySpec, Episode
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import explain_missing, infer_structure, plan_probing
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.tool import _certain, _in_one_order, _rank_tools, are_alike, find_positions


def steps_of(tool, puck, displacement, episode):
    """All arrays (N, m); `tool` and `puck` are positions after each step, and the puck moved by `displacement`."""
    goal = np.where(np.arange(len(puck))[:, None] < len(puck) / 2, 0.0, 2.0) + np.zeros_like(puck)
    actions = np.zeros((len(puck), 1))
    return Steps(tool, actions, tool, puck - displacement, puck, goal, np.asarray(episode))


def test_a_tool_that_is_always_as_high_as_the_object_is_found_in_the_right_order():
    rng = np.random.default_rng(0)
    puck = rng.uniform(-0.1, 0.1, (400, 3)) * (1, 1, 0)
    tool = rng.uniform(-0.5, 0.5, (400, 3)) * (1, 1, 0) + (0, 0, 0.05)
    onsets = np.arange(0, 400, 40)
    tool[onsets] = puck[onsets] + (0, 0, 0.04)
    displacement = np.zeros((400, 3))
    displacement[onsets] = 0.01
    heights = np.abs(tool[:, None, :] - puck[:, 2:, None])[:, 0]
    nearer = np.median(heights[onsets], 0) / np.median(heights, 0)
    assert nearer[2] > max(nearer[:2])  # the height alone says nothing, and both other columns seem better
    steps = steps_of(tool, puck, displacement, np.arange(400) // 40)
    ranked = _rank_tools(steps, onsets, [0, 1, 2], [7, 8, 9], [])
    assert ranked[0][1] == (0, 1, 2)
    assert _certain(ranked, len(ranked), steps, [7, 8, 9], may_tie=True) == (0, 1, 2)


def test_a_wrist_is_like_its_hand_unless_it_has_another_number_of_columns():
    hand = np.random.default_rng(0).normal(size=(30, 2))
    steps = steps_of(np.column_stack([hand, 0.1 - hand, np.zeros(30)]), hand, np.zeros((30, 2)), np.arange(30) // 10)
    assert are_alike(steps, [0, 1], [2, 3])
    assert not are_alike(steps, [0, 1], [1, 0])
    assert not are_alike(steps, [0, 1], [2, 3, 4])


def test_the_likelihood_of_a_tool_follows_from_how_seldom_it_is_as_near():
    """By hand: of four steps of rest, none is as near as the first onset and one as the second, so m = (1 + 2) / 2 / 5."""
    tool = np.array([0.5, 2, 3, 4, 0.2, 1.0])[:, None]
    still, displacement = np.zeros((6, 1)), np.array([0, 0, 0, 0, 0.1, 0.1])[:, None]
    steps = steps_of(np.hstack([tool, tool + 1]), still, displacement, [0, 0, 0, 0, 0, 1])
    ranked = {tool: likelihood for likelihood, tool in _rank_tools(steps, np.array([4, 5]), [0, 1], [7], [])}
    assert ranked[(0,)] == pytest.approx(-2 * (1 + np.log(0.3)))
    far_before = replace(steps, observation=steps.observation + np.array([[0, 0]] * 4 + [[9, 0]] * 2))
    ranked = {tool: likelihood for likelihood, tool in _rank_tools(far_before, np.array([4, 5]), [0, 1], [7], [])}
    assert ranked[(0,)] == pytest.approx(-2)  # the object came to the tool, and not the tool to the object


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        ([], None),
        ([(np.log(20) + 1e-9, (0,))], (0,)),
        ([(np.log(20) - 1e-9, (0,))], None),  # 20 times as likely as chance
        ([(np.log(40) + 1e-9, (0,)), (np.log(2), (1,))], (0,)),
        ([(np.log(40) - 1e-9, (0,)), (np.log(2), (1,))], None),  # and as the next best choice
        ([(np.log(40) - 1e-9, (0,)), (-9.0, (1,))], None),  # of two choices that are compared
        ([(9.0, (0,)), (9.0, (2,))], (0,)),  # unless both columns are alike
    ],
)
def test_a_tool_is_certain_if_it_is_20_times_as_likely(ranked, expected):
    columns = np.array([[0, 0, 5], [1, 1, 7], [2, 0, 9.1], [3, 1, 11]])
    steps = steps_of(columns, np.zeros((4, 1)), np.zeros((4, 1)), [0] * 4)
    assert _certain(ranked, len(ranked), steps, [7], may_tie=True) == expected


def test_of_orders_that_are_equally_likely_that_of_the_object_counts():
    columns = np.array([[0, 0, 5], [1, 1, 7], [2, 0, 9.1], [3, 1, 11]])
    steps = steps_of(columns, np.zeros((4, 1)), np.zeros((4, 1)), [0] * 4)
    ranked = [(9.0, (2, 1)), (8.0, (1, 2)), (1.0, (0, 1))]
    assert _certain(ranked, 3, steps, [7, 8], may_tie=True) == (1, 2)
    assert _certain(ranked, 3, steps, [8, 7], may_tie=True) == (2, 1)
    assert _certain(ranked, 3, steps, [7, 8], may_tie=False) is None
    assert _certain([(9.0, (2, 1)), (5.0, (1, 2))], 2, steps, [7, 8], may_tie=True) == (2, 1)  # it is clearly likelier
    assert _certain([(9.0, (2, 1)), (8.0, (1, 2)), (8.0, (0, 2))], 3, steps, [7, 8], may_tie=True) is None


def test_of_one_place_the_order_counts_in_which_the_object_moves_away_from_where_the_tool_was():
    """By hand: the tool comes from (1, 2), and the object moves from (2, 2.2) to (2.4, 2.3)."""
    seen, places = np.tile([1.0, 2.0, 0.0], (2, 1)), np.array([[2.0, 2.2], [2.4, 2.3]])
    ranked = [(3.0, (1, 0)), (2.0, (0, 1)), (1.0, (0, 2))]
    steps = steps_of(seen, places, np.array([[0, 0], [0.4, 0.1]]), [0, 0])
    assert _in_one_order(steps, np.array([1]), ranked, [7, 8]) == [(3.0, (0, 1)), (1.0, (0, 2))]
    aside = steps_of(seen, places[::-1], np.array([[0, 0], [0.1, 0.1]]), [0, 0])  # it does not show the order
    assert _in_one_order(aside, np.array([1, 1]), ranked, [7, 8]) == [(3.0, (0, 1)), (1.0, (0, 2))]


def test_of_one_place_another_order_counts_if_the_object_clearly_moves_in_it():
    """By hand: the tool comes from (0, 2) to what lies at (3, 1), and pushes it by (3, -1), or by (1, 3) as (2, 0)."""
    seen = np.tile([0.0, 2.0, 0.0], (3, 1))
    for along, order in (((0.3, -0.1), (0, 1)), ((0.1, 0.1), (1, 0))):
        moved = np.tile(along, (3, 1))
        steps = steps_of(seen, np.tile([3.0, 1.0], (3, 1)), moved, [0, 1, 2])
        assert _in_one_order(steps, np.arange(3), [(3.0, (1, 0)), (2.0, (0, 1))], [7, 8]) == [(3.0, order)]


@pytest.mark.parametrize("offset", [0.0, 0.2])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_gap_to_an_object_is_no_position_though_the_object_starts_where_it_always_does(order, offset):
    """Columns: the tool, which actions move, the gap to a point of the object, and the object, which slides by itself."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(6):
        actions = rng.uniform(-1, 1, (30, 1))
        tool = rng.uniform(-1, 1) + np.append(0, 0.1 * actions.cumsum())
        slides = np.where(np.arange(30) % 10 == 9, rng.normal(size=30), 0)
        place = np.append(0, slides.cumsum())
        seen = np.stack([np.stack([tool, place + offset - tool], 1)[:, k] for k in order] + [place], 1)
        goal = np.full((31, 1), rng.uniform(-1, 1))
        episodes.append(Episode(seen, place[:, None], goal, actions, np.zeros(30)))
    assert find_positions(Steps.from_episodes(episodes), [0, 1]) == [order.index(0)]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_tool_with_inertia_that_moves_as_what_it_pushes_is_no_gap(order):
    """Columns: the tool, which actions accelerate, the gap to the object, and the object, which moves with the tool."""
    rng = np.random.default_rng(1)
    episodes = []
    for _ in range(6):
        actions, speeds = rng.uniform(-1, 1, (30, 1)), [0.0]
        for action in actions[:, 0]:
            speeds.append(0.9 * speeds[-1] + 0.05 * action)
        tool, is_pushed = rng.uniform(-1, 1) + np.cumsum(speeds), np.arange(31) % 10 == 9
        place = np.cumsum(speeds * is_pushed)
        seen = np.stack([np.stack([tool, place - tool], 1)[:, k] for k in order] + [place], 1)
        goal = np.full((31, 1), rng.uniform(-1, 1))
        episodes.append(Episode(seen, place[:, None], goal, actions, np.zeros(30)))
    assert find_positions(Steps.from_episodes(episodes), [0, 1]) == [order.index(0)]


def test_of_two_columns_neither_is_taken_for_the_gap_if_the_object_never_moves_in_their_direction():
    """Columns: the tool and the gap along one axis, the object, which moves along another axis only, as its last column."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(6):
        actions = rng.uniform(-1, 1, (30, 1))
        tool = rng.uniform(-1, 1) + np.append(0, 0.1 * actions.cumsum()) + rng.normal(size=31) * 0.01
        along, x = np.append(0, (np.arange(30) % 10 == 9) * rng.normal(size=30)).cumsum(), np.full(31, rng.uniform(-1, 1))
        goal = np.tile(rng.uniform(-1, 1, 2), (31, 1))
        seen = np.stack([tool, x - tool, x, along], 1)
        episodes.append(Episode(seen, np.stack([x, along], 1), goal, actions, np.zeros(30)))
    assert set(find_positions(Steps.from_episodes(episodes), [0, 1])) == {0, 1}


def test_no_tool_has_a_position_and_the_gap_to_the_object_beside_it():
    rng = np.random.default_rng(0)
    tool, puck = rng.uniform(-1, 1, (20, 3)), np.zeros((20, 2))
    steps, onsets = steps_of(tool, puck, np.ones((20, 2)), np.arange(20)), np.arange(20)
    assert {frozenset(chosen) for _, chosen in _rank_tools(steps, onsets, [0, 1, 2], [7, 8], [])} == {
        frozenset(pair) for pair in ((0, 1), (0, 2), (1, 2))
    }
    apart = _rank_tools(steps, onsets, [0, 1, 2], [7, 8], [[0, 2], [1, 7]])
    assert {frozenset(chosen) for _, chosen in apart} == {frozenset(pair) for pair in ((0, 1), (1, 2))}


class Gripped(Pusher):
    """The tool takes the object along, in a third of the episodes."""

    def reset(self):
        super().reset()
        self.is_closed = self.rng.random() < 1 / 3

    def step(self, action):
        before, puck = self.tool, self.puck
        super().step(action)
        is_held = self.is_closed and np.linalg.norm(puck - before) < 0.15
        self.puck = puck + (self.tool - before if is_held else 0)


def test_a_tool_that_often_does_not_move_the_object_is_used_if_it_stays_the_likeliest():
    world = Gripped(0)
    episodes = play(world, 60, repeated_random_actions(1))
    found = infer_structure(episodes, SPEC)
    act = ProbingActor(plan_probing(found, found.sequence), SPEC.action, np.random.default_rng(2))
    probing = play(world, 20, lambda observation, is_first: act(observation))
    found = infer_structure(episodes, SPEC, probing)
    assert found.probes[0] < found.probes[1] / 2
    assert found.contact.tool == COLUMNS["tool"]
    nothing_moves = [each for each in probing if np.ptp(each.achieved_goal, axis=0).max() == 0]
    found = infer_structure(episodes, SPEC, nothing_moves)
    assert found.contact is None
    assert f"moved it in 0 of {len(nothing_moves)} episodes" in explain_missing(found)[0]


@pytest.mark.parametrize("at", [(0, 2), (2, 0)])
def test_constant_dimensions_between_the_axes_of_an_object_are_no_part_of_what_is_met(at):
    """The goal is a place in space, of which one axis never changes, with a rotation by nothing."""
    goal_of = np.array([0.0, 3.0, 0.0, 1.0, 0.0, 0.0, 0.0])  # 3 is the constant column

    def in_space(positions):
        goals = np.tile(goal_of, (len(positions), 1))
        goals[:, at] = positions
        return goals

    episodes = [
        replace(
            each,
            observation=np.column_stack([each.observation, np.tile([1.0, 0.0], (len(each) + 1, 1))]),
            achieved_goal=in_space(each.achieved_goal),
            desired_goal=in_space(each.desired_goal),
        )
        for each in play(Pusher(0), 60, repeated_random_actions(1))
    ]
    spec = replace(SPEC, observation=ArraySpec((12,), "float64"), goal=ArraySpec((7,), "float64"))
    found = infer_structure(episodes, spec, compute_reward=lambda achieved, goal, info: -np.ones(len(goal)))
    assert found.parts.objects == (tuple(range(7)),)
    assert dict(zip(found.sequence.dimensions[0], found.contact.tool, strict=True)) == dict(zip(at, (0, 1), strict=True))
