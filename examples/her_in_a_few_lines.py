"""What the other examples do with libraries and parts, by HER alone, a few lines each.

python examples/her_in_a_few_lines.py 1      ... to 8; --steps to change the budget
"""

import argparse

import numpy as np

from hindsight import HER, BitFlipping, check_goal_env
from hindsight.callbacks import EvaluateEvery, StopAtSuccess


def fetch_reach(steps=1_000):
    """1: SAC on a simulated arm, by its recipe."""
    with HER("FetchReach-v4", agent="sac", seed=0) as model:
        print(model.learn(steps).evaluate(100))


def td3_with_eight_goals(steps=5_000):
    """2: TD3, eight hindsight goals per real one, learning from 1,000 steps on."""
    with HER("PointReach-v0", agent="td3", n_sampled_goal=8, random_steps=1_000, batch_size=256) as model:
        print(model.learn(steps).evaluate(100))


def bit_flipping(steps=7_000):
    """3: DQN, and DDPG, TD3 and SAC on continuous bits; saved, loaded, and 100 steps of the policy."""
    for agent in ("dqn", "ddpg", "td3", "sac"):
        env = BitFlipping(8, continuous=agent != "dqn")
        HER(env, agent, "bit_flipping").learn(steps).save(f"bits-{agent}.safetensors")
        model, (seen, _), reached = HER.load(f"bits-{agent}.safetensors", env=env), env.reset(seed=1), 0
        for _ in range(100):
            seen, _, terminated, truncated, _ = env.step(model.predict(seen)[0])
            reached += terminated
            if terminated or truncated:
                seen, _ = env.reset()
        print(f"{agent}: {model.evaluate(100)}; {reached} goals reached in 100 steps")


def four_strategies(steps=1_500):
    """4: where hindsight goals come from, and the return of 20 episodes each."""
    for strategy in ("future", "final", "episode", "random"):
        with HER("PointReach-v0", strategy=strategy) as model:
            returns = [outcome.episode_return for outcome in model.learn(steps).evaluate(20).outcomes]
            print(f"{strategy:8} return {np.mean(returns):6.1f} +- {np.std(returns):.1f}")


def own_environment(steps=2_500):
    """5: a goal environment of one's own, checked first."""
    from custom_goal_env import Corner

    print(check_goal_env(Corner))
    with HER(Corner, max_episode_steps=50, recipe="point_reach", symmetries=()) as model:
        print(model.learn(steps).evaluate(100))


def success_while_learning(steps=5_000):
    """6: every 1,000 steps 10 episodes: eval/success_rate and eval/mean_success_rate, in the run's files."""
    with HER("PointReach-v0", eval_every=0) as model:
        model.learn(steps, callback=[EvaluateEvery(1_000, 10), StopAtSuccess(0.98)], log_interval=10, folder="watched")
        print(model.evaluate(100))


def prioritized_double_dqn(steps=15_000):
    """7: double DQN with prioritised replay on 10 bits, plain inputs, a hard target."""
    options = {"hidden": (64,), "batch_size": 64, "discount": 0.99, "random_eps": 0.1, "random_steps": 100}
    replay = {"prioritized": True, "beta": 0.4, "goal_features": "none", "tau": 1.0, "target_period": 1_000}
    with HER(
        lambda: BitFlipping(10, max_steps=100), "dqn", updates_per_step=1.0, steps=steps, **options, **replay
    ) as model:
        model.learn(steps, callback=EvaluateEvery(1_000, 20), folder="bits-prioritized")
        print(model.evaluate(100))


def ddpg_on_a_point(steps=2_500):
    """8: DDPG + HER; `hindsight train PointReach-v0 --agent ddpg` leaves curves and settings besides."""
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
