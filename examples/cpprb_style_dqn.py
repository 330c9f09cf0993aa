"""Double DQN with prioritised hindsight replay on flipping 10 bits, written as with cpprb: a buffer, a loop, nothing else.

    python examples/cpprb_style_dqn.py [--steps 15000] [--bits 10] [--seed 0] [--folder runs/bits]

Needs torch and tensorboard. The curves of loss and success rate: tensorboard --logdir runs/bits. With
`from cpprb import HindsightReplayBuffer` instead, and without `seed`, the same script runs on cpprb's buffer.
"""

from __future__ import annotations

import argparse
import copy

import gymnasium
import numpy as np
import torch
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import huber_loss
from torch.utils.tensorboard import SummaryWriter

import hindsight  # noqa: F401 - registers BitFlipping-v0
from hindsight.compat.cpprb import HindsightReplayBuffer

BATCH, DISCOUNT, EPS, WARM_UP, TARGET_EVERY, EVALUATE_EVERY, EPISODES, LONGEST = 64, 0.99, 0.1, 100, 1000, 100, 20, 100


def inputs(state: np.ndarray, goal: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(np.concatenate([state, goal], axis=-1), dtype=torch.float32)


def best_action(network: Sequential, seen: dict[str, np.ndarray]) -> int:
    with torch.no_grad():
        return int(network(inputs(seen["observation"], seen["desired_goal"])).argmax())


def success_rate(network: Sequential, env: gymnasium.Env) -> float:
    successes = 0
    for _ in range(EPISODES):
        seen, ended, truncated = env.reset()[0], False, False
        while not (ended or truncated):
            seen, _, ended, truncated, _ = env.step(best_action(network, seen))
        successes += ended
    return successes / EPISODES


def losses(network: Sequential, target: Sequential, sample: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """Huber loss and size of the error of each sample; the next action is the network's, its value the target's."""
    reward, action = torch.as_tensor(sample["rew"]), torch.as_tensor(sample["act"], dtype=torch.int64)
    value = network(inputs(sample["obs"], sample["goal"])).gather(1, action)
    with torch.no_grad():
        following = inputs(sample["next_obs"], sample["goal"])
        next_value = target(following).gather(1, network(following).argmax(1, keepdim=True))
        wanted = (
            reward + DISCOUNT * next_value * -reward
        )  # a reward of 0 is the goal, where the episode ends; others are -1
    return huber_loss(value, wanted, reduction="none")[:, 0], (wanted - value.detach()).abs()[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 15_000), ("bits", 10), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", default="runs/bits", help="where the curves go")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng, bits = np.random.default_rng(options.seed), options.bits
    env, test_env = (gymnasium.make("BitFlipping-v0", n_bits=bits, max_steps=LONGEST) for _ in range(2))
    network = Sequential(Linear(2 * bits, 64), ReLU(), Linear(64, 64), ReLU(), Linear(64, bits))
    target, optimizer = copy.deepcopy(network), torch.optim.Adam(network.parameters())
    env_dict = {"obs": {"shape": bits}, "act": {"dtype": np.ubyte}, "next_obs": {"shape": bits}}
    reward = lambda state, action, goal: -1.0 * (state != goal).any(axis=1)  # noqa: E731
    buffer = HindsightReplayBuffer(1e6, env_dict, LONGEST, reward, seed=options.seed)
    seen, _ = env.reset(seed=options.seed)
    test_env.reset(seed=options.seed + 1_000_000)
    with SummaryWriter(options.folder) as writer:
        for step in range(1, options.steps + 1):
            action = int(rng.integers(bits)) if rng.random() < EPS else best_action(network, seen)
            after, _, ended, truncated, _ = env.step(action)
            buffer.add(obs=seen["observation"], act=action, next_obs=after["observation"])
            if ended or truncated:
                buffer.on_episode_end(seen["desired_goal"])
            seen = env.reset()[0] if ended or truncated else after
            if buffer.get_stored_size() >= WARM_UP:
                sample = buffer.sample(BATCH, beta=0.4 + 0.6 * step / options.steps)
                loss_of_each, error = losses(network, target, sample)
                loss = (loss_of_each * torch.as_tensor(sample["weights"])).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                buffer.update_priorities(sample["indexes"], error.numpy())
                writer.add_scalar("loss", loss.item(), step)
            if step % TARGET_EVERY == 0:
                target.load_state_dict(network.state_dict())
            if step % EVALUATE_EVERY == 0:
                rate = success_rate(network, test_env)
                writer.add_scalar("success rate", rate, step)
                print(f"step {step}: {rate:.0%} of {EPISODES} episodes", flush=True)


if __name__ == "__main__":
    main()
