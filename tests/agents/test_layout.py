import re

import numpy as np
import pytest

from hindsight_rl.agents.layout import Layout, feature_of
from hindsight_rl.errors import GoalEnvError, OptionError
from hindsight_rl.options.agent import InputOptions
from hindsight_rl.records import ArraySpec


def box(shape, low=-np.inf, high=np.inf, dtype="float32"):
    return ArraySpec(shape, dtype, (low,), (high,))


def choice(start, n_values):
    return ArraySpec((), "int64", (float(start),), (float(start + n_values - 1),), n_values)


def make_layout(observation, goal, n_subgoals=0, **options):
    return Layout(observation, goal, InputOptions(**options), n_subgoals)


BITS = box((3,), 0.0, 1.0, "int8")


@pytest.mark.parametrize(
    ("array", "feature"),
    [
        (box((3,)), "number"),
        (box((3,), 0.0, 1.0), "number"),  # floats between 0 and 1 are not only 0 and 1
        (box((3,), 0.0, 2.0, "int8"), "number"),
        (box((2, 2), 0.0, 255.0, "uint8"), "number"),
        (box((2, 2, 1), 0.0, 255.0, "uint8"), "image"),
        (box((2, 2, 1), 0.0, 255.0), "number"),
        (BITS, "bit"),
        (box((2,), 0.0, 1.0, "bool"), "bit"),
        (choice(0, 2), "one_hot"),
    ],
)
def test_feature_of_an_array(array, feature):
    assert feature_of(array) == feature


def test_the_order_of_the_columns():
    layout = make_layout(box((2, 2)), box((1,)), observe_achieved_goal=True)
    one = layout.assemble((), np.array([[1.0, 2], [3, 4]]), np.array([9]), np.array([5], np.int8))
    assert one.tolist() == [1, 2, 3, 4, 5, 9]
    assert one.dtype == np.float32
    rows = [np.zeros((3, 5, *shape)) for shape in ((2, 2), (1,), (1,))]
    assert layout.assemble((3, 5), *rows, np.ones((3, 5, 2))).shape == (3, 5, 8)
    assert make_layout(box((2, 2)), box((1,))).size == 5


def test_discrete_values_are_one_hot():
    layout = make_layout(choice(0, 3), choice(4, 2), observe_achieved_goal=True)
    assert layout.assemble((), np.int64(2), np.int64(4), np.int64(5)).tolist() == [0, 0, 1, 0, 1, 1, 0]
    rows = layout.assemble((2,), np.array([0, 1]), np.array([4, 4]), np.array([5, 4]))
    assert rows.tolist() == [[1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1, 0]]


def test_relative_features_are_goal_minus_achieved_goal():
    layout = make_layout(box((1,)), box((2,)), goal_features="relative")
    assert layout.assemble((), np.zeros(1), np.array([1.0, 2.0]), np.array([4.0, 1.0])).tolist() == [0, 4, 1, 3, -1]
    small = make_layout(box((1,)), box((1,), 0.0, 255.0, "uint8"), goal_features="relative")
    assert small.assemble((), np.zeros(1), np.array([9], np.uint8), np.array([7], np.uint8))[-1] == -2  # no wrapping round


def test_float64_and_stored_float32_give_the_same_bits():
    layout = make_layout(box((1,)), box((1,)), goal_features="relative")
    achieved, goal = np.array([0.1]), np.array([1.0 / 3.0])
    exact = layout.assemble((), achieved, achieved, goal)
    stored = layout.assemble((), *(a.astype(np.float32) for a in (achieved, achieved, goal)))
    assert exact.tobytes() == stored.tobytes()


