"""A tool whose position no column shows, but only its gap to the object."""

import numpy as np
import pytest
from pusher import COLUMNS, SPEC, Pusher, options_of, play, repeated_random_actions

from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import infer_structure, plan_guesses, plan_probing
from hindsight_rl.structure.columns import Gap
from hindsight_rl.task_structure.subgoals import Subgoal
from hindsight_rl.task_structure.symmetries import SymmetryGroup


def without_tool(gap_scale=1.0):
    scale = np.ones(10)
    scale[[*COLUMNS["tool"]]], scale[[*COLUMNS["gap"]]] = 0.0, gap_scale
    return scale


def test_the_position_of_a_tool_follows_from_the_object_and_the_gap():
    world = Pusher(0, scale=without_tool())
    episodes = play(world, 40, repeated_random_actions(1))
    found = infer_structure(episodes, SPEC)
    assert found.units.gaps == (Gap(4, 2, 1.0), Gap(5, 3, 1.0))
    assert found.contact.tool == (10, 11)
    act = ProbingActor(plan_probing(found, found.sequence), SPEC.action, np.random.default_rng(2))
    probing = play(world, 60, lambda observation, is_first: act(observation))
    assert sum(np.ptp(each.achieved_goal, axis=0).max() > 0 for each in probing) >= 45
    found = infer_structure(episodes, SPEC, probing)
    options = options_of(found)
    assert options["subgoals"][0].startswith("reach achieved=2-o4,3-o5 goal=2,3 ")
    assert "column_differences" not in options
    assert max(found.hidden_columns) < 10
    group = SymmetryGroup(options["symmetries"], SPEC)  # no symmetry names what the observation lacks
    assert len(group) > 1
    assert group.differing_columns(Subgoal.parse(options["subgoals"][0])) is None


def test_a_gap_may_have_another_sign_and_other_units():
    found = infer_structure(play(Pusher(0, scale=without_tool(-10.0)), 40, repeated_random_actions(1)), SPEC)
    assert [(gap.column, gap.of) for gap in found.units.gaps] == [(4, 2), (5, 3)]
    assert [gap.factor for gap in found.units.gaps] == pytest.approx([-10, -10], rel=0.05)


def test_beside_the_position_of_the_tool_gaps_say_nothing_new():
    assert infer_structure(play(Pusher(0), 40, repeated_random_actions(1)), SPEC).units.gaps == ()


class EqualMasses(Pusher):
    """A tool that meets the object stays behind by as much as the object moves."""

    def step(self, action):
        before = self.puck
        super().step(action)
        self.tool = self.tool - (self.puck - before)


def test_what_a_tool_loses_in_a_collision_is_no_gap():
    world = EqualMasses(0, scale=[1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    found = infer_structure(play(world, 40, repeated_random_actions(1)), SPEC)
    assert (found.units.gaps, found.contact.tool) == ((), (0, 1))


class FarPusher(Pusher):
    """The object is farther away than random actions lead."""

    def reset(self):
        super().reset()
        self.puck = 3 * self.puck / np.linalg.norm(self.puck)


def test_a_gap_to_an_object_that_nothing_moved_yet_shows_where_episodes_start():
    found = infer_structure(play(FarPusher(0, scale=without_tool()), 20, repeated_random_actions(1, longest=2)), SPEC)
    assert found.units.gaps == (Gap(4, 2, 1.0, is_certain=False), Gap(5, 3, 1.0, is_certain=False))
    assert found.guesses == ((10, 11),)
    assert plan_guesses(found)[0].tool.text() == "2-o4,3-o5"


@pytest.mark.parametrize(("factor", "n_gaps"), [(1.0, 2), (100.0, 0), (0.01, 0)])
def test_a_gap_leaves_the_tool_neither_beside_the_object_nor_far_outside_the_task(monkeypatch, factor, n_gaps):
    def by_displacement(steps, columns, controlled):
        of_gap = np.array([[float(column == of) for of in (4, 5)] for column in columns])
        return factor * of_gap, of_gap

    monkeypatch.setattr("hindsight_rl.structure.gaps._by_displacement", by_displacement)
    found = infer_structure(play(Pusher(0, scale=without_tool()), 40, repeated_random_actions(1)), SPEC)
    assert len(found.units.gaps) == n_gaps
