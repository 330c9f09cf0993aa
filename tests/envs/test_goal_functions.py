"""The reward, termination and success functions of environments, of any form, good and bad."""

import itertools
import re
import warnings

import gymnasium
import numpy as np
import pytest
from line_env import Line, Scalar, Terminating, TerminatingOneByOne, near

from hindsight_rl import HER
from hindsight_rl.envs.goal_functions import (
    CallForm,
    GoalFunction,
    read_success,
    reward_function,
    success_function,
    terminated_function,
)
from hindsight_rl.envs.small_tasks import PointReach
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


SHAPES = [(), (1,), (2,), (8,), (4, 8)]
TOLL = {"toll": 0.5}


def plain_for_one(a, d, info):
    rewards = np.atleast_1d(near(a, d)) - 1.0
    return float(rewards[0]) if rewards.size == 1 else rewards


def batches_only(a, d, info):
    return np.where(np.linalg.norm(a - d, axis=1) < 0.5, 0, -1)


def float32_only(a, d, info):
    assert a.dtype == d.dtype == np.float32
    return near(a, d) - 1.0


def writing(a, d, info):
    a -= d
    return near(a, np.zeros_like(d)) - 1.0


def slicing_the_batch(a, d, info):
    return near(a[:3], d[:3]) - 1.0


def list_of_infos(a, d, info):
    toll = info["toll"] if isinstance(info, dict) else np.array([each["toll"] for each in info])
    assert np.ndim(toll) == a.ndim - 1
    return near(a, d) - 0.5 - toll


def array_of_infos(a, d, info):
    if a.ndim > 1:
        assert isinstance(info, np.ndarray)
        info = {"toll": np.array([each["toll"] for each in info])}
    return near(a, d) - 0.5 - info["toll"]


FORMS = {
    "vectorized": (lambda a, d, info: near(a, d) - 1.0, "batch"),
    "a plain number for a batch of one": (plain_for_one, "batch"),
    "a column": (lambda a, d, info: (near(a, d) - 1.0).reshape(-1, 1), "batch"),
    "a list": (lambda a, d, info: [float(n) - 1 for n in np.atleast_1d(near(a, d))], "batch"),
    "bools": (lambda a, d, info: near(a, d), "batch"),
    "batches only": (batches_only, "batch"),
    "one dtype only": (float32_only, "batch"),
    "writes into its arguments": (writing, "batch"),
    "a list of infos": (list_of_infos, "batch"),
    "an array of infos": (array_of_infos, "batch"),
    "one number for all": (lambda a, d, info: 0 if (np.abs(a - d) < 0.3).all() else -1, "single"),
    "slices of the batch": (slicing_the_batch, "single"),
}


def changed(**methods):
    return type("Changed", (Line,), methods)()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:compute_reward of Changed is wrong for a batch")
def test_every_form_answers_for_every_leading_shape_and_dtype(name):
    compute, goals = FORMS[name]
    env = changed(
        info=lambda self, o: {**Line.info(self, o), **TOLL}, compute_reward=lambda self, a, d, info: compute(a, d, info)
    )
    reward = reward_function(env)
    assert reward.form.goals == goals
    for shape, dtype in itertools.product(SHAPES, (np.float32, np.float64)):
        achieved = np.zeros((*shape, 2), dtype)
        achieved[..., 0] = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape)
        desired = np.full((*shape, 2), 0.125, dtype)
        achieved.flags.writeable = desired.flags.writeable = False
        values = reward(achieved, desired, {"toll": np.full(shape, 0.5)})
        is_near = achieved[..., 0] == 0
        assert values.shape == shape
        assert values.dtype.kind == "f"
        assert np.array_equal(values, is_near * 1.0 - (name != "bools"))
    assert reward(np.zeros((0, 2)), np.zeros((0, 2)), {}).shape == (0,)
    infos = [{"toll": 0.5}] * 3
    for rows in (infos, tuple(infos), np.array(infos, dtype=object)):
        assert reward(np.zeros((3, 2)), np.zeros((3, 2)), rows).tolist() == [float(name == "bools")] * 3


def test_flags_and_whole_numbers_of_info_come_back_as_such():
    """A buffer holds them as floats. Not all values of an entry need be whole where the first one was."""

    def compute(self, a, d, info):
        early = ~np.asarray(info["late"])
        assert np.asarray(info["step"]).dtype.kind == "i"
        return (near(a, d) & early) - 1.0 - info["cost"]

    given = lambda self, o: {**Line.info(self, o), "late": self.steps > 5, "step": self.steps, "cost": 0}  # noqa: E731
    reward = reward_function(changed(info=given, compute_reward=compute))
    stored = {"late": np.array([0.0, 1.0]), "step": np.array([3.0, 7.0]), "cost": np.array([0.25, 0.0])}
    assert reward(np.zeros((2, 2)), np.zeros((2, 2)), stored).tolist() == [-0.25, -1.0]


def test_arguments_that_a_function_writes_into_keep_their_values():
    reward = reward_function(changed(compute_reward=lambda self, a, d, info: writing(a, d, info)))
    achieved = np.ones((3, 2), np.float32)
    assert reward(achieved, np.zeros((3, 2), np.float32), {}).tolist() == [-1, -1, -1]
    assert (achieved == 1).all()


