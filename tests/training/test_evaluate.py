import numpy as np
import pytest

from hindsight.errors import MissingKeyError
from hindsight.records import Episode
from hindsight.training.evaluate import Evaluation, outcome_of, wilson_interval


def episode(success, rewards=(-1.0, 0.0), number=0):
    goals = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    return Episode(
        np.zeros((3, 4)),
        goals,
        np.tile([3.0, 4.0], (3, 1)),
        np.zeros((2, 2)),
        np.array(rewards),
        success=success,
        number=number,
    )


def test_an_outcome_tells_the_first_goal_and_the_last_distance():
    outcome = outcome_of(episode(True, number=7), seed=11)
    assert (outcome.episode, outcome.seed, outcome.success, outcome.steps) == (7, 11, True, 2)
    assert outcome.achieved_goal == (0.0, 0.0)
    assert outcome.final_goal == (3.0, 0.0)
    assert outcome.desired_goal == (3.0, 4.0)
    assert outcome.episode_return == -1.0
    assert outcome.final_distance == 4.0


def test_statistics_of_two_episodes():
    evaluation = Evaluation((outcome_of(episode(True), 0), outcome_of(episode(False, (-1.0, -1.0)), 1)))
    assert (evaluation.success_rate, evaluation.return_mean, evaluation.return_std) == (0.5, -1.5, 0.5)
    assert evaluation.final_distance == 4.0


def test_no_word_of_success_is_an_error_not_a_zero():
    with pytest.raises(MissingKeyError, match="is_success"):
        outcome_of(episode(None), 0)


def test_wilson_interval_against_published_values():
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I
