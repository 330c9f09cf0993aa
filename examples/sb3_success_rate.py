"""A callback that logs the success rate during SB3 training to TensorBoard.

    python examples/sb3_success_rate.py [--steps 5000] [--folder runs/tensorboard]
    tensorboard --logdir runs/tensorboard

Needs the extra sb3 and tensorboard. Every 1,000 steps it runs 10 episodes without noise on a separate environment.
`eval/success_rate` is their success rate, `eval/mean_success_rate` the mean of the last 10 rates.
"""

from __future__ import annotations

import argparse
from collections import deque

import gymnasium
import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback

from hindsight_rl.compat.sb3 import HerReplayBuffer


class SuccessRate(BaseCallback):
    """Run `episodes` episodes in `env` every `every` steps. The goals are new each time, and equal in every run."""

    def __init__(self, env: gymnasium.Env, every: int = 1_000, episodes: int = 10, window: int = 10) -> None:
        super().__init__()
        self.env, self.every, self.episodes = env, every, episodes
        self.rates: deque[float] = deque(maxlen=window)
        self.next_seed = 1_000_000

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every < self.training_env.num_envs:
            self.rates.append(float(np.mean([self._succeeds() for _ in range(self.episodes)])))
            self.logger.record("eval/success_rate", self.rates[-1])
            self.logger.record("eval/mean_success_rate", float(np.mean(self.rates)))
            self.logger.dump(self.num_timesteps)
        return True

    def _succeeds(self) -> bool:
        """Return whether an episode ends with success."""
        observation, _ = self.env.reset(seed=self.next_seed)
        self.next_seed += 1
        while True:
            action, _ = self.model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                return bool(info["is_success"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5_000, help="environment steps")
    parser.add_argument("--every", type=int, default=1_000, help="steps between two evaluations")
    parser.add_argument("--folder", default="runs/tensorboard")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    success = SuccessRate(gymnasium.make("PointReach-v0"), every=options.every)
    model = SAC(
        "MultiInputPolicy",
        gymnasium.make("PointReach-v0"),
        replay_buffer_class=HerReplayBuffer,
        gamma=0.95,
        learning_rate=1e-3,
        buffer_size=100_000,
        tensorboard_log=options.folder,
        seed=options.seed,
    )
    model.learn(options.steps, callback=success)
    print("success rates:", " ".join(f"{rate:.0%}" for rate in success.rates))


if __name__ == "__main__":
    main()
