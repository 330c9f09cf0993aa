"""Hindsight works: with relabelling a sparse task is solved in seconds, without it it is not."""

import pytest

from hindsight import HER

BUDGET = 2_500


@pytest.mark.parametrize("agent", ["td3", "ddpg", "sac"])
def test_point_reach_is_solved_with_hindsight(agent):
    with HER("PointReach-v0", agent=agent, seed=0, eval_episodes=100) as model:
        for _ in model.trainer.run(BUDGET):
            pass
        assert model.trainer.is_solved, model.trainer.history
        assert model.evaluate(100).success_rate >= 0.9


def test_point_reach_is_not_solved_without():
    with HER("PointReach-v0", seed=0, n_sampled_goal=0, eval_every=0) as model:
        model.learn(BUDGET)
        assert model.evaluate(100).success_rate < 0.2


def test_point_reach_seen_from_every_side_needs_fewer_steps():
    def solved_by(symmetries):
        with HER("PointReach-v0", seed=0, eval_episodes=100, **symmetries) as model:
            for _ in model.trainer.run(750):
                pass
            return model.trainer.is_solved

    assert solved_by({})  # by the recipe's symmetries
    assert not solved_by({"symmetries": ()})
