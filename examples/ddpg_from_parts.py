"""DDPG with hindsight on PointReach, every part visible: networks, targets, buffer, loop, curves (needs plotly)."""

import argparse
from copy import deepcopy

import numpy as np
import torch
from torch import nn

from curves import CURVES, draw
from hindsight_rl import HindsightBuffer, PointReach
from hindsight_rl.options import ReplayOptions

SETTINGS = {  # name: value and meaning
    "hidden": (256, "units of each of the two hidden layers of actor and critic"),
    "learning_rate": (1e-3, "of Adam, for both networks"),
    "discount": (0.98, "factor of the next value"),
    "tau": (0.005, "Polyak rate of the target networks"),
    "batch_size": (256, "transitions per update"),
    "noise": (0.2, "standard deviation of the Gaussian exploration noise"),
    "gradient_clip": (1.0, "largest norm of a network's gradient"),
    "start_after": (2_000, "transitions before the first update"),
    "updates": (50, "updates per episode"),
    "n_sampled_goal": (4, "relabelled goals per original goal: 4/5 of a batch is relabelled"),
    "strategy": ("future", "relabel with goals that were achieved later in the episode"),
    "capacity": (100_000, "transitions in the buffer"),
}
S = {name: value for name, (value, _) in SETTINGS.items()}


def network(n_inputs, n_outputs, *last, n=S["hidden"]):
    return nn.Sequential(nn.Linear(n_inputs, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, n_outputs), *last)


def train(episodes, seed=0):
    torch.manual_seed(seed)
    rng, env, curves = np.random.default_rng(seed), PointReach(), {name: [] for name in CURVES}
    actor, critic = networks = nn.ModuleList([network(4 + 2, 2, nn.Tanh()), network(4 + 2 + 2, 1)])
    target_actor, target_critic = targets = deepcopy(networks)
    optimizers = {net: torch.optim.Adam(net.parameters(), S["learning_rate"]) for net in (actor, critic)}
    relabelling = ReplayOptions(n_sampled_goal=S["n_sampled_goal"], strategy=S["strategy"])
    spaces = env.observation_space, env.action_space
    buffer = HindsightBuffer(S["capacity"], *spaces, env.compute_reward, seed=seed, options=relabelling)

    def play(number, noise):
        (obs, _), episode_return, done = env.reset(seed=number), 0.0, False
        while not done:
            action = actor(torch.as_tensor(np.r_[obs["observation"], obs["desired_goal"]]).float()).detach().numpy()
            action = np.clip(action + noise * rng.normal(size=2), -1, 1).astype(np.float32)
            next_obs, reward, terminated, truncated, info = env.step(action)
            if noise:
                buffer.add(obs, action, reward, next_obs, terminated, truncated, info)
            obs, episode_return, done = next_obs, episode_return + reward, terminated or truncated
        return episode_return, info["is_success"], np.linalg.norm(obs["achieved_goal"] - obs["desired_goal"])

    def update(batch):
        now, after = (torch.as_tensor(np.hstack([x, batch.goal])) for x in (batch.observation, batch.next_observation))
        reward, terminated = torch.as_tensor(batch.reward), torch.as_tensor(batch.terminated).float()
        value = target_critic(torch.cat([after, target_actor(after)], 1))[:, 0].detach()
        target = (reward + S["discount"] * (1 - terminated) * value).clamp(-1 / (1 - S["discount"]), 0)
        q = critic(torch.cat([now, torch.as_tensor(batch.action)], 1))[:, 0]
        critic_loss = step(critic, nn.functional.mse_loss(q, target))
        actor_loss = step(actor, -critic(torch.cat([now, actor(now)], 1)).mean())
        for online, slow in zip(networks.parameters(), targets.parameters(), strict=True):
            slow.data.lerp_(online.data, S["tau"])
        return critic_loss, actor_loss, q.mean().item()

    def step(net, loss):
        optimizers[net].zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), S["gradient_clip"])
        optimizers[net].step()
        return loss.item()

    for number in range(episodes):
        outcome = play(1_000 * seed + number, S["noise"])
        count = S["updates"] if len(buffer) >= S["start_after"] else 0
        losses = np.array([update(buffer.sample(S["batch_size"])) for _ in range(count)]).reshape(count, 3)
        for name, values in zip(CURVES, [*np.array([outcome]).T, *losses.T], strict=True):
            curves[name] += values.tolist()
    return curves, np.mean([play(1_000_000 + number, 0.0)[1] for number in range(100)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=150)
    curves, success = train(parser.parse_args().episodes)
    draw("DDPG + HER on PointReach", curves, SETTINGS, "ddpg_from_parts.html")
    print(f"success {success:.0%} on 100 unseen episodes; the curves are in ddpg_from_parts.html")
