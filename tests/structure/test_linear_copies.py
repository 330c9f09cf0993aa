"""Columns that show a position in another frame."""

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.structure.axis_symmetries import mirror, quarter_turn
from hindsight_rl.structure.linear_copies import find_linear_copies, follow_positions
from hindsight_rl.structure.steps import Steps
from hindsight_rl.task_structure.affine import AffineMap

OFFSET = np.array([0.3, 0.1])


@pytest.fixture(scope="module")
def steps():
    """Two positions, then both from another origin, the first in other units, and what is no copy."""
    rng = np.random.default_rng(0)
    place = rng.normal(size=(200, 2))
    seen = np.column_stack([place, place + OFFSET, -2 * place[:, 0] + 1, place.sum(1), place + rng.normal(size=(200, 2))])
    return Steps.from_episodes([Episode(seen, place, np.zeros((200, 2)), np.zeros((199, 1)), np.zeros(199))])


def test_which_columns_are_copies(steps):
    found = find_linear_copies(steps, [0, 1, 0, 1], range(8))
    named = [(each.column, each.position, each.factor, each.constant, each.rank) for each in found]
    assert named == [
        (2, 0, pytest.approx(1), pytest.approx(0.3), 0),
        (3, 1, pytest.approx(1), pytest.approx(0.1), 0),
        (4, 0, pytest.approx(-2), pytest.approx(1), 1),
    ]
    assert find_linear_copies(steps, [0, 1], [0, 1]) == []


@pytest.mark.parametrize(
    ("goal", "changed"),
    [
        (mirror(np.array([0.5, 0.0]), 2, 0), [1.0, 0.0, 1.3, 0.1, -1.0]),  # of x = 0, about 0.5
        (quarter_turn(np.zeros(2), 2, 0, 1), [0.0, 0.0, 0.3, 0.1, 1.0]),  # the last has no partner: it stays
    ],
)
def test_copies_change_as_their_positions_do(steps, goal, changed):
    observation = AffineMap.identity(5)
    for part in ("source", "factor", "offset"):
        getattr(observation, part)[:2] = getattr(goal, part)
    follow_positions(observation, find_linear_copies(steps, [0, 1], range(8)))
    assert observation.apply(np.array([[0.0, 0.0, 0.3, 0.1, 1.0]]))[0] == pytest.approx(changed)
    turned = observation.apply(np.array([[2.0, 1.0, 2.3, 1.1, -3.0]]))[0]
    assert turned[2:4] == pytest.approx(turned[:2] + OFFSET)
