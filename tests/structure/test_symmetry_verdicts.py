"""What a model of a few steps says of symmetries, alone and with the steps that known symmetries transform."""

from dataclasses import replace

import numpy as np
import pytest
from two_objects import SPEC, TwoObjects

from hindsight_rl.records import Episode
from hindsight_rl.structure.columns import find_units
from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.symmetry_verdicts import SYMMETRY_MARGIN, Candidate, SymmetryTest, SymmetryVerdict
from hindsight_rl.task_structure.symmetries import Symmetry

TOOL, OBJECTS = (0, 1, 0, 1), (2, 3, 4, 5)
TURN = "o0=-o1 o1=o0 o2=-o3 o3=o2 o4=-o5 o5=o4 o6=-o7 o7=o6 o8=-o9 o9=o8 o10=-o11 o11=o10 g0=-g1 g1=g0 g2=-g3 g3=g2 "
TURN += "a0=-a1 a1=a0"
MIRROR = "o0=-o0 o2=-o2 o4=-o4 o6=-o6 o8=-o8 o10=-o10 g0=-g0 g2=-g2 a0=-a0"
EXCHANGE = "o2=o4 o3=o5 o4=o2 o5=o3 o6=o8 o7=o9 o8=o6 o9=o7 g0=g2 g1=g3 g2=g0 g3=g1"


@pytest.fixture(scope="module")
def pushes():
    """40 episodes of 10 steps, in which the tool starts near one of the objects and moves at random."""
    world, episodes = TwoObjects(0), []
    for k in range(40):
        world.reset()
        start = world.puck.reshape(2, 2)[k % 2]
        world.tool = start * (1 - 0.15 / np.linalg.norm(start))
        seen, achieved, actions = [world.see()], [world.puck.copy()], world.rng.uniform(-1, 1, (10, 2))
        for action in actions:
            world.step(action)
            seen.append(world.see())
            achieved.append(world.puck.copy())
        goal = np.tile(world.goal, (11, 1))
        episodes.append(Episode(np.array(seen), np.array(achieved), goal, actions, np.zeros(10)))
    return Steps.from_episodes(episodes)


def symmetry_test(pushes, *holding):
    symmetries = [Symmetry.parse(text, SPEC) for text in holding]
    return SymmetryTest(pushes, np.arange(len(pushes)), range(12), OBJECTS, TOOL, symmetries)


def test_a_model_is_fitted_to_all_steps_that_symmetries_transform(pushes):
    alone, both = symmetry_test(pushes), symmetry_test(pushes, MIRROR, TURN)
    assert len(both.model.inputs) == 8 * len(alone.model.inputs)
    assert (both.model.inputs[: len(pushes)] == alone.model.inputs).all()
    assert both.model.unexplained < 0.7 * alone.model.unexplained
    mirror = both.verdict(Candidate("mirror", Symmetry.parse(MIRROR, SPEC)))
    assert mirror.loss.mean == pytest.approx(0.0, abs=0.02)  # the same steps, in another order


def test_an_exchange_holds_in_all_steps_that_known_symmetries_transform(pushes):
    exchange, test = Symmetry.parse(EXCHANGE, SPEC), symmetry_test(pushes, MIRROR, TURN)
    (verdict,) = test.verdicts([Candidate("exchange", exchange, objects=(0, 1))], find_units(pushes), [])
    assert verdict.holds
    alone = symmetry_test(pushes).verdict(Candidate("exchange", exchange))
    assert verdict.opposite.mean > alone.opposite.mean > SYMMETRY_MARGIN


def verdict_of(mean, visited=0.5):
    candidate = Candidate("mirror", Symmetry.parse(MIRROR, SPEC))
    return SymmetryVerdict(candidate, MIRROR, Difference(mean, 0.1, 0.2), Difference(4.0, 0.1), visited=visited)


def test_what_leads_to_hardly_any_visited_step_does_not_hold():
    verdict = verdict_of(0.0, visited=0.1)
    assert verdict.is_refuted
    assert verdict.evidence() == (
        "mirror does not hold: only 10% of the transformed steps lie beside steps of other episodes"
    )
    assert verdict_of(0.0).holds


def test_a_mirror_does_not_hold_where_objects_drift():
    verdict = replace(verdict_of(0.0), drift=Difference(0.5, 0.1))
    assert verdict.is_refuted
    assert verdict.evidence() == (
        "mirror does not hold: far from the tool objects drift to one side: of the usual change of their velocity this is "
        "+50 % (interval +34 to +66 %, at most +20 % is accepted)"
    )
    assert replace(verdict_of(0.0), drift=Difference(0.1, 0.1)).holds


def test_more_steps_are_played_only_for_a_symmetry_that_is_likely():
    assert [verdict_of(mean).is_uncertain for mean in (0.1, 0.3, 0.4, 0.6)] == [False, True, False, False]
    assert [verdict_of(mean).holds for mean in (0.1, 0.3, 0.4, 0.6)] == [True, False, False, False]


def test_why_rewards_or_failures_refute_a_symmetry():
    usual = verdict_of(0.0)
    changes, fails = replace(usual, changed_rewards=0.4), replace(usual, failures=Difference(0.5, 0.05))
    may_fail = replace(usual, failures=Difference(0.3, 0.15))
    assert not any(each.holds for each in (changes, fails, may_fail))
    assert [each.is_refuted for each in (fails, may_fail)] == [True, False]
    assert replace(may_fail, failures=Difference(0.2, 0.1)).holds
    assert replace(may_fail, is_known=True).holds
    assert may_fail.verdict == "is uncertain, so it is not used"
    assert changes.reason() == "it changes 40% of the rewards that are not the usual one"
    assert "than beside the failures, by +50 % (interval +42 to +58 %, at most +10 % is accepted)" in fails.reason()
    assert "than beside the failures, by +30 % (interval +5 to +55 %, at most +50 % is accepted)" in may_fail.reason()
    assert replace(may_fail, is_known=True).reason() == usual.reason()
    unknown = replace(usual, changed_rewards=None)
    assert unknown.holds
    exchange = replace(unknown, candidate=replace(usual.candidate, objects=(0, 1)))
    assert not exchange.holds
    assert exchange.reason() == "the reward does not say whether both objects count alike"
