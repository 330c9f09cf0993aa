from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import setups
from test_collect import same

from hindsight.agents.policy import Exploration
from hindsight.errors import WorkerError
from hindsight.records import Episode
from hindsight.rollout.collect import TRAINING, Collector, Job
from hindsight.rollout.job_result import deliver, pack
from hindsight.rollout.workers import DEATHS_PER_JOB, WorkerSource

JOB = Job(0, TRAINING, (3, 4), setups.weights(), Exploration(random_eps=0.3, noise=0.2))


def episode(steps, number, success):
    rows = {k: np.full((steps + 1, 2), number, np.float32) for k in ("observation", "achieved_goal", "desired_goal")}
    info = {"speed": np.arange(steps) + number}
    return Episode(**rows, action=np.ones((steps, 1)), reward=-np.ones(steps), success=success, info=info, number=number)


def test_episodes_travel_as_flat_arrays_and_come_out_as_they_were():
    sent = [replace(episode(3, 7, True), terminated=True, is_guided=True), episode(1, 8, None), episode(2, 9, False)]
    delivery = pack(sent, "us", 5)
    rows = {"observation": 9, "achieved_goal": 9, "desired_goal": 9, "action": 6, "reward": 6, "info/speed": 6}
    assert {k: len(v) for k, v in delivery.arrays.items()} == rows
    received = delivery.episodes()
    assert all(same(a, b) for a, b in zip(sent, received, strict=True))
    assert [e.info["speed"].tolist() for e in received] == [[7, 8, 9], [8], [9, 10]]
    told = [(e.number, e.terminated, e.success, e.is_guided) for e in received]
    assert told == [(7, True, True, True), (8, False, None, False), (9, False, False, False)]


def test_what_is_wrong_with_an_answer():
    good = deliver(Collector(setups.setup(setups.short)), "us", 5, JOB)
    assert good.fault("us", 5, JOB) is None
    assert good.fault("others", 5, JOB) == "foreign"
    assert good.fault("us", 6, JOB) == "duplicate"
    assert good.fault("us", 5, replace(JOB, episodes=(3,))) == "truncated"
    for name, array in good.arrays.items():
        assert replace(good, arrays=good.arrays | {name: array[:-1]}).fault("us", 5, JOB) == "truncated"
        changed = array.copy()
        changed.flat[-1] += 1
        assert replace(good, arrays=good.arrays | {name: changed}).fault("us", 5, JOB) == "truncated"
    assert replace(good, steps=(11, 9)).fault("us", 5, JOB) == "truncated"


class Liar:
    """An engine of one worker in this process, which changes its answers by the functions in `lies`, one after another."""

    fix = "none"
    is_ready = True

    def __init__(self, lies):
        self.lies, self.collector = list(lies), Collector(setups.setup(setups.short))

    def hire(self):
        return self

    def wait(self, workers, timeout):
        return workers

    def start(self, source, ticket, job):
        self.answer = deliver(self.collector, source, ticket, job)

    def receive(self):
        return self.lies.pop(0)(self.answer) if self.lies else self.answer

    def close(self):
        self.collector.close()


def foreign(answer):
    return replace(answer, source="others")


def duplicate(answer):
    return replace(answer, ticket=answer.ticket - 1)


def truncated(answer):
    return replace(answer, arrays=answer.arrays | {"reward": answer.arrays["reward"][:-1]})


def test_bad_answers_are_dropped_and_counted_and_their_jobs_run_again():
    with WorkerSource(Liar([foreign, truncated, lambda a: a, duplicate]), 1) as source:
        for _ in range(2):
            episodes = source.result(source.submit(JOB))
            assert all(
                same(a, b) for a, b in zip(episodes, Collector(setups.setup(setups.short)).collect(JOB), strict=True)
            )
        assert source.take_fault_counts() == Counter(foreign_answers=1, truncated_answers=1, duplicate_answers=1)
        assert not source.take_fault_counts()


def test_answers_that_are_always_bad_end_the_job():
    with WorkerSource(Liar([foreign] * DEATHS_PER_JOB), 1) as source:
        ticket = source.submit(JOB)
        with pytest.raises(WorkerError, match="3 answers in a row were not to be used, the last one was foreign"):
            source.result(ticket)
        assert len(source.result(ticket)) == 2
