"""What only Ray has: other machines, which join and leave, and a network. Other tests on Ray are in test_workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import setups
from test_collect import same

from hindsight_rl import HER
from hindsight_rl.cli import main
from hindsight_rl.errors import OptionError, WorkerError
from hindsight_rl.records.exploration import Exploration
from hindsight_rl.rollout.collect import Collector, Job
from hindsight_rl.rollout.episode_sources import WorkerSource
from hindsight_rl.seeds import TRAINING
from hindsight_rl.training.checkpoint import trainer_state
from test_cli import COMMAND, SHORT, SMALL, assert_same_run, timeless

ray = pytest.importorskip("ray")

from hindsight_rl.rollout.ray_workers import RayEngine, connect  # noqa: E402

pytestmark = pytest.mark.ray
ARGUMENTS = ["train", "PointReach-v0", *SHORT, *SMALL, "--policy-lag", "1"]


def job(number):
    return Job(0, TRAINING, (number,), setups.weights(number), (Exploration(random_eps=0.3, noise=0.2),))


def descendants(parent):
    """The processes under `parent`, by number, that are not zombies."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if rest[0] != "Z":
            found[number] = int(rest[1])
    below, grows = {parent}, True
    while grows:
        more = {number for number, above in found.items() if above in below} - below
        below, grows = below | more, bool(more)
    return below - {parent}


def listening_addresses(processes):
    """The addresses at which these processes accept connections, as the kernel writes them."""
    inodes = set()
    for process in processes:
        for handle in Path(f"/proc/{process}/fd").glob("*"):
            try:
                inodes.add(os.readlink(handle))
            except OSError:
                continue
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes}


def ray_memory():
    """The names of Ray's shared memory: other programs on the machine have theirs."""
    return {name for name in os.listdir("/dev/shm") if "plasma" in name or "ray" in name}


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "alone"
    assert main([*ARGUMENTS, "--folder", str(folder)]) == 0
    return folder


