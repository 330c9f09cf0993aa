"""Goals whose dimensions are in another order than object by object, or that columns show from another origin."""

from dataclasses import replace

import numpy as np
import pusher
import pytest
from pusher import Pusher, options_of, play, repeated_random_actions
from two_objects import SPEC, TwoObjects

from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import infer_structure, plan_probing
from hindsight_rl.structure.goal_frame import GoalFrame
from hindsight_rl.task_structure.subgoals import Subgoals
from hindsight_rl.task_structure.symmetries import Symmetry, SymmetryGroup

INTERLEAVED = (0, 2, 1, 3)


def test_goals_and_symmetries_by_hand():
    frame = GoalFrame((2, 0, 1), (10.0, 20.0, 30.0))
    goals = np.array([[1.0, 2.0, 3.0]])
    assert frame.of_goals(goals).tolist() == [[3 - 10, 1 - 20, 2 - 30]]
    assert frame.inverse.of_goals(frame.of_goals(goals)).tolist() == goals.tolist()
    assert not frame.is_usual
    assert GoalFrame((0, 1), (0.0, 0.0)).is_usual
    spec = GoalSpec(ArraySpec((1,), "float64"), ArraySpec((3,), "float64"), ArraySpec((1,), "float64"))
    symmetry = Symmetry.parse("g0=5-g2 g2=4+g0 g1=-g1", spec)
    transformed, seen = symmetry.goal.apply(goals), frame.of_symmetry(symmetry)
    assert transformed.tolist() == [[5 - 3, -2, 4 + 1]]
    assert seen.goal.apply(frame.of_goals(goals)) == pytest.approx(frame.of_goals(transformed))
    assert frame.inverse.of_symmetry(seen).text() == symmetry.text()
    reward = frame.of_reward(lambda achieved, desired, info: achieved @ [1, 10, 100] - desired @ [1, 10, 100], "float32")
    assert reward(frame.of_goals(goals), frame.of_goals(goals * 0), {}).tolist() == [321]


def infer_twice(world, spec, change):
    """What random and probing episodes show as they are, and with changed episodes."""
    episodes = play(world, 40, repeated_random_actions(1))
    first = infer_structure(episodes, spec)
    plan, rng, probing = plan_probing(first, first.sequence), np.random.default_rng(2), []
    for _ in range(30):
        act = ProbingActor(plan, spec.action, rng)
        probing += play(world, 1, lambda observation, is_first, act=act: act(observation))
    as_they_are = infer_structure(episodes, spec, probing)
    changed = [[change(each) for each in some] for some in (episodes, probing)]
    return as_they_are, infer_structure(changed[0], spec, changed[1])


def test_two_objects_whose_dimensions_alternate_are_found_as_if_they_were_neighbours():
    def alternate(episode: Episode) -> Episode:
        achieved, desired = episode.achieved_goal[:, INTERLEAVED], episode.desired_goal[:, INTERLEAVED]
        return replace(episode, achieved_goal=achieved, desired_goal=desired)

    plain, found = infer_twice(TwoObjects(0), SPEC, alternate)
    assert plain.sequence.dimensions == ((0, 1), (2, 3))
    assert found.sequence.dimensions == found.parts.objects == ((0, 2), (1, 3))
    assert found.copies.columns == tuple(plain.copies.columns[k] for k in INTERLEAVED)
    expected, options = options_of(plain), options_of(found)
    back = GoalFrame(INTERLEAVED, (0.0,) * 4)
    texts = [back.of_symmetry(Symmetry.parse(text, SPEC)).text() for text in options["symmetries"]]
    assert texts == list(expected["symmetries"])
    assert len(texts) > 1
    assert options["hidden_observation"] == expected["hidden_observation"]


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_positions_from_another_origin_along_each_axis_are_found_as_positions(factor):
    """As where a simulator shows places in decimetres from the middle of a table at (0.4, -0.1)."""
    origin = np.array([0.4, -0.1])
    positions = [*pusher.COLUMNS["tool"], *pusher.COLUMNS["object"]]

    def from_origin(episode: Episode) -> Episode:
        seen = episode.observation.copy()
        seen[:, positions] -= np.tile(origin, 2)
        return replace(episode, observation=seen * factor)

    plain, found = infer_twice(Pusher(0), pusher.SPEC, from_origin)
    assert found.contact.tool == plain.contact.tool == pusher.COLUMNS["tool"]
    expected, options = options_of(plain), options_of(found)
    assert len(options["symmetries"]) == len(expected["symmetries"]) > 0
    goals = [SymmetryGroup(each["symmetries"], pusher.SPEC).maps["goal"] for each in (expected, options)]
    assert goals[1].offset == pytest.approx(goals[0].offset, abs=0.01)  # their centre is where the tool starts on average
    assert (goals[1].factor == goals[0].factor).all()
    tool, subgoal = plain.units.of(plain.contact.tool), Subgoals(options["subgoals"], pusher.SPEC).items[0]
    seen = play(Pusher(1), 1, repeated_random_actions(2))[0]
    assert subgoal.achieved.of(from_origin(seen).observation) == pytest.approx(tool.of(seen.observation), abs=1e-5)
    group = SymmetryGroup(options["symmetries"], pusher.SPEC)
    assert group.differing_columns(subgoal) is None


def test_positions_from_another_origin_with_a_rotation_that_never_changes():
    """The goal has dimensions that the tool does not meet."""
    spec = replace(pusher.SPEC, observation=ArraySpec((14,), "float64"), goal=ArraySpec((6,), "float64"))
    rotation = np.array([1.0, 0.0, 0.0, 0.0])

    def as_pose(episode: Episode) -> Episode:
        rows = np.tile(rotation, (len(episode) + 1, 1))
        seen = np.hstack([episode.observation, rows])
        seen[:, :4] -= [0.4, -0.1, 0.4, -0.1]
        goals = (np.hstack([each, rows]) for each in (episode.achieved_goal, episode.desired_goal))
        achieved, desired = goals
        return replace(episode, observation=seen, achieved_goal=achieved, desired_goal=desired)

    episodes = [as_pose(each) for each in play(Pusher(0), 60, repeated_random_actions(1))]
    found = infer_structure(episodes, spec)
    assert found.contact.tool == pusher.COLUMNS["tool"]
    assert found.sequence.dimensions == ((0, 1),)
    assert found.units.offset[:4] == pytest.approx([0.4, -0.1, 0.4, -0.1], abs=1e-6)