@pytest.mark.parametrize(
    ("goal", "achieved", "desired"),
    [
        (BITS, np.array([0, 1, 1], np.int8), np.array([1, 1, 0], np.int8)),
        (box((3,), 0.0, 1.0), np.array([0.0, 1, 1]), np.array([1.0, 1, 0])),
        (box((3,), -1.0, 1.0), np.array([-1.0, 1, 1]), np.array([1.0, 1, -1])),
        (box((3,), 0.0, 1.0, "bool"), np.array([False, True, True]), np.array([True, True, False])),
        (ArraySpec((3,), "uint8", (0.0, 0.0, 2.0), (255.0, 1.0, 4.0)), np.array([0, 1, 4]), np.array([255, 1, 2])),
    ],
)
def test_agreement_of_goals_of_two_values(goal, achieved, desired):
    layout = make_layout(box((1,)), goal, goal_features="agreement")
    observed = layout.assemble((), np.zeros(1), achieved.astype(goal.dtype), desired.astype(goal.dtype))
    assert observed[-3:].tolist() == [-1, 1, -1]
    assert layout.size == 7


def test_agreement_of_discrete_goals_compares_binary_digits():
    layout = make_layout(box((1,)), choice(2, 6), goal_features="agreement")  # counted from 0: 0 to 5, three digits
    observed = layout.assemble((2,), np.zeros((2, 1)), np.array([2, 7]), np.array([6, 7]))  # 000 and 100; 101 and 101
    assert observed[:, -3:].tolist() == [[1, 1, -1], [1, 1, 1]]  # the lowest digit first
    assert layout.size == 1 + 6 + 3


def image(*shape):
    return box(shape, 0.0, 255.0, "uint8")


def test_images_are_stacked_as_channels():
    layout = make_layout(image(5, 4, 3), image(1, 5, 4), observe_achieved_goal=True, goal_features="relative")
    encoding = layout.encoding((8,), n_others=2)
    assert encoding.pixel_columns.shape == (3 + 1 + 1 + 1, 5, 4)
    observed = np.arange(60).reshape(5, 4, 3).astype(np.uint8)
    goals = [np.full((1, 5, 4), value, np.uint8) for value in (100, 90)]
    pixels = layout.assemble((), observed, *goals, np.zeros(2))[encoding.pixel_columns]
    np.testing.assert_array_equal(pixels[:3], np.moveaxis(observed, -1, 0))
    assert [set(channel.ravel()) for channel in pixels[3:]] == [{90}, {100}, {-10}]
    assert encoding.other_columns.tolist() == [120, 121]


def test_only_images_are_encoded():
    assert make_layout(box((4,)), BITS).encoding((8,)) is None
    encoding = make_layout(box((4,)), image(5, 5, 1)).encoding((8,))
    assert encoding.other_columns.tolist() == [0, 1, 2, 3]
    assert encoding.pixel_columns.ravel().tolist() == list(range(4, 29))


def test_categories_of_an_image_are_no_pixels():
    categories = ("o0-1=0..3", "g0=0..3")
    encoding = make_layout(image(4, 4, 1), box((1,), 0.0, 3.0, "int64"), categories=categories).encoding((8,))
    assert encoding.pixel_columns.shape == (1, 4, 4)
    assert len(encoding.other_columns) == 1 + 3 * 4 + 2  # the goal, the one-hot columns, and whether each equals the goal


def test_agreement_of_pixels():
    layout = make_layout(box((1,)), image(1, 1, 1), goal_features="agreement")
    achieved, goal = np.array([[[0]], [[255]], [[255]]], np.uint8)[..., None], np.full((3, 1, 1, 1), 255, np.uint8)
    assert layout.assemble((3,), np.zeros((3, 1)), achieved, goal)[:, -1].tolist() == [-1, 1, 1]
    assert layout.encoding((8,)).pixel_columns.shape == (2, 1, 1)


def test_unsupported_arrays_and_features_are_refused():
    with pytest.raises(GoalEnvError, match=r"observation is Discrete\(4097\).*4096.*wrap"):
        make_layout(choice(0, 4097), BITS)
    with pytest.raises(GoalEnvError, match="goal is Discrete"):
        make_layout(BITS, choice(0, 5000))
    with pytest.raises(OptionError, match=r"'relative'.*'agreement'"):
        make_layout(BITS, choice(0, 5), goal_features="relative")
    with pytest.raises(OptionError, match=r"'agreement'.*bounds.*'relative'"):
        make_layout(BITS, box((3,)), goal_features="agreement")
    with pytest.raises(GoalEnvError, match="36 x 36 and 84 x 84"):
        make_layout(image(84, 84, 3), image(36, 36, 1))
    assert make_layout(choice(0, 4096), BITS).size == 4099


