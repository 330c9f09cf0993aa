"""Actions as inference sees them, and symmetries of actions whose range does not lie around 0."""

from dataclasses import replace

import numpy as np
import pusher
import pytest
from pusher import Pusher, options_of, play, repeated_random_actions

from hindsight_rl.records import ArraySpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import infer_structure, plan_probing
from hindsight_rl.structure.actions import ActionFrame
from hindsight_rl.task_structure.symmetries import Symmetry

SPEC = replace(pusher.SPEC, action=ArraySpec((2,), "float64", (0.0, -0.5), (1.0, 0.0)))


class Valves(Pusher):
    """The actions go from 0 to 1 and from -0.5 to 0: in their middle the tool stays where it is."""

    def step(self, action):
        super().step((action - (0.5, -0.25)) / (0.5, 0.25))


def test_actions_and_symmetries_by_hand():
    frame = ActionFrame.of(SPEC.action)
    (episode,) = play(Valves(0), 1, lambda *_: np.array([0.25, -0.25]), steps=3)
    (seen,) = frame.of_episodes([episode])
    assert seen.action.tolist() == [[-0.5, 0.0]] * 3
    symmetry = Symmetry.parse("a0=-2*a1 a1=-0.5*a0", SPEC)
    assert symmetry.action.apply(episode.action).tolist() == [[0.5, -0.125]] * 3
    assert frame.of_symmetry(symmetry).action.apply(seen.action).tolist() == [[0.0, 0.5]] * 3
    choices = ActionFrame.of(ArraySpec((), "int64", (3,), (5,), n_values=3))
    (one_hot,) = choices.of_episodes([replace(episode, action=np.array([5, 3, 4]))])
    assert one_hot.action.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_mirrors_and_probing_where_the_middle_of_the_range_is_not_0():
    world, random = Valves(0), repeated_random_actions(1)
    episodes = play(world, 40, lambda *seen: random(*seen) * (0.5, 0.25) + (0.5, -0.25))
    first = infer_structure(episodes, SPEC)
    plan, probing = plan_probing(first, first.sequence), []
    assert np.array(plan.effect) == pytest.approx(np.diag([0.2, 0.4]), abs=0.001)
    for seed in range(30):
        act = ProbingActor(plan, SPEC.action, np.random.default_rng(seed))
        probing += play(world, 1, lambda observation, is_first, act=act: act(observation))
    found = infer_structure(episodes, SPEC, probing)
    known = options_of(found)["symmetries"]
    ends = [text[text.index("g") :] for text in known]
    assert ends == ["g0=-g0 a0=1-a0", "g1=-g1 a1=-0.5-a1", "g0=-g1 g1=g0 a0=-2*a1 a1=-0.5+0.5*a0"]
    again = infer_structure(episodes, SPEC, probing, known=known)
    assert [each.is_known for each in again.symmetries if each.text in known] == [True] * 3
