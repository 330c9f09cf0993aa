"""Judging: verdicts where relabelled, by hand; what is unusable is refused by name. Termination are tested in test_ends."""

import numpy as np
import pytest

from hindsight.errors import GoalEnvError
from hindsight.replay.ends import AS_STORED, Termination
from hindsight.replay.judging import Judging, Steps


def minus_distance(achieved_goal, goal, info):
    return -np.abs(achieved_goal - goal)[:, 0]


def steps():
    """Three steps that led to 1, 2 and 3, all under the goal 3; the first is not relabelled."""
    achieved, goal = np.array([[1.0], [2.0], [3.0]]), np.full((3, 1), 3.0)
    return Steps(achieved, goal, np.array([False, True, True]), np.full(3, 9.0), np.array([True, True, False]))


@pytest.mark.parametrize(
    ("ends", "terminated"),
    [
        (AS_STORED, [True, True, False]),
        (Termination(reward=0.0), [True, False, True]),
        (Termination(lambda achieved, goal, info: info["ends"]), [True, False, True]),
    ],
)
def test_only_relabelled_steps_are_judged(ends, terminated):
    judged = steps()
    Judging(minus_distance, ends).judge(judged, {"ends": np.array([False, False, True])})
    assert judged.reward.tolist() == [9.0, -1.0, 0.0]
    assert judged.terminated.tolist() == terminated


def test_what_is_paid_besides_neither_makes_a_success_nor_hides_one():
    judged = steps()
    judged.reward[:] = [0.0, 4.0, -5.0]  # under the goal 2 that was asked, compute_reward gives -1, 0 and -1
    Judging(minus_distance, Termination(reward=0.0), extra_reward=True).judge(judged, {}, np.full((3, 1), 2.0))
    assert judged.reward.tolist() == [0.0, -1.0 + 4.0, 0.0 - 4.0]
    assert judged.terminated.tolist() == [True, False, True]


def test_a_judge_that_writes_is_found_the_first_time():
    def spoil(achieved_goal, goal, info):
        info["wind"][:] = 0
        return goal[:, 0]

    with pytest.raises(GoalEnvError, match="compute_reward writes into its arguments"):
        Judging(spoil, AS_STORED).judge(steps(), {"wind": np.ones(3)})
    with pytest.raises(GoalEnvError, match=r"compute_terminated \(or compute_success\) writes"):
        Judging(minus_distance, Termination(spoil)).judge(steps(), {"wind": np.ones(3)})


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (
            lambda achieved, goal, info: -1.0,
            r"compute_reward returned shape \(\) of float64 for 3 goals, but \(3,\) numbers",
        ),
        (lambda achieved, goal, info: achieved, r"shape \(3, 1\)"),
        (lambda achieved, goal, info: np.array(["a", "b", "c"]), "of <U1"),
        (lambda achieved, goal, info: np.array([0, 0, np.nan]), "NaN or infinity for a relabelled goal"),
    ],
)
def test_what_cannot_be_used_is_refused(judge, words):
    with pytest.raises(GoalEnvError, match=words):
        Judging(judge, AS_STORED).judge(steps(), {})


def test_a_verdict_that_nobody_asked_for_may_be_anything():
    judged = steps()
    Judging(lambda achieved, goal, info: np.array([np.nan, 1, 2]), AS_STORED).judge(judged, {})
    assert judged.reward.tolist() == [9.0, 1.0, 2.0]