def test_bits_of_the_observation_are_hidden_beside_goals_of_bits():
    layout = make_layout(BITS, BITS, goal_features="agreement", hidden_observation=(1, 2))
    seen = layout.assemble((), np.array([1, 0, 1]), np.array([1, 0, 1]), np.array([1, 1, 1]))
    assert seen.tolist() == [1, 1, 1, 1, 1, -1, 1]


def test_hidden_columns_are_left_out_those_of_the_goal_if_it_is_relative():
    absolute = {"hidden_observation": (0, 2), "hidden_goal": (1,)}
    layout = make_layout(box((3,)), box((2,)), observe_achieved_goal=True, goal_features="relative", **absolute)
    observed = (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0]), np.array([7.0, 9.0]))
    assert layout.assemble((), *observed).tolist() == [2, 7, 4, 3, 4]
    assert layout.size == 5
    whole = make_layout(box((3,)), box((2,)), **absolute)  # without the difference the goal is all there is to see of it
    assert whole.assemble((), *observed).tolist() == [2, 7, 9]
    none = make_layout(box((3,)), box((2,)), goal_features="relative", hidden_observation=(0, 1, 2), hidden_goal=(0, 1))
    assert none.assemble((), *observed).tolist() == [3, 4]


@pytest.mark.parametrize("leading", [(), (1,)])
def test_where_no_reward_depends_on_the_desired_goal_networks_see_the_achieved_one(leading):
    layout = make_layout(box((1,)), box((3,)), goal_features="relative", unused_goal=(1, 2))
    observed = (np.full((*leading, size), value) for size, value in ((1, 0.0), (3, 4.0), (3, 9.0)))
    assert layout.assemble(leading, *observed).ravel().tolist() == [0, 9, 4, 4, 5, 0, 0]
    assert layout.size == 7


def test_subgoals_use_dimensions_of_goals_on_which_no_reward_depends():
    """They say where the tool must be. Row 3 asks for the first objects to be placed."""
    layout = make_layout(box((1,)), box((2,)), 2, goal_features="relative", unused_goal=(1,))
    observed = [np.full((4, size), value) for size, value in ((1, 0.0), (2, 4.0), (2, 9.0))]
    goals = layout.assemble((4,), *observed, subgoal=np.arange(4))[:, 1:5].tolist()
    assert goals == [[9, 4, 5, 0], [9, 9, 5, 5], [9, 9, 5, 5], [9, 4, 5, 0]]
    assert layout.assemble((), *(each[0] for each in observed), subgoal=1)[1:5].tolist() == goals[1]


@pytest.mark.parametrize(
    ("observation", "options", "message"),
    [
        (box((3,)), {"unused_goal": (2,)}, r"unused_goal is \(2,\).*of the goal, below 2"),
        (box((3,)), {"hidden_observation": (3,)}, r"hidden_observation is \(3,\).*of the observation, below 3"),
        (box((3,)), {"hidden_goal": (0, 2)}, r"hidden_goal is \(0, 2\).*below 2"),
        (image(8, 8, 3), {"hidden_observation": (0,)}, "Expected numeric columns"),
    ],
)
def test_missing_hidden_columns_are_refused(observation, options, message):
    with pytest.raises(OptionError, match=message):
        make_layout(observation, box((2,)), goal_features="relative", **options)


def test_column_differences_come_after_the_goal_features():
    layout = make_layout(
        box((3,)), box((2,)), goal_features="relative", hidden_goal=(0, 1), column_differences=("2-0", "1-2")
    )
    observed = (np.array([1.0, 2.0, 7.0]), np.array([4.0, 5.0]), np.array([7.0, 9.0]))
    assert layout.assemble((), *observed).tolist() == [1, 2, 7, 3, 4, 6, -5]
    assert layout.size == 7
    layout = make_layout(box((3,)), box((2,)), goal_features="none", column_differences=("1-0", "2+0.5-10*o0"))
    assert layout.assemble((), *observed)[-2:].tolist() == [1, -2.5]


