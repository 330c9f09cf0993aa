import numpy as np
import pytest
from run_files import SPEC, write_run

from hindsight.report.run import read_run
from hindsight.report.verdict import duration, possible_returns, signs, solved_at, verdict


def run_of(tmp_path, *arguments, **more):
    return read_run(write_run(tmp_path / "run", *arguments, **more))


@pytest.mark.parametrize(
    ("rates", "level", "words", "solved"),
    [
        ((0.0, 0.5, 1.0, 1.0), "good", "It learnt the task: 100%", 300),
        ((0.0, 0.8, 0.5, 0.7), "partly", "in part: 70%", None),
        ((0.0, 0.9, 0.5), "bad", "It forgot: 50% of unseen episodes succeed, 90% did at best", None),
        ((0.0, 0.2, 0.1), "bad", "little so far: 10%", None),
        ((0.0, 0.0), "bad", "no evaluated episode has succeeded", None),
        ((), "unknown", "cannot be told", None),
    ],
)
def test_the_answer(tmp_path, rates, level, words, solved):
    run = run_of(tmp_path, rates)
    said = verdict(run)
    assert said.level == level
    assert words in said.title
    assert solved_at(run) == solved


def test_the_text_says_when_and_how_sure(tmp_path):
    text = verdict(run_of(tmp_path)).text
    assert "First at 95% after 300 steps and 6 s, and held" in text
    assert "100% of 10 unseen episodes (50% to 100% with 95% confidence)" in text


def test_the_best_is_named_where_it_is_past(tmp_path):
    assert "Best so far: 90%, at 200 steps" in verdict(run_of(tmp_path, (0.0, 0.9, 0.5))).text


def test_a_healthy_run_shows_no_signs(tmp_path):
    assert signs(run_of(tmp_path, (0.1,) * 40, **{"train/entropy_coefficient": [0.1] * 40})) == []


def test_returns_that_are_possible(tmp_path):
    run = run_of(tmp_path)
    assert possible_returns(run) == pytest.approx((-10.0, 0.0))
    run.settings["options"]["extra_reward"] = True
    assert possible_returns(run) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"train/q_mean": np.linspace(-5, 4, 40)}, "Mean Q stands at 3.88, above the highest return"),
        ({"train/q_mean": np.linspace(-5, -30, 40)}, "below the lowest return"),
        (
            {"train/critic_loss": [1.0] * 30 + [2.0**n for n in range(1, 11)]},
            "critic's loss has grown to 7",
        ),
        ({"train/critic_loss": [1.0] * 39 + [np.inf]}, "train/critic_loss became infinite"),
        ({"train/goals_already_achieved": [0.9] * 40}, "90% of the goals put in hindsight were achieved"),
        ({"train/entropy_coefficient": [0.1] * 30 + [50.0] * 10}, "entropy coefficient has grown to 50"),
        ({"refused_episodes": [0] * 39 + [7]}, "7 training episodes were refused"),
        ({"failed_jobs": [2] * 40}, "2 jobs failed"),
    ],
)
def test_each_sign_of_divergence_is_called_out(tmp_path, columns, words):
    found = signs(run_of(tmp_path, (0.1,) * 40, **{name: list(map(float, values)) for name, values in columns.items()}))
    assert len(found) == 1
    assert words in found[0]


def test_forgetting_is_called_out(tmp_path):
    found = signs(run_of(tmp_path, (0.1, 0.5, 0.9, 0.9, 0.9, 0.9, 0.3, 0.2, 0.2)))
    assert len(found) == 1
    assert "Success fell: from 90%" in found[0]


def test_where_rewards_have_no_bounds_values_are_not_judged(tmp_path):
    spec = SPEC | {"reward_low": "-inf", "reward_high": "inf"}
    assert signs(run_of(tmp_path, (0.1,) * 40, spec=spec, **{"train/q_mean": [1e6] * 40})) == []


def test_durations():
    assert [duration(s) for s in (4.21, 150, 7200)] == ["4.21 s", "2 min", "2.0 h"]
