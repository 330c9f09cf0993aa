"""Sources of episodes. Every test with the fixture `start` runs with worker processes and on Ray."""

import gc
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import setups
from test_collect import same

from hindsight_rl import PointReach
from hindsight_rl.errors import CollectError, JobLostError, OptionError, WorkerError
from hindsight_rl.records import OBSERVATION_KEYS, Episode
from hindsight_rl.records.exploration import Exploration
from hindsight_rl.rollout.collect import Collector, Job
from hindsight_rl.rollout.episode_sources import LocalSource, WorkerSource
from hindsight_rl.rollout.workers import MAX_ATTEMPTS, JobResult, ProcessEngine, checksum, run_job
from hindsight_rl.seeds import EVALUATION, TRAINING, environment_seed


def jobs(count):
    noisy = (Exploration(random_eps=0.3, noise=0.2),) * 2
    return [Job(0, (TRAINING, EVALUATION)[i % 2], (2 * i, 2 * i + 1), setups.weights(i), noisy) for i in range(count)]


@pytest.fixture(scope="module")
def marker_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "marker"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HINDSIGHT_TEST_MARKER", str(path))
        yield path


@pytest.fixture
def marker(marker_path):
    marker_path.touch()
    yield marker_path
    marker_path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def shared_ray(marker_path):
    """One Ray for the tests of this file; its workers see the marker."""
    pytest.importorskip("ray")
    from hindsight_rl.rollout.ray_workers import connect

    ray, _ = connect(2, None)
    yield ray
    ray.shutdown()


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.ray)])
def start(request, marker_path):
    """A function that makes a source with workers of an engine."""
    if request.param == "processes":
        return lambda environment, workers, *options: WorkerSource(
            ProcessEngine(setups.setup(environment)), workers, *options
        )
    from hindsight_rl.rollout.ray_workers import RayEngine

    request.getfixturevalue("shared_ray")
    return lambda environment, workers, *options: WorkerSource(
        RayEngine(setups.setup(environment), workers), workers, *options
    )


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = shared_memory()
    yield
    assert not multiprocessing.active_children()
    assert shared_memory() <= before


