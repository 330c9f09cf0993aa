"""Sources of episodes. Every test with the fixture `start` runs with worker processes and on Ray."""

import multiprocessing
import os
import re
import time

import pytest
import setups
from test_collect import same

from hindsight_rl import PointReach
from hindsight_rl.agents.policy import Exploration
from hindsight_rl.errors import CollectError, JobLostError, OptionError, WorkerError
from hindsight_rl.rollout.collect import Collector, Job
from hindsight_rl.rollout.local_source import LocalSource
from hindsight_rl.rollout.processes import ProcessPool
from hindsight_rl.rollout.workers import WorkerSource
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
    from hindsight_rl.rollout.ray_source import connect

    ray, _ = connect(2, None)
    yield ray
    ray.shutdown()


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.ray)])
def start(request, marker_path):
    """A function that makes a source with workers of an engine."""
    if request.param == "processes":
        return lambda environment, workers, *options: WorkerSource(
            ProcessPool(setups.setup(environment)), workers, *options
        )
    from hindsight_rl.rollout.ray_source import RayPool

    request.getfixturevalue("shared_ray")
    return lambda environment, workers, *options: WorkerSource(
        RayPool(setups.setup(environment), workers), workers, *options
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
    with WorkerSource(ProcessPool(setups.setup(setups.short)), 1, 600.0, local, only_evaluate=True) as source:
        tickets = [source.submit(job) for job in jobs(6)]
        source.result(tickets[0])
        assert not source.workers[0].is_ready  # nothing waited for the worker
        while not source.has_result(tickets[1]):
            assert not source.has_result(tickets[2])  # this worker never trains
        for i in (5, 1, 2, 3, 4):
            assert all(same(a, b) for a, b in zip(source.result(tickets[i]), expected[i], strict=True))


def test_a_worker_trains_too_if_jobs_are_submitted_ahead():
    local = LocalSource(setups.setup(setups.short), setups.short(), setups.short())
    expected = [local.run(job) for job in jobs(3)]
    with WorkerSource(ProcessPool(setups.setup(setups.short)), 1, 600.0, local) as source:
        tickets = [source.submit(job) for job in jobs(3)]
        source.result(tickets[0])
        assert not source.workers[0].is_ready  # nothing waited for the worker
        while not source.has_result(tickets[2]):
            assert not source.has_result(tickets[1])  # the training job comes before the evaluation
        for i in (1, 2):
            assert all(same(a, b) for a, b in zip(source.result(tickets[i]), expected[i], strict=True))


def test_an_evaluation_that_fails_here_can_be_run_again(marker, monkeypatch):
    monkeypatch.setattr(setups.Sabotaged, "marker", marker)
    local = LocalSource(setups.setup(setups.fails), setups.fails(), setups.fails())
    with WorkerSource(ProcessPool(setups.setup(setups.slow_to_make)), 1, 600.0, local) as source:
        ticket = source.submit(jobs(2)[1])
        with pytest.raises(CollectError, match="exploded"):
            source.result(ticket)
        marker.unlink()
        assert len(source.result(ticket)) == 2


def test_a_worker_that_is_killed_is_replaced_and_its_job_run_again(start, marker):
    expected = Collector(setups.setup(setups.short)).collect(jobs(1)[0])
    with start(setups.dies_once, 1) as source:
        ticket = source.submit(jobs(1)[0])
        while not source.workers[0].is_ready:
            source.has_result(ticket)
        first = source.workers[0].process_id
        episodes = source.result(ticket)
        assert source.take_fault_counts() == {"lost_workers": 1}
        assert source.workers[0].process_id != first
    assert all(same(a, b) for a, b in zip(episodes, expected, strict=True))


def test_an_idle_worker_that_dies_is_replaced(start):
    with start(setups.short, 1) as source:
        source.result(source.submit(jobs(1)[0]))
        os.kill(source.workers[0].process_id, 9)
        time.sleep(0.2)
        assert len(source.result(source.submit(jobs(1)[0]))) == 2


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
    with start(setups.fails, 2) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"(?s)setups\.py.*RuntimeError: the simulator exploded") as caught:
            source.result(ticket)
        assert re.search(r"RuntimeError in fail, .*setups\.py:\d+: raise RuntimeError", str(caught.value).splitlines()[-1])
        marker.unlink()
        assert len(source.result(ticket)) == 2  # a job that failed can be run again


