"""With relabelling a sparse task is solved in seconds. Without relabelling it is not solved."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from hindsight_rl import HER, BitFlipping, PointReach
from hindsight_rl.envs.minari_data import write_episodes
from hindsight_rl.rollout.collect import play_episode

BUDGET = 2_500
HEAVY = pytest.mark.learning


@HEAVY
@pytest.mark.parametrize("agent", ["td3", "ddpg", "sac", "tqc"])
def test_point_reach_is_solved_with_hindsight(agent):
    with HER("PointReach-v0", agent=agent, seed=0, eval_episodes=100) as model:
        assert is_solved(model, BUDGET)
        assert model.evaluate(100).success_rate >= 0.9


@HEAVY
def test_point_reach_is_not_solved_without_hindsight():
    # Without symmetries: with eight augmented copies of a rare success the task is solved for some seeds.
    with HER("PointReach-v0", seed=0, n_sampled_goal=0, symmetries=(), eval_every=0) as model:
        model.learn(BUDGET)
        assert model.evaluate(100).success_rate < 0.2


@HEAVY
@pytest.mark.parametrize("n_bad", [0, 50])
def test_demonstrations_replace_hindsight_even_if_half_of_them_are_bad(n_bad, monkeypatch, tmp_path):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    controller = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "scripted_controllers.py"))["point_reach"]
    rng, env = np.random.default_rng(0), PointReach()

    def random_actions(observation):
        return rng.uniform(-1, 1, 2).astype(np.float32)

    episodes = [play_episode(env, controller if n < 100 - n_bad else random_actions, seed=n) for n in range(100)]
    write_episodes("demo/point-v0", env, episodes, "a script")
    options = {"n_sampled_goal": 0, "symmetries": (), "eval_every": 0, "demonstrations": "demo/point-v0"}
    with HER("PointReach-v0", seed=0, **options) as model:
        model.learn(BUDGET)
        assert model.evaluate(100).success_rate > 0.6  # without demonstrations below 0.2, as above


@HEAVY
def test_point_reach_with_symmetries_needs_fewer_steps():
    def solved_by(symmetries):
        with HER("PointReach-v0", seed=0, eval_episodes=100, **symmetries) as model:
            for _ in model.trainer.run(750):
                pass
            return model.trainer.is_solved

    assert solved_by({})  # the recipe has symmetries
    assert not solved_by({"symmetries": ()})


@pytest.mark.parametrize("agent", ["dqn", pytest.param("qrdqn", marks=HEAVY)])
def test_fifteen_bits_are_solved_with_hindsight(agent):
    with HER(bits(15), agent, eval_every=250, plan_states=False) as model:
        assert is_solved(model, 2_000)


@HEAVY
def test_fifteen_bits_are_not_solved_without_hindsight():
    with HER(bits(15), n_sampled_goal=0, plan_states=False) as model:  # rules of the bits would solve it without
        assert model.learn(11_000).evaluate(200).success_rate < 0.05


@HEAVY
def test_fifteen_bits_are_solved_without_goal_features():
    with HER(bits(15), goal_features="none") as model:
        assert is_solved(model, 11_000)


@HEAVY
@pytest.mark.parametrize(("agent", "budget"), [("ddpg", 4_000), ("td3", 4_000), ("sac", 10_000)])
def test_continuous_bits_are_solved(agent, budget):
    with HER(bits(8, continuous=True), agent) as model:
        assert is_solved(model, budget)


def bits(n_bits, continuous=False):
    return lambda: BitFlipping(n_bits, continuous)


def is_solved(model, budget):
    for _ in model.trainer.run(budget):
        pass
    return model.trainer.is_solved
