"""SB3's SAC on FetchReach with hindsight-rl's replay buffer: only one import differs.

    python examples/sb3_fetch_reach.py [--steps 5000] [--seed 0]

Needs the extras sb3 and robotics. Prints the success rate on seeds that training never used.
"""

from __future__ import annotations

import argparse

import gymnasium
import gymnasium_robotics
from stable_baselines3 import SAC

from hindsight_rl.compat.sb3 import HerReplayBuffer  # was: from stable_baselines3 import HerReplayBuffer


def success_rate(model: SAC, env: gymnasium.Env, episodes: int) -> float:
    """Return the fraction of episodes that end with success, without exploration noise."""
    successes = 0
    for seed in range(1_000_000, 1_000_000 + episodes):
        observation, _ = env.reset(seed=seed)
        is_over, info = False, {}
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            is_over = terminated or truncated
        successes += bool(info["is_success"])
    return successes / episodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5_000, help="environment steps")
    parser.add_argument("--episodes", type=int, default=50, help="evaluation episodes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    gymnasium.register_envs(gymnasium_robotics)
    env = gymnasium.make("FetchReach-v4")
    model = SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        buffer_size=100_000,
        seed=options.seed,
        verbose=1,
    )
    model.learn(options.steps)
    print(f"success rate over {options.episodes} unseen episodes: {success_rate(model, env, options.episodes):.0%}")


if __name__ == "__main__":
    main()
