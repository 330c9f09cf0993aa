"""Success by the distance of the goal, and how much small changes of the actions matter.

python benchmarks/far_goals.py RUN/policies/latest.safetensors [--episodes 1000] [--noise 0.01]

Each episode is played twice with the same start and goal: without noise, and with Gaussian noise on every action, in half
action ranges. "moved by noise" is the median distance between the two ends.
"""

import argparse
import warnings

import gymnasium
import numpy as np

from hindsight_rl import HER
from hindsight_rl.envs.goal_env import make_goal_env

GROUPS = 6  # of equally many episodes
FIRST_SEED = 50_000


def end(env: gymnasium.Env, model: HER, seed: int, noise: float) -> tuple[float, bool, np.ndarray]:
    """Play one episode. Return the distance from its start to its goal, its success, and where it ended."""
    observation, _ = env.reset(seed=seed)
    distance, rng = np.linalg.norm(observation["desired_goal"] - observation["achieved_goal"]), np.random.default_rng(seed)
    is_over, space = False, env.action_space
    while not is_over:
        action, _ = model.predict(observation)
        action = action + noise * (space.high - space.low) / 2 * rng.normal(size=action.shape)
        observation, _, terminated, truncated, info = env.step(np.clip(action, space.low, space.high).astype(space.dtype))
        is_over = terminated or truncated
    return float(distance), bool(info["is_success"]), observation["achieved_goal"].copy()


def main() -> None:
    """Print one line per group of distances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.01)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    model = HER.load(arguments.policy)
    env = make_goal_env(model.spec.env_id, None, model.settings.rollout.env_arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.episodes)
    distances, successes, ends = map(np.array, zip(*(end(env, model, seed, 0.0) for seed in seeds), strict=True))
    noisy = np.array([end(env, model, seed, arguments.noise)[2] for seed in seeds])
    moved = np.linalg.norm(ends - noisy, axis=1)
    for group in np.array_split(np.argsort(distances), GROUPS):
        low, high = distances[group[[0, -1]]]
        success = 100 * successes[group].mean()
        print(f"distance {low:.2f} to {high:.2f}: success {success:.0f} %, moved by noise {np.median(moved[group]):.3f}")


if __name__ == "__main__":
    main()
