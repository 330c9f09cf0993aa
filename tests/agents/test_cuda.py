"""Agents on a GPU: the same updates as on the CPU, and their capture in a CUDA graph. Run with `pytest -m cuda`."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cuda_graphs import GraphedUpdates
from plain_agents import random_batch

from hindsight_rl.agents import AGENT_NAMES, make_agent
from hindsight_rl.options import AGENT_OPTIONS, DISCRETE_AGENTS
from hindsight_rl.records import ArraySpec, Episode, GoalSpec

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
SIZES = (6, 2, 3)
SEVERAL = 4  # updates
NOT_RANDOM = {"dqn": {"dueling": True}, "qrdqn": {}, "ddpg": {}, "td3": {"target_noise": 0.0}}


def make(name, device, **options):
    action = ArraySpec((SIZES[2],), "float32", (-1.0,), (1.0,))
    if name in DISCRETE_AGENTS:
        action = ArraySpec((), "int64", (0.0,), (3.0,), 4)
    spec = GoalSpec(ArraySpec((SIZES[0],), "float64"), ArraySpec((SIZES[1],), "float64"), action, 50, -1.0, 0.0)
    options = {"hidden": (16, 16), "target_period": 2, "gradient_clip": 0.5, "device": device, **options}
    return make_agent(name, spec, AGENT_OPTIONS[name](**options), seed=0)


def make_batch(agent, seed=0):
    n_batches, rng = SEVERAL * agent.batches_per_update, np.random.default_rng(seed)
    batch = random_batch(rng, 32, n_batches, SIZES, agent.policy_spec.n_actions or None)
    return replace(batch, weight=rng.uniform(0.1, 2.0, batch.reward.shape).astype(np.float32))


def make_episode():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(6, SIZES[1]))
    return Episode(rng.normal(2.0, 3.0, (6, SIZES[0])), goal, goal, np.zeros((5, SIZES[2])), np.zeros(5))


@pytest.mark.parametrize("name", NOT_RANDOM)
def test_updates_equal_those_on_the_cpu(name):
    agents = [make(name, device, **NOT_RANDOM[name]) for device in ("cpu", "cuda")]
    agents[1].algorithm.weights.copy_(agents[0].algorithm.weights)
    agents[1].algorithm.target_weights.copy_(agents[0].algorithm.target_weights)
    for agent in agents:
        agent.observe(make_episode())
    on_cpu, on_gpu = (agent.updates(make_batch(agent)) for agent in agents)
    for expected, metrics in zip(on_cpu, on_gpu, strict=True):
        for key, value in expected.items():
            torch.testing.assert_close(metrics[key].cpu(), value, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(agents[1].algorithm.weights.cpu(), agents[0].algorithm.weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_an_agent_on_the_gpu_is_restored(name):
    first, second = make(name, "cuda"), make(name, "cuda")
    first.observe(make_episode())
    assert all(value.device.type == "cuda" for metrics in first.updates(make_batch(first)) for value in metrics.values())
    second.load_state_dict(first.state_dict())
    for agent in (first, second):
        agent.updates(make_batch(agent, seed=1))
    state, restored = first.state_dict(), second.state_dict()
    for key, value in state.items():  # the scale of rewards is NaN: this agent does not normalize them
        np.testing.assert_array_equal(restored[key], value, err_msg=key)
    assert first.policy_weights().flat.dtype == np.float32
    assert first.values(make_episode()).shape == (5,)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_cuda_graph_runs_the_same_updates(name):
    plain, graphed = make(name, "cuda", **NOT_RANDOM.get(name, {})), make(name, "cuda", **NOT_RANDOM.get(name, {}))
    size = SEVERAL * plain.batches_per_update
    first, second = (graphed.algorithm.preprocessor.transitions(make_batch(plain, seed), size) for seed in (1, 2))
    updates = GraphedUpdates(graphed.algorithm, first)
    torch.testing.assert_close(graphed.algorithm.weights, plain.algorithm.weights, rtol=0, atol=0)  # nothing learnt yet
    for transitions, seed in ((first, 1), (second, 2)):
        metrics, expected = updates(transitions)[-1], plain.updates(make_batch(plain, seed))[-1]
        assert metrics["critic_loss"].isfinite()
        if name in NOT_RANDOM:
            torch.testing.assert_close(metrics["critic_loss"], expected["critic_loss"], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(graphed.algorithm.weights, plain.algorithm.weights, rtol=1e-4, atol=1e-5)
    assert not torch.equal(graphed.algorithm.weights, make(name, "cuda").algorithm.weights)
