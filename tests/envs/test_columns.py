import numpy as np
import pytest

from hindsight_rl import HER, AddColumns, BitFlipping, PointReach
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.errors import GoalEnvError


def position(observation):
    return observation[:2]


def ahead(observation):
    return observation[:2] + 0.1 * observation[2:]


def speed(observation):
    return np.linalg.norm(observation[2:])


def make():
    return AddColumns(PointReach(max_steps=10), position, ahead, speed)


def test_columns_follow_the_observation():
    env = make()
    first, _ = env.reset(seed=0)
    second, *_ = env.step(np.array([1.0, -1.0], np.float32))
    for row in (first["observation"], second["observation"]):
        assert row.dtype == np.float32
        columns = np.concatenate([row[:2], ahead(row[:4]), [speed(row[:4])]]).astype(np.float32)
        assert row[4:].tolist() == columns.tolist()
        assert row in env.observation_space["observation"]
    assert second["achieved_goal"].tolist() == second["observation"][:2].tolist()
    assert check_goal_env(make).ok


def test_a_subgoal_may_be_a_pair_of_functions():
    subgoal = "stop achieved=4,5 goal=6,7 tolerance=0.01 switch_distance=0.02"
    options = {"hidden": (8,), "random_steps": 20, "updates_per_step": 1.0, "eval_every": 0, "agent": "ddpg"}
    with HER(make, subgoals=(subgoal,), structure="declared", **options) as model:
        model.learn(60)
        batch = model.trainer.buffer.sample(64)
        here = batch.subgoal == 1
        assert np.array_equal(batch.achieved_goal[here], batch.observation[here][:, 4:6])
        assert model.trainer.counts.updates == 40


def test_bits_cannot_have_columns():
    with pytest.raises(GoalEnvError, match="needs a flat observation of floats"):
        AddColumns(BitFlipping(4), position)
