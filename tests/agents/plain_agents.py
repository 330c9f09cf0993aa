"""Reference implementations with nn.Sequential, autograd and torch.optim.Adam. The agents must agree with them.

Inputs are not normalized (options.normalize is False), and actions have the bounds -1 and 1.
"""

import copy
import itertools
import math

import numpy as np
import torch
from torch import nn

from hindsight_rl.agents.forward import layer_views


def make_mlp(sizes, layer_norm):
    """Alternate nn.Linear and ReLU, with nn.LayerNorm without scale and shift before each ReLU if `layer_norm`."""
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        norm = [nn.LayerNorm(n_out, elementwise_affine=False)] if layer_norm else []
        layers += [nn.Linear(n_in, n_out), *norm, nn.ReLU()]
    return nn.Sequential(*layers[: -2 if layer_norm else -1])


def load_flat(modules, flat, sizes):
    """Copy an ensemble's flat vector into MLPs."""
    for (weight, bias), *linears in zip(
        layer_views(flat, sizes, len(modules)),
        *[[layer for layer in module if isinstance(layer, nn.Linear)] for module in modules],
        strict=True,
    ):
        for member, linear in enumerate(linears):
            linear.weight.data.copy_(weight[member])
            linear.bias.data.copy_(bias[member])


def read_flat(modules, sizes, of_gradient=False):
    """Return the weights of MLPs, or their gradients, as a flat vector."""
    linears = [[layer for layer in module if isinstance(layer, nn.Linear)] for module in modules]
    parts = []
    for same_layer in zip(*linears, strict=True):
        pick = (lambda p: p.grad) if of_gradient else (lambda p: p.data)
        parts += [pick(layer.weight).reshape(-1) for layer in same_layer]
        parts += [pick(layer.bias) for layer in same_layer]
    return torch.cat(parts)


class PlainAgent:
    """Networks and optimizers that the algorithms share, with a copy of the agent's weights."""

    def __init__(self, agent):
        agent = agent.algorithm
        options, spec = agent.options, agent.policy_spec
        self.options, self.value_range = options, agent.value_range
        self.generator = torch.Generator().manual_seed(0)
        self.generator.set_state(agent.generator.get_state())
        self.make_networks(agent, options, spec)

    def make_networks(self, agent, options, spec):
        n_outputs = getattr(options, "n_quantiles", 1)
        self.actor_sizes = spec.architecture.sizes
        self.critic_sizes = (spec.layout.size + spec.task.action.size, *options.hidden, n_outputs)
        self.actor = make_mlp(self.actor_sizes, options.actor_layer_norm)
        self.critics = nn.ModuleList(
            [make_mlp(self.critic_sizes, options.critic_layer_norm) for _ in range(options.n_critics)]
        )
        load_flat([self.actor], agent.actor.flat, self.actor_sizes)
        load_flat(list(self.critics), agent.critics.flat, self.critic_sizes)
        self.target_actor, self.target_critics = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=options.learning_rate)
        self.critic_adam = torch.optim.Adam(self.critics.parameters(), lr=options.learning_rate)

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
        discount = self.options.discount * (1.0 - tensor(batch.terminated).float())
        discount = discount if batch.discount is None else tensor(batch.discount)
        weight = torch.ones_like(discount) if batch.weight is None else tensor(batch.weight)
        action = tensor(batch.action)
        return inputs, action, tensor(batch.reward)[..., None], next_inputs, discount[..., None], weight[..., None]

    def normal(self, shape):
        return torch.empty(shape).normal_(generator=self.generator)

    def step_critics(self, inputs, action, target, weight):
        x = torch.cat((inputs, action), -1)
        values = [critic(x) for critic in self.critics]
        loss = sum((weight * (value - target).square()).mean() for value in values)
        return self.descend(self.critic_adam, loss), self.error(torch.stack(values), target)

    def descend(self, adam, loss):
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.detach()

    def error(self, values, target):
        """Rows' absolute differences of means, over quantiles, averaged over the critics."""
        return (values.detach().mean(-1) - target.mean(-1)).abs().mean(0)

    def step_actor(self, loss):
        return self.descend(self.actor_adam, loss)

    def move_targets(self):
        online = [*self.actor.parameters(), *self.critics.parameters()]
        targets = [*self.target_actor.parameters(), *self.target_critics.parameters()]
        with torch.no_grad():
            for target, weight in zip(targets, online, strict=True):
                target.mul_(1 - self.options.tau).add_(weight, alpha=self.options.tau)


