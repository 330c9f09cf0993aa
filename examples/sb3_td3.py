"""SB3's TD3 with k = 8 hindsight goals per real one, on PointReach.

    python examples/sb3_td3.py [--steps 10000] [--env PointReach-v0] [--seed 0]

Needs the extra sb3.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
from stable_baselines3 import TD3
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise

from hindsight_rl.compat.sb3 import HerReplayBuffer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="PointReach-v0", help="a registered goal environment with continuous actions")
    parser.add_argument("--steps", type=int, default=10_000, help="environment steps; the first 1,000 are random")
    parser.add_argument("--episodes", type=int, default=50, help="evaluation episodes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    env = Monitor(gymnasium.make(options.env))
    n_actions = env.action_space.shape[0]
    model = TD3(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 8, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [64, 64]},
        learning_starts=1000,
        batch_size=256,
        gamma=0.95,
        action_noise=NormalActionNoise(np.zeros(n_actions), 0.2 * np.ones(n_actions)),
        buffer_size=100_000,
        seed=options.seed,
        verbose=1,
    )
    model.learn(options.steps)
    returns, lengths = evaluate_policy(model, env, options.episodes, return_episode_rewards=True)
    reached = np.mean(np.array(returns) > -np.array(lengths))  # the reward is -1 per step away from the goal
    print(f"return of {options.episodes} episodes: {np.mean(returns):.1f}; goals reached in {reached:.0%}")


if __name__ == "__main__":
    main()
