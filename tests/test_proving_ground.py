"""Every task of the proving ground is a sound goal environment that its scripted policy solves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # where the tasks are

from tasks import TASKS
from tasks.task import FAMILIES, Task, success_of_script

EPISODES = 40
GOALS = ("achieved_goal", "desired_goal")
# Tasks whose point is that a batch of rewards is not what its single rows give: name -> why.
ODD_BATCHES: dict[str, str] = {}


@pytest.fixture(params=TASKS.values(), ids=lambda task: task.name)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


@pytest.fixture
def env(task: Task) -> Iterator[gymnasium.Env[Any, Any]]:
    with gymnasium.make(task.name) as env:
        env.action_space.seed(0)
        yield env


def episode(env: gymnasium.Env[Any, Any], seed: int, actions: list[Any] | None = None) -> list[Any]:
    """Return what the reset and each step of an episode gave, with random actions unless some are given."""
    observation, info = env.reset(seed=seed)
    rows = [(observation, 0.0, False, False, info, None)]
    while not (rows[-1][2] or rows[-1][3]):
        action = env.action_space.sample() if actions is None else actions[len(rows) - 1]
        rows.append((*env.step(action), action))
    return rows


def test_every_family_has_a_closed_task() -> None:
    assert {task.family for task in TASKS.values() if task.status == "closed"} == set(FAMILIES)


@pytest.mark.learning
def test_script_solves_the_task(task: Task) -> None:
    assert success_of_script(task, EPISODES) >= 0.95


def test_spaces_contain_every_observation(env: gymnasium.Env[Any, Any]) -> None:
    assert set(env.observation_space.spaces) >= {"observation", *GOALS}
    for seed in range(3):
        for observation, _, _, _, info, action in episode(env, seed):
            assert env.observation_space.contains(observation)
            assert action is None or "is_success" in info


def test_seed_decides_the_episode(env: gymnasium.Env[Any, Any]) -> None:
    first = episode(env, 7)
    env.reset(seed=8)
    second = episode(env, 7, [row[-1] for row in first[1:]])
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert all(np.array_equal(one[0][key], other[0][key]) for key in one[0])
        assert one[1:4] == other[1:4]


def test_seeds_differ(env: gymnasium.Env[Any, Any]) -> None:
    goals = {np.asarray(env.reset(seed=seed)[0]["desired_goal"]).tobytes() for seed in range(8)}
    assert len(goals) > 1


def test_rewards_of_a_batch_are_those_of_its_rows(task: Task, env: gymnasium.Env[Any, Any]) -> None:
    if task.name in ODD_BATCHES:
        pytest.skip(ODD_BATCHES[task.name])
    rows = episode(env, 3)[1:]
    compute = env.unwrapped.compute_reward
    achieved, wished = (np.stack([row[0][key] for row in rows]) for key in GOALS)
    achieved[-1] = wished[-1]  # a success too
    infos = [row[4] for row in rows]
    batch = np.ravel(compute(achieved, wished, infos))
    singles = np.array([np.ravel(compute(*row))[0] for row in zip(achieved, wished, infos, strict=True)])
    np.testing.assert_allclose(batch, singles, rtol=1e-6)
    np.testing.assert_allclose(singles[:-1], [row[1] for row in rows[:-1]], rtol=1e-6)


@pytest.mark.learning
def test_chance_rarely_succeeds(env: gymnasium.Env[Any, Any]) -> None:
    starts, ends = [], []
    for seed in range(EPISODES):
        rows = episode(env, seed)
        ends.append(bool(rows[-1][4]["is_success"]))
        # A start is a success if its reward is that of the goal itself.
        first, info = rows[0][0], rows[0][4]
        now, best = (env.unwrapped.compute_reward(first[key], first["desired_goal"], info) for key in GOALS)
        starts.append(bool(np.all(now >= best)))
    assert np.mean(starts) < 0.1
    assert np.mean(ends) < 0.2
