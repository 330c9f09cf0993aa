"""How far starts are from a success."""

import numpy as np
import pytest

from hindsight_rl.records import ArraySpec, Episode
from hindsight_rl.structure.axis_symmetries import mirror
from hindsight_rl.structure.steps import EXCEPTIONS
from hindsight_rl.structure.success import (
    Endings,
    RewardPairs,
    count_tolerance_levels,
    errors_add_up,
    find_success_distance,
)
from hindsight_rl.task_structure.affine import AffineMap

NUMBER = ArraySpec((1,), "float32", (-1.0,), (1.0,))


def start(position, goal):
    positions = np.array([[position], [position + 9]])
    return Episode(
        positions, positions, np.array([[goal], [goal]]), np.zeros((1, 1)), np.zeros(1), info={"radius": np.ones(1)}
    )


def near(achieved_goal, goal, info):
    return (np.abs(achieved_goal - goal)[:, 0] < info["radius"]) - 1.0


@pytest.mark.parametrize(
    ("distances", "levels"),
    [
        ((0.5, 0.5, 9.0), 0),  # most starts are successes
        ((3.9, 3.9, 9.0), 2),  # a quarter is nearer than 1
        ((4.1, 3.9, 9.0), 3),  # of two of three: an eighth
        ((1e4, 1e4, 1e4), 0),  # too far
    ],
)
def test_tolerance_levels_until_most_starts_are_successes(distances, levels):
    assert count_tolerance_levels(near, [start(1.0, 1.0 + distance) for distance in distances]) == levels


def test_dense_rewards_need_none():
    assert count_tolerance_levels(lambda achieved, goal, info: -np.abs(achieved - goal)[:, 0], [start(0.0, 4.0)] * 3) == 0


TASKS = {0.0: 0, 4.0: 1}  # the only goals that there are


def by_table(achieved_goal, goal, info):
    return np.array([TASKS[a] == TASKS[g] for a, g in zip(achieved_goal[:, 0], goal[:, 0], strict=True)]) - 1.0


def test_rewards_that_cannot_answer_for_made_up_goals_are_not_graded():
    episodes = [start(0.0, 4.0), start(4.0, 0.0), start(0.0, 4.0)]
    assert count_tolerance_levels(by_table, episodes) == 0
    assert find_success_distance(by_table, episodes) is None
    assert RewardPairs(by_table, episodes).changed_by(AffineMap.identity(1)) is None


def at_goal(tolerance):
    """Success in a plane within a distance, which may depend on the goal."""
    return lambda achieved, goal, info: (np.linalg.norm(achieved - goal, axis=-1) < tolerance(goal)) - 1.0


def beyond(achieved, goal, info):
    return ((achieved[:, 0] >= goal[:, 0]) & (np.abs(achieved[:, 1] - goal[:, 1]) < 0.1)) - 1.0


def costly(achieved, goal, info):
    return at_goal(lambda goal: 0.1)(achieved, goal, info) - 5.0 * (achieved[:, 0] > 0.5)


@pytest.mark.parametrize(
    ("reward", "changes"),
    [
        (at_goal(lambda goal: 0.1), (False, False)),
        (lambda achieved, goal, info: -np.linalg.norm(achieved - goal, axis=-1), (False, False)),  # a dense reward
        (at_goal(lambda goal: np.where(goal[:, 0] > 0, 0.2, 0.03)), (True, False)),
        (beyond, (True, False)),
        (costly, (True, False)),
    ],
)
def test_a_mirror_may_change_rewards(reward, changes):
    goals = np.random.default_rng(0).uniform(-1, 1, (20, 1, 2)).repeat(2, axis=1)
    starts = np.random.default_rng(1).uniform(-1, 1, (20, 1, 2)).repeat(2, axis=1)
    pairs = zip(starts, goals, strict=True)
    episodes = [Episode(at, at, goal, np.zeros((1, 1)), np.zeros(1), info={}) for at, goal in pairs]
    asked = RewardPairs(reward, episodes)
    found = [asked.changed_by(mirror(np.zeros(2), 2, axis)) for axis in (0, 1)]
    assert [each > EXCEPTIONS for each in found] == list(changes)
    assert all(each == 0 for each, change in zip(found, changes, strict=True) if not change)


@pytest.mark.parametrize(
    ("is_success", "expected"),
    [
        (lambda error: np.linalg.norm(error, axis=1) < 0.5, True),
        (lambda error: np.abs(error).max(1) < 0.5, False),  # each for itself
        (lambda error: (np.linalg.norm(error[:, :2], axis=1) < 0.5) & (np.abs(error[:, 2]) < 0.5), True),
        (lambda error: np.linalg.norm(error, axis=1), False),  # a dense reward
    ],
)
def test_errors_add_up_to_one_distance(is_success, expected):
    rng = np.random.default_rng(0)
    goals = rng.normal(size=(4, 1, 3)).repeat(2, axis=1)
    episodes = [Episode(goal, goal, goal, np.zeros((1, 1)), np.zeros(1)) for goal in goals]
    found = errors_add_up(lambda achieved, goal, info: is_success(achieved - goal) - 1.0, episodes, [0, 1])
    assert found == expected
    assert not errors_add_up(None, episodes, [0, 1])


def episode(rewards, terminated=False, success=False):
    positions = np.zeros((len(rewards) + 1, 1))
    return Episode(positions, positions, positions, positions[1:], np.array(rewards, float), terminated, success)


def endings_of(*episodes):
    endings = Endings()
    for rewards, terminated, success in episodes:
        endings.add(episode(rewards, terminated, success))
    return endings


BY_SUCCESS = ([-3, -0.1], True, True)


def test_a_success_that_ends_an_episode_has_a_reward_that_no_other_step_has():
    endings = endings_of(BY_SUCCESS, BY_SUCCESS, ([-0.2], True, True), ([-1, -5], True, False))
    assert endings.is_clear
    choices = endings.choices()
    assert {choice.option: choice.value for choice in choices} == {"relabel_terminated": "success", "success_reward": -0.2}
    assert choices[0].reason.startswith("3 of 3 successes ended their episode")


@pytest.mark.parametrize(
    "episodes",
    [
        [BY_SUCCESS] * 2,  # too few
        [*[BY_SUCCESS] * 3, ([-2, -0.1], False, True)],  # one ends with the time limit
        [*[BY_SUCCESS] * 3, ([-0.1, -2], True, False)],  # another step has as much reward
        [([-3, -0.1], False, False)] * 3,
    ],
)
def test_what_does_not_set_successes_apart_is_no_ending(episodes):
    assert not endings_of(*episodes).is_clear
