"""Where random actions touch nothing, what may be the tool is steered to the object."""

import numpy as np
import pytest
from pusher import COLUMNS, SPEC, Pusher, play, repeated_random_actions

from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import explain_missing, infer_structure, plan_guesses


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


def test_without_a_gap_neighbouring_positions_are_steered():
    scale = np.array([1.0, 1, 1, 1, 0, 0, 1, 1, 1, 1])  # no column holds the gap
    world = FarPusher(0, scale=scale)
    found = infer_structure(play(world, 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.guesses == (COLUMNS["tool"],)


def test_goals_that_no_column_shows_leave_no_tool_to_guess():
    scale = np.ones(10)
    scale[[*COLUMNS["object"], *COLUMNS["gap"]]] = 0
    found = infer_structure(play(FarPusher(0, scale=scale), 10, repeated_random_actions(1, longest=2)), SPEC)
    assert found.parts.has_object
    assert not found.copies.is_complete
    assert plan_guesses(found) == ()
