"""Episodes that seek one position after another."""

import numpy as np
import pytest

from hindsight_rl.records import ArraySpec, Episode
from hindsight_rl.records.exploration import Probing
from hindsight_rl.rollout.plans import (
    AS_NOISE,
    LARGEST_OFFSET,
    MOST_TRYING,
    NOISE,
    STILL,
    ExploringActor,
    OptimisticActor,
    ProbingActor,
    SeekingActor,
)
from hindsight_rl.task_structure.affine import AffineColumns, Posture
from hindsight_rl.task_structure.rules import Rules
from hindsight_rl.task_structure.state_planner import StatePlanner
from hindsight_rl.task_structure.waypoints import GOAL, Waypoints

PLACES = np.array([[0.0], [1.0], [10.0]], np.float32)
WAYPOINTS = Waypoints(PLACES, np.array([[0, 1, 1], [0, 1, GOAL], [GOAL, GOAL, 2]], np.int16))


def sought(achieved_goal, steps=2_000, waypoints=WAYPOINTS):
    observation = {"achieved_goal": np.array([achieved_goal]), "desired_goal": np.array([7.0])}
    actor = ExploringActor(lambda seen: seen["desired_goal"], waypoints, np.random.default_rng(0), explores=True)
    return np.array([actor(observation)[0] for _ in range(steps)])


def test_places_are_sought_near_those_that_a_known_path_leads_to():
    places = sought(0.1)
    near = places[places != PLACES[2]]
    assert -LARGEST_OFFSET <= near.min() < -1
    assert 2 < near.max() <= 1 + LARGEST_OFFSET


def test_places_that_are_cut_off_are_sought_the_nearest_more_often():
    far = Waypoints(np.arange(20, dtype=np.float32)[:, None], np.where(np.eye(20), np.arange(20), GOAL).astype(np.int16))
    places = np.unique(sought(0.1, 30_000, far), return_counts=True)
    cut_off = np.isin(places[0], np.arange(1, 20))
    counts = places[1][cut_off]
    assert 0.45 < counts.sum() / 30_000 < 0.55
    assert len(counts) == 19
    assert counts[0] == counts.max()
    assert counts[:10].sum() > 2 * counts[10:].sum()


def test_another_place_is_sought_after_a_while_near_one():
    all_known = Waypoints(PLACES, np.tile(np.arange(3, dtype=np.int16), (3, 1)))
    changes = np.flatnonzero(np.diff(sought(9.0, waypoints=all_known)))
    assert np.diff(changes).max() <= STILL + 1
    assert np.median(np.diff(changes)) == STILL


def test_one_spot_is_no_error():
    unknown = Waypoints.unknown(3, 1)
    observation = {"achieved_goal": np.array([2.0]), "desired_goal": np.array([7.0])}
    actor = ExploringActor(lambda seen: seen["desired_goal"], unknown, np.random.default_rng(0), explores=True)
    assert actor(observation) == 0


def test_an_episode_that_gets_stuck_explores():
    actor = ExploringActor(lambda seen: seen["desired_goal"], WAYPOINTS, np.random.default_rng(0), explores=False)
    at_goal = {"achieved_goal": np.array([0.2]), "desired_goal": np.array([0.3])}
    stuck = {"achieved_goal": np.array([0.2]), "desired_goal": np.array([9.0])}
    assert all(actor(at_goal) == 0.3 for _ in range(STILL))  # it stays at its goal
    assert all(actor({**stuck, "achieved_goal": np.array([(k + 1) % 2 + 0.1])}) == 9.0 for k in range(STILL))  # it moves
    assert not actor.explores
    assert [actor(stuck)[0] == 9.0 for _ in range(STILL + 1)] == [True] * (STILL - 1) + [False] * 2
    assert actor.explores


def test_a_tool_is_steered_by_choices():
    """By hand: actions 3 to 6 move the tool by (1, 0), (-1, 0), (0, 1) and (0, -1), action 7 closes a hand."""
    effect = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0))
    tool, cube, nothing = (AffineColumns.plain(each) for each in ((0, 1), (2, 3), ()))
    probing = Probing(tool, (cube,), effect, ((0.0, 0.0), (0.0, 0.0)), nothing, (), reach=0.5, largest_reach=0.5)
    seen = {"observation": np.array([0.0, 0.0, -9.0, 0.5])}
    actors = [
        ProbingActor(probing, ArraySpec((), "int64", (3.0,), (7.0,), 5), np.random.default_rng(k)) for k in range(100)
    ]
    actions = np.array([[actor(seen) for _ in range(30)] for actor in actors])
    assert actions.dtype == np.int64
    assert np.mean(actions == 4) == pytest.approx(1 - NOISE, abs=0.1)
    closes = np.isin(actions, (4, 7)).all(1)  # half of them choose these alone until the tool meets its target
    assert closes.mean() == pytest.approx(AS_NOISE, abs=0.15)
    assert set(actions[~closes].ravel()) == {3, 4, 5, 6, 7}


