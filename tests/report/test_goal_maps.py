import numpy as np
from run_files import write_run

from hindsight.report.goals import SPREADS, coverage, goal_maps, spread
from hindsight.report.run import read_run


def test_bits_are_spread_so_that_points_are_apart_but_stay_with_their_value():
    bits = np.tile([0.0, 1.0], 50)
    x, y = (spread(bits, ratio) for ratio in SPREADS)
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == 100
    assert (np.abs(x - bits) <= 0.3).all()
    assert abs(np.corrcoef(x - bits, y - bits)[0, 1]) < 0.2


def test_values_that_differ_stay_as_they_are():
    values = np.linspace(0.0, 1.0, 50)
    assert (spread(values, SPREADS[0]) == values).all()


def test_goals_of_one_number_are_shown_against_the_steps(tmp_path):
    run = read_run(write_run(tmp_path / "a"))
    (panel,) = goal_maps(run.__class__(run.path, run.settings, run.metrics, narrow(run.evaluated), narrow(run.trained)))
    assert panel.layout["yaxis"]["title"]["text"] == "environment steps"
    assert panel.goals["evaluated"]["y"][:11] == [100] * 10 + [200]


def narrow(goals):
    return goals.__class__(goals.env_steps, goals.success, goals.asked[:, :1], goals.reached[:, :1], goals.distance)


def test_coverage_in_words(tmp_path):
    run = read_run(write_run(tmp_path / "a"))
    said = coverage(run)
    assert said.startswith(
        "Of a grid of 2 by 2 over the evaluated goals, the 4 training episodes ended in 50% of the cells"
    )