def shared_memory():
    """Return the names of Python's shared memory: other programs on the machine have theirs."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("psm_")}


def test_workers_return_the_same_episodes_as_this_process_in_any_order(start):
    local = LocalSource(setups.setup(setups.short), setups.short())
    expected = [local.result(local.submit(job)) for job in jobs(5)]
    with start(setups.short, 2) as source:
        tickets = [source.submit(job) for job in jobs(5)]
        for i in (4, 0, 1, 3, 2):
            assert all(same(a, b) for a, b in zip(source.result(tickets[i]), expected[i], strict=True))
        assert not source.take_fault_counts()
    local.close()


def test_training_runs_here_and_evaluation_where_there_is_room():
    local = LocalSource(setups.setup(setups.short), setups.short(), setups.short())
    expected = [local.run(job) for job in jobs(6)]
    with WorkerSource(ProcessEngine(setups.setup(setups.short)), 1, 600.0, local, only_evaluate=True) as source:
        tickets = [source.submit(job) for job in jobs(6)]
        source.result(tickets[0])
        assert not source.process_ids  # nothing waited for the worker
        while not source.has_result(tickets[1]):
            assert not source.has_result(tickets[2])  # this worker never trains
        for i in (5, 1, 2, 3, 4):
            assert all(same(a, b) for a, b in zip(source.result(tickets[i]), expected[i], strict=True))


@pytest.mark.parametrize("only_evaluate", [False, True])
def test_training_comes_before_evaluation_in_the_order_of_submission(only_evaluate):
    engine, all_jobs = Recording(), jobs(5)
    with WorkerSource(engine, 1, only_evaluate=only_evaluate) as source:
        with source.pool._changed:  # the worker begins after all are submitted
            tickets = [source.submit(job) for job in all_jobs]
        for ticket in tickets[1::2] if only_evaluate else tickets:
            source.result(ticket)
    expected = all_jobs[1::2] if only_evaluate else [*all_jobs[::2], *all_jobs[1::2]]
    assert [job.episodes for job in engine.jobs] == [job.episodes for job in expected]


def test_workers_go_on_while_this_process_does_not_wait_for_them(start):
    with start(setups.short, 1) as source:
        tickets = [source.submit(job) for job in jobs(3)]
        while not all(map(source.has_result, tickets)):
            time.sleep(0.01)


def test_an_evaluation_that_fails_here_can_be_run_again(marker, monkeypatch):
    monkeypatch.setattr(setups.Sabotaged, "marker", marker)
    local = LocalSource(setups.setup(setups.fails), setups.fails(), setups.fails())
    with WorkerSource(ProcessEngine(setups.setup(setups.slow_to_make)), 1, 600.0, local) as source:
        ticket = source.submit(jobs(2)[1])
        with pytest.raises(CollectError, match="exploded"):
            source.result(ticket)
        marker.unlink()
        assert len(source.result(ticket)) == 2


def test_a_worker_that_is_killed_is_replaced_and_its_job_run_again(start, marker):
    expected = Collector(setups.setup(setups.short)).collect(jobs(1)[0])
    with start(setups.dies_once, 1) as source:
        ticket = source.submit(jobs(1)[0])
        episodes = source.result(ticket)
        assert source.take_fault_counts() == {"lost_workers": 1}
    assert all(same(a, b) for a, b in zip(episodes, expected, strict=True))


@pytest.mark.faults
def test_an_idle_worker_that_dies_is_replaced(start):
    with start(setups.short, 1) as source:
        source.result(source.submit(jobs(1)[0]))
        [first] = source.process_ids
        os.kill(first, 9)
        time.sleep(0.2)
        assert len(source.result(source.submit(jobs(1)[0]))) == 2
        assert source.process_ids != [first]


@pytest.mark.faults
def test_a_job_that_kills_every_worker_fails_and_names_the_signal(start, marker):
    with (
        start(setups.dies_always, 1) as source,
        pytest.raises(
            WorkerError,
            match=r"Training episodes 0, 1 \(reset seeds \d+, \d+\): no result in 3 attempts.*(SIGKILL|Actor\w*Error)",
        ),
    ):
        source.result(source.submit(jobs(1)[0]))


def test_an_error_of_the_environment_has_the_workers_traceback(start, marker):
    with start(setups.fails_once, 1) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"(?s)setups\.py.*RuntimeError: the simulator exploded") as caught:
            source.result(ticket)
        assert re.search(r"RuntimeError in fail, .*setups\.py:\d+: raise RuntimeError", str(caught.value).splitlines()[-1])
        assert len(source.result(ticket)) == 2  # a job that failed is run again


def test_an_environment_that_cannot_be_pickled_is_an_error_that_names_the_fix():
    with pytest.raises(OptionError, match="top of a module"):
        ProcessEngine(setups.setup(lambda: setups.short()))


def test_a_failed_job_can_be_run_again_in_this_process(marker):
    source = LocalSource(setups.setup(setups.fails), setups.fails())
    ticket = source.submit(jobs(1)[0])
    setups.Sabotaged.marker = marker
    with pytest.raises(
        CollectError,
        match=r"Episode 0 \(reset seed \d+\) failed in the environment \(RuntimeError: the simulator exploded\)",
    ):
        source.result(ticket)
    marker.unlink()
    assert len(source.result(ticket)) == 2
    source.close()


@pytest.mark.faults
def test_a_worker_that_hangs_is_replaced_and_its_job_run_again(start, marker):
    with start(setups.hangs_once, 1, 1.5) as source:
        assert len(source.result(source.submit(jobs(1)[0]))) == 2
        assert source.take_fault_counts() == {"lost_workers": 1}


def test_dropped_jobs_are_forgotten(start):
    with start(setups.short, 1) as source:
        tickets = [source.submit(job) for job in jobs(4)]
        for ticket in tickets[:3]:
            source.drop(ticket)
        assert len(source.result(tickets[3])) == 2
        assert not source.pool._waiting
        assert not any(source.has_result(ticket) and not ticket.future.cancelled() for ticket in tickets[:3])


def test_a_dropped_job_that_is_running_is_ignored(start, marker):
    with start(setups.waits, 1) as source:
        first, second = source.submit(jobs(1)[0]), source.submit(jobs(2)[1])
        while first in source.pool._waiting:
            time.sleep(0.01)
        source.drop(first)
        marker.unlink()
        assert len(source.result(second)) == 2
        assert first.future.cancelled()


@pytest.mark.faults
def test_workers_that_end_before_they_are_ready_are_an_error(start):
    with start(setups.never_made, 1) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"No worker could be started \(the last one ended .*workers=0"):
            source.result(ticket)


def results_of(source, jobs):
    tickets = [source.submit(job) for job in jobs]
    while source.pool.n_threads:  # a local source would not wait for them
        time.sleep(0.01)
    return [episode for ticket in tickets for episode in source.result(ticket)]


@pytest.mark.faults
def test_if_no_worker_starts_this_process_does_the_work_and_says_so_once(start):
    expected = [episode for job in jobs(4) for episode in Collector(setups.setup(setups.short)).collect(job)]

    def make_local(time_limit):
        return LocalSource(setups.setup(setups.short), setups.short(), setups.short(), time_limit)

    with start(setups.never_made, 1, 600.0, None, False, make_local) as source:
        with pytest.warns(RuntimeWarning, match=r"No worker could be started \(the last one ended .*does their") as warned:
            found = results_of(source, jobs(4))
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))
        assert len(warned) == 1


class Recording:
    """An engine and its worker, in this process. It keeps its jobs. Functions in `changes` change its results in order."""

    fix, process_id = "none", 0

    def __init__(self, changes=()):
        self.changes, self.jobs, self.collector = list(changes), [], Collector(setups.setup(setups.short))

    def start_worker(self):
        return self

    def wait_until_ready(self):
        self.process_id = 1

    def run(self, job, seconds):
        self.jobs.append(job)
        result = run_job(self.collector, job)
        return self.changes.pop(0)(result) if self.changes else result

    def kill(self):
        pass

    def end(self, seconds):
        return "by signal SIGKILL"

    def close(self):
        self.is_closed = True


class NeverReady(Recording):
    """An engine whose workers never become ready, or cannot be started at all."""

    def __init__(self, problem=None):
        super().__init__()
        self.problem, self.is_killed = problem, threading.Event()

    def start_worker(self):
        if self.problem:
            raise self.problem
        return self

    def wait_until_ready(self):
        self.is_killed.wait()
        raise EOFError

    def kill(self):
        self.is_killed.set()


def test_workers_that_are_never_ready_are_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr("hindsight_rl.rollout.episode_sources.START_TIMEOUT", 0.0)
    local = LocalSource(setups.setup(setups.short), setups.short())
    with WorkerSource(NeverReady(), 1, make_local=lambda limit: local) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.warns(RuntimeWarning, match="No worker was ready within 0 s. This process does their work"):
            assert len(source.result(ticket)) == 2
        assert len(source.pool.workers) == 1  # it gets jobs once it is ready


def test_a_machine_with_too_many_processes_does_the_work_in_this_one():
    engine = NeverReady(BlockingIOError(11, "Resource temporarily unavailable"))
    local = LocalSource(setups.setup(setups.short), setups.short())
    with WorkerSource(engine, 2, make_local=lambda limit: local) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.warns(RuntimeWarning, match="No worker could be started .*temporarily unavailable.*does their work"):
            assert len(source.result(ticket)) == 2
    assert engine.is_closed


class Hanging(Recording):
    """An engine whose workers are ready and never answer."""

    def run(self, job, seconds):
        self.jobs.append(job)
        assert seconds == 2.0
        raise TimeoutError


def test_a_job_that_takes_too_long_three_times_fails_and_names_its_seeds():
    engine, [job] = Hanging(), jobs(1)
    with WorkerSource(engine, 1, 1.0) as source:
        ticket, seed = source.submit(job), environment_seed(0, TRAINING, 0)
        with pytest.raises(
            JobLostError,
            match=rf"Training episodes 0, 1 \(reset seeds {seed}, \d+\): .* 3 attempts.*longer than job_timeout",
        ):
            source.result(ticket)
        assert source.take_fault_counts() == {"lost_workers": 3}
    assert len(engine.jobs) >= 3


def test_an_error_of_the_constructor_has_the_workers_traceback(start):
    with start(setups.raises_when_made, 1) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"(?s)setups\.py.*no licence"):
            source.result(ticket)


@pytest.mark.faults
def test_the_job_timeout_does_not_count_the_start(start):
    with start(setups.slow_to_make, 1, 1.0) as source:
        assert len(source.result(source.submit(jobs(1)[0]))) == 2
        assert not source.take_fault_counts()


class Closable(PointReach):
    closed = 0

    def close(self):
        self.closed += 1


def play_both(source):
    for job in jobs(2):
        source.result(source.submit(job))
    source.close()


def test_given_environments_are_used_and_not_closed():
    training, evaluation = Closable(max_steps=10), Closable(max_steps=10)
    play_both(LocalSource(setups.setup(setups.fails), training, evaluation))
    assert (training.closed, evaluation.closed) == (0, 0)
    assert training._steps == evaluation._steps == 10


def test_the_setup_makes_the_evaluation_environment_at_its_first_job():
    made = []

    def make():
        made.append(Closable(max_steps=10))
        return made[-1]

    source = LocalSource(setups.setup(make), training := Closable(max_steps=10))
    source.result(source.submit(jobs(1)[0]))
    assert not made
    play_both(source)
    assert [env.closed for env in made] == [1]
    assert training.closed == 0


def test_one_environment_serves_both_if_none_can_be_made():
    env = Closable(max_steps=10)
    play_both(LocalSource(setups.setup(None), env))
    assert env.closed == 0


JOB = jobs(1)[0]


def episode(steps, number, success):
    rows = {k: np.full((steps + 1, 2), number, np.float32) for k in OBSERVATION_KEYS}
    info = {"speed": np.arange(steps) + number}
    return Episode(**rows, action=np.ones((steps, 1)), reward=-np.ones(steps), success=success, info=info, number=number)


def test_a_result_survives_pickling():
    sent = [replace(episode(3, 7, True), terminated=True, is_unguided=True), episode(1, 8, None), episode(2, 9, False)]
    result = pickle.loads(pickle.dumps(JobResult(sent, checksum=checksum(sent))))
    assert not result.is_damaged(Job(0, TRAINING, (7, 8, 9), setups.weights()))
    assert all(same(a, b) for a, b in zip(sent, result.episodes, strict=True))
    assert [e.info["speed"].tolist() for e in result.episodes] == [[7, 8, 9], [8], [9, 10]]
    facts = [(e.number, e.terminated, e.success, e.is_unguided) for e in result.episodes]
    assert facts == [(7, True, True, True), (8, False, None, False), (9, False, False, False)]


def test_a_result_that_is_not_that_of_its_job_is_damaged():
    good = run_job(Collector(setups.setup(setups.short)), JOB)
    assert not good.is_damaged(JOB)
    assert good.is_damaged(replace(JOB, episodes=(3,)))
    assert replace(good, episodes=good.episodes[:1]).is_damaged(JOB)


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


def damaged(result):
    first, *others = result.episodes
    return replace(result, episodes=[replace(first, terminated=True), *others])


def incomplete(result):
    return replace(result, episodes=result.episodes[:1])


def test_damaged_results_are_counted_and_their_jobs_run_again():
    expected = Collector(setups.setup(setups.short)).collect(JOB)
    with WorkerSource(Recording([damaged, incomplete, lambda result: result, damaged]), 1) as source:
        for count in (2, 1):
            episodes = source.result(source.submit(JOB))
            assert all(same(a, b) for a, b in zip(episodes, expected, strict=True))
            assert source.take_fault_counts() == Counter(damaged_results=count)
        assert not source.take_fault_counts()


def test_a_job_with_only_damaged_results_fails_and_can_be_run_again():
    with WorkerSource(Recording([damaged] * MAX_ATTEMPTS), 1) as source:
        ticket = source.submit(JOB)
        with pytest.raises(
            JobLostError, match=r"Training episodes 0, 1 .* no result in 3 attempts. The last result was damaged"
        ):
            source.result(ticket)
        assert len(source.result(ticket)) == 2


@pytest.mark.faults
def test_a_source_that_nobody_closes_ends_its_workers():
    source = WorkerSource(ProcessEngine(setups.setup(setups.short)), 1)
    source.result(source.submit(JOB))
    threads = source.pool._threads
    del source
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.faults
def test_a_worker_ends_though_another_thread_has_waited_for_its_process():
    worker = ProcessEngine(setups.setup(setups.short)).start_worker()
    worker.wait_until_ready()
    worker.kill()
    os.waitpid(worker.process_id, 0)  # multiprocessing does so when the interpreter ends
    assert worker.end(10.0) == "with exit code 0"  # the other thread alone knows the signal
    worker._process._popen.returncode = -9  # which it notes next


SCRIPT = """
import setups
from test_workers import ProcessEngine, WorkerSource, jobs

if __name__ == "__main__":
    source = WorkerSource(ProcessEngine(setups.setup(setups.hangs_once)), 1)
    ticket = source.submit(jobs(1)[0])
    while setups.Sabotaged.marker.exists():
        pass
"""


@pytest.mark.faults
def test_a_script_ends_though_an_environment_hangs_in_a_worker(marker, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        env=os.environ | {"HINDSIGHT_TEST_MARKER": str(marker), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