def test_an_environment_that_cannot_be_pickled_is_an_error_that_names_the_fix():
    with pytest.raises(OptionError, match="top of a module"):
        ProcessPool(setups.setup(lambda: setups.short()))


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
        assert not source._jobs
        assert not source._results
        for unknown in tickets:  # dropped, or taken already
            with pytest.raises(KeyError, match="not dropped"):
                source.result(unknown)


def test_a_dropped_job_that_is_running_is_ignored(start, marker):
    with start(setups.waits, 1) as source:
        first, second = source.submit(jobs(1)[0]), source.submit(jobs(2)[1])
        while first in source._waiting:
            source.has_result(first)
        source.drop(first)
        marker.unlink()
        assert len(source.result(second)) == 2
        assert not source._jobs


def test_workers_that_end_before_they_are_ready_are_an_error(start):
    with start(setups.never_made, 1) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"No worker could be started \(the last one ended .*workers=0"):
            source.result(ticket)


def results_of(source, jobs):
    tickets = [source.submit(job) for job in jobs]
    while source.workers:  # a local source would not wait for them
        source.poll()
    return [episode for ticket in tickets for episode in source.result(ticket)]


def test_if_no_worker_starts_this_process_does_the_work_and_says_so_once(start):
    expected = [episode for job in jobs(4) for episode in Collector(setups.setup(setups.short)).collect(job)]

    def make_local(time_limit):
        return LocalSource(setups.setup(setups.short), setups.short(), setups.short(), time_limit)

    with start(setups.never_made, 1, 600.0, None, False, make_local) as source:
        with pytest.warns(RuntimeWarning, match=r"No worker could be started \(the last one ended .*does their") as warned:
            found = results_of(source, jobs(4))
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))
        assert len(warned) == 1
        source.poll()


class NeverReady:
    """A pool whose workers never become ready, or cannot be started at all."""

    fix, is_ready, process_id, problem = "none", False, 0, None

    def start_worker(self):
        if self.problem:
            raise self.problem
        return self

    def wait(self, workers, timeout):
        return []

    def close(self):
        self.is_closed = True


def test_workers_that_are_never_ready_are_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr("hindsight_rl.rollout.workers.START_TIMEOUT", 0.0)
    local = LocalSource(setups.setup(setups.short), setups.short())
    with WorkerSource(NeverReady(), 1, make_local=lambda limit: local) as source:
        with pytest.warns(RuntimeWarning, match="No worker was ready within 0 s. This process does their work"):
            ticket = source.submit(jobs(1)[0])
        assert len(source.workers) == 1  # it gets jobs once it is ready
        assert len(source.result(ticket)) == 2


def test_a_machine_with_too_many_processes_does_the_work_in_this_one():
    pool = NeverReady()
    pool.problem = BlockingIOError(11, "Resource temporarily unavailable")
    local = LocalSource(setups.setup(setups.short), setups.short())
    with WorkerSource(pool, 2, make_local=lambda limit: local) as source:
        with pytest.warns(RuntimeWarning, match="No worker could be started .*temporarily unavailable.*does their work"):
            ticket = source.submit(jobs(1)[0])
        assert pool.is_closed
        assert len(source.result(ticket)) == 2


class Hanging(NeverReady):
    """A pool whose workers are ready and never answer."""

    is_ready, starts = True, 0

    def start(self, source, ticket, job):
        self.starts += 1

    def restart(self):
        return "by signal SIGKILL"


def test_a_job_that_takes_too_long_three_times_fails_and_names_its_seeds():
    pool, [job] = Hanging(), jobs(1)
    with WorkerSource(pool, 1, 1e-6) as source:
        ticket, seed = source.submit(job), environment_seed(0, TRAINING, 0)
        with pytest.raises(
            JobLostError,
            match=rf"Training episodes 0, 1 \(reset seeds {seed}, \d+\): .* 3 attempts.*longer than job_timeout",
        ):
            source.result(ticket)
    assert pool.starts == 3


def test_an_error_of_the_constructor_has_the_workers_traceback(start):
    with start(setups.raises_when_made, 1) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"(?s)setups\.py.*no licence"):
            source.result(ticket)


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
