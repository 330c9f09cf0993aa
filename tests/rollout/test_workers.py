"""The ways to run jobs. What holds for worker processes holds for a Ray too: every test that hires runs on both."""

import multiprocessing
import os
import time

import pytest
import setups
from test_collect import same

from hindsight.agents.policy import Exploration
from hindsight.errors import CollectError, OptionError, WorkerError
from hindsight.rollout.collect import EVALUATION, TRAINING, Collector, Job
from hindsight.rollout.processes import ProcessPool
from hindsight.rollout.workers import LocalSource, WorkerSource


def jobs(count):
    exploration = Exploration(random_eps=0.3, noise=0.2)
    return [Job(0, (TRAINING, EVALUATION)[i % 2], (2 * i, 2 * i + 1), setups.weights(i), exploration) for i in range(count)]


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
    from hindsight.rollout.ray_source import connect

    ray, _ = connect(2, None)
    yield ray
    ray.shutdown()


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.ray)])
def hire(request, marker_path):
    """A source with workers of an engine."""
    if request.param == "processes":
        return lambda environment, workers, *options: WorkerSource(
            ProcessPool(setups.setup(environment)), workers, *options
        )
    from hindsight.rollout.ray_source import RayPool

    request.getfixturevalue("shared_ray")
    return lambda environment, workers, *options: WorkerSource(
        RayPool(setups.setup(environment), workers), workers, *options
    )


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = set(os.listdir("/dev/shm"))
    yield
    assert not multiprocessing.active_children()
    assert set(os.listdir("/dev/shm")) <= before


def test_workers_give_what_this_process_gives_in_any_order_of_asking(hire):
    local = LocalSource(setups.setup(setups.short))
    expected = [local.result(local.submit(job)) for job in jobs(5)]
    with hire(setups.short, 2) as source:
        tickets = [source.submit(job) for job in jobs(5)]
        for i in (4, 0, 1, 3, 2):
            assert all(same(a, b) for a, b in zip(source.result(tickets[i]), expected[i], strict=True))
        assert not source.take_fault_counts()
    local.close()


def test_a_worker_that_is_killed_is_replaced_and_its_job_run_again(hire, marker):
    expected = Collector(setups.setup(setups.short)).collect(jobs(1)[0])
    with hire(setups.dies_once, 1) as source:
        first = source.process_ids
        episodes = source.result(source.submit(jobs(1)[0]))
        assert source.take_fault_counts() == {"lost_workers": 1}
        assert source.process_ids != first
    assert all(same(a, b) for a, b in zip(episodes, expected, strict=True))


def test_an_idle_worker_that_dies_is_replaced(hire):
    with hire(setups.short, 1) as source:
        source.result(source.submit(jobs(1)[0]))
        os.kill(source.process_ids[0], 9)
        time.sleep(0.2)
        assert len(source.result(source.submit(jobs(1)[0]))) == 2


def test_a_job_that_kills_every_worker_is_given_up_with_the_signal_named(hire, marker):
    with (
        hire(setups.dies_always, 1) as source,
        pytest.raises(
            WorkerError, match=r"3 workers died one after the other at episodes .*(SIGKILL|ActorUnavailableError)"
        ),
    ):
        source.result(source.submit(jobs(1)[0]))


def test_an_error_in_the_environment_comes_with_the_workers_traceback(hire, marker):
    with hire(setups.fails, 2) as source:
        ticket = source.submit(jobs(1)[0])
        with pytest.raises(WorkerError, match=r"(?s)setups\.py.*RuntimeError: the simulator exploded"):
            source.result(ticket)
        marker.unlink()
        assert len(source.result(ticket)) == 2  # a job that failed can be asked for again


def test_what_cannot_be_sent_is_refused_with_the_cure():
    with pytest.raises(OptionError, match="top of a module"):
        ProcessPool(setups.setup(lambda: setups.short()))


def test_an_interrupted_job_can_be_asked_for_again(marker):
    source = LocalSource(setups.setup(setups.fails))
    ticket = source.submit(jobs(1)[0])
    setups.Sabotaged.marker = marker
    with pytest.raises(CollectError, match=r"episode 0 failed in the environment \(RuntimeError: the simulator exploded\)"):
        source.result(ticket)
    marker.unlink()
    assert len(source.result(ticket)) == 2
    source.close()


def test_a_worker_that_hangs_is_replaced_and_its_job_run_again(hire, marker):
    with hire(setups.hangs_once, 1, 1.5) as source:
        assert len(source.result(source.submit(jobs(1)[0]))) == 2
        assert source.take_fault_counts() == {"lost_workers": 1}


def test_dropped_jobs_are_forgotten(hire):
    with hire(setups.short, 1) as source:
        tickets = [source.submit(job) for job in jobs(4)]
        for ticket in tickets[:3]:
            source.drop(ticket)
        source.result(tickets[3])
        assert not source._jobs
        assert not source._dropped


def test_an_environment_that_was_given_is_not_closed():
    env = setups.short()
    closed = []
    env.close = lambda: closed.append(True)
    source = LocalSource(setups.setup(None), env)
    source.result(source.submit(jobs(1)[0]))
    source.close()
    assert not closed
