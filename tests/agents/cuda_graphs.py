"""Capture the updates of an algorithm in a CUDA graph. Experimental: used by tests and a benchmark only."""

from dataclasses import replace

import torch


class GraphedUpdates:
    """Updates on fixed memory, captured once and replayed.

    algorithm: such as `Agent.algorithm`, on a CUDA device. Its state does not change here.
    transitions: n * batches_per_update batches of `Preprocessor.transitions`; later ones need the same shapes.
    """

    def __init__(self, algorithm, transitions):
        self.algorithm, self.memory = algorithm, _own_memory(transitions)
        before = {name: tensor.clone() for name, tensor in algorithm.tensors.items()}
        generator_state = algorithm.generator.get_state()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries allocate their workspaces in the first runs
            self._learn()
            self._learn()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(algorithm.generator)
        with torch.cuda.graph(self.graph):
            self.metrics = self._learn()
        for name, tensor in algorithm.tensors.items():
            tensor.copy_(before[name])
        algorithm.generator.set_state(generator_state)

    def __call__(self, transitions):
        """Run the updates and return their metrics, which the next call overwrites."""
        for target, source in zip(_sources(self.memory), _sources(transitions), strict=True):
            target.copy_(source, non_blocking=True)
        self.graph.replay()
        return self.metrics

    def _learn(self):
        size = self.algorithm.batches_per_update
        starts = range(0, len(self.memory.reward), size)
        return [self.algorithm.learn(self.memory[first : first + size]) for first in starts]


def _sources(transitions):
    """Return the tensors that the others are views of."""
    tensors = [transitions.critic_inputs, transitions.next_inputs, transitions.reward, transitions.discount]
    if not transitions.action.is_floating_point():
        tensors.append(transitions.action)
    if transitions.next_policy_inputs is not transitions.next_inputs:
        tensors.append(transitions.next_policy_inputs)
    return tensors if transitions.weight is None else [*tensors, transitions.weight]


def _own_memory(transitions):
    """Return a copy in which inputs and action are views of the critic inputs again."""
    size = transitions.inputs.shape[-1]
    critic_inputs, next_inputs = transitions.critic_inputs.clone(), transitions.next_inputs.clone()
    is_continuous = transitions.action.is_floating_point()
    has_own_goal = transitions.next_policy_inputs is not transitions.next_inputs
    return replace(
        transitions,
        inputs=critic_inputs[..., :size],
        action=critic_inputs[..., size:] if is_continuous else transitions.action.clone(),
        critic_inputs=critic_inputs,
        next_inputs=next_inputs,
        next_policy_inputs=transitions.next_policy_inputs.clone() if has_own_goal else next_inputs,
        reward=transitions.reward.clone(),
        discount=transitions.discount.clone(),
        weight=None if transitions.weight is None else transitions.weight.clone(),
    )
