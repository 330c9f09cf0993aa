"""What Stable-Baselines3 learns on the same task, machine and evaluation: its curve, as lines of a CSV file.

OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/peers.py FetchReach-v4 --agent sac --seed 0 --steps 15000 --every 1000

sac: SB3's SAC with HerReplayBuffer, both at their defaults. tqc: sb3-contrib's TQC with the settings that rl-zoo names for
the first version of the task. Two changes: `learning_starts` of 1,000 where an episode takes 100 steps or more, since SB3
stops with an error otherwise; and episodes of parking-v0 end after 100 steps, as rl-zoo has them and as our recipe does.
An evaluation plays episodes as `hindsight train` does: the same seeds, noise off, success at the last step. It ends when
the task is solved: two evaluations in a row of at least 95 %. Seconds are of learning, without the evaluations.
"""

import argparse
import csv
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import gymnasium
import numpy as np
import torch
from sb3_contrib import TQC
from stable_baselines3 import SAC, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hindsight.envs.goal_env import make_goal_env, time_limit
from hindsight.rollout.collect import EVALUATION, environment_seed, play_episode

AGENTS = {"sac": SAC, "tqc": TQC}
LARGE = {"learning_rate": 1e-3, "gamma": 0.95, "tau": 0.05, "policy_kwargs": {"net_arch": [512] * 3, "n_critics": 2}}
ZOO = {  # rl-zoo's settings of TQC, by how the environment's name begins
    "FetchReach": {
        "learning_rate": 1e-3,
        "gamma": 0.95,
        "learning_starts": 1_000,
        "policy_kwargs": {"net_arch": [64, 64], "n_critics": 1},
    },
    "FetchPush": LARGE | {"batch_size": 2_048},
    "parking": LARGE | {"batch_size": 1_024},
}
NORMALIZED = {"FetchReach"}  # where rl-zoo's settings ask for it
LIMITS = {"parking": 100}  # steps at which episodes are cut
DEFAULT_START = 100  # steps before SB3 learns
COLUMNS = ("environment", "library", "agent", "seed", "env_steps", "updates", "seconds", "success_rate", "episodes")


def main() -> None:
    """Learn once, and write a line per evaluation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--agent", choices=AGENTS, default="sac")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20_000, help="give up after so many")
    parser.add_argument("--every", type=int, default=1_000, help="steps between evaluations")
    parser.add_argument("--episodes", type=int, default=100, help="of an evaluation")
    parser.add_argument("--minutes", type=float, default=60.0, help="give up after so many of learning")
    parser.add_argument("--output", type=Path, help="append each line to this file too, as it is measured")
    given = parser.parse_args()
    if given.agent == "tqc" and given.environment.partition("-")[0] not in ZOO:
        parser.error(f"rl-zoo's settings of tqc are known here of {', '.join(ZOO)}, not of {given.environment}: take sac")
    torch.set_num_threads(1)
    model = make(given.environment, given.agent, given.seed)
    model.learn(given.steps, callback=Scoreboard(given))


def make(environment: str, agent: str, seed: int) -> SAC | TQC:
    """The model as its library, or rl-zoo, would have it."""
    family = environment.partition("-")[0]
    settings = dict(ZOO[family]) if agent == "tqc" else {}
    env = DummyVecEnv([lambda: Monitor(limited(environment))])
    if (time_limit(env.envs[0]) or 0) >= DEFAULT_START:
        settings.setdefault("learning_starts", 1_000)
    if agent == "tqc" and family in NORMALIZED:
        env = VecNormalize(env, gamma=settings["gamma"])
    return AGENTS[agent]("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, seed=seed, **settings)


def limited(environment: str) -> gymnasium.Env:
    """The environment, with its episodes cut where LIMITS says."""
    env = make_goal_env(environment)
    limit = LIMITS.get(environment.partition("-")[0])
    return gymnasium.wrappers.TimeLimit(env, limit) if limit else env


@dataclass
class Scoreboard(BaseCallback):
    """Evaluates every so many steps, without stopping the clock of learning."""

    given: argparse.Namespace
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.env = limited(self.given.environment)
        self.began, self.apart = time.perf_counter(), 0.0

    def _on_step(self) -> bool:
        given = self.given
        if self.num_timesteps % given.every:
            return True
        now = time.perf_counter()
        learning = now - self.began - self.apart
        rate = self.success_rate()
        self.apart += time.perf_counter() - now
        place = (given.environment, f"stable-baselines3 {version('stable-baselines3')}", given.agent, given.seed)
        counts = (self.num_timesteps, self.model._n_updates, round(learning, 1))
        line = (*place, *counts, rate, given.episodes)
        print(*line, sep=", ", flush=True)
        if given.output is not None:
            append(given.output, line)
        self.rates.append(rate)
        is_solved = len(self.rates) > 1 and min(self.rates[-2:]) >= 0.95
        return not is_solved and learning < 60 * given.minutes

    def success_rate(self) -> float:
        """The share of unseen episodes whose last step succeeds."""
        normalizer = self.model.get_vec_normalize_env()

        def act(observation: dict) -> np.ndarray:
            seen = normalizer.normalize_obs(observation) if normalizer else observation
            return self.model.predict(seen, deterministic=True)[0]

        seeds = [environment_seed(self.given.seed, EVALUATION, number) for number in range(self.given.episodes)]
        return float(np.mean([play_episode(self.env, act, seed).success for seed in seeds]))


def append(path: Path, line: tuple) -> None:
    """Add a line to a CSV file, with its head where it is new."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS, line] if is_new else [line])


if __name__ == "__main__":
    main()
