import numpy as np
from run_files import write_run

from hindsight_rl.report.page import JITTER_STEPS, constant_dimensions, goal_maps, jittered, varying_columns
from hindsight_rl.report.run import read_run


def maps_of(path, goals, rates=(0.5, 1.0)):
    return goal_maps(read_run(write_run(path, rates, goals=goals)))


def test_points_are_drawn_where_the_goals_are(tmp_path):
    """All goals of FetchPush have the height 0.425. No map may show another."""
    goals = [[1.2 + n / 100, 0.7 - n / 50, 0.425] for n in range(10)]
    run = read_run(write_run(tmp_path / "a", (0.5, 1.0), goals=lambda n: goals[n]))
    [plot] = goal_maps(run)
    assert (plot.goals["x_title"], plot.goals["y_title"]) == ("goal[0]", "goal[1]")
    assert plot.goals["evaluated"]["x"] == [round(goal[0], 6) for goal in goals] * 2
    assert plot.goals["evaluated"]["y"] == [round(goal[1], 6) for goal in goals] * 2
    assert plot.goals["evaluated"]["steps"] == [100] * 10 + [200] * 10
    assert plot.goals["evaluated"]["success"] == [True] * 5 + [False] * 5 + [True] * 10
    assert plot.goals["evaluated"]["distance"] == [0.1] * 20
    assert (plot.goals["trained"]["x"], plot.goals["trained"]["y"]) == ([1.22] * 2, [0.66] * 2)
    assert constant_dimensions(run) == "goal[2] is 0.425 everywhere."
    assert "moved" not in plot.caption


def test_a_number_that_varies_by_less_than_three_digits_show_is_constant():
    goals = np.array([[0.42469, 0.1, 5.0, np.nan], [0.42474, 0.2, np.nan, np.nan]])
    assert varying_columns(goals) == [1]
    assert varying_columns(goals[:0]) == []


def test_a_goal_with_three_varying_numbers_has_two_maps(tmp_path):
    maps = maps_of(tmp_path / "a", lambda n: [n + 0.5, n / 3, n / 7])
    assert [(plot.goals["x_title"], plot.goals["y_title"]) for plot in maps] == [
        ("goal[0]", "goal[1]"),
        ("goal[0]", "goal[2]"),
    ]


def test_one_varying_number_is_drawn_against_the_steps(tmp_path):
    [plot] = maps_of(tmp_path / "a", lambda n: [0.5, n / 10])
    assert (plot.goals["x_title"], plot.goals["y_title"]) == ("goal[1]", "environment steps")
    assert plot.goals["evaluated"]["x"] == [n / 10 for n in range(10)] * 2
    assert plot.goals["evaluated"]["y"] == [100.0] * 10 + [200.0] * 10


def test_goals_that_never_vary_have_no_map(tmp_path):
    run = read_run(write_run(tmp_path / "a", goals=lambda n: [1.0, 2.0]))
    assert goal_maps(run) == []
    assert constant_dimensions(run) == "goal[0] is 1 everywhere. goal[1] is 2 everywhere."


def test_whole_numbers_are_moved_by_less_than_a_tenth_and_the_caption_says_so(tmp_path):
    bits = np.tile([0.0, 1.0], 50)
    x, y = (jittered(bits, ratio) for ratio in JITTER_STEPS)
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == 100
    assert (np.abs(x - bits) < 0.1).all()
    assert abs(np.corrcoef(x - bits, y - bits)[0, 1]) < 0.2
    [plot] = maps_of(tmp_path / "a", lambda n: [n % 2, n // 2 % 2])
    assert "Whole numbers are moved by less than 0.1" in plot.caption


def test_values_with_fractions_are_not_moved():
    values = np.array([0.0, 0.5, 0.5])
    assert (jittered(values, JITTER_STEPS[0]) == values).all()


def test_a_run_without_evaluations_has_no_map(tmp_path):
    run = read_run(write_run(tmp_path / "a", ()))
    assert goal_maps(run) == []
    assert constant_dimensions(run) == ""
