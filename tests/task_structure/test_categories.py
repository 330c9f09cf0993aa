import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl.errors import OptionError
from hindsight_rl.records import ArraySpec, GoalSpec
from hindsight_rl.task_structure.categories import Categories, Column, one_hot_inputs

FOUR, TWO = ArraySpec((4,), "int64"), ArraySpec((2,), "int64")


def task(observation, goal):
    seen = spaces.Dict(observation=observation, achieved_goal=goal, desired_goal=goal)
    return GoalSpec.from_spaces(seen, spaces.Discrete(4))


def whole(high, size):
    return spaces.Box(0, high, (size,), np.int64)


def floats(size, low=-np.inf, high=np.inf):
    return spaces.Box(low, high, (size,), np.float32)


def test_texts_are_read_and_written():
    texts = ("o0-1=0..5", "o3=-1..1", "g1=0..5")
    found = Categories.parse(texts, FOUR, TWO)
    assert found == Categories((Column(0, 0, 5), Column(1, 0, 5), Column(3, -1, 1)), (Column(1, 0, 5),))
    assert found.texts() == texts
    assert found.pairs == ((0, 1), (1, 1))
    assert found.without((0,), (1,)).texts() == ("o1=0..5", "o3=-1..1")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("o0",), "Expected columns and their values, as in o0-3=0..5"),
        (("o0-4=0..5",), "observation has 4 columns, from 0"),
        (("g2=0..5",), "goal has 2 columns"),
        (("o0-2=0..5", "o2=0..1"), "names o2 twice"),
        (("o0=3..3",), "at least two values"),
        (("o0=0..999999999",), "at most 4096 values"),
    ],
)
def test_wrong_texts_are_refused(texts, message):
    with pytest.raises(OptionError, match=message):
        Categories.parse(texts, FOUR, TWO)


@pytest.mark.parametrize(
    ("observation", "goal", "texts"),
    [
        (whole(5, 4), whole(5, 2), ("o0-3=0..5", "g0-1=0..5")),
        (spaces.MultiDiscrete([3, 5], start=[1, 0]), whole(168, 1), ("o0=1..3", "o1=0..4", "g0=0..168")),
        (spaces.MultiBinary(3), spaces.Discrete(9), ()),  # the networks see bits and indices as such
        (whole(1, 3), whole(10**6, 2), ()),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), floats(2, 0.0, 3.0), ()),
    ],
)
def test_categories_that_spaces_declare(observation, goal, texts):
    assert Categories.of_spaces(task(observation, goal)).texts() == texts


def test_columns_of_floats_are_categories_if_they_and_all_goals_are_whole_numbers():
    spec = task(floats(4), floats(1, 0.0, 6.0))
    rows = np.array([[0, 7, 0.5, 2], [3, 7, 1.0, 1], [2, 7, 2.0, 3]])
    goals = np.array([[1.0], [2.0], [5.0]])
    assert Categories.of_steps(spec, rows, goals).texts() == ("o0=0..3", "o3=1..3", "g0=0..6")
    far = rows + np.array([0, 0, 0, 3e9])  # no text holds ten digits
    assert Categories.of_steps(spec, far, goals).texts() == ("o0=0..3", "g0=0..6")
    assert Categories.of_steps(spec, rows, goals + np.array([[0.5], [0], [0]])) == Categories()
    assert Categories.of_steps(spec, rows, np.zeros((3, 1))) == Categories()
    one_start_and_one_goal = np.array([[20], [20], [35]])
    assert Categories.of_steps(spec, rows, one_start_and_one_goal) == Categories()


def test_where_the_ranges_of_a_space_are_far_too_wide_those_of_the_steps_count():
    spec = task(whole(999, 3), whole(5, 1))
    rows, goals = np.array([[0, 7, 2], [3, 7, 1], [2, 7, 3]]), np.array([[1], [2], [1]])
    assert Categories.of_steps(spec, rows, goals).texts() == ("o0=0..3", "o2=1..3", "g0=0..5")
    counted = np.array([[0, 0], [1, 980], [2, 999]])  # the second column would have 1,000 values
    assert Categories.of_steps(task(whole(9_999, 2), whole(5, 1)), counted, goals).texts() == ("o0=0..2", "g0=0..5")
    bits = task(whole(1, 600), whole(5, 1))
    assert Categories.of_steps(bits, np.eye(3, 600, dtype=np.int64), goals).texts() == ("g0=0..5",)


def test_more_pairs_than_one_hot_inputs_are_left_out():
    cells = Categories.of_spaces(task(whole(2, 9), whole(2, 9)))
    assert cells.pairs == ()  # 81 against 54


def test_the_one_hot_inputs_of_columns():
    columns, values = one_hot_inputs([Column(1, -1, 0), Column(3, 0, 2)])
    assert columns == (1, 1, 3, 3, 3)
    assert values.tolist() == [-1, 0, 0, 1, 2]
