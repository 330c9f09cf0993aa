import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import setups
from test_collect import same

from hindsight_rl.agents.policy import Exploration
from hindsight_rl.errors import JobLostError
from hindsight_rl.records import OBSERVATION_KEYS, Episode
from hindsight_rl.rollout.collect import Collector, Job
from hindsight_rl.rollout.job_result import JobResult, checksum, run_job
from hindsight_rl.rollout.workers import MAX_ATTEMPTS, WorkerSource
from hindsight_rl.seeds import TRAINING

JOB = Job(0, TRAINING, (3, 4), setups.weights(), (Exploration(random_eps=0.3, noise=0.2),) * 2)


def episode(steps, number, success):
    rows = {k: np.full((steps + 1, 2), number, np.float32) for k in OBSERVATION_KEYS}
    info = {"speed": np.arange(steps) + number}
    return Episode(**rows, action=np.ones((steps, 1)), reward=-np.ones(steps), success=success, info=info, number=number)


def test_a_result_survives_pickling():
    sent = [replace(episode(3, 7, True), terminated=True, is_unguided=True), episode(1, 8, None), episode(2, 9, False)]
    result = pickle.loads(pickle.dumps(JobResult("us", 5, sent, checksum=checksum(sent))))
    assert result.fault("us", 5, Job(0, TRAINING, (7, 8, 9), setups.weights())) is None
    assert all(same(a, b) for a, b in zip(sent, result.episodes, strict=True))
    assert [e.info["speed"].tolist() for e in result.episodes] == [[7, 8, 9], [8], [9, 10]]
    facts = [(e.number, e.terminated, e.success, e.is_unguided) for e in result.episodes]
    assert facts == [(7, True, True, True), (8, False, None, False), (9, False, False, False)]


def test_the_faults_of_a_result():
    good = run_job(Collector(setups.setup(setups.short)), "us", 5, JOB)
    assert good.fault("us", 5, JOB) is None
    assert good.fault("others", 5, JOB) == "foreign"
    assert good.fault("us", 6, JOB) == "duplicate"
    assert good.fault("us", 5, replace(JOB, episodes=(3,))) == "truncated"
    assert replace(good, episodes=good.episodes[:1]).fault("us", 5, JOB) == "truncated"


def changed(name):
    """An episode in which one field differs from `episode(3, 7, True)`."""
    first = episode(3, 7, True)
    value = getattr(first, name)
    if name == "info":
        return replace(first, info={"speed": value["speed"] + 1})
    if isinstance(value, np.ndarray):
        return replace(first, **{name: value + 1})
    return replace(first, **{name: not value})


@pytest.mark.parametrize("name", Episode.__dataclass_fields__)
def test_the_checksum_covers_every_field(name):
    assert checksum([changed(name)]) != checksum([episode(3, 7, True)]) == checksum([episode(3, 7, True)])


def test_the_checksum_covers_shapes_and_dtypes():
    first = episode(3, 7, True)
    assert checksum([replace(first, action=first.action.reshape(3, 1, 1))]) != checksum([first])
    assert checksum([replace(first, action=first.action.view(np.int64))]) != checksum([first])


class FaultyPool:
    """A pool of one worker in this process. Functions in `changes` change its results, one after another."""

    fix = "none"
    is_ready = True
    process_id = 0

    def __init__(self, changes):
        self.changes, self.collector = list(changes), Collector(setups.setup(setups.short))

    def start_worker(self):
        return self

    def wait(self, workers, timeout):
        return workers

    def start(self, source, ticket, job):
        self.result = run_job(self.collector, source, ticket, job)

    def receive(self):
        return self.changes.pop(0)(self.result) if self.changes else self.result

    def close(self):
        self.collector.close()


def foreign(result):
    return replace(result, source="others")


def duplicate(result):
    return replace(result, ticket=result.ticket - 1)


def truncated(result):
    first, *others = result.episodes
    return replace(result, episodes=[replace(first, terminated=True), *others])


def test_faulty_results_are_counted_and_their_jobs_run_again():
    with WorkerSource(FaultyPool([foreign, truncated, lambda a: a, duplicate]), 1) as source:
        for _ in range(2):
            episodes = source.result(source.submit(JOB))
            assert all(
                same(a, b) for a, b in zip(episodes, Collector(setups.setup(setups.short)).collect(JOB), strict=True)
            )
        assert source.take_fault_counts() == Counter(foreign_answers=1, truncated_answers=1, duplicate_answers=1)
        assert not source.take_fault_counts()


def test_a_job_with_only_faulty_results_fails():
    with WorkerSource(FaultyPool([foreign] * MAX_ATTEMPTS), 1) as source:
        ticket = source.submit(JOB)
        with pytest.raises(
            JobLostError, match=r"Training episodes 3, 4 .* no result in 3 attempts. The last result was rejected: foreign"
        ):
            source.result(ticket)
        assert len(source.result(ticket)) == 2
