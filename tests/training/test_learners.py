"""Learners on one machine, over gloo: what they learn together is what one would learn from all their batches."""

import multiprocessing
import os

import numpy as np
import pytest

from hindsight import HER, PointReach
from hindsight.agents import make_agent
from hindsight.envs.goal_env import read_spec
from hindsight.errors import LearnerError, OptionError
from hindsight.options import DDPGOptions, TD3Options
from hindsight.records import Batch
from hindsight.training.learners import Group

CASES = {
    "ddpg": DDPGOptions(hidden=(16, 16), gradient_clip=0.5, device="cpu"),
    "td3": TD3Options(hidden=(16, 16), target_noise=0.0, device="cpu"),
}
BATCH, UPDATES = 32, 10
OPTIONS = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 20, "max_episode_steps": 10}


def batches(agent, seed, count):
    """`count` batches of random numbers for one update of PointReach."""
    generator = np.random.default_rng(seed)
    shape = (agent.batches_per_update, count)

    def some(*sizes):
        return generator.standard_normal((*shape, *sizes)).astype(np.float32)

    flags, rows = np.zeros(shape, bool), np.zeros(shape, np.int64)
    seen, reward = (some(4), some(2), some(2)), -(some() > 0).astype(np.float32)
    return Batch(*seen, some(2).clip(-1, 1), reward, some(4), some(2), flags, flags, rows)


def part(batch, rank):
    """One learner's half of the rows."""
    return batch[:, rank * BATCH : (rank + 1) * BATCH]


def agent_of(name):
    return make_agent(name, read_spec(PointReach()), CASES[name], 0)


def learn_half(rank, rendezvous, results):
    group = Group(rank, 2, "cpu", rendezvous)
    learnt = {}
    for name in CASES:
        agent = agent_of(name)
        agent.share_gradients(group.average)
        for seed in range(UPDATES):
            agent.update(part(batches(agent, seed, 2 * BATCH), rank))
        learnt[name] = agent.algorithm.weights.numpy().copy()
    results.put((rank, learnt))
    group.close()


def in_two_processes(target, *arguments):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=target, args=(rank, *arguments, results)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=100) for _ in processes)
    for process in processes:
        process.join(timeout=30)
        assert process.exitcode == 0
    return found


def test_two_learners_make_the_step_that_one_makes_from_both_batches(tmp_path):
    found = in_two_processes(learn_half, tmp_path / "meet")
    for name in CASES:
        first, second = found[0][name], found[1][name]
        assert first.tobytes() == second.tobytes()
        agent = agent_of(name)
        before = agent.algorithm.weights.numpy().copy()
        for seed in range(UPDATES):
            agent.update(batches(agent, seed, 2 * BATCH))
        whole = agent.algorithm.weights.numpy()
        assert np.abs(whole - before).max() > 1e-3
        assert np.abs(first - whole).max() < 2e-5


def her(**options):
    return HER("PointReach-v0", device="cpu", eval_every=0, **(OPTIONS | {"learners": 2} | options))


def test_learners_share_steps_and_statistics_and_go_on_to_the_same_bytes():
    with her(policy_lag=1) as model:
        model.learn(60)
        counts = model.trainer.counts
        assert (counts.env_steps, counts.episodes, counts.updates) == (60, 6, 40)  # 20 of 60 steps were the warm-up's
        assert len(model.trainer.buffer) == 30
        assert model.agent.state_dict()["normalizer/observation_count"] == 8 * 6 * 11  # from eight augmented
        state = model.trainer.state()
        jobs = [data["jobs"] for data in (state[1], *state[1]["learners"])]
        assert [[job["episodes"] for job in of_one] for of_one in jobs] == [[[6]], [[7]]]
        assert model.learn(40).trainer.counts.env_steps == 100
        arrays, data = model.trainer.state()
    with her(policy_lag=1) as other:
        other.trainer.load_state(*state)
        other.learn(40)
        again, data_again = other.trainer.state()
    assert set(again) == set(arrays)
    assert all(again[name].tobytes() == arrays[name].tobytes() for name in arrays)
    assert data_again["learners"] == data["learners"]


def test_a_learner_that_dies_ends_the_run_and_leaves_nobody_behind():
    with her() as model:
        model.learn(20)
        [process] = model.learners._others
        process.kill()
        with pytest.raises(LearnerError, match=r"learner 0 of 2 lost another one .* --resume"):
            model.learn(200)
    assert not multiprocessing.active_children()
    assert not os.path.exists(model.learners._folder)


def test_what_cannot_be_shared_is_refused():
    with pytest.raises(OptionError, match=r"several processes \(workers, learners\)"):
        HER(PointReach(), recipe="point_reach", learners=2)
    with pytest.raises(OptionError, match="learners is 0"):
        her(learners=0)
