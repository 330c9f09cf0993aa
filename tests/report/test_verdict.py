import numpy as np
import pytest
from run_files import SPEC, change_settings, write_run

from hindsight_rl.report.run import read_run
from hindsight_rl.report.verdict import (
    best_evaluation,
    duration,
    format_value,
    possible_returns,
    solved_at_step,
    verdict,
    warnings_of,
)
from hindsight_rl.report.write import result_of


def run_of(tmp_path, *arguments, **more):
    return read_run(write_run(tmp_path / "run", *arguments, **more))


@pytest.mark.parametrize(
    ("rates", "level", "title", "solved"),
    [
        ((0.0, 0.5, 1.0, 1.0), "good", "Solved: 100% of the evaluation episodes succeed", 300),
        ((0.0, 1.0, 1.0, 0.8), "partly", "Solved before, but now 80% of the evaluation episodes succeed", 200),
        (
            (0.0, 0.8, 0.5, 1.0),
            "partly",
            "Not solved yet: 100% of the evaluation episodes succeed, but not in 2 evaluations in a row",
            None,
        ),
        ((0.0, 0.8, 0.5, 0.7), "partly", "Partly learnt: 70% of the evaluation episodes succeed", None),
        ((0.0, 0.9, 0.5), "bad", "Success fell: 50% of the evaluation episodes succeed, 90% did at best", None),
        ((1.0, 1.0, 0.5), "bad", "Success fell: 50% of the evaluation episodes succeed, 100% did at best", 100),
        ((0.0, 0.2, 0.1), "bad", "Learnt little: 10% of the evaluation episodes succeed", None),
        ((0.0, 0.0), "bad", "Not learnt: no evaluation episode has succeeded", None),
        ((), "unknown", "Not evaluated yet", None),
    ],
)
def test_the_result(tmp_path, rates, level, title, solved):
    run = run_of(tmp_path, rates)
    assert (verdict(run).level, verdict(run).title) == (level, title)
    assert solved_at_step(run) == solved


def test_the_text_says_when_and_with_which_confidence(tmp_path):
    assert verdict(run_of(tmp_path)).text == (
        "Solved at 300 environment steps of training (those before it are unknown), after 6 s of collecting and "
        "updating: the first of 2 evaluations in a row with at least 95% success. Last evaluation, at 400 steps of "
        "training: 100% of 10 episodes succeed (95 % interval 50% to 100%)."
    )


def test_the_steps_of_the_check_are_counted(tmp_path):
    text = verdict(run_of(tmp_path, check_steps=[1_000] * 4)).text
    assert text.startswith("Solved at 1,300 environment steps (300 of training, 1,000 before it), after 6 s")


def test_the_best_evaluation_is_named_if_it_was_better_than_the_last(tmp_path):
    assert "Best evaluation: 90% of 10, at 200 steps." in verdict(run_of(tmp_path, (0.0, 0.9, 0.5))).text


def test_the_best_evaluation_has_the_highest_lower_end_of_its_interval(tmp_path):
    """13 of 20 episodes prove less success than 60 of 100, and these as much as 60 of 100 with a lower return."""
    more = {
        "test/episodes": [20, 100, 100, 20],
        "test/success_low": [0.433, 0.502, 0.502, 0.258],
        "test/return_mean": [-10.0, -20.0, -30.0, -40.0],
    }
    run = run_of(tmp_path, (0.65, 0.6, 0.6, 0.45), **more)
    assert best_evaluation(run) == (200, 0.6, 100)
    assert result_of(run)["best_success"] == "0.6"
    assert "Best evaluation: 60% of 100, at 200 steps." in verdict(run).text


@pytest.mark.parametrize(
    ("why", "text"), [("solved", "because it was solved"), ("steps", "all its"), ("stopped", "before all its steps")]
)
def test_the_text_says_why_the_run_ended(tmp_path, why, text):
    path = write_run(tmp_path / "run")
    (path / "ended.json").write_text(f'{{"why": "{why}"}}')
    assert text in verdict(read_run(path)).text


def test_a_run_without_updates_says_why(tmp_path):
    path = change_settings(write_run(tmp_path / "run", (), seed=0), options={"random_steps": 1000})
    (path / "metrics.jsonl").write_text('{"env_steps": 300, "updates": 0}\n')
    assert (
        "There are no updates in the first 1,000 steps, nor while structure is looked for." in verdict(read_run(path)).text
    )


def test_a_healthy_run_has_no_warning(tmp_path):
    assert warnings_of(run_of(tmp_path, (0.1,) * 40, **{"train/entropy_coefficient": [0.1] * 40})) == []


