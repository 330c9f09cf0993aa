import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hindsight_rl.agents.layout import Layout
from hindsight_rl.agents.preprocessor import Normalizer, RunningMoments
from hindsight_rl.options.agent import InputOptions
from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.task_structure.subgoals import Subgoals

NO_SUBGOALS = Subgoals((), GoalSpec(ArraySpec((1,), "float32"), ArraySpec((1,), "float32"), ArraySpec((1,), "float32")))


def make_normalizer(observation_size, goal_size, eps, **layout):
    observation, goal = ArraySpec((observation_size,), "float64"), ArraySpec((goal_size,), "float64")
    return Normalizer(Layout(observation, goal, InputOptions(normalizer_eps=eps, **layout)), NO_SUBGOALS)


def make_episode(observation, achieved_goal, desired_goal):
    steps = len(observation) - 1
    return Episode(
        np.asarray(observation), np.asarray(achieved_goal), np.asarray(desired_goal), np.zeros((steps, 1)), np.zeros(steps)
    )


def test_before_the_first_episode_nothing_is_normalized():
    mean, scale = make_normalizer(2, 1, eps=0.01).mean_and_scale()
    assert mean.tolist() == [0, 0, 0]
    assert scale.tolist() == [1, 1, 1]
    assert (mean.dtype, scale.dtype) == (np.float32, np.float32)


def test_one_episode_by_hand():
    normalizer = make_normalizer(2, 1, eps=0.25)
    normalizer.update(make_episode([[1.0, 7.0], [3.0, 7.0]], [[0.0], [4.0]], [[8.0], [8.0]]))
    mean, scale = normalizer.mean_and_scale()
    # observation: mean 2 and 7, deviation 1 and 0 (raised to eps); goals 0, 4, 8, 8: mean 5, variance (25 + 1 + 9 + 9) / 4
    assert mean.tolist() == [2, 7, 5]
    assert scale == pytest.approx([1, 4, 11**-0.5])


def test_the_achieved_goal_is_normalized_by_the_goal_statistics():
    normalizer = make_normalizer(1, 1, eps=0.01, observe_achieved_goal=True)
    normalizer.update(make_episode([[1.0], [3.0]], [[0.0], [4.0]], [[8.0], [8.0]]))
    mean, scale = normalizer.mean_and_scale()
    assert mean.tolist() == [2, 5, 5]
    assert scale[1] == scale[2]


def test_a_difference_is_zero_at_the_goal_and_has_the_goals_scale():
    normalizer = make_normalizer(1, 1, eps=0.01, goal_features="relative")
    normalizer.update(make_episode([[1.0], [3.0]], [[0.0], [4.0]], [[8.0], [8.0]]))
    mean, scale = normalizer.mean_and_scale()
    assert mean.tolist() == [2, 5, 0]
    assert scale[1] == scale[2] != 1


def test_a_column_difference_has_the_scale_of_the_first_column():
    normalizer = make_normalizer(2, 1, eps=0.01, column_differences=("1-0",))
    normalizer.update(make_episode([[1.0, 10.0], [3.0, 30.0]], [[0.0], [4.0]], [[8.0], [8.0]]))
    mean, scale = normalizer.mean_and_scale()
    assert mean[3] == 0
    assert scale[3] == scale[1] != scale[0]


def test_objects_that_are_seen_in_one_place_share_their_statistics():
    """Columns: the tool and two objects, at 1, 2 and 6 in both rows; the goals are 3 and 5."""
    spec = GoalSpec(ArraySpec((3,), "float64"), ArraySpec((2,), "float64"), ArraySpec((1,), "float64"))
    reach = "reach achieved=0 goal={0} tolerance=1 switch_distance=2 dimensions={1} placed=1 columns={0}"
    normalizer = Normalizer(
        Layout(spec.observation, spec.goal, InputOptions()), Subgoals([reach.format(1, 0), reach.format(2, 1)], spec)
    )
    normalizer.update(make_episode([[1.0, 2.0, 6.0]] * 2, [[2.0, 6.0]] * 2, [[3.0, 5.0]] * 2))
    mean, scale = normalizer.mean_and_scale()
    assert mean[:3].tolist() == [1, 4, 4]
    assert mean[3] == mean[4]
    assert scale[1] == scale[2] == 1 / 2


def test_bits_and_one_hot_values_have_a_fixed_scale():
    observation, goal = ArraySpec((), "int64", (0.0,), (2.0,), 3), ArraySpec((2,), "int8", (0.0,), (1.0,))
    options = InputOptions(observe_achieved_goal=True, goal_features="relative")
    normalizer = Normalizer(Layout(observation, goal, options), NO_SUBGOALS)
    expected = [0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0], [1, 1, 1, 2, 2, 2, 2, 2, 2]
    for _ in range(2):
        assert tuple(array.tolist() for array in normalizer.mean_and_scale()) == expected
        bits = np.array([[0, 1], [1, 1]], np.int8)
        normalizer.update(make_episode(np.array([1, 2]), bits, bits))
    assert normalizer.state_dict()["normalizer/goal_mean"].shape == (0,)


