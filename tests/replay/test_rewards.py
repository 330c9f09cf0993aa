"""Recomputed rewards and terminations, worked out by hand. Rules of termination are tested in test_termination."""

import copy
import pickle

import numba
import numpy as np
import pytest
from tiny import ACTION_SPACE, OBSERVATION_SPACE, buffer_of, make_episode

from hindsight_rl.errors import GoalEnvError, OptionError
from hindsight_rl.records import BATCH_FIELDS, Batch
from hindsight_rl.records.reward_scale import RewardScale
from hindsight_rl.replay.rows import Draw, read_only
from hindsight_rl.replay.sampler import RandomNumbers
from hindsight_rl.replay.strategies import AS_STORED, Termination
from hindsight_rl.replay.transforms import RewardTransform


def minus_distance(achieved_goal, goal, info):
    return -np.abs(achieved_goal - goal)[:, 0]


def three_steps():
    """Three steps that achieve 1, 2 and 3, all with the goal 3. The first is not relabelled."""
    achieved, goal, row = np.array([[1.0], [2.0], [3.0]]), np.full((3, 1), 3.0), np.arange(3)
    reward, terminated, is_relabelled = np.full(3, 9.0), np.array([True, True, False]), np.array([False, True, True])
    return Batch(achieved - 1, achieved - 1, goal, goal, reward, achieved, achieved, terminated, is_relabelled, row)


def transform_of(function, termination=AS_STORED, own_goals=(3.0, 3.0, 3.0), **options):
    return RewardTransform(function, termination, np.array(own_goals)[:, None], **options)


def recompute(batch, transform, **info):
    info = {key: read_only(values) for key, values in info.items()}
    arguments = (read_only(batch.next_achieved_goal), read_only(batch.goal), info)
    transform(batch, Draw(batch, batch, arguments, batch.row, batch.row), RandomNumbers(0))


def test_a_graded_reward_is_higher_for_nearer_goals():
    """Achieved are 1, 2 and 3, the goal is 5 and a success is nearer than 1.5: differences of 4, 3 and 2, halved twice."""
    steps = three_steps()
    steps.goal[:] = 5.0
    steps.reward[:] = -1.0
    seen = steps.next_achieved_goal.copy()
    recompute(
        steps, transform_of(lambda achieved, goal, info: (np.abs(achieved - goal)[:, 0] < 1.5) - 1.0, tolerance_levels=2)
    )
    assert steps.reward.tolist() == pytest.approx([-2 / 3, -2 / 3, -1 / 3])  # 4 2 1; 3 1.5 0.75; 2 1 0.5
    assert steps.next_achieved_goal.tolist() == seen.tolist()


def test_a_level_that_compute_reward_cannot_answer_for_has_the_reward_of_its_sample():
    """Rewards are known for goals in steps of a half. Achieved are 1, 2 and 3: half and a quarter of the distance to 5."""

    def by_table(achieved, goal, info):
        if (achieved * 2 % 1).any():
            raise KeyError("not on the grid")
        return (np.abs(achieved - goal)[:, 0] < 1.5) - 1.0

    steps = three_steps()
    steps.goal[:] = 5.0
    steps.reward[:] = -1.0
    recompute(steps, transform_of(by_table, tolerance_levels=3))  # differences: 4 2 1 0.5; 3 1.5 - -; 2 1 0.5 -
    assert steps.reward.tolist() == [-0.5, -1.0, -0.5]


def test_all_samples_are_recomputed_if_the_step_had_other_rewards():
    steps = three_steps()
    recompute(steps, transform_of(minus_distance, recomputes_all=True))
    assert steps.reward.tolist() == [-2.0, -1.0, 0.0]


def test_what_compute_reward_leaves_out_stays_with_a_graded_reward():
    steps = three_steps()
    steps.reward[:] = [-2.0, -1.5, 0.5]  # compute_reward gives -2, -1 and 0 for the goal 3
    recompute(steps, transform_of(minus_distance, tolerance_levels=1, extra_reward=True))
    assert steps.reward.tolist() == [-1.5, -1.25, 0.5]  # the means -1.5, -0.75 and 0, a penalty of 0.5, a bonus of 0.5


@pytest.mark.parametrize(
    ("termination", "terminated"),
    [
        (AS_STORED, [True, True, False]),
        (Termination(least_reward=0.0), [True, False, True]),
        (Termination(lambda achieved, goal, info: achieved[:, 0] == goal[:, 0]), [True, False, True]),
    ],
)
def test_only_relabelled_steps_are_recomputed(termination, terminated):
    """The second step ended at its own goal, 2, which is not the goal that it is relabelled with."""
    steps = three_steps()
    recompute(steps, transform_of(minus_distance, termination, own_goals=(3.0, 2.0, 3.0)))
    assert steps.reward.tolist() == [9.0, -1.0, 0.0]
    assert steps.terminated.tolist() == terminated


