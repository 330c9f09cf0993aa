"""SB3's DQN, DDPG, SAC or TD3 on flipping bits: learn, save, load with the environment, and act for 100 steps.

    python examples/sb3_bit_flipping.py [--algorithm DQN] [--bits 10] [--steps 4000] [--file bits.zip]

Needs the extra sb3. The goal is a random state of n bits. DQN flips one bit per step; the others flip every bit with an
action above 0.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3 import DDPG, DQN, SAC, TD3

from hindsight_rl.compat.sb3 import GoalSelectionStrategy, HerReplayBuffer

ALGORITHMS: dict[str, Any] = {"DQN": DQN, "DDPG": DDPG, "SAC": SAC, "TD3": TD3}
EXPLORING: dict[str, Any] = {"exploration_final_eps": 0.1, "target_update_interval": 500}  # DQN's own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="DQN")
    parser.add_argument("--bits", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4_000, help="environment steps to learn from")
    parser.add_argument("--file", type=Path, default=Path("bits.zip"), help="where the model is saved")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    algorithm, is_discrete = ALGORITHMS[options.algorithm], options.algorithm == "DQN"
    env = gymnasium.make("BitFlipping-v0", n_bits=options.bits, continuous=not is_discrete)
    model = algorithm(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": GoalSelectionStrategy.FUTURE},
        policy_kwargs={"net_arch": [128, 128]},
        learning_rate=1e-3,
        learning_starts=100,
        train_freq=1,
        batch_size=128,
        buffer_size=100_000,
        gamma=0.95,
        seed=options.seed,
        verbose=1,
        **(EXPLORING if is_discrete else {}),
    )
    model.learn(options.steps)
    model.save(options.file)

    model = algorithm.load(options.file, env=env)  # the environment computes rewards under relabelled goals
    observation, _ = env.reset(seed=1_000_000)
    episodes = successes = 0
    for _ in range(100):
        action, _ = model.predict(observation, deterministic=True)
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            episodes, successes = episodes + 1, successes + bool(info["is_success"])
            observation, _ = env.reset()
    print(f"100 steps of the loaded policy: {successes} of {episodes} episodes reached their goal")


if __name__ == "__main__":
    main()
