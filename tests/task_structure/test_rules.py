"""Rules of a corridor of 6 cells: an agent moves to the right and pushes a box, unless the wall is behind it."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.errors import InputError
from hindsight_rl.task_structure.rules import LEAF, Rules

CELLS, UNSEEN = 6, (2, 3)


def moved(agent, box):
    """Return agent and box after a move to the right."""
    if agent + 1 < box:
        return agent + 1, box
    return (agent + 1, box + 1) if box + 1 < CELLS else (agent, box)


def corridor(unseen=UNSEEN):
    """Return rules of the moves from all places but one: agent left of box, the box as achieved goal."""
    places = [(a, b) for a in range(CELLS) for b in range(a + 1, CELLS)]
    states = np.array([(a, b, b) for a, b in places], np.int32)
    moves = [(i, 0, places.index(moved(*place)), 1) for i, place in enumerate(places) if place != unseen]
    return Rules.fit(states, np.array(moves, np.int32), 1)


def test_what_was_learned_beside_a_box_holds_at_a_place_where_nobody_was():
    rules, state = corridor(), np.array([[*UNSEEN, UNSEEN[1]], [0, 3, 3], [4, 5, 5]], np.int32)
    assert rules.predict(state, np.zeros(3, np.int64)).tolist() == [[3, 4, 4], [1, 3, 3], [4, 5, 5]]


def test_values_may_lie_far_apart():
    """The second column is an identifier, and the first one grows if the identifier is the large one."""
    far = 2**31 - 2
    states = np.array([[0, 0, 0], [0, far, 0], [1, far, 1], [1, 0, 1], [2, far, 2]], np.int32)
    moves = [[0, 0, 0, 1], [1, 0, 2, 1], [2, 0, 4, 1], [3, 0, 3, 1]]
    rules = Rules.fit(states, np.array(moves, np.int32), 1)
    assert rules.nodes[0].tolist()[:2] == [1, 0]  # whether the identifier is at most 0
    assert rules.predict(states[:4], np.zeros(4, np.int64)).tolist() == states[[0, 2, 4, 3]].tolist()


def test_reach_returns_each_state_once_and_all_moves_between_them():
    states, transitions = corridor().reach(np.array([2, 4, 4]), 1, 10)
    assert states.tolist() == [[2, 4, 4], [3, 4, 4], [4, 5, 5]]
    assert transitions.tolist() == [[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 2, 1]]
    states, transitions = corridor().reach(np.array([2, 4, 4]), 1, 1)
    assert states.tolist() == [[2, 4, 4], [3, 4, 4]]
    assert transitions.tolist() == [[0, 0, 1, 1]]


def test_the_most_frequent_result_of_an_action_counts_and_what_was_never_tried_changes_nothing():
    states = np.array([[0], [1], [3]], np.int32)
    rules = Rules.fit(states, np.array([[0, 1, 1, 2], [0, 1, 2, 3]], np.int32), 3)
    assert rules.predict(states[:1].repeat(3, 0), np.arange(3)).tolist() == [[0], [3], [0]]


def test_a_path_does_not_leave_the_range_of_the_states():
    rules = replace(corridor(), highest=np.array([3, 4, 4], np.int32))
    states, _ = rules.reach(np.array([2, 3, 3]), 1, 10)
    assert states.tolist() == [[2, 3, 3], [3, 4, 4]]


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": np.array([[0, 0, 0, 0, 0]], np.int32)},  # a node that follows itself
        {"nodes": np.array([[0, 0, 1, 2, 0], [LEAF, 0, 0, 0, 0]], np.int32)},
        {"nodes": np.array([[99, 0, 1, 1, 0], [LEAF, 0, 0, 0, 0]], np.int32)},
        {"nodes": np.array([[LEAF, 0, 0, 0, 99]], np.int32)},
        {"nodes": np.array([[LEAF, 0, 0, 0]], np.int32)},
        {"changes": np.zeros((1, 3))},
        {"lowest": np.zeros(2, np.int32)},
    ],
)
def test_forged_rules_are_refused(change):
    corridor().check(3, 1)
    with pytest.raises(InputError):
        replace(corridor(), **change).check(3, 1)