@pytest.mark.parametrize(
    ("termination", "stays"),
    [
        (Termination(least_reward=0.0), True),
        (Termination(lambda achieved, goal, info: info["crash"] + (achieved == goal)[:, 0]), True),
        (Termination(lambda achieved, goal, info: np.zeros(len(goal)), keeps_events=False), False),
    ],
)
def test_an_end_that_the_own_goal_does_not_explain_stays(termination, stays):
    """The second step ended at 2 with the goal 3: an event, which ends it under every goal."""
    steps = three_steps()
    recompute(steps, transform_of(minus_distance, termination), crash=np.zeros(3))
    assert steps.terminated[1] == stays


def test_extra_reward_is_added_but_does_not_decide_success():
    steps = three_steps()
    steps.reward[:] = [0.0, 4.0, -5.0]  # for the desired goal 2, compute_reward gives -1, 0 and -1
    own = {"own_goals": (2.0, 2.0, 2.0), "extra_reward": True}
    recompute(steps, transform_of(minus_distance, Termination(least_reward=0.0), **own))
    assert steps.reward.tolist() == [0.0, -1.0 + 4.0, 0.0 - 4.0]
    assert steps.terminated.tolist() == [True, False, True]


def two_values(failure, success):
    return lambda achieved, goal, info: np.where(np.abs(achieved - goal)[:, 0] < 1.5, success, failure)


@pytest.mark.parametrize("rewards", [(-1.0, 0.0), (0.0, 1.0), (0.0, 100.0), (-100.0, 0.0), (99.0, 100.0), (0.1, 0.3)])
@pytest.mark.parametrize("options", [{}, {"tolerance_levels": 2}, {"extra_reward": True}])
def test_two_rewards_of_any_values_are_sampled_as_the_same_bytes(rewards, options):
    """The goal is 5, achieved are 1, 2 and 4. The second step ends, as by a crash."""
    sampled = []
    for failure, success in ((-1.0, 0.0), rewards):
        steps = three_steps()
        steps.goal[:], steps.next_achieved_goal[2] = 5.0, 4.0
        steps.reward, steps.terminated = np.full(3, failure, np.float32), np.array([False, True, False])
        scale = RewardScale(success, failure)
        own = {"own_goals": (9.0, 9.0, 9.0), "scale": scale, "discount": 0.9}
        recompute(steps, transform_of(two_values(failure, success), **own, **options))
        sampled.append(steps.reward)
    assert sampled[0].tobytes() == sampled[1].tobytes()


def test_an_end_without_success_counts_as_failure_for_ever_and_one_with_success_as_success():
    """With a discount of 0.9, a reward of -1 in each step after the end adds -0.9 / (1 - 0.9) = -9."""
    steps = three_steps()
    steps.reward[:], steps.terminated[:] = [0.0, 100.0, 0.0], True
    steps.is_relabelled[:] = [False, False, True]
    goals = {"own_goals": (3.0, 3.0, 3.0), "scale": RewardScale(100.0, 0.0), "discount": 0.9}
    recompute(steps, transform_of(two_values(0.0, 100.0), **goals))  # achieved are 1, 2 and 3, the goal is 3
    assert steps.reward.tolist() == pytest.approx([-10.0, 0.0, 0.0])


@pytest.mark.parametrize(("least_reward", "rewards"), [(9.5, [-18.4, -18.2, 0.0]), (8.5, [-18.4, -0.2, 0.0])])
def test_of_a_dense_reward_an_end_is_a_success_where_it_would_end_relabelled_samples(least_reward, rewards):
    """Achieved are 1, 2 and 3, the goal is 3. With a discount of 0.9, rewards of 0, which are -2, add -18 to a failure."""
    steps = three_steps()
    steps.reward[:], steps.terminated[:], steps.is_relabelled[:] = [8.0, 9.0, 10.0], [True, True, False], False
    options = {"scale": RewardScale(10.0, 5.0, is_sparse=False), "discount": 0.9}
    termination = Termination(least_reward=least_reward)
    recompute(steps, transform_of(lambda achieved, goal, info: 10 - np.abs(achieved - goal)[:, 0], termination, **options))
    assert steps.reward.tolist() == pytest.approx(rewards)


def test_of_a_dense_reward_an_end_near_the_goal_is_a_success_if_nothing_else_is_known():
    steps = three_steps()
    steps.reward[:], steps.terminated[:], steps.is_relabelled[:] = [5.0, 9.0, 10.0], [True, True, False], False
    options = {"scale": RewardScale(10.0, 5.0, is_sparse=False), "discount": 0.9}
    recompute(steps, transform_of(lambda achieved, goal, info: 10 - 4 * np.abs(achieved - goal)[:, 0], **options))
    assert steps.reward.tolist() == pytest.approx([-1.0 - 18.0, -0.2 - 18.0, 0.0])


