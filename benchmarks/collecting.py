"""Time between the steps of the simulator: episodes played by hindsight-rl, against a bare loop over the same actions.

    python benchmarks/collecting.py RUN [ENV] [--episodes 60]

RUN is a run folder or a policy file. Both loops play each episode in turns, with the same seed. The figures are medians of
processor time per step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from hindsight_rl import HER, Episode, make_goal_env
from hindsight_rl.envs.random_play import Environment
from hindsight_rl.rollout.collect import PolicyActor, play_episode


def play_bare(env: Environment, seed: int, episode: Episode) -> None:
    """Play the actions of an episode again, and keep nothing."""
    env.reset(seed=seed)
    for action in episode.action:
        env.step(action)


def main() -> None:
    """Print the time per step of both loops, and the difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("env", nargs="?", metavar="ENV")
    parser.add_argument("--episodes", type=int, default=60)
    arguments = parser.parse_args()
    ours, bare = [], []
    with HER.load(arguments.run, arguments.env) as model:
        env = make_goal_env(arguments.env or str(model.spec.env_id))
        for seed in range(arguments.episodes):
            started = time.process_time()
            episode = play_episode(env, PolicyActor(model.policy), seed)
            played = time.process_time()
            play_bare(env, seed, episode)
            ours.append((played - started) / len(episode.action))
            bare.append((time.process_time() - played) / len(episode.action))
    between = statistics.median([a - b for a, b in zip(ours, bare, strict=True)])
    step = statistics.median(bare)
    print(f"step {step * 1e6:.0f} us, between steps {between * 1e6:.0f} us: {between / step:.1%}")


if __name__ == "__main__":
    main()