def test_a_termination_that_is_a_plain_bool_for_a_batch_of_one_answers_for_all():
    def compute(self, a, d, info):
        ended = np.atleast_1d(near(a, d))
        return bool(ended[0]) if ended.size == 1 else ended

    env = changed(compute_terminated=compute, terminates=lambda self, o: bool(near(o["achieved_goal"], self.goal)))
    terminated = terminated_function(env)
    assert terminated(np.zeros((1, 2)), np.zeros((1, 2)), {}).tolist() == [True]
    assert terminated(np.zeros((2, 2)), np.array([[0, 0], [9, 9]]), {}).tolist() == [True, False]


def test_a_success_function_needs_no_info_and_must_agree_with_the_step():
    success = success_function(changed(compute_success=lambda self, a, d: near(a, d)))
    assert success(np.zeros((2, 2)), np.array([[0, 0], [9, 9]]), {}).tolist() == [True, False]
    assert success_function(changed(compute_success=lambda self, a, d, info: True)) is None
    assert success_function(Line()) is None


PLACES = np.array([0.1, 0.7, 1.3, 1.9, 2.5])  # not numbers of float32


class Table(Line):
    """Goals are places in a table, as float64. The reward of any other goal is a KeyError."""

    def __init__(self, dtype=np.float64):
        super().__init__()
        self.dtype, self.index = dtype, {float(dtype(place)): i for i, place in enumerate(PLACES)}
        box = type(self.observation_space["achieved_goal"])(-100, 100, (2,), dtype)
        self.observation_space = type(self.observation_space)(
            {**self.observation_space.spaces, "achieved_goal": box, "desired_goal": box}
        )

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.at, self.goal_at = self.np_random.integers(len(PLACES), size=2)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.at = int(np.clip(self.at + np.sign(action[0]), 0, len(PLACES) - 1))
        self.steps += 1
        success = bool(self.at == self.goal_at)
        return self.observe(), success - 1.0, False, self.steps >= self.max_steps, {"is_success": success}

    def observe(self):
        here, goal = (np.full(2, PLACES[at], self.dtype) for at in (self.at, self.goal_at))
        return {"observation": np.float32(here), "achieved_goal": here, "desired_goal": goal}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return 0.0 if self.index[float(achieved_goal[0])] == self.index[float(desired_goal[0])] else -1.0


@pytest.mark.parametrize(("dtype", "needs_float64"), [(np.float32, False), (np.float64, True)])
def test_goals_in_a_table_are_tried_with_those_of_the_environment_only(dtype, needs_float64):
    with pytest.warns(UserWarning, match="called for each goal"):
        reward = reward_function(Table(dtype))
    assert reward.needs_float64 == needs_float64
    goals = np.stack([PLACES, PLACES], 1).astype(dtype)
    assert reward(goals[[0, 1]], goals[[0, 2]], {}).tolist() == [0, -1]


class PlainForOne(Line):
    """Its functions return a plain number for a batch of one."""

    def terminates(self, observation):
        return bool(near(observation["achieved_goal"], self.goal))

    def compute_reward(self, achieved_goal, desired_goal, info):
        return plain_for_one(achieved_goal, desired_goal, info)

    def compute_terminated(self, achieved_goal, desired_goal, info):
        ended = np.atleast_1d(near(achieved_goal, desired_goal))
        return bool(ended[0]) if ended.size == 1 else ended


@pytest.mark.parametrize("structure", ["inferred", "none"])
@pytest.mark.parametrize("kind", [Table, PlainForOne])
@pytest.mark.filterwarnings("ignore:check of", "ignore:compute_reward of Table is wrong for a batch")
def test_a_run_ends_by_itself_whatever_form_the_functions_have(kind, structure):
    options = {"hidden": (8,), "random_steps": 30, "batch_size": 1, "updates_per_step": 1.0, "structure": structure}
    with HER(lambda: gymnasium.wrappers.TimeLimit(kind(), 10), agent="td3", **options) as model:
        assert model.learn(200).num_timesteps >= 200


class Breaking(Line):
    """After 150 steps, its reward has another form than in its trial."""

    n_steps = 0

    def step(self, action):
        self.n_steps += 1
        return super().step(action)

    def compute_reward(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal) - 1.0 if self.n_steps < 150 else np.zeros(3)


def test_a_function_that_changes_its_form_ends_the_run_with_an_error_that_names_the_call():
    options = {"hidden": (8,), "random_steps": 30, "batch_size": 16, "updates_per_step": 1.0, "check": False}
    message = (
        r"compute_reward of Breaking failed for goals of leading shape \(\d+,\) .*float64 of shape \(3,\), not one number"
    )
    maker = lambda: gymnasium.wrappers.TimeLimit(Breaking(), 10)  # noqa: E731
    with HER(maker, agent="td3", **options) as model, pytest.raises(GoalEnvError, match=message):
        model.learn(400)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda a, d, info: np.zeros(3), r"it returned float64 of shape \(3,\), not one number for each of 8 goals"),
        (lambda a, d, info: 1 / 0, "ZeroDivisionError"),
        (lambda a, d, info: np.array(["one"] * 8), "not one number"),
        (lambda a, d, info: info["absent"], "name them in the option info_keys"),
    ],
)
def test_a_function_that_later_breaks_its_form_is_an_error_that_names_the_call(compute, message):
    function = GoalFunction(compute, "compute_reward of Changed", (2,), CallForm())
    with pytest.raises(GoalEnvError, match=rf"(?s)compute_reward of Changed .* leading shape \(8,\).*{message}"):
        function(np.zeros((8, 2)), np.zeros((8, 2)), {})