def test_possible_returns(tmp_path):
    path = write_run(tmp_path / "run")
    assert possible_returns(read_run(path)) == pytest.approx((-10.0, 0.0))
    change_settings(path, spec={"reward_low": 0.0, "reward_high": 100.0})  # values are in units of the task
    assert possible_returns(read_run(path)) == pytest.approx((-10.0, 0.0))
    change_settings(path, options={"extra_reward": True})
    assert possible_returns(read_run(path)) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            {"train/q_mean": np.linspace(-5, 4, 40)},
            "Mean Q is 3.88, above the highest possible discounted return (0).",
        ),
        ({"train/q_mean": np.linspace(-5, -30, 40)}, "below the lowest possible discounted return (-10)"),
        ({"train/critic_loss": [1.0] * 30 + [2.0**n for n in range(1, 11)]}, "train/critic_loss is 768 times its median."),
        ({"train/critic_loss": [1.0] * 39 + [np.inf]}, "train/critic_loss became infinite."),
        (
            {"train/goals_already_achieved": [0.9] * 40},
            "90% of the relabelled goals were already achieved before the step.",
        ),
        ({"train/entropy_coefficient": [0.1] * 30 + [50.0] * 10}, "train/entropy_coefficient is 500 times its median."),
        (
            {"refused_episodes": [0] * 39 + [7]},
            "7 training episodes were refused, for example for NaN. The check plays too few episodes to see rare "
            "ones: let `step` raise an error for such values to see where they begin.",
        ),
        ({"failed_jobs": [2] * 40}, "The environment or a worker failed 2 times. The episodes were collected again."),
    ],
)
def test_each_problem_is_a_warning(tmp_path, columns, text):
    columns = {name: [value if np.isfinite(value) else "inf" for value in map(float, c)] for name, c in columns.items()}
    [found] = warnings_of(run_of(tmp_path, (0.1,) * 40, **columns))
    assert text in found


def test_a_fall_that_the_intervals_show_is_a_warning(tmp_path):
    """25 % of 100 episodes and then 0 % of 20: the verdict alone would say that little was learnt."""
    columns = {"test/success_low": [0.0, 0.175, 0.0], "test/success_high": [0.16, 0.343, 0.161]}
    [found] = warnings_of(run_of(tmp_path, (0.0, 0.25, 0.0), **columns))
    assert found == ("Success fell to 0% (95 % interval 0% to 16%) from 25% at 200 steps (18% to 34%).")
    columns["test/success_high"][-1] = 0.18  # the intervals overlap
    assert warnings_of(read_run(write_run(tmp_path / "other", (0.0, 0.25, 0.05), **columns))) == []


def test_problems_that_the_check_found_are_warnings(tmp_path):
    path = change_settings(write_run(tmp_path / "run"), check=["the reward has the wrong sign."])
    assert warnings_of(read_run(path)) == ["`hindsight-rl check`: the reward has the wrong sign."]


def test_damaged_lines_are_a_warning(tmp_path):
    path = write_run(tmp_path / "run")
    with (path / "episodes.jsonl").open("a") as file:
        file.write("{\n")
    assert warnings_of(read_run(path)) == ["1 damaged lines of episodes.jsonl were skipped."]


def test_the_entropy_bonus_may_lift_values_above_the_possible_returns(tmp_path):
    """By hand: the bonus is 0.1 * 3 per step, which is 3 in all with a discount of 0.9. 10 % of the range are 1."""
    columns = {"train/entropy_coefficient": [0.1] * 4, "train/entropy": [3.0] * 4}
    assert warnings_of(run_of(tmp_path / "a", **columns, **{"train/q_mean": [3.9] * 4})) == []
    [found] = warnings_of(run_of(tmp_path / "b", **columns, **{"train/q_mean": [4.1] * 4}))
    assert "above the highest possible discounted return (0)" in found


def test_values_are_not_compared_with_unknown_returns(tmp_path):
    spec = SPEC | {"reward_low": "-inf", "reward_high": "inf"}
    assert warnings_of(run_of(tmp_path, (0.1,) * 40, spec=spec, **{"train/q_mean": [1e6] * 40})) == []


def test_values_of_options():
    values = [None, True, 0, 10**400, 0.005, [64, 64], [], (), "", "td3", ("o0=-o0 a0=-a0", "o1=-o1"), (0.5, 1e-7)]
    texts = ["none", "True", "0", str(10**400), "0.005", "64 64", "none", "none", "none", "td3"]
    assert [format_value(value) for value in values] == [*texts, "o0=-o0 a0=-a0, o1=-o1", "0.5 1e-07"]


def test_durations():
    assert [duration(s) for s in (4.21, 150, 7200)] == ["4.21 s", "2 min", "2.0 h"]