@given(
    st.lists(
        hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(2)), elements=st.floats(-1e6, 1e6, width=32)),
        min_size=1,
        max_size=5,
    )
)
def test_merging_batches_equals_all_rows_at_once(parts):
    moments = RunningMoments(2)
    for part in parts:
        moments.update(part)
    rows = np.concatenate(parts)
    assert moments.count == len(rows)
    if len(rows):
        np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moments.standard_deviation(), rows.std(0), rtol=1e-6, atol=1e-3)


def test_a_small_deviation_far_from_zero_is_precise():
    moments = RunningMoments(1)
    for start in (1e8, 1e8 + 2):
        moments.update(np.array([[start], [start + 1.0]]))  # 0, 1, 2, 3 above 1e8: variance 5 / 4
    assert moments.standard_deviation()[0] == pytest.approx(1.25**0.5, rel=1e-6)


def test_enormous_values_and_constant_features_stay_finite():
    normalizer = make_normalizer(2, 1, eps=0.01)
    normalizer.update(make_episode([[1e30, 5.0], [-1e30, 5.0]], [[1.0], [1.0]], [[1.0], [1.0]]))
    mean, scale = normalizer.mean_and_scale()
    assert np.isfinite(mean).all()
    assert scale == pytest.approx([1e-30, 100, 100])


def walk(unit):
    """An observation that moves as the goal does, one that hardly moves, one with rounding only, and one that rests."""
    places = np.array([[0.0], [2.0], [4.0]]) * unit
    seen = np.column_stack([places, 0.01 * places, np.array([7.0, 7.0 + 1e-7, 7.0]) * unit, np.zeros(3)])
    return make_episode(seen, places, np.full((3, 1), 6.0) * unit)


@pytest.mark.parametrize("unit", [1e-6, 1e-3])
def test_goals_in_a_larger_unit_of_length_are_seen_alike(unit):
    """The goals are 0, 2, 4, 6, 6, 6 units, with a deviation of sqrt(16 / 3) = 2.31; the least deviation is a tenth."""
    normalizer = make_normalizer(4, 1, eps=0.01)
    normalizer.update(walk(unit))
    deviation = 1 / normalizer.mean_and_scale()[1]
    assert deviation / unit == pytest.approx([(8 / 3) ** 0.5, 0.231, 0.231, 0.231, 2.309], rel=1e-3)


def test_in_usual_units_columns_are_divided_by_normalizer_eps_at_least():
    normalizer = make_normalizer(4, 1, eps=0.01)
    normalizer.update(walk(1.0))
    assert 1 / normalizer.mean_and_scale()[1] == pytest.approx([(8 / 3) ** 0.5, 0.01633, 0.01, 0.01, 2.309], rel=1e-3)


def test_rounding_of_large_numbers_is_no_signal():
    normalizer = make_normalizer(1, 1, eps=0.01)
    seen = np.array([[1e6], [1e6 + 0.06], [1e6]])
    normalizer.update(make_episode(seen, np.arange(3.0)[:, None], np.ones((3, 1))))
    assert 1 / normalizer.mean_and_scale()[1][0] == pytest.approx(1.0, rel=1e-3)


def test_goals_that_never_vary_leave_normalizer_eps():
    normalizer = make_normalizer(1, 1, eps=0.01)
    normalizer.update(make_episode([[0.0], [1e-4]], [[0.3], [0.3]], [[0.3], [0.3]]))
    assert 1 / normalizer.mean_and_scale()[1] == pytest.approx([0.01, 0.01])


def test_integers_and_further_axes_are_accepted():
    normalizer = make_normalizer(4, 1, eps=0.01)
    images = np.array([[[0, 255], [0, 1]], [[0, 255], [2, 1]]], np.uint8)
    normalizer.update(make_episode(images, np.zeros((2,), np.int64), np.ones((2,), np.int64)))
    mean, _ = normalizer.mean_and_scale()
    assert mean.tolist() == [0, 255, 1, 1, 0.5]


def test_the_state_is_restored_and_shares_no_memory():
    first, second = make_normalizer(1, 1, eps=0.01), make_normalizer(1, 1, eps=0.01)
    episode = make_episode([[1.0], [3.0]], [[0.0], [4.0]], [[8.0], [8.0]])
    first.update(episode)
    state = first.state_dict()
    second.load_state_dict(state)
    first.update(episode)
    second.update(episode)
    for name, array in first.state_dict().items():
        np.testing.assert_array_equal(array, second.state_dict()[name])
    assert state["normalizer/observation_count"] == 2


def test_the_summary_has_the_names_of_baselines():
    normalizer = make_normalizer(2, 1, eps=0.5)
    assert normalizer.summary() == {}
    normalizer.update(make_episode([[1.0, 7.0], [3.0, 7.0]], [[0.0], [4.0]], [[8.0], [8.0]]))
    assert normalizer.summary() == pytest.approx(
        {"stats_o/mean": 4.5, "stats_o/std": 0.5, "stats_g/mean": 5.0, "stats_g/std": 11**0.5}
    )
