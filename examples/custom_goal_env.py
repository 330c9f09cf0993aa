"""A goal environment from scratch: a position, a goal, a threshold. Check it, then train on it.

    PYTHONPATH=examples hindsight-rl check custom_goal_env:Corner-v0
    python examples/custom_goal_env.py [--steps 3000]

This script trains with Stable-Baselines3 (extra sb3). `hindsight-rl train custom_goal_env:Corner-v0` trains without it.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

THRESHOLD, MAX_STEPS, STEP = 0.1, 50, 0.1


class Corner(gymnasium.Env):
    """A position in the square from -1 to 1 must come within 0.1 of a goal, in at most 50 steps."""

    def __init__(self) -> None:
        position = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict(observation=position, achieved_goal=position, desired_goal=position)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        self.position, self.goal = self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32)
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        self.position = np.clip(self.position + STEP * np.clip(action, -1, 1), -1, 1).astype(np.float32)
        reward = float(self.compute_reward(self.position, self.goal, {}))
        return self._observe(), reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> np.ndarray:
        """Return 0 within the threshold and -1 elsewhere, for one goal (2,) or a batch (N, 2)."""
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > THRESHOLD).astype(np.float32)

    def _observe(self) -> dict[str, np.ndarray]:
        return {
            "observation": self.position.copy(),
            "achieved_goal": self.position.copy(),
            "desired_goal": self.goal.copy(),
        }


gymnasium.register("Corner-v0", entry_point=Corner, max_episode_steps=MAX_STEPS)  # success does not end it


def main() -> None:
    from stable_baselines3 import SAC
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    from hindsight_rl import check_goal_env
    from hindsight_rl.compat.sb3 import HerReplayBuffer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3_000, help="environment steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    print(check_goal_env("Corner-v0"))
    env = Monitor(gymnasium.make("Corner-v0"))
    model = SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        learning_rate=1e-3,
        gamma=0.95,
        buffer_size=100_000,
        seed=options.seed,
    )
    model.learn(options.steps)
    mean, deviation = evaluate_policy(model, env, 20)
    print(f"return of 20 episodes: {mean:.1f} +- {deviation:.1f}, {-MAX_STEPS} means that no goal was reached")


if __name__ == "__main__":
    main()
