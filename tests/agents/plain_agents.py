"""DDPG, TD3 and SAC as anybody would write them, with nn.Sequential, autograd and torch.optim.Adam: the agents must agree.

They see raw inputs (options.normalize is False) and actions bounded by -1 and 1.
"""

import copy
import itertools
import math

import numpy as np
import torch
from torch import nn

from hindsight.agents.policy import layer_views


def make_mlp(sizes, layer_norm):
    """nn.Linear and ReLU by turns, nn.LayerNorm without scale or shift before each ReLU where asked."""
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        norm = [nn.LayerNorm(n_out, elementwise_affine=False)] if layer_norm else []
        layers += [nn.Linear(n_in, n_out), *norm, nn.ReLU()]
    return nn.Sequential(*layers[: -2 if layer_norm else -1])


def load_flat(modules, flat, sizes):
    """Give MLPs the weights of an ensemble's flat vector."""
    for (weight, bias), *linears in zip(
        layer_views(flat, sizes, len(modules)),
        *[[layer for layer in module if isinstance(layer, nn.Linear)] for module in modules],
        strict=True,
    ):
        for member, linear in enumerate(linears):
            linear.weight.data.copy_(weight[member])
            linear.bias.data.copy_(bias[member])


def read_flat(modules, sizes, of_gradient=False):
    """The inverse of `load_flat`, for weights or their gradients, as a flat vector."""
    linears = [[layer for layer in module if isinstance(layer, nn.Linear)] for module in modules]
    parts = []
    for same_layer in zip(*linears, strict=True):
        pick = (lambda p: p.grad) if of_gradient else (lambda p: p.data)
        parts += [pick(layer.weight).reshape(-1) for layer in same_layer]
        parts += [pick(layer.bias) for layer in same_layer]
    return torch.cat(parts)


class PlainAgent:
    """The networks and optimisers that the three algorithms share; starts from a copy of `agent`'s weights."""

    def __init__(self, agent):
        options, spec = agent.options, agent.policy_spec
        self.options, self.value_range = options, agent.value_range
        self.actor_sizes = spec.layer_sizes
        self.critic_sizes = (spec.input_size + spec.action_size, *options.hidden, 1)
        self.actor = make_mlp(self.actor_sizes, options.actor_layer_norm)
        self.critics = nn.ModuleList(
            [make_mlp(self.critic_sizes, options.critic_layer_norm) for _ in range(options.n_critics)]
        )
        load_flat([self.actor], agent.actor.flat, self.actor_sizes)
        load_flat(list(self.critics), agent.critics.flat, self.critic_sizes)
        self.target_actor, self.target_critics = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=options.learning_rate)
        self.critic_adam = torch.optim.Adam(self.critics.parameters(), lr=options.learning_rate)
        self.generator = torch.Generator().manual_seed(0)
        self.generator.set_state(agent.generator.get_state())

    def flat(self):
        """Weights of actor and critics in the agent's order."""
        return torch.cat((read_flat([self.actor], self.actor_sizes), read_flat(list(self.critics), self.critic_sizes)))

    def flat_targets(self):
        """The same of the targets."""
        return torch.cat(
            (read_flat([self.target_actor], self.actor_sizes), read_flat(list(self.target_critics), self.critic_sizes))
        )

    def inputs(self, batch):
        tensor = torch.as_tensor
        inputs = torch.cat((tensor(batch.observation), tensor(batch.goal)), -1)
        next_inputs = torch.cat((tensor(batch.next_observation), tensor(batch.goal)), -1)
        bootstrap = 1.0 - tensor(batch.terminated).float()
        return inputs, tensor(batch.action), tensor(batch.reward)[..., None], next_inputs, bootstrap[..., None]

    def normal(self, shape):
        return torch.empty(shape).normal_(generator=self.generator)

    def step_critics(self, inputs, action, target):
        x = torch.cat((inputs, action), -1)
        loss = sum(nn.functional.mse_loss(critic(x), target) for critic in self.critics)
        self.critic_adam.zero_grad()
        loss.backward()
        self.critic_adam.step()
        return loss.detach()

    def step_actor(self, loss):
        self.actor_adam.zero_grad()
        loss.backward()
        self.actor_adam.step()
        return loss.detach()

    def move_targets(self):
        online = [*self.actor.parameters(), *self.critics.parameters()]
        targets = [*self.target_actor.parameters(), *self.target_critics.parameters()]
        with torch.no_grad():
            for target, weight in zip(targets, online, strict=True):
                target.mul_(1 - self.options.tau).add_(weight, alpha=self.options.tau)


