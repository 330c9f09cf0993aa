"""The four relabelling strategies of the HER paper: mean and standard deviation of the return.

    python examples/sb3_strategies.py [--steps 3000] [--episodes 20] [--seed 0]

Needs the extra sb3. SB3's SAC on PointReach; only the strategy differs. SB3 itself does not have "random".
"""

from __future__ import annotations

import argparse

import gymnasium
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from hindsight_rl.compat.sb3 import GoalSelectionStrategy, HerReplayBuffer


def learn(strategy: GoalSelectionStrategy, steps: int, seed: int) -> SAC:
    """Return a model that is trained with one strategy."""
    model = SAC(
        "MultiInputPolicy",
        Monitor(gymnasium.make("PointReach-v0")),
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": strategy},
        policy_kwargs={"net_arch": [64, 64]},
        learning_rate=1e-3,
        gamma=0.95,
        buffer_size=100_000,
        seed=seed,
    )
    return model.learn(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3_000, help="environment steps per strategy")
    parser.add_argument("--episodes", type=int, default=20, help="evaluation episodes per strategy")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    print(f"{'strategy':10}{'mean return':>12}{'deviation':>11}")
    for strategy in GoalSelectionStrategy:
        model = learn(strategy, options.steps, options.seed)
        env = Monitor(gymnasium.make("PointReach-v0"))
        env.reset(seed=1_000_000)  # the same goals for each strategy
        mean, deviation = evaluate_policy(model, env, options.episodes)
        print(f"{strategy:10}{mean:12.1f}{deviation:11.1f}", flush=True)


if __name__ == "__main__":
    main()
