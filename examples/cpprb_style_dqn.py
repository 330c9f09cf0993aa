"""Double DQN with prioritized hindsight replay on BitFlipping (10 bits), written for cpprb: a buffer, a network, a loop.

    python examples/cpprb_style_dqn.py [--steps 15000] [--bits 10] [--seed 0] [--folder runs/bits]

Needs torch and tensorboard. It also runs with cpprb's own class, without `seed`.
"""

from __future__ import annotations

import argparse
import copy

import gymnasium
import numpy as np
import torch
from torch.nn import HuberLoss, Linear, ReLU, Sequential
from torch.utils.tensorboard import SummaryWriter

from hindsight_rl.compat.cpprb import HindsightReplayBuffer

BATCH, DISCOUNT, EPS, WARM_UP, TARGET_EVERY, EVALUATE_EVERY, EPISODES, LONGEST = 64, 0.99, 0.1, 100, 1000, 100, 20, 100


def inputs(state: np.ndarray, goal: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(np.concatenate([state, goal], axis=-1), dtype=torch.float32)


@torch.no_grad()
def best_action(network: Sequential, obs: dict[str, np.ndarray]) -> int:
    return int(network(inputs(obs["observation"], obs["desired_goal"])).argmax())


def success_rate(network: Sequential, env: gymnasium.Env) -> float:
    successes = 0
    for _ in range(EPISODES):
        obs, terminated, truncated = env.reset()[0], False, False
        while not (terminated or truncated):
            obs, _, terminated, truncated, _ = env.step(best_action(network, obs))
        successes += terminated
    return successes / EPISODES


def values_and_targets(network: Sequential, target: Sequential, sample: dict[str, np.ndarray]) -> torch.Tensor:
    """Return the value and the double DQN target of each sample, (2, B). The reward is 0 where an episode terminates."""
    reward, next_input = torch.as_tensor(sample["rew"]), inputs(sample["next_obs"], sample["goal"])
    value = network(inputs(sample["obs"], sample["goal"])).gather(1, torch.as_tensor(sample["act"].astype(np.int64)))
    next_value = target(next_input).detach().gather(1, network(next_input).argmax(1, keepdim=True))
    return torch.cat([value, reward - DISCOUNT * reward * next_value], dim=1).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"steps": 15_000, "bits": 10, "seed": 0, "folder": "runs/bits"}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    rng, n, _ = np.random.default_rng(options.seed), options.bits, torch.manual_seed(options.seed)
    env, test_env = (gymnasium.make("hindsight_rl:BitFlipping-v0", n_bits=n, max_steps=LONGEST) for _ in range(2))
    network = Sequential(Linear(2 * n, 64), ReLU(), Linear(64, 64), ReLU(), Linear(64, n))
    target, optimizer = copy.deepcopy(network), torch.optim.Adam(network.parameters())
    env_dict = {"obs": {"shape": n}, "act": {"dtype": np.ubyte}, "next_obs": {"shape": n}}
    buffer = HindsightReplayBuffer(1e6, env_dict, LONGEST, lambda s, a, g: -1.0 * (s != g).any(axis=1), seed=options.seed)
    (obs, _), _ = env.reset(seed=options.seed), test_env.reset(seed=options.seed + 1_000_000)
    writer = SummaryWriter(options.folder)
    for step in range(1, options.steps + 1):
        action = int(rng.integers(n)) if rng.random() < EPS else best_action(network, obs)
        next_obs, _, terminated, truncated, _ = env.step(action)
        buffer.add(obs=obs["observation"], act=action, next_obs=next_obs["observation"])
        if terminated or truncated:
            buffer.on_episode_end(obs["desired_goal"])
        obs = env.reset()[0] if terminated or truncated else next_obs
        if buffer.get_stored_size() >= WARM_UP:
            sample = buffer.sample(BATCH, beta=0.4 + 0.6 * step / options.steps)
            value, td_target = values_and_targets(network, target, sample)
            loss = (HuberLoss(reduction="none")(value, td_target) * torch.as_tensor(sample["weights"])).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            buffer.update_priorities(sample["indexes"], (td_target - value).abs().detach())
            writer.add_scalar("loss", loss.item(), step)
        if step % TARGET_EVERY == 0:
            target.load_state_dict(network.state_dict())
        if step % EVALUATE_EVERY == 0:
            writer.add_scalar("success_rate", rate := success_rate(network, test_env), step)
            print(f"step {step}: {rate:.0%} of {EPISODES} episodes", flush=True)
    writer.close()


if __name__ == "__main__":
    main()
