"""Where random actions touch nothing, what may be the tool is steered to the object."""

from dataclasses import replace

import numpy as np
import pytest
import two_objects
from pusher import COLUMNS, SPEC, Pusher, play, repeated_random_actions
from two_objects import TwoObjects

from hindsight_rl.records import ArraySpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import explain_missing, infer_structure, plan_guesses
from hindsight_rl.structure.tool import possible_sizes


class FarPusher(Pusher):
    """The object is farther away than random actions lead."""

    def reset(self):
        super().reset()
        self.puck = self.puck * 2 / np.linalg.norm(self.puck)


def steered(plan, n_episodes):
    world, act = FarPusher(1), ProbingActor(plan, SPEC.action, np.random.default_rng(2))
    return play(world, n_episodes, lambda observation, is_first: act(observation))


@pytest.fixture(scope="module")
def episodes():
    return play(FarPusher(0), 10, repeated_random_actions(1, longest=2))


def test_the_tool_with_a_gap_to_the_object_is_steered_to_it(episodes):
    found = infer_structure(episodes, SPEC)
    assert (found.contact, found.parts.parts[0].kind) == (None, "unmoved")
    assert found.guesses == (COLUMNS["tool"],)
    assert "began to move in 0 episodes" in explain_missing(found)[0]
    (plan,) = plan_guesses(found)
    found = infer_structure([*episodes, *steered(plan, 5)], SPEC)
    assert (found.contact.tool, found.contact.object_columns) == (COLUMNS["tool"], COLUMNS["object"])
    assert found.guesses == ()


def test_a_body_of_the_goal_may_be_the_tool(episodes):
    spec = replace(SPEC, goal=ArraySpec((4,), "float64"))
    tool = slice(*COLUMNS["tool"][:1], COLUMNS["tool"][-1] + 1)
    with_body = [
        replace(
            each,
            achieved_goal=np.hstack([each.observation[:, tool], each.achieved_goal]),
            desired_goal=np.hstack([-each.desired_goal, each.desired_goal]),
        )
        for each in episodes
    ]
    found = infer_structure(with_body, spec)
    assert [(part.dimensions, part.kind) for part in found.parts.parts] == [((0, 1), "body"), ((2, 3), "unmoved")]
    assert found.guesses == (COLUMNS["tool"],)


def test_without_a_gap_neighbouring_positions_are_steered():
    scale = np.array([1.0, 1, 1, 1, 0, 0, 1, 1, 1, 1])  # no column holds the gap
    world = FarPusher(0, scale=scale)
    found = infer_structure(play(world, 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.guesses == (COLUMNS["tool"],)


def test_positions_that_come_nearer_to_the_object_are_steered_first():
    class WithAngles(FarPusher):
        """The first two columns follow the action as well, but they are farther from the object than the last two."""

        def see(self):
            return np.concatenate([self.tool + 4, [0.0, 0.0], self.puck, [0.0, 0.0], self.tool])

    found = infer_structure(play(WithAngles(0), 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.guesses == ((8, 9), (0, 1))


def test_goals_that_no_column_shows_leave_no_tool_to_guess():
    scale = np.ones(10)
    scale[[*COLUMNS["object"], *COLUMNS["gap"]]] = 0
    found = infer_structure(play(FarPusher(0, scale=scale), 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.parts.has_object
    assert not found.copies.is_complete
    assert plan_guesses(found) == ()


class FarObjects(TwoObjects):
    """Both objects are farther away than random actions lead."""

    def reset(self):
        super().reset()
        objects = self.puck.reshape(2, 2)
        self.puck = (2 * objects / np.linalg.norm(objects, axis=1, keepdims=True)).ravel()


@pytest.mark.parametrize("gap_scale", [1.0, 0.0], ids=["gaps", "no gaps"])
def test_dimensions_that_rest_together_may_be_several_objects(gap_scale):
    scale = np.ones(12)
    scale[list(two_objects.COLUMNS["gaps"])] = gap_scale
    world = FarObjects(0, scale=scale)
    found = infer_structure(play(world, 10, repeated_random_actions(1, longest=2)), two_objects.SPEC)
    assert found.parts.objects == ((0, 1, 2, 3),)
    assert found.guesses == (two_objects.COLUMNS["tool"],)
    (plan,) = plan_guesses(found)
    assert [columns.columns for columns in plan.objects] == [(2, 3), (4, 5)]
    act = ProbingActor(plan, two_objects.SPEC.action, np.random.default_rng(2))
    for episode in play(world, 5, lambda observation, is_first: act(observation)):
        assert np.ptp(episode.achieved_goal, axis=0).max() > 0.1


@pytest.mark.parametrize(
    ("n", "sizes"), [(1, []), (2, [2]), (3, [3, 2]), (4, [2, 3]), (5, [3, 2]), (6, [3, 2]), (7, [3, 2]), (9, [3, 2])]
)
def test_sizes_of_objects(n, sizes):
    assert possible_sizes(n) == sizes


def test_where_all_goals_are_the_same_the_size_of_the_task_is_their_distance_to_the_starts():
    class OneGoal(FarPusher):
        def reset(self):
            super().reset()
            self.goal = np.zeros(2)

    found = infer_structure(play(OneGoal(0), 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.parts.objects == ((0, 1),)
    assert found.parts.goal_std == pytest.approx(2.0)  # as far as each object starts
    assert found.guesses == (COLUMNS["tool"],)


def test_where_one_gap_is_a_column_any_position_may_be_the_rest_of_the_tool():
    """The columns of the tool stand apart, so they are no neighbours."""
    scale = np.ones(10)
    scale[COLUMNS["gap"][1]] = 0
    order = [0, 2, 3, 1, 4, 5, 6, 7, 8, 9]  # of columns: tool, object, object, tool, gaps, ...
    found = infer_structure(play(FarPusher(0, order, scale), 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.guesses[0] == (0, 3)