@pytest.mark.parametrize(
    ("observation", "named"),
    [(box((3,)), "3-0"), (box((3,)), "0 1"), (BITS, "1-0"), (box((3,)), "1"), (box((3,)), "1-2*o3"), (box((3,)), "1-o0,2")],
)
def test_missing_columns_of_a_difference_are_refused(observation, named):
    with pytest.raises(OptionError, match=f"column_differences is .*{re.escape(named)}.*below 3"):
        make_layout(observation, box((2,)), column_differences=(named,))


def test_relative_goals_hold_rotations_in_the_place_of_differences():
    options = {"hidden_goal": (0, 1, 2, 3, 4), "rotations": ("1,2,3,4",)}
    layout = make_layout(box((1,)), box((5,)), goal_features="relative", **options)
    half_turn = np.array([2.0, 1.0, 0.0, 0.0, 0.0]), np.array([5.0, 0.0, 0.0, 0.0, 1.0])  # about z
    assert layout.assemble((), np.zeros(1), *half_turn).tolist() == [0, 3, 0, 0, 0, 1]
    assert layout.size == 6
    assert layout.assemble((1,), np.zeros((1, 1)), *(each[None] for each in half_turn)).tolist() == [[0, 3, 0, 0, 0, 1]]


@pytest.mark.parametrize("text", ["0,1,2", "0,1", "1,2,3,5", "1 2 3 4", "", "0,0,1,2"])
def test_columns_that_are_no_rotation_are_refused(text):
    with pytest.raises(OptionError, match=r"rotations is .*below 5"):
        make_layout(box((1,)), box((5,)), goal_features="relative", rotations=(text,))


def test_rotations_need_relative_goals():
    with pytest.raises(OptionError, match="goal_features='relative'"):
        make_layout(box((1,)), box((5,)), rotations=("1,2,3,4",))


def test_the_subgoal_is_one_hot_in_the_last_columns():
    layout = make_layout(box((1,)), box((1,)), n_subgoals=2)
    assert layout.assemble((), np.array([5.0]), np.array([6.0]), np.array([7.0]), subgoal=2).tolist() == [5, 7, 0, 1]
    rows = layout.assemble((3,), *(np.zeros((3, 1)) for _ in range(3)), np.full((3, 1), 9.0), subgoal=np.array([0, 1, 2]))
    assert rows.tolist() == [[0, 0, 0, 0, 9], [0, 0, 1, 0, 9], [0, 0, 0, 1, 9]]
    assert layout.size == 4


def test_columns_with_categories_are_seen_as_numbers_one_hot_and_compared_with_the_goal():
    seen, goal = box((2,), 0.0, 2.0, "int64"), box((1,), 0.0, 2.0, "int64")
    layout = make_layout(seen, goal, categories=("o0-1=0..2", "g0=0..2"))
    one = layout.assemble((), np.array([2, 1]), np.array([0]), np.array([1]))
    assert one.tolist() == [2, 1, 1, *(0, 0, 1), *(0, 1, 0), *(0, 1, 0), *(0, 1)]
    rows = layout.assemble((2,), np.array([[0, 3], [2, 1]]), np.zeros((2, 1)), np.array([[0], [1]]))
    assert rows[0].tolist() == [0, 3, 0, *(1, 0, 0), *(0, 0, 0), *(1, 0, 0), *(1, 0)]  # 3 is no category
    assert rows[1].tolist() == one.tolist()
    assert layout.size == 14


def test_categories_of_hidden_columns_are_hidden():
    hidden = {"goal_features": "relative", "hidden_observation": (1,)}
    layout = make_layout(box((2,)), box((1,)), categories=("o0-1=0..2", "g0=0..2"), **hidden)
    assert layout.categories.texts() == ("o0=0..2", "g0=0..2")
    assert layout.size == 1 + 1 + 1 + 3 + 3 + 1