class PlainDDPG(PlainAgent):
    def update(self, batch):
        inputs, action, reward, next_inputs, discount, weight = self.inputs(batch)
        with torch.no_grad():
            x = torch.cat((next_inputs, self.target_actor(next_inputs).tanh()), -1)
            next_value = torch.stack([critic(x) for critic in self.target_critics]).amin(0)
            target = (reward + discount * next_value).clamp(*self.value_range)
        critic_loss, error = self.step_critics(inputs, action, target, weight)
        own = self.actor(inputs).tanh()
        value = torch.stack([critic(torch.cat((inputs, own), -1)) for critic in self.critics]).mean()
        actor_loss = self.step_actor(-value + self.options.action_l2 * own.square().mean())
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss, "priority": error[None]}


class PlainTD3(PlainAgent):
    def update(self, batches):
        options, errors = self.options, []
        inputs, action, reward, next_inputs, discount, weight = self.inputs(batches)
        noise = self.normal(action.shape) * options.target_noise
        for i in range(len(inputs)):
            with torch.no_grad():
                limited = noise[i].clamp(-options.target_noise_clip, options.target_noise_clip)
                next_action = (self.target_actor(next_inputs[i]).tanh() + limited).clamp(-1, 1)
                x = torch.cat((next_inputs[i], next_action), -1)
                next_value = torch.stack([critic(x) for critic in self.target_critics]).amin(0)
                target = (reward[i] + discount[i] * next_value).clamp(*self.value_range)
            critic_loss, error = self.step_critics(inputs[i], action[i], target, weight[i])
            errors.append(error)
        own = self.actor(inputs[-1]).tanh()
        value = self.critics[0](torch.cat((inputs[-1], own), -1)).mean()
        actor_loss = self.step_actor(-value + options.action_l2 * own.square().mean())
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss, "priority": torch.stack(errors)}


class PlainSAC(PlainAgent):
    def __init__(self, agent):
        super().__init__(agent)
        self.target_entropy = agent.algorithm.target_entropy
        self.log_coefficient = nn.Parameter(agent.algorithm.log_coefficient.clone())
        self.entropy_adam = torch.optim.Adam([self.log_coefficient], lr=self.options.learning_rate)

    def sample(self, inputs):
        mean, log_deviation = self.actor(inputs).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_deviation.clamp(-20, 2).exp())
        before = mean + normal.stddev * self.normal(mean.shape)
        log_slope = 2 * (math.log(2) - before - nn.functional.softplus(-2 * before))
        return before.tanh(), (normal.log_prob(before) - log_slope).sum(-1, keepdim=True)

    def next_value(self, x):
        return torch.stack([critic(x) for critic in self.target_critics]).amin(0)

    def own_value(self, x):
        return torch.stack([critic(x) for critic in self.critics]).amin(0)

    def update(self, batch):
        inputs, action, reward, next_inputs, discount, weight = self.inputs(batch)
        coefficient = self.log_coefficient.exp().detach()
        with torch.no_grad():
            next_action, next_log_density = self.sample(next_inputs)
            next_value = self.next_value(torch.cat((next_inputs, next_action), -1)).clamp(*self.value_range)
            target = reward + discount * (next_value - coefficient * next_log_density)
        critic_loss, error = self.step_critics(inputs, action, target, weight)
        own, log_density = self.sample(inputs)
        value = self.own_value(torch.cat((inputs, own), -1))
        regularity = self.options.action_l2 * own.square().mean()
        actor_loss = self.step_actor((coefficient * log_density - value).mean() + regularity)
        entropy_loss = -(self.log_coefficient * (log_density.detach() + self.target_entropy)).mean()
        self.descend(self.entropy_adam, entropy_loss)
        self.move_targets()
        return {"critic_loss": critic_loss, "actor_loss": actor_loss, "priority": error[None]}


def quantile_loss(quantiles, samples, weight):
    """The quantile Huber loss, pair by pair: quantiles (B, N), samples (B, K), weight (B, 1)."""
    n, k = quantiles.shape[1], samples.shape[1]
    loss = 0
    for i in range(n):
        for j in range(k):
            error = samples[:, j] - quantiles[:, i]
            huber = nn.functional.smooth_l1_loss(quantiles[:, i], samples[:, j], reduction="none")
            level = torch.where(error < 0, 1 - (i + 0.5) / n, (i + 0.5) / n)
            loss = loss + (weight[:, 0] * level * huber).mean() / k
    return loss


