"""Visited states: a corridor of 4 cells, where a step to the right succeeds in 3 of 4 cases. Action 0 is never tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_rl.errors import InputError
from hindsight_rl.records import Episode
from hindsight_rl.task_structure.tabular_model import CONVERGED, NO_PATH, TabularModel, states_of

SIZES = (2, 1, 2)  # the cell as observation and as achieved goal, and two actions
SLOW, FAST = [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 2, 3]
DISCOUNT = 0.999


def walk(model, cells):
    model.add(np.repeat(np.array(cells, np.int32)[:, None], 2, 1), np.ones(len(cells) - 1, np.int64))


def corridor(*paths):
    model = TabularModel(*SIZES)
    for path in paths or (SLOW, FAST, FAST):
        walk(model, path)
    return model


def state(cell):
    return np.array([cell, cell], np.int32)


def test_the_value_is_minus_the_expected_steps_to_the_goal():
    values = corridor().action_values(np.array([3]), DISCOUNT, is_optimistic=False)
    failed_steps = [3 * 4 / 3 - 1, 2 * 4 / 3 - 1, 4 / 3 - 1, 0]  # the step that meets the goal costs nothing
    np.testing.assert_allclose(-values[:, 1], failed_steps, atol=0.02)
    assert (values[:, 0] < -500).all()


def test_an_action_that_was_never_tried_counts_as_a_success_while_exploring():
    values = corridor().action_values(np.array([3]), DISCOUNT, is_optimistic=True)
    assert (values[:, 0] == 0).all()
    assert (values[:3, 1] < 0).all()


def test_the_known_action_is_unknown_without_a_known_path():
    model = corridor()
    value, action = model.known_action(state(0), np.array([2]), DISCOUNT)
    assert (value > -1000, action) == (True, 1)
    for cell, goal in [(3, 2), (4, 2), (0, 4)]:
        value, action = model.known_action(state(cell), np.array([goal]), DISCOUNT)
        assert (value, action) == (pytest.approx(-1000), NO_PATH)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4), st.integers(1, 3)),
        min_size=1,
        unique_by=lambda t: t[:3],
    ),
    st.integers(0, 4),
    st.booleans(),
)
def test_values_are_those_of_all_sweeps(transitions, goal, is_optimistic):
    states = np.repeat(np.arange(5, dtype=np.int32)[:, None], 2, 1)
    model = TabularModel.restore(states, np.array(transitions, np.int32), SIZES)
    found = model.action_values(np.array([goal]), 0.9, is_optimistic)
    np.testing.assert_allclose(found, slow_values(transitions, goal, is_optimistic), atol=0.02)


def slow_values(transitions, goal, is_optimistic, discount=0.9, n_sweeps=20):
    """Values of 5 states and 2 actions, transition by transition."""
    made = {(s, a): [t for t in transitions if t[:2] == (s, a)] for s in range(5) for a in range(2)}
    ends = not any(made[goal, a] for a in range(2))  # an episode ended there
    untried = [0.0 if is_optimistic or (ends and s == goal) else -1 / (1 - discount) for s in range(5)]
    values = {pair: 0.0 if made[pair] else untried[pair[0]] for pair in made}
    for _ in range(n_sweeps):
        best = [max(values[s, a] for a in range(2)) for s in range(5)]
        values = {
            (s, a): sum(n * ((t == goal) - 1 + discount * best[t]) for *_, t, n in ways) / sum(n for *_, n in ways)
            if ways
            else untried[s]
            for (s, a), ways in made.items()
        }
    longest = -(1 - discount**n_sweeps) / (1 - discount)  # no path of so many steps leads to the goal
    return [[-10 if values[s, a] < longest + CONVERGED else values[s, a] for a in range(2)] for s in range(5)]


def test_it_is_used_once_half_of_the_steps_lead_to_states_of_earlier_episodes():
    model = corridor(SLOW)
    assert (model.known_fraction, model.is_used) == (0.0, False)
    walk(model, FAST)
    assert (model.known_fraction, model.is_used) == (0.3, False)
    walk(model, SLOW)
    assert (model.known_fraction, model.is_used) == (10 / 17, True)


def test_it_goes_on_from_its_arrays_to_the_same_bytes():
    model = corridor()
    arrays = model.arrays()
    again = TabularModel.restore(arrays["visited_states"], arrays["transitions"], SIZES, arrays["state_counts"])
    for each in (model, again):
        walk(each, [0, 2, 7, 9])
    assert {name: array.tobytes() for name, array in model.arrays().items()} == {
        name: array.tobytes() for name, array in again.arrays().items()
    }
    assert again.arrays()["transitions"].tolist()[:2] == [[0, 1, 0, 1], [0, 1, 1, 3]]
    assert again.is_used == model.is_used


def test_without_a_column_states_that_differ_in_it_alone_become_one():
    model = TabularModel(3, 1, 2)
    for count, path in enumerate(([0, 1, 2], [0, 1, 1])):  # the first column counts episodes
        states = np.array([[count, cell, cell] for cell in path], np.int32)
        model.add(states, np.ones(2, np.int64))
    left = model.without_columns([1, 2])
    arrays = left.arrays()
    assert arrays["visited_states"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert arrays["transitions"].tolist() == [[0, 1, 1, 2], [1, 1, 2, 1], [1, 1, 1, 1]]
    assert (left.steps, left.known_steps) == (4, 1)  # three of four steps were the first to their states


def test_states_of_an_episode_are_whole_numbers_or_none():
    cells = np.array([[0.0], [2.0]])
    episode = Episode(cells + 1, cells, cells, action=np.array([0]), reward=np.zeros(1))
    assert states_of(episode).tolist() == [[1, 0], [3, 2]]
    assert states_of(Episode(cells + 0.5, cells, cells, action=np.array([0]), reward=np.zeros(1))) is None


@pytest.mark.parametrize(
    ("states", "transitions"),
    [
        (np.zeros((2, 3), np.int32), np.zeros((0, 4), np.int32)),
        (np.zeros((2, 2), np.int64), np.zeros((0, 4), np.int32)),
        (np.zeros((2, 2), np.int32), np.array([[0, 0, 2, 1]], np.int32)),
        (np.zeros((2, 2), np.int32), np.array([[0, 2, 1, 1]], np.int32)),
        (np.zeros((2, 2), np.int32), np.array([[-1, 0, 1, 1]], np.int32)),
        (np.zeros((2, 2), np.int32), np.array([[0, 0, 1, 0]], np.int32)),
    ],
)
def test_forged_arrays_are_refused(states, transitions):
    with pytest.raises(InputError):
        TabularModel.restore(states, transitions, SIZES)
