"""Handles: where a tool must be to move a drawer, a switch, or a flag at a place that columns show."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.structure import explain_findings, explain_missing, infer_structure
from hindsight_rl.structure.columns import Units, find_goal_copies
from hindsight_rl.structure.controlled import find_controlled_columns
from hindsight_rl.structure.handles import Handle, find_handles
from hindsight_rl.structure.parts import find_parts
from hindsight_rl.structure.steps import Steps
from hindsight_rl.task_structure.affine import AffineColumns
from hindsight_rl.task_structure.subgoals import Subgoals

# columns: the hand at x and y, how far the drawer is open, the switch, the lamp and its place, and a random number
SPEC = GoalSpec(
    ArraySpec((8,), "float64"), ArraySpec((3,), "float64"), ArraySpec((2,), "float64", (-1.0, -1.0), (1.0, 1.0))
)
REACH = 0.15


def play(n_episodes, seed=0, reach=REACH, steps=40):
    """A hand opens a drawer at (0.5 + opening, -0.5), turns a switch at (-0.5, 0.5), and lights a lamp at any place."""
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(n_episodes):
        hand, opening, switch, lamp, at = rng.uniform(-1, 1, 2), rng.uniform(0, 0.5), 0.0, 0.0, rng.uniform(-1, 1, 2)
        goal, seen, achieved, actions, action = rng.uniform(0, 1, 3), [], [], [], np.zeros(2)
        for step in range(steps + 1):
            seen.append([*hand, opening, switch, lamp, *at, rng.normal()])
            achieved.append([opening, switch, lamp])
            action = rng.uniform(-1, 1, 2) if step % 4 == 0 else action
            actions.append(action)
            hand = np.clip(hand + 0.2 * action, -1, 1)
            if np.linalg.norm(hand - [0.5 + opening, -0.5]) < reach:
                opening = float(np.clip(opening + 0.1 * action[0], 0, 0.5))
            if np.linalg.norm(hand - [-0.5, 0.5]) < reach:
                switch = 1.0
            if np.linalg.norm(hand - at) < reach:
                lamp = 1.0
        row = np.tile(goal, (steps + 1, 1))
        episodes.append(Episode(np.array(seen), np.array(achieved), row, np.array(actions[:-1]), np.zeros(steps)))
    return episodes


def handles_of(episodes, **options):
    steps = Steps.from_episodes(episodes)
    return find_handles(steps, find_parts(steps), find_goal_copies(steps), find_controlled_columns(steps), **options)


def test_places_of_a_drawer_a_switch_and_a_lamp():
    drawer, switch, lamp = handles_of(play(60))
    assert [each.dimension for each in (drawer, switch, lamp)] == [0, 1, 2]
    assert {each.tool for each in (drawer, switch, lamp)} == {(0, 1)}
    states = np.array([[0, 0, 0.0, 0, 0, 0.3, -0.2, 0], [0, 0, 0.4, 0, 0, 0.3, -0.2, 0]])
    assert drawer.place.of(states) == pytest.approx(np.array([[0.5, -0.5], [0.9, -0.5]]), abs=0.15)
    assert switch.place.of(states) == pytest.approx(np.array([[-0.5, 0.5]] * 2), abs=0.05)
    assert lamp.place.text() == "5,6"
    assert lamp.distances[1] < REACH + 0.05


def test_what_moves_alone_has_handles_though_its_errors_add_up_to_one_distance():
    """As those of three drawers, whose distance to the goal is that of all of them."""
    steps = Steps.from_episodes(play(60))
    parts = find_parts(steps, errors_add_up=lambda dimensions: True)
    assert parts.objects == ((0, 1, 2),)
    found = find_handles(steps, parts, find_goal_copies(steps), find_controlled_columns(steps))
    assert [each.dimension for each in found] == [0, 1, 2]


def test_they_become_subgoals_in_the_order_of_the_goal():
    found = infer_structure(play(60), SPEC)
    assert found.contact is None
    assert found.has_all_handles
    subgoals = Subgoals(found.subgoals, SPEC)
    assert [each.dimensions for each in subgoals] == [(0,), (1,), (2,)]
    assert subgoals.n_added == 2
    (option,) = [each for each in found.choices() if each.option == "subgoals"]
    assert "columns 0, 1 were near 5,6 where achieved_goal[2] moved from rest" in option.reason
    assert "guided" in [feature.preset for feature in found.features()]
    assert [each.verdict for each in explain_findings(found) if each.kind == "contact"][2] == "move achieved_goal[2] at 5,6"
    assert explain_missing(found) == [
        "no hidden columns and symmetries: they are looked for where a tool meets the positions of objects"
    ]


def test_the_reward_says_when_a_dimension_counts_as_reached():
    reward = lambda achieved, goal, info: (np.abs(achieved - goal) <= [0.05, 0.5, 0.5]).all(-1) - 1.0  # noqa: E731
    found = infer_structure(play(60), SPEC, compute_reward=reward)
    assert [each.placed for each in found.handles] == pytest.approx([0.05, 0.5, 0.5], rel=0.01)


def test_gaps_to_a_handle_are_0_where_it_is_held():
    episodes = []
    for each in play(60):
        opening = each.observation[:, 2:3]
        gap = opening * [1.0, 0.0] + [0.5, -0.5] - each.observation[:, :2]
        seen = np.column_stack([gap, opening, each.observation[:, 7]])
        episodes.append(replace(each, observation=seen, achieved_goal=opening, desired_goal=each.desired_goal[:, :1]))
    (handle,) = handles_of(episodes)
    assert (handle.tool, handle.place.text()) == ((0, 1), "0*o0,0*o1")


def test_without_a_reward_it_is_a_quarter_of_the_standard_deviation_of_goals():
    episodes = play(60)
    goals = np.array([each.desired_goal[0] for each in episodes])
    assert [each.placed for each in infer_structure(episodes, SPEC).handles] == pytest.approx(goals.std(0) / 4)


def test_few_contacts_show_no_handle():
    assert handles_of(play(8)) == ()
    found = infer_structure(play(8), SPEC)
    assert (found.subgoals, found.has_all_handles) == ((), False)
    assert found.without_handle == (0, 1, 2)


def test_a_place_that_covers_most_of_the_range_is_no_handle():
    assert handles_of(play(60, reach=0.8)) == ()


def test_along_a_line_one_column_is_the_tool_however_often_it_is_shown():
    rng, episodes = np.random.default_rng(0), []
    spec = GoalSpec(ArraySpec((4,), "float64"), ArraySpec((1,), "float64"), ArraySpec((1,), "float64", (-1.0,), (1.0,)))
    for _ in range(40):
        engine, wagon, action, seen, actions = rng.uniform(-1, 1), rng.uniform(-1, 1), 0.0, [], []
        for step in range(41):
            seen.append([engine, 1 - engine, wagon, rng.normal()])
            action = rng.uniform(-1, 1) if step % 4 == 0 else action
            actions.append([action])
            engine = float(np.clip(engine + 0.1 * action, -1, 1))
            wagon += np.sign(wagon - engine) * max(0.0, 0.05 - abs(wagon - engine))
        goal = np.full((41, 1), rng.uniform(-1, 1))
        episodes.append(Episode(np.array(seen), np.array(seen)[:, 2:3], goal, np.array(actions[:-1]), np.zeros(40)))
    (handle,) = infer_structure(episodes, spec).handles
    assert (handle.tool, handle.place.columns, handle.place.factor) == ((0,), (2,), (1.0,))


def test_a_body_that_mostly_rests_is_not_its_own_tool():
    """The drawer is where the hand is along one axis, and rests while the hand does."""
    episodes = play(60)
    for each in episodes:
        each.achieved_goal[:, 0] = each.observation[:, 0]
    assert [(each.dimension, each.tool) for each in handles_of(episodes)] == [(1, (0, 1)), (2, (0, 1))]


def test_the_place_of_a_handle_follows_the_origin_of_positions():
    """By hand: 0.7 and 0.4 are added to the tool's columns, and 0.1 to the column of which the place depends."""
    handle = Handle(2, (0, 1), AffineColumns((0, 4), (0.0, 2.0), (0.3, 0.2)), 9, (0.1, 0.1, 0.1))
    shifted = handle.shifted({0: 0.7, 1: 0.4, 4: 0.1})
    assert shifted.place.offset == pytest.approx((0.3 + 0.7, 0.2 + 0.4 - 2 * 0.1))
    assert shifted.place.factor == (0.0, 2.0)


