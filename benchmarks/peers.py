"""Measure Stable-Baselines3 on the same task, machine and evaluation. Writes its learning curve as lines of CSV.

OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/peers.py FetchReach-v4 --agent sac --seed 0 --steps 15000 --every 1000

sac, dqn: SAC or DQN of SB3 with HerReplayBuffer, with their default settings. DQN makes one update per step, as SAC does.
qrdqn: QR-DQN of sb3-contrib, likewise. --one-hot: whole numbers of the observation and the goals are given one-hot.
auto: dqn for Discrete actions, else sac.
tqc: TQC of sb3-contrib with the settings of rl-zoo for the first version of the task.
Two settings differ. `learning_starts` is 1,000 if an episode has 100 steps or more, since SB3 raises an error otherwise.
Episodes of parking-v0 end after 100 steps, as in rl-zoo and in our recipe.

An evaluation plays episodes as `hindsight-rl train` does: the same seeds, no exploration, success at the last step. The run
ends when the task is solved: two consecutive evaluations with at least 95 %. Seconds are those of learning, without
evaluations.
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
from gymnasium import spaces
from sb3_contrib import QRDQN, TQC
from stable_baselines3 import DQN, SAC, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hindsight_rl.envs.goal_env import make_goal_env, time_limit
from hindsight_rl.rollout.collect import play_episode
from hindsight_rl.seeds import EVALUATION, environment_seed

AGENTS = {"sac": SAC, "dqn": DQN, "qrdqn": QRDQN, "tqc": TQC}
LARGE = {"learning_rate": 1e-3, "gamma": 0.95, "tau": 0.05, "policy_kwargs": {"net_arch": [512] * 3, "n_critics": 2}}
ZOO = {  # settings of rl-zoo for TQC, by the start of the environment's name
    "FetchReach": {
        "learning_rate": 1e-3,
        "gamma": 0.95,
        "learning_starts": 1_000,
        "policy_kwargs": {"net_arch": [64, 64], "n_critics": 1},
    },
    "FetchPush": LARGE | {"batch_size": 2_048},
    "parking": LARGE | {"batch_size": 1_024},
}
NORMALIZED = {"FetchReach"}  # as in rl-zoo
LIMITS = {"parking": 100}  # time limits, in steps
DEFAULT_START = 100  # learning_starts of SB3
COLUMNS = ("environment", "library", "agent", "seed", "env_steps", "updates", "seconds", "success_rate", "episodes")


def main() -> None:
    """Train once, and write a line per evaluation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--agent", choices=[*AGENTS, "auto"], default="sac")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20_000, help="stop after this many environment steps")
    parser.add_argument("--every", type=int, default=1_000, help="steps between evaluations")
    parser.add_argument("--episodes", type=int, default=100, help="per evaluation")
    parser.add_argument("--updates", type=int, help="updates per environment step (those of the settings: 1)")
    parser.add_argument("--one-hot", action="store_true", help="whole numbers are given one-hot")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time of learning")
    parser.add_argument("--output", type=Path, help="append each line to this file too")
    given = parser.parse_args()
    if given.agent == "tqc" and given.environment.partition("-")[0] not in ZOO:
        parser.error(f"tqc has settings for {', '.join(ZOO)}, not for {given.environment}. Use --agent sac")
    if given.agent == "auto":
        with make_goal_env(given.environment) as env:
            given.agent = "dqn" if isinstance(env.action_space, gymnasium.spaces.Discrete) else "sac"
    torch.set_num_threads(1)
    model = make(given)
    model.learn(given.steps, callback=Scoreboard(given))


def make(given: argparse.Namespace) -> SAC | DQN | TQC:
    """Return the model with the settings of its library, or of rl-zoo."""
    agent, family = given.agent, given.environment.partition("-")[0]
    settings = dict(ZOO[family]) if agent == "tqc" else {"train_freq": 1} if agent in ("dqn", "qrdqn") else {}
    settings |= {} if given.updates is None else {"train_freq": 1, "gradient_steps": given.updates}
    env = DummyVecEnv([lambda: Monitor(limited(given))])
    if (time_limit(env.envs[0]) or 0) >= DEFAULT_START:
        settings.setdefault("learning_starts", 1_000)
    if agent == "tqc" and family in NORMALIZED:
        env = VecNormalize(env, gamma=settings["gamma"])
    return AGENTS[agent]("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, seed=given.seed, **settings)


def limited(given: argparse.Namespace) -> gymnasium.Env:
    """Return the environment, with a time limit if LIMITS has one, and with one-hot columns if that is asked for."""
    env = make_goal_env(given.environment)
    env = OneHot(env) if given.one_hot else env
    limit = LIMITS.get(given.environment.partition("-")[0])
    return gymnasium.wrappers.TimeLimit(env, limit) if limit else env


class OneHot(gymnasium.ObservationWrapper):
    """Gives Discrete and whole-numbered Box spaces of a goal environment one-hot, as float32."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.lowest, self.n_values = {}, {}
        for key, space in env.observation_space.items():
            self.lowest[key], self.n_values[key] = bounds(space)
        self.observation_space = spaces.Dict(
            {key: spaces.Box(0, 1, (int(n.sum()),), np.float32) for key, n in self.n_values.items()}
        )

    def observation(self, observation: dict) -> dict:
        """Return each space of the observation one-hot."""
        encoded = {}
        for key, n_values in self.n_values.items():
            values = np.atleast_1d(observation[key]) - self.lowest[key]
            encoded[key] = np.concatenate([np.eye(n, dtype=np.float32)[k] for n, k in zip(n_values, values, strict=True)])
        return encoded

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: object) -> np.ndarray:
        """Return the rewards of the environment for one-hot goals."""
        return self.env.get_wrapper_attr("compute_reward")(self.decode(achieved_goal), self.decode(desired_goal), info)

    def decode(self, goal: np.ndarray) -> np.ndarray:
        """Return the goals (..., g) of one-hot ones, () for each goal of a Discrete space."""
        n_values = self.n_values["desired_goal"]
        parts = np.split(goal, np.cumsum(n_values)[:-1], axis=-1)
        values = np.stack([part.argmax(-1) for part in parts], axis=-1) + self.lowest["desired_goal"]
        return values[..., 0] if isinstance(self.env.observation_space["desired_goal"], spaces.Discrete) else values


def bounds(space: gymnasium.Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest value of each column, and how many values it has."""
    if isinstance(space, spaces.Discrete):
        return np.array([space.start]), np.array([space.n])
    return space.low, space.high - space.low + 1


@dataclass
class Scoreboard(BaseCallback):
    """Evaluates every `every` steps. The time of evaluations is not counted."""

    given: argparse.Namespace
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.env = limited(self.given)
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
        """Return the fraction of unseen episodes that succeed at their last step."""
        normalizer = self.model.get_vec_normalize_env()

        def act(observation: dict) -> np.ndarray:
            seen = normalizer.normalize_obs(observation) if normalizer else observation
            return self.model.predict(seen, deterministic=True)[0]

        seeds = [environment_seed(self.given.seed, EVALUATION, number) for number in range(self.given.episodes)]
        return float(np.mean([play_episode(self.env, act, seed).success for seed in seeds]))


def append(path: Path, line: tuple) -> None:
    """Add a line to a CSV file, after the header if the file is new."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS, line] if is_new else [line])


if __name__ == "__main__":
    main()