def test_the_least_reward_of_a_success_is_in_the_units_of_the_environment():
    steps = three_steps()
    own = {"own_goals": (9.0, 9.0, 9.0), "scale": RewardScale(0.0, -50.0, is_sparse=False)}
    recompute(steps, transform_of(minus_distance, Termination(least_reward=-1.0, keeps_events=False), **own))
    assert steps.terminated.tolist() == [True, True, True]
    assert steps.reward.tolist() == pytest.approx([9 / 50, -1 / 50, 0.0])


def write_info(achieved_goal, goal, info):
    info["wind"][:] = 0
    return goal[:, 0]


def write_goal(achieved_goal, goal, info):
    goal -= achieved_goal
    return goal[:, 0]


@pytest.mark.parametrize("function", [write_info, write_goal])
def test_a_function_that_writes_into_its_arguments_is_refused_every_time(function):
    for _ in range(2):
        with pytest.raises(GoalEnvError, match="compute_reward must not write into its arguments"):
            recompute(three_steps(), transform_of(function), wind=np.ones(3))
        with pytest.raises(GoalEnvError, match=r"compute_terminated \(or compute_success\) must not write"):
            recompute(three_steps(), transform_of(minus_distance, Termination(function)), wind=np.ones(3))


def test_an_error_of_a_function_names_the_info_that_it_got():
    with pytest.raises(
        GoalEnvError, match=r"for 3 goals and an info with wind \(KeyError: 'torque'\)\. If it reads others, name"
    ):
        recompute(three_steps(), transform_of(lambda achieved, goal, info: info["torque"]), wind=np.ones(3))
    with pytest.raises(GoalEnvError, match=r"compute_reward failed .* no entries \(ValueError: .*broadcast") as error:
        recompute(three_steps(), transform_of(lambda achieved, goal, info: goal + np.zeros((2, 1))))
    assert isinstance(error.value.__cause__, ValueError)
    with pytest.raises(
        GoalEnvError, match=r"TypeError: only .* If it accepts one goal only, vectorize it, or let make_buffer"
    ):
        recompute(three_steps(), transform_of(lambda achieved, goal, info: -float(goal[:, 0])))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, g, i: -1.0, r"compute_reward must return numbers of shape \(3,\) for 3 goals, got shape \(\)"),
        (lambda a, g, i: np.zeros((3, 1)), r"got shape \(3, 1\) of float64. Vectorize it"),
        (lambda a, g, i: ["a"] * 3, r"got shape \(3,\) of <U1"),
        (lambda a, g, i: np.array([0, np.nan, 0]), "compute_reward must return finite rewards"),
    ],
)
def test_unusable_values_are_refused(function, message):
    with pytest.raises(GoalEnvError, match=message):
        recompute(three_steps(), transform_of(function))


def test_values_of_samples_that_are_not_relabelled_are_ignored():
    steps = three_steps()
    recompute(steps, transform_of(lambda achieved, goal, info: np.array([np.nan, 1, 2])))
    assert steps.reward.tolist() == [9.0, 1.0, 2.0]


@numba.njit
def compiled_reward(achieved_goal, goal, info):
    return -np.abs(achieved_goal - goal)[:, 0]


@numba.njit
def compiled_success(achieved_goal, goal, info):
    return achieved_goal[:, 0] == goal[:, 0]


@pytest.mark.parametrize("relabel_at", ["sample", "episode_end"])
def test_compiled_functions_give_the_same_samples(relabel_at, tmp_path):
    options = {"relabel_at": relabel_at, "relabel_terminated": "success"}
    plain = buffer_of(
        50, OBSERVATION_SPACE, ACTION_SPACE, minus_distance, **options, compute_success=compiled_success.py_func
    )
    quick = buffer_of(50, OBSERVATION_SPACE, ACTION_SPACE, compiled_reward, **options, compute_success=compiled_success)
    for buffer in (plain, quick):
        buffer.add_episode(make_episode(1, 6))
    for other in (quick, copy.deepcopy(quick), pickle.loads(pickle.dumps(quick))):
        one, two = copy.deepcopy(plain).sample(64), other.sample(64)
        assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in BATCH_FIELDS)
    assert plain.already_achieved_fraction(one) == quick.already_achieved_fraction(one)


def test_a_compiled_function_gets_no_info():
    with pytest.raises(OptionError, match="A compiled function gets no info, but info_keys are wind"):
        buffer_of(50, OBSERVATION_SPACE, ACTION_SPACE, compiled_reward, info_keys=("wind",))