@pytest.mark.parametrize("seed", range(5))
def test_what_moves_wherever_the_hand_is_has_no_handle(seed):
    assert handles_of(play(60, seed, reach=4.0)) == ()


@pytest.mark.parametrize("seed", range(5))
def test_what_moves_at_random_has_no_handle(seed):
    episodes, rng = play(40, seed, reach=0.0), np.random.default_rng(100 + seed)
    for each in episodes:
        for k in range(3):
            each.achieved_goal[rng.integers(1, 40) :, k] += 0.5
    assert handles_of(episodes) == ()


def test_what_moves_with_a_position_needs_no_handle():
    steps = Steps.from_episodes(play(60))
    parts, copies, controlled = find_parts(steps), find_goal_copies(steps), find_controlled_columns(steps)
    found = find_handles(steps, parts, copies, controlled, tool=(0, 1), positions=(1, 2))
    assert [each.dimension for each in found] == [0]  # the drawer moves alone
    turned = np.array(steps.achieved_goal), np.array(steps.next_achieved_goal)
    for each in turned:
        each[:, 0] = each[:, 2]  # as an angle that changes whenever the object moves
    together = Steps(steps.observation, steps.action, steps.next_observation, *turned, steps.desired_goal, steps.episode)
    assert find_handles(together, parts, copies, controlled, tool=(0, 1), positions=(1, 2)) == ()


def test_handles_are_written_in_the_units_of_the_observation():
    handle = handles_of(play(60))[2]
    units = Units(np.array([1, 1, 1, 1, 1, 0.5, 0.5, 1.0]), np.array([0, 0, 0, 0, 0, 0.1, 0, 0.0]), np.ones(8, bool))
    assert handle.subgoal(units).goal.text() == "0.5*o5+0.1,0.5*o6"
