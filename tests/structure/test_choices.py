"""Discrete actions: what they move, and how a tool is steered by them."""

from dataclasses import replace

import numpy as np
import pytest
from pusher import COLUMNS, SPEC, Pusher, options_of, play

from hindsight_rl.records import ArraySpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import infer_structure, plan_probing
from hindsight_rl.structure.choices import exchange_alike, match_choices
from hindsight_rl.structure.model import Difference
from hindsight_rl.task_structure.symmetries import Symmetry

ROWS = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]])
FIRST = 3  # the number of the first action
CHOICE = replace(SPEC, action=ArraySpec((), "int64", (float(FIRST),), (float(FIRST + len(ROWS) - 1),), len(ROWS)))


def play_choices(world, n_episodes, choose):
    """Episodes of actions that are numbers. choose(observation) -> number."""
    episodes = play(world, n_episodes, lambda observation, is_first: ROWS[int(choose(observation)) - FIRST])
    numbers = [FIRST + (each.action[:, None] == ROWS).all(-1).argmax(1) for each in episodes]
    return [replace(each, action=number) for each, number in zip(episodes, numbers, strict=True)]


def random_choices(seed):
    rng, state = np.random.default_rng(seed), {"action": FIRST}

    def choose(observation):
        if rng.random() < 0.3:
            state["action"] = rng.integers(FIRST, FIRST + len(ROWS))
        return state["action"]

    return choose


def test_a_tool_that_is_moved_by_choices_is_found_and_steered_to_the_object():
    world = Pusher(0)
    episodes = play_choices(world, 40, random_choices(1))
    found = infer_structure(episodes, CHOICE)
    assert set(found.controlled.columns) >= {*COLUMNS["tool"]}
    at = found.controlled.at(COLUMNS["tool"])
    effect = found.controlled.effect[:, at]
    assert effect - effect[-1] == pytest.approx(0.1 * ROWS, abs=0.01)
    plan, rng = plan_probing(found, found.sequence), np.random.default_rng(2)
    actors = (ProbingActor(plan, CHOICE.action, rng) for _ in range(20))
    probing = [episode for act in actors for episode in play_choices(world, 1, act)]
    assert sum(np.ptp(each.achieved_goal, axis=0).max() > 0 for each in probing) >= 15
    found = infer_structure(episodes, CHOICE, probing)
    assert found.contact.tool == COLUMNS["tool"]
    options = options_of(found)
    assert options["subgoals"][0].startswith("reach achieved=0,1 goal=2,3 ")
    mirrors = {each.candidate.axes: each.text.split(" a", 1)[1] for each in found.symmetries if each.holds}
    assert mirrors == {(0,): "0=a1 a1=a0", (1,): "2=a3 a3=a2", (0, 1): "0=a3 a1=a2 a2=a0 a3=a1"}


@pytest.mark.parametrize(
    ("effect", "factor", "expected"),
    [
        ([[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0], [0.05, 0]], (-1, 1), [1, 0, 2, 3, 4, 5]),  # two stay where they are
        ([[1, 0], [-1, 0], [0, 1]], (1, -1), [0, 1, 2]),  # nothing goes down
        ([[1, 0], [-0.5, 0], [0.9, 0], [-1, 0]], (-1, 1), [0, 1, 2, 3]),  # two would become one
    ],
)
def test_choices_change_as_what_they_move(effect, factor, expected):
    effect = np.array(effect, float)
    assert match_choices(effect, effect * factor, np.zeros((len(effect), 1))).tolist() == expected


def test_choices_that_move_the_tool_alike_differ_in_what_else_they_do():
    """To the left or to the right, with a hand that opens or closes."""
    effect, hand = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([[1.0], [-1.0], [-1.0], [1.0]])
    assert match_choices(effect, -effect, hand).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(("better", "expected"), [((1, 0, 2), [1, 0, 2]), ((0, 1, 2), [0, 1, 2])])
def test_choices_that_move_the_tool_alike_are_exchanged_if_steps_are_predicted_better_then(better, expected):
    """The first two choices turn a robot, and the third one drives it, so it is exchanged with none."""
    effect = np.array([[0.0], [0.0], [1.0]])

    def error(symmetry):
        return float((symmetry.action.source != better).sum())

    def growth(one, other):
        return Difference(error(other) - error(one), 0.1)

    identity = Symmetry.identity(1, 1, 3)
    found = exchange_alike(
        identity, effect, lambda action: replace(identity, action=action), growth, lambda symmetry: error(symmetry) == 0
    )
    assert found.action.source.tolist() == expected