def test_an_episode_that_plans_over_states_tries_what_was_never_tried_where_it_is_better():
    cells = np.array([[0], [1], [2]])
    planner = StatePlanner((2, 1, 2))
    planner.add(Episode(cells, cells, cells, action=np.array([3, 3]), reward=np.full(2, -1.0)), first_action=3)
    action = ArraySpec((), "int64", (3.0,), (4.0,), 2)
    actor = OptimisticActor(planner, 0.98, action, np.random.default_rng(0))

    def share_of_untried(cell, goal):
        observation = {"observation": np.array([cell]), "achieved_goal": np.array([cell]), "desired_goal": np.array([goal])}
        return np.mean([actor(observation) == 4 for _ in range(1_000)])

    assert share_of_untried(0, 2) > 0.9  # the goal is two steps away, and the other action might meet it
    assert 0.4 < share_of_untried(1, 2) < 0.6  # both meet it
    assert 0.4 < share_of_untried(7, 2) < 0.6  # an unknown state


def test_an_episode_that_follows_rules_acts_for_the_goal_or_else_near_it():
    rules = Rules.fit(np.array([[0, 0], [1, 1], [2, 2]], np.int32), np.array([[0, 1, 1, 1], [1, 1, 2, 1]], np.int32), 2)
    planner = StatePlanner((2, 1, 2))
    planner.rules = rules
    action = ArraySpec((), "int64", (3.0,), (4.0,), 2)

    def actions(goal, cells):
        actor = SeekingActor(planner, 0.9, action, np.random.default_rng(1))
        key = {"desired_goal": np.array([goal])}
        return [int(actor(key | dict.fromkeys(("observation", "achieved_goal"), np.array([cell])))) for cell in cells]

    to_the_goal = [actions(2, [0, 1])[1] for _ in range(3)]
    assert to_the_goal == [4, 4, 4]
    beyond = actions(9, [0, 1, *[2] * 200])
    assert 60 < sum(each == 3 for each in beyond) < 140  # near it or anywhere, then at random


ACTION = ArraySpec((2,), "float64", (-9.0, -9.0), (9.0, 9.0))


def probing_actor(action=ACTION, **changed):
    """The plan: the tool is column 0, the object column 1, and columns 2 and 3 are a heading."""
    nothing = Posture.plain(())
    plan = {"effect": ((0.5,), (0.4,)), "drift": ((0.0, 0.0),), "posture": nothing, "by_posture": (), "reach": 1e-6}
    plan = plan | changed
    probing = Probing(AffineColumns.plain((0,)), (AffineColumns.plain((1,)),), **{"largest_reach": plan["reach"]} | plan)
    return ProbingActor(probing, action, np.random.default_rng(0))


def probing_action(seen, **changed):
    """The mean of many actions."""
    act = probing_actor(**changed)
    return np.mean([act({"observation": np.array(seen)}) for _ in range(20_000)], axis=0)


def test_the_tool_is_steered_by_the_inverse_of_what_actions_do():
    """By hand: the gap is 0.82, of which actions make 0.5 and 0.4; the smallest ones that do have these ratios."""
    assert probing_action([0.0, 0.82]) == pytest.approx([1, 0.8], abs=0.1)


def test_noise_lies_around_the_middle_of_the_action_range():
    """The tool is where the object is."""
    act = probing_actor(ArraySpec((2,), "float64", (0.0, 200.0), (2.0, 300.0)))
    actions = np.array([act({"observation": np.array([1.0, 1.0])}) for _ in range(5_000)])
    assert actions.mean(0) == pytest.approx([1, 250], rel=0.02)


def test_another_target_is_sought_if_one_is_not_met_for_long():
    """The tool never moves. Offsets have a deviation of 0.6 times a reach between 0.1 and 10."""
    act = probing_actor(reach=0.1, largest_reach=10.0, effect=((1.0,), (0.0,)))
    targets = [act({"observation": np.array([0.0, 0.0])})[0] for _ in range(40 * MOST_TRYING)]
    means = np.mean(np.reshape(targets, (40, MOST_TRYING)), axis=1)
    assert means.min() < -1
    assert means.max() > 1
    assert (np.abs(means) < 1).sum() > 5


def test_what_hardly_moves_the_tool_is_kept_until_the_target_is_met():
    """The second entry of the action has a sixth of the effect of the first: it is at one of two ends, or noise."""
    act, tool, entries = probing_actor(effect=((0.6,), (0.1,)), reach=1.0), 0.0, []
    for _ in range(20_000):
        action = act({"observation": np.array([tool, 0.0])})
        tool += 0.6 * action[0]
        entries.append(action[1])
    at_end = np.abs(entries) == 9
    stays = np.diff(entries) == 0
    assert [np.mean(np.array(entries) == end) for end in (-9, 9)] == pytest.approx([1 / 4, 1 / 4], abs=0.05)
    assert stays[at_end[1:] & at_end[:-1]].mean() > 0.6
    assert not stays[~at_end[1:]].any()


def test_where_an_action_is_a_target_position_the_tool_is_held_against_its_drift():
    """With no action the tool at 1 would go back by 0.25 * 1 + 0.25, so an action of 1 keeps it where the object is."""
    drift = {"effect": ((0.5,), (0.0,)), "drift": ((-0.25, -0.25),)}
    assert probing_action([1.0, 1.0], **drift)[0] == pytest.approx(1, abs=0.1)


def test_the_effect_of_actions_may_depend_on_the_posture():
    """The first entry of an action moves the tool by the cosine, the second by the sine of the heading: here (0, -0.5)."""
    posture, by_posture = Posture.plain((2, 3)), (((1.0,), (0.0,)), ((0.0,), (1.0,)))
    plan = {"effect": ((0.0,), (0.0,)), "posture": posture, "by_posture": by_posture}
    assert probing_action([0.0, 1.0, 0.0, -0.5], **plan) == pytest.approx([0, -2], abs=0.1)