@pytest.fixture
def cluster():
    """A cluster on this machine: a head with one core, to which nodes can be added."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN", "0" * 64)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_local_ray_is_private_gives_the_same_run_and_leaves_nothing_behind(alone, tmp_path):
    shared_memory = ray_memory()
    arguments = [*ARGUMENTS, "--workers", "2", "--engine", "ray", "--folder", str(tmp_path / "run")]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    wait_until((tmp_path / "run" / "metrics.jsonl").exists, 60)
    started = descendants(process.pid)
    addresses = listening_addresses(started | {process.pid})
    assert process.wait(timeout=120) == 0
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert addresses
    assert addresses <= loopback
    wait_until(lambda: not any(Path(f"/proc/{number}/fd").exists() for number in started), 10)
    assert ray_memory() <= shared_memory
    assert_same_run(alone, tmp_path / "run")


OPTIONS = {"recipe": "point_reach", "max_episode_steps": 10, "policy_lag": 2, "steps": 100, "check": False}
OPTIONS |= {"hidden": (8,), "batch_size": 16, "random_steps": 20, "eval_every": 0}


def test_a_worker_that_is_killed_during_a_run_changes_no_byte(tmp_path):
    killed = []

    def kill_a_worker(view):
        if view.num_timesteps in (30, 60):
            wait_until(lambda: {*model.source.process_ids}.difference(killed))  # that of a lost worker may still be listed
            worker = min({*model.source.process_ids}.difference(killed))
            assert worker != os.getpid()
            assert Path(f"/proc/{worker}/cmdline").read_bytes().startswith(b"ray::RayCollector")
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    states, lines = [], []
    for name, options in (("plain", {}), ("killed", {"workers": 2, "engine": "ray"})):
        with HER("PointReach-v0", **OPTIONS, **options) as model:
            model.learn(100, callback=kill_a_worker if options else None, folder=tmp_path / name)
            states.append({name: array.tobytes() for name, array in trainer_state(model.trainer)[0].items()})
            lines.append((tmp_path / name / "episodes.jsonl").read_bytes())
            lost = model.trainer.counts.lost_workers
    assert lost == len(killed) == 2
    assert states[0] == states[1]
    assert lines[0] == lines[1]


TOKENS = {
    "wrong": {"RAY_AUTH_TOKEN": "f" * 64},
    "absent": {"RAY_AUTH_TOKEN": "", "RAY_AUTH_MODE": "disabled"},
    "right": {},
}


@pytest.mark.parametrize("token", TOKENS)
def test_the_ray_of_a_run_refuses_a_process_without_its_token(token, tmp_path):
    with HER("PointReach-v0", **OPTIONS, workers=1, engine="ray") as model:
        model.learn(10)
        code = f"import ray; ray.init({ray.get_runtime_context().gcs_address!r}); print('inside', flush=True)"
        variables = os.environ | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "HOME": str(tmp_path)} | TOKENS[token]
        other = subprocess.Popen(
            [sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        with other:
            message = next(line for line in other.stdout if "nauthenticated" in line or "inside" in line)
            other.kill()
        assert ("inside" in message) is (token == "right")
        assert ("InvalidAuthToken" in message) is (token != "right")
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_a_run_with_a_wrong_token_ends_with_an_error_that_names_it(cluster):
    arguments = [*ARGUMENTS, "--workers", "1", "--engine", "ray", "--ray-address", cluster.address]
    variables = os.environ | {"RAY_AUTH_TOKEN": "f" * 64}
    refused = subprocess.run(
        [*COMMAND, *arguments], env=variables, capture_output=True, text=True, timeout=400, check=False
    )
    assert refused.returncode == 1
    assert f"Ray could not be reached at {cluster.address}" in refused.stderr
    assert "the same token in RAY_AUTH_TOKEN" in refused.stderr


def test_nodes_join_and_leave_and_no_job_is_lost(cluster):
    node = cluster.add_node(num_cpus=1)
    engine = RayEngine(setups.setup(setups.slow), 2, cluster.address)
    expected = [Collector(setups.setup(setups.short)).collect(job(number))[0] for number in range(4)]
    with WorkerSource(engine, 2) as source:
        tickets = [source.submit(job(number)) for number in range(4)]
        source.result(tickets[0])
        wait_until(lambda: len(source.process_ids) == 2)
        others = [source.submit(job(9)) for _ in range(4)]  # both are busy
        cluster.remove_node(node, allow_graceful=False)
        for ticket, episode in zip(tickets[1:], expected[1:], strict=True):
            assert same(source.result(ticket)[0], episode)
        for ticket in others:
            source.drop(ticket)
        fault_counts = source.take_fault_counts()
        assert fault_counts == {"lost_workers": fault_counts["lost_workers"]}
        assert fault_counts["lost_workers"] >= 1
        cluster.add_node(num_cpus=1)
        wait_until(lambda: len(source.process_ids) == 2)


def test_a_killed_run_resumes_to_the_same_bytes_on_the_same_cluster(cluster, alone, tmp_path):
    folder = tmp_path / "run"
    engine = ["--workers", "1", "--engine", "ray", "--ray-address", cluster.address, "--folder", str(folder)]
    process = subprocess.Popen([*COMMAND, *ARGUMENTS, *engine], stdout=subprocess.DEVNULL)
    wait_until(lambda: (folder / "metrics.jsonl").exists() and (folder / "checkpoint.safetensors").exists(), 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert timeless(folder)[-1]["env_steps"] < 1000
    resumed = subprocess.run(
        [*COMMAND, *ARGUMENTS, *engine, "--resume"], capture_output=True, text=True, timeout=120, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert "resuming" in resumed.stdout
    assert_same_run(alone, folder)


def test_wrong_engine_options_are_errors_that_name_the_fix():
    with pytest.raises(WorkerError, match=r"Ray could not be reached at 127.0.0.1:9"):
        RayEngine(setups.setup(), 1, "127.0.0.1:9")
    for arguments, message in ((["--engine", "ray"], "--workers 2"), (["--ray-address", "auto"], "needs engine='ray'")):
        assert subprocess.run([*COMMAND, *ARGUMENTS, *arguments], capture_output=True, text=True, check=False).stderr.count(
            message
        )


def test_sources_of_one_process_share_a_local_ray_and_the_last_one_ends_it(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")  # another Ray, which is not to be used
    first = WorkerSource(RayEngine(setups.setup(setups.short), 1), 1)
    second = WorkerSource(RayEngine(setups.setup(setups.short), 2), 2)
    for source in (first, second):
        assert len(source.result(source.submit(job(0)))) == 1
    first.close()
    assert len(second.result(second.submit(job(1)))) == 1
    second.close()
    assert not ray.is_initialized()


def test_an_environment_that_cannot_be_pickled_is_an_error():
    connect(1, None)
    lock = threading.Lock()
    try:
        with pytest.raises(OptionError, match="cannot be sent"):
            RayEngine(setups.setup(lambda: lock), 1)
    finally:
        ray.shutdown()
