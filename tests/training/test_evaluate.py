from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.errors import CollectError, MissingKeyError
from hindsight_rl.records import Episode
from hindsight_rl.training.evaluate import JOB_ATTEMPTS, Evaluation, evaluate, outcome_of


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


def test_an_outcome_has_the_first_goal_and_the_last_distance():
    outcome = outcome_of(episode(True, number=7), seed=11)
    assert (outcome.episode, outcome.seed, outcome.success, outcome.steps) == (7, 11, True, 2)
    assert outcome.achieved_goal == (0.0, 0.0)
    assert outcome.final_goal == (3.0, 0.0)
    assert outcome.desired_goal == (3.0, 4.0)
    assert outcome.episode_return == -1.0
    assert outcome.final_distance == 4.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["observation", "achieved_goal", "desired_goal", "reward"])
def test_an_episode_with_nan_or_infinity_is_a_failure(name, value):
    broken = episode(True)
    getattr(broken, name)[1] = value
    outcome = outcome_of(broken, 0)
    assert (outcome.success, outcome.is_finite) == (False, False)
    assert str(outcome).startswith("failure (NaN or infinity in its steps), return")
    evaluation = Evaluation((outcome, outcome_of(episode(True), 1)))
    assert evaluation.success_rate == 0.5
    assert str(evaluation).endswith(", 1 failed with NaN or infinity in an observation, a goal or a reward")


@pytest.mark.parametrize(("distance", "text"), [(0.0, "0.0000"), (2.34e-6, "2.3e-06"), (0.001, "0.0010"), (1.5, "1.5000")])
def test_small_distances_are_shown(distance, text):
    outcome = replace(outcome_of(episode(True), 0), final_distance=distance)
    assert str(outcome) == f"success, return -1.00, final distance {text}, 2 steps"
    assert str(Evaluation((outcome,))).endswith(f"final distance {text}")


def test_statistics_of_two_episodes():
    evaluation = Evaluation((outcome_of(episode(True), 0), outcome_of(episode(False, (-1.0, -1.0)), 1)))
    assert (evaluation.success_rate, evaluation.return_mean, evaluation.return_std) == (0.5, -1.5, 0.5)
    assert evaluation.final_distance == 4.0
    assert evaluation.interval == pytest.approx((0.0945, 0.9055), abs=1e-4)


def test_an_environment_that_reports_no_success_is_an_error():
    with pytest.raises(MissingKeyError, match="is_success"):
        outcome_of(episode(None), 0)


class Failing:
    """A source in which every job fails `failures` times before it returns an episode."""

    def __init__(self, failures):
        self.failures, self.left, self.dropped = failures, {}, []

    def submit(self, job):
        [number] = job.episodes
        self.left[number] = self.failures
        return number

    def result(self, ticket):
        self.left[ticket] -= 1
        if self.left[ticket] >= 0:
            raise CollectError("the cable came off")
        return [episode(True, number=ticket)]

    def drop(self, ticket):
        self.dropped.append(ticket)


def test_an_evaluation_job_that_fails_runs_again():
    outcomes = list(evaluate(Failing(JOB_ATTEMPTS - 1), None, 0, range(2)))
    assert [outcome.episode for outcome in outcomes] == [0, 1]


def test_an_evaluation_job_that_always_fails_raises_its_error_and_drops_the_jobs():
    source = Failing(JOB_ATTEMPTS)
    with pytest.raises(CollectError, match="cable"):
        list(evaluate(source, None, 0, range(2)))
    assert source.dropped == [0, 1]
