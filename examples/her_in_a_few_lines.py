"""The tasks of the other examples with HER alone, a few lines each.

python examples/her_in_a_few_lines.py 1      (a number from 1 to 8; --steps changes the budget)
"""

import argparse

import numpy as np

from hindsight_rl import HER, BitFlipping, check_goal_env
from hindsight_rl.callbacks import EvaluateEvery, StopAtSuccess


def fetch_reach(steps=1_000):
    """1: SAC on a simulated robot arm, with its recipe."""
    with HER("FetchReach-v4", agent="sac", seed=0) as model:
        print(model.learn(steps).evaluate(100))


def td3_with_eight_goals(steps=5_000):
    """2: TD3 with eight relabelled goals per original goal, and 1,000 random steps first."""
    with HER("PointReach-v0", agent="td3", n_sampled_goal=8, random_steps=1_000, batch_size=256) as model:
        print(model.learn(steps).evaluate(100))


def bit_flipping(steps=7_000):
    """3: DQN on bits, and DDPG, TD3 and SAC on continuous bits; save, load, and act for 100 steps."""
    for agent in ("dqn", "ddpg", "td3", "sac"):
        env = BitFlipping(8, continuous=agent != "dqn")
        HER(env, agent).learn(steps).save(f"bits-{agent}.safetensors")
        model = HER.load(f"bits-{agent}.safetensors", env=env)
        observation, reached = env.reset(seed=1)[0], 0
        for _ in range(100):
            observation, _, terminated, truncated, _ = env.step(model.predict(observation)[0])
            reached += terminated
            if terminated or truncated:
                observation, _ = env.reset()
        print(f"{agent}: {model.evaluate(100)}; {reached} goals reached in 100 steps")


def four_strategies(steps=1_500):
    """4: the four relabelling strategies, and the return of 20 episodes each."""
    for strategy in ("future", "final", "episode", "random"):
        with HER("PointReach-v0", strategy=strategy) as model:
            returns = [outcome.episode_return for outcome in model.learn(steps).evaluate(20).outcomes]
            print(f"{strategy:8} return {np.mean(returns):6.1f} +- {np.std(returns):.1f}")


def own_environment(steps=2_500):
    """5: a goal environment of your own, checked first."""
    from custom_goal_env import Corner

    print(check_goal_env(Corner))
    with HER(Corner, max_episode_steps=50, recipe="point_reach", symmetries=()) as model:
        print(model.learn(steps).evaluate(100))


def success_while_learning(steps=5_000):
    """6: an evaluation of 10 episodes every 1,000 steps, as eval/success_rate in the metrics of the run."""
    with HER("PointReach-v0", eval_every=0) as model:
        model.learn(steps, callback=[EvaluateEvery(1_000, 10), StopAtSuccess(0.98)], log_interval=10, folder="watched")
        print(model.evaluate(100))


def prioritized_double_dqn(steps=15_000):
    """7: double DQN with prioritized replay on 10 bits, without goal features, with copied target networks."""
    options = {"hidden": (64,), "batch_size": 64, "discount": 0.99, "random_eps": 0.1, "random_steps": 100}
    replay = {"prioritized": True, "beta": 0.4, "goal_features": "none", "tau": 1.0, "target_period": 1_000}
    env = BitFlipping(10, max_steps=100)
    with HER(env, "dqn", updates_per_step=1.0, steps=steps, **options, **replay) as model:
        model.learn(steps, callback=EvaluateEvery(1_000, 20), folder="bits-prioritized")
        print(model.evaluate(100))


def ddpg_on_a_point(steps=2_500):
    """8: DDPG; `hindsight-rl train PointReach-v0 --agent ddpg` also writes curves and settings."""
    with HER("PointReach-v0", agent="ddpg") as model:
        print(model.learn(steps).evaluate(100))


EXAMPLES = dict(enumerate([fetch_reach, td3_with_eight_goals, bit_flipping, four_strategies, own_environment], 1))
EXAMPLES |= {6: success_while_learning, 7: prioritized_double_dqn, 8: ddpg_on_a_point}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", type=int, choices=EXAMPLES)
    parser.add_argument("--steps", type=int)
    given = parser.parse_args()
    EXAMPLES[given.example](*[given.steps] * (given.steps is not None))
