"""The reward and termination functions of environments, good and bad."""

import re
import warnings

import gymnasium
import numpy as np
import pytest
from line_env import Line, Scalar, Terminating, TerminatingOneByOne, near

from hindsight_rl.envs.goal_functions import read_success, reward_function, terminated_function
from hindsight_rl.envs.point_reach import PointReach
from hindsight_rl.errors import GoalEnvError, InputError

ACHIEVED, DESIRED = np.array([[0, 0], [0, 0], [3, 3]], np.float32), np.array([[0, 0.1], [1, 1], [3, 3]], np.float32)


def rewarding(compute):
    return type("Changed", (Line,), {"compute_reward": lambda self, a, d, info: compute(a, d, info)})()


def test_a_reward_that_accepts_batches_is_called_as_it_is():
    env = PointReach()
    reward = reward_function(gymnasium.wrappers.TimeLimit(env, 5))
    assert (reward.function, reward.form.goals) == (env.compute_reward, "batch")


def test_the_outermost_wrapper_with_a_reward_is_used():
    class Doubled(gymnasium.Wrapper):
        def compute_reward(self, achieved_goal, desired_goal, info):
            return 2 * self.env.compute_reward(achieved_goal, desired_goal, info)

    assert reward_function(gymnasium.wrappers.TimeLimit(Doubled(Line()), 5))(ACHIEVED, DESIRED, {}).tolist() == [0, -2, 0]


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, d, info: 0.0 if np.abs(a - d).max() < 0.35 else -1.0,
        lambda a, d, info: -float(not near(a, d)),  # raises for a batch
        lambda a, d, info: -float(np.abs(np.subtract(a, d, out=a)).max() > 0.35),  # and writes
        lambda a, d, info: (near(a, d) - 1.0) * (1 if a.ndim == 1 or len(a) < 5 else 2),
    ],
)
def test_a_reward_that_does_not_accept_batches_is_called_for_each_goal_with_one_warning(compute):
    with pytest.warns(UserWarning, match="Changed is wrong for a batch of goals. It is called for each goal") as caught:
        reward = reward_function(rewarding(compute))
    assert len(caught) == 1
    achieved = ACHIEVED.copy()
    values = reward(achieved, DESIRED, {})
    assert values.tolist() == [0, -1, 0]
    assert values.dtype == np.float64
    assert np.array_equal(achieved, ACHIEVED)


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, d, info: (near(a, d) - 1.0).reshape(-1, 1),
        lambda a, d, info: [float(n) - 1 for n in np.atleast_1d(near(a, d))],
    ],
)
def test_other_forms_of_right_rewards_become_arrays_without_a_warning(compute):
    values = reward_function(rewarding(compute))(ACHIEVED, DESIRED, {})
    assert values.tolist() == [0, -1, 0]
    assert values.dtype == np.float64


def test_integer_rewards_become_floats_without_a_warning():
    given = reward_function(rewarding(lambda a, d, info: near(a, d).astype(int) - 1))(ACHIEVED, DESIRED, {})
    assert given.dtype == np.float64
    assert given.tolist() == [0, -1, 0]


def test_integers_of_single_goals_become_floats_and_bools():
    with pytest.warns(UserWarning, match="called for each goal"):
        reward = reward_function(rewarding(lambda a, d, info: -int(not near(a, d))))
    assert reward(ACHIEVED, DESIRED, {}).dtype == np.float64
    numbers = {"compute_terminated": lambda self, a, d, info: near(a, d) * 1.0}
    terminated = terminated_function(type("Changed", (Terminating,), numbers)())(ACHIEVED, DESIRED, {})
    assert terminated.dtype == bool
    assert terminated.tolist() == [True, False, True]


def test_a_batch_that_is_wrong_only_near_the_goal_is_found():
    """As in the pen of the robot hand: rewards of a batch include a part of the difference that they should ignore."""

    def compute(a, d, info):
        return (np.abs(a - d)[..., 0] * (1 if a.ndim == 1 else 1.5) < 0.5) - 1.0

    with pytest.warns(UserWarning, match="wrong for a batch"):
        reward = reward_function(rewarding(compute))
    assert reward(np.array([[0.4, 0.0]]), np.array([[0.0, 0.0]]), {}).tolist() == [0.0]


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda a, d, info: np.nan * near(a, d), "finite"),
        (lambda a, d, info: 1 / 0, "ZeroDivisionError"),
        (lambda a, d, info: (0.0, 1.0), "not one number for each of 1 goals"),
        (lambda a, d, info: info["absent"], "KeyError"),
        (lambda a, d, info: -np.random.default_rng().random(near(a, d).shape), "must not be random"),
    ],
)
def test_a_reward_that_cannot_be_used_is_an_error(compute, message):
    with pytest.raises(GoalEnvError, match=f"compute_reward of Changed.*{message}"):
        reward_function(rewarding(compute))


def test_no_reward_and_a_failing_step_are_errors():
    env = Line()
    env.compute_reward = None
    with pytest.raises(GoalEnvError, match="has no compute_reward"):
        reward_function(env)
    env.step = None
    with pytest.raises(GoalEnvError, match="The first reset and step of Line failed"):
        reward_function(env)


def test_the_info_reaches_a_reward_row_by_row():
    class Bonus(Scalar):
        def info(self, observation):
            return {"bonus": 1.5, "name": "text"}

        def compute_reward(self, achieved_goal, desired_goal, info):
            return super().compute_reward(achieved_goal, desired_goal, info) + float(info["bonus"])

    with pytest.warns(UserWarning, match="called for each goal"):
        reward = reward_function(Bonus())
    assert reward(ACHIEVED, DESIRED, {"bonus": np.array([1.0, 2.0, 3.0])}).tolist() == [1.0, 1.0, 3.0]
    assert reward(ACHIEVED, DESIRED, [{"bonus": 1.0}] * 3).tolist() == [1.0, 0.0, 1.0]


def test_compute_terminated_is_used_if_it_is_right():
    env = Terminating()
    assert terminated_function(env).function == env.compute_terminated
    by_row = terminated_function(TerminatingOneByOne())
    assert by_row(ACHIEVED, DESIRED, {}).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "compute",
    [lambda self, a, d, info: False, lambda self, a, d, info: True, lambda self, a, d, info: 1 / 0],
    ids=["never", "contradicts the step", "fails"],
)
def test_compute_terminated_is_not_used_if_it_is_wrong(compute):
    assert terminated_function(type("Changed", (Line,), {"compute_terminated": compute})()) is None


def test_no_compute_terminated_is_none():
    assert terminated_function(Line()) is None


@pytest.mark.parametrize(
    ("info", "success"),
    [
        ({}, None),
        ({"is_success": None, "success": None}, None),
        ({"is_success": True}, True),
        ({"is_success": np.float32(0)}, False),
        ({"is_success": np.array([True])}, True),
        ({"success": np.bool_(True)}, True),
        ({"is_success": False, "success": True}, False),
    ],
)
def test_success_is_read_from_either_key(info, success):
    assert read_success(info) is success


@pytest.mark.parametrize("value", [[True, False], "yes", np.zeros(0), np.nan, 0.2, -1, 2, np.inf])
def test_a_success_that_is_neither_true_nor_false_is_an_error_that_names_the_value(value):
    with pytest.raises(InputError, match=re.escape(f"must be True, False, 1 or 0, got {value!r}.")):
        read_success({"is_success": value})


def test_a_good_environment_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reward_function(Line())(ACHIEVED, DESIRED, {}).tolist() == [0, -1, 0]