class PlainDDPG(PlainAgent):
    def update(self, batch):
        inputs, action, reward, next_inputs, bootstrap = self.inputs(batch)
        with torch.no_grad():
            x = torch.cat((next_inputs, self.target_actor(next_inputs).tanh()), -1)
            next_value = torch.stack([critic(x) for critic in self.target_critics]).amin(0)
            target = (reward + self.options.discount * bootstrap * next_value).clamp(*self.value_range)
        critic_loss = self.step_critics(inputs, action, target)
        own = self.actor(inputs).tanh()
        value = torch.stack([critic(torch.cat((inputs, own), -1)) for critic in self.critics]).mean()
        actor_loss = self.step_actor(-value + self.options.action_l2 * own.square().mean())
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss}


class PlainTD3(PlainAgent):
    def update(self, batches):
        options = self.options
        inputs, action, reward, next_inputs, bootstrap = self.inputs(batches)
        noise = self.normal(action.shape) * options.target_noise
        for i in range(len(inputs)):
            with torch.no_grad():
                limited = noise[i].clamp(-options.target_noise_clip, options.target_noise_clip)
                next_action = (self.target_actor(next_inputs[i]).tanh() + limited).clamp(-1, 1)
                x = torch.cat((next_inputs[i], next_action), -1)
                next_value = torch.stack([critic(x) for critic in self.target_critics]).amin(0)
                target = (reward[i] + options.discount * bootstrap[i] * next_value).clamp(*self.value_range)
            critic_loss = self.step_critics(inputs[i], action[i], target)
        own = self.actor(inputs[-1]).tanh()
        value = self.critics[0](torch.cat((inputs[-1], own), -1)).mean()
        actor_loss = self.step_actor(-value + options.action_l2 * own.square().mean())
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss}


class PlainSAC(PlainAgent):
    def __init__(self, agent):
        super().__init__(agent)
        self.target_entropy = agent.target_entropy
        self.log_coefficient = nn.Parameter(agent.log_coefficient.clone())
        self.entropy_adam = torch.optim.Adam([self.log_coefficient], lr=self.options.learning_rate)

    def sample(self, inputs):
        mean, log_deviation = self.actor(inputs).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_deviation.clamp(-20, 2).exp())
        before = mean + normal.stddev * self.normal(mean.shape)
        log_slope = 2 * (math.log(2) - before - nn.functional.softplus(-2 * before))
        return before.tanh(), (normal.log_prob(before) - log_slope).sum(-1, keepdim=True)

    def update(self, batch):
        inputs, action, reward, next_inputs, bootstrap = self.inputs(batch)
        coefficient = self.log_coefficient.exp().detach()
        with torch.no_grad():
            next_action, next_log_density = self.sample(next_inputs)
            x = torch.cat((next_inputs, next_action), -1)
            next_value = torch.stack([critic(x) for critic in self.target_critics]).amin(0).clamp(*self.value_range)
            target = reward + self.options.discount * bootstrap * (next_value - coefficient * next_log_density)
        critic_loss = self.step_critics(inputs, action, target)
        own, log_density = self.sample(inputs)
        value = torch.stack([critic(torch.cat((inputs, own), -1)) for critic in self.critics]).amin(0)
        regularity = self.options.action_l2 * own.square().mean()
        actor_loss = self.step_actor((coefficient * log_density - value).mean() + regularity)
        entropy_loss = -(self.log_coefficient * (log_density.detach() + self.target_entropy)).mean()
        self.entropy_adam.zero_grad()
        entropy_loss.backward()
        self.entropy_adam.step()
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss}


PLAIN_AGENTS = {"ddpg": PlainDDPG, "td3": PlainTD3, "sac": PlainSAC}


def random_batch(rng, rows, n_batches, sizes=(25, 3, 4)):
    """A Batch of standard normal numbers, (n_batches, rows, ...); a tenth of the transitions end an episode."""
    from hindsight.records import Batch

    observation_size, goal_size, action_size = sizes
    leading = (n_batches, rows)

    def normal(size):
        return rng.standard_normal((*leading, size), np.float32)

    return Batch(
        observation=normal(observation_size),
        achieved_goal=normal(goal_size),
        goal=normal(goal_size),
        action=rng.uniform(-1, 1, (*leading, action_size)).astype(np.float32),
        reward=-rng.integers(0, 2, leading).astype(np.float32),
        next_observation=normal(observation_size),
        next_achieved_goal=normal(goal_size),
        terminated=rng.random(leading) < 0.1,
        is_relabelled=np.zeros(leading, bool),
        row=np.zeros(leading, np.int64),
    )