class PlainTQC(PlainSAC):
    def next_value(self, x):
        pooled = torch.cat([critic(x) for critic in self.target_critics], -1).sort(-1).values
        n_dropped = self.options.top_quantiles_to_drop_per_net * len(self.target_critics)
        return pooled[:, : pooled.shape[1] - n_dropped]

    def own_value(self, x):
        return torch.cat([critic(x) for critic in self.critics], -1).mean(-1, keepdim=True)

    def step_critics(self, inputs, action, target, weight):
        x = torch.cat((inputs, action), -1)
        values = [critic(x) for critic in self.critics]
        loss = sum(quantile_loss(value, target, weight) for value in values)
        return self.descend(self.critic_adam, loss), self.error(torch.stack(values), target)


class PlainDQN(PlainAgent):
    def make_networks(self, agent, options, spec):
        self.n_actions, self.n_quantiles = spec.n_actions, getattr(options, "n_quantiles", 1)
        n_outputs = spec.n_actions * self.n_quantiles + getattr(options, "dueling", False)
        self.sizes = (spec.layout.size, *options.hidden, n_outputs)
        self.critic = make_mlp(self.sizes, options.critic_layer_norm)
        load_flat([self.critic], agent.critic.flat, self.sizes)
        self.target_critic = copy.deepcopy(self.critic)
        self.adam = torch.optim.Adam(self.critic.parameters(), lr=options.learning_rate)

    def flat(self):
        return read_flat([self.critic], self.sizes)

    def flat_targets(self):
        return read_flat([self.target_critic], self.sizes)

    def quantiles(self, network, x):
        """(B, actions, quantiles); one quantile is the value."""
        outputs = network(x)
        if getattr(self.options, "dueling", False):
            value, advantage = outputs[:, :1], outputs[:, 1:]
            outputs = value + advantage - advantage.mean(1, keepdim=True)
        return outputs.reshape(len(x), self.n_actions, self.n_quantiles)

    def loss(self, value, target, weight):
        error = nn.functional.smooth_l1_loss if self.options.critic_error == "huber" else nn.functional.mse_loss
        return (weight * error(value, target, reduction="none")).mean()

    def update(self, batch):
        inputs, action, reward, next_inputs, discount, weight = self.inputs(batch)
        rows = torch.arange(len(inputs))
        with torch.no_grad():
            selection = self.quantiles(self.critic if self.options.double else self.target_critic, next_inputs)
            next_value = self.quantiles(self.target_critic, next_inputs)[rows, selection.mean(2).argmax(1)]
            target = (reward + discount * next_value).clamp(*self.value_range)
        value = self.quantiles(self.critic, inputs)[rows, action]
        loss = self.descend(self.adam, self.loss(value, target, weight))
        with torch.no_grad():
            for target_weight, online in zip(self.target_critic.parameters(), self.critic.parameters(), strict=True):
                target_weight.lerp_(online, self.options.tau)
        return {"critic_loss": loss, "priority": self.error(value[None], target)[None]}


class PlainQRDQN(PlainDQN):
    def loss(self, value, target, weight):
        return quantile_loss(value, target, weight)


PLAIN_AGENTS = {
    "dqn": PlainDQN,
    "qrdqn": PlainQRDQN,
    "ddpg": PlainDDPG,
    "td3": PlainTD3,
    "sac": PlainSAC,
    "tqc": PlainTQC,
}


def random_batch(rng, rows, n_batches, sizes=(25, 3, 4), n_actions=None):
    """A Batch of standard normal numbers, (n_batches, rows, ...); a tenth of the transitions terminate.

    n_actions: draw Discrete actions instead of continuous ones.
    """
    from hindsight_rl.records import Batch

    observation_size, goal_size, action_size = sizes
    leading = (n_batches, rows)

    def normal(size):
        return rng.standard_normal((*leading, size), np.float32)

    return Batch(
        observation=normal(observation_size),
        achieved_goal=normal(goal_size),
        goal=normal(goal_size),
        action=rng.uniform(-1, 1, (*leading, action_size)).astype(np.float32)
        if n_actions is None
        else rng.integers(0, n_actions, leading),
        reward=-rng.integers(0, 2, leading).astype(np.float32),
        next_observation=normal(observation_size),
        next_achieved_goal=normal(goal_size),
        terminated=rng.random(leading) < 0.1,
        is_relabelled=np.zeros(leading, bool),
        row=np.zeros(leading, np.int64),
    )
