"""Measure how many workers help: episodes per second on this machine, and a simulation of up to 1,000 workers.

    python benchmarks/scale.py collect [--env FetchReach-v4] [--engine ray] [--workers 1 2] [--seconds 60]
    python benchmarks/scale.py check [--engine ray] [--workers 1 2 4]
    python benchmarks/scale.py predict [--step 0.001] [--update 0.003] [--policy-lag-per-worker 1] [--schedule free] ...

collect: steps per second of collecting alone. A bare loop (reset, act, step; nothing is stored) of the same environment and
policy runs in this process in alternation. The numbers are medians, of rates and of the ratios within a round. On a machine
with other load, the steps per second of a core are more reliable.

check: whole training runs, compared with the simulation. Their environment sleeps during a step, so that it needs no core,
and a small machine can run any number of workers. The times of a step, an update and a message are measured before, without
workers and with one.

predict: the simulation alone, for 1 to 1,000 workers with a core each. Times are seconds.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import os
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hindsight_rl import HER, PointReach
from hindsight_rl.envs.goal_env import make_goal_env
from hindsight_rl.rollout.collect import Job
from hindsight_rl.rollout.episode_sources import WorkerSource
from hindsight_rl.rollout.workers import Ticket
from hindsight_rl.seeds import TRAINING, environment_seed

EPISODE = 50  # steps
SLICE = 1.0  # seconds of one measurement
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Plan:
    """A run to simulate. Times in seconds.

    step: of the environment and the policy, on a worker.
    update: of one update on the learner.
    network: from the learner to a worker and back, per job.
    store: of the learner, per job, to store its episodes and to submit another.
    deviation: standard deviation of the logarithm of the workers' speeds.
    """

    workers: int
    step: float
    update: float
    network: float = 0.007
    store: float = 0.002
    updates_per_step: float = 1.0
    steps_per_job: int = EPISODE
    policy_lag: int = 0
    schedule: str = "deterministic"
    deviation: float = 0.0


@dataclass(frozen=True)
class Forecast:
    """The result of a simulation. age: mean age of weights, in jobs, when their episodes are stored."""

    steps_per_second: float
    updates_per_second: float
    age: float
    stale_fraction: float
    learner_busy: float
    workers_busy: float


def simulate(plan: Plan, jobs: int = 2_000, seed: int = 0) -> Forecast:
    """Simulate the rollout schedule of `jobs` jobs with a clock instead of work. The first tenth is not counted.

    The learner submits until policy_lag + 1 jobs are in flight, waits for the oldest (or the first that is done), learns
    from it, and repeats. A worker gets its next job when the learner waits.
    """
    generator = np.random.default_rng(seed)
    seconds = plan.network + plan.steps_per_job * plan.step * np.exp(
        plan.deviation * generator.standard_normal(plan.workers)
    )
    idle, waiting, in_flight = list(range(plan.workers)), deque[int](), deque[int]()
    running: list[tuple[float, int, int]] = []  # end, job, worker
    ended, version = set[int](), {}
    now, finished, submitted, stale, busy, worked, ages, first = 0.0, 0, 0, 0, 0.0, 0.0, 0, 0.0
    warm = jobs // 10
    while finished < jobs:
        while len(in_flight) <= plan.policy_lag:
            version[submitted] = finished
            in_flight.append(submitted)
            waiting.append(submitted)
            submitted += 1
        place = None
        while place is None:  # as RolloutSchedule does
            while running and running[0][0] <= now:
                _, job, worker = heapq.heappop(running)
                ended.add(job)
                idle.append(worker)
            while idle and waiting:
                worker, job = idle.pop(), waiting.popleft()
                heapq.heappush(running, (now + seconds[worker], job, worker))
                worked += seconds[worker] if finished >= warm else 0.0
            if plan.schedule == "free":
                place = next((i for i, job in enumerate(in_flight) if job in ended), None)
            elif in_flight[0] in ended:
                place = 0
            if place is None:
                now = running[0][0]
        job = in_flight[place]
        del in_flight[place]
        ended.remove(job)
        now += plan.store
        age = finished - version.pop(job)
        if age > plan.policy_lag:
            stale += 1
            continue
        work = plan.steps_per_job * plan.updates_per_step * plan.update
        now += work
        finished += 1
        if finished == warm:
            first, stale = now, 0
        elif finished > warm:
            busy, ages = busy + work + plan.store, ages + age
    counted, span = jobs - warm, now - first
    steps = counted * plan.steps_per_job / span
    return Forecast(
        steps,
        steps * plan.updates_per_step,
        ages / counted,
        stale / (counted + stale),
        busy / span,
        worked / span / plan.workers,
    )


class Sleepy(PointReach):
    """A simulator that sleeps instead of using a core."""

    def __init__(self, seconds: float) -> None:
        super().__init__(max_steps=EPISODE)
        self.seconds = seconds

    def step(self, action: Any) -> Any:
        """Sleep, then step."""
        time.sleep(self.seconds)
        return super().step(action)


def check(engine: str, workers: list[int], step: float, updates_per_step: float, steps: int) -> None:
    """Print predicted and measured steps/s and updates/s."""
    run = partial(measure_run, partial(Sleepy, step), engine=engine, updates_per_step=updates_per_step, steps=steps)
    alone = run(workers=0, policy_lag=0)
    plan = Plan(1, alone["step"], alone["update"], store=alone["store"], updates_per_step=updates_per_step)
    plan = replace(plan, network=max(0.0, measure_trip(partial(Sleepy, step), engine) - plan.step))
    print(
        f"{engine}: step {1e3 * plan.step:.2f} ms, update {1e3 * plan.update:.2f} ms, network {1e3 * plan.network:.1f} ms, "
        f"store {1e3 * plan.store:.1f} ms, {updates_per_step:g} updates per step"
    )
    print("schedule       workers  lag   steps/s: predicted  measured   ratio")
    for schedule in ("deterministic", "free"):
        for count in workers:
            policy_lag = count
            measured = run(workers=count, policy_lag=policy_lag, schedule=schedule)
            forecast = simulate(
                replace(plan, workers=count, policy_lag=policy_lag, schedule=schedule, update=measured["update"]), 400
            )
            ratio = measured["rate"] / forecast.steps_per_second
            print(
                f"{schedule:14} {count:7} {policy_lag:4} {forecast.steps_per_second:19.0f} {measured['rate']:9.0f} "
                f"{ratio:7.2f}"
            )


def measure_run(
    env: Callable[[], Any],
    workers: int,
    policy_lag: int,
    engine: str,
    updates_per_step: float,
    steps: int,
    schedule: str = "deterministic",
) -> dict[str, float]:
    """Return seconds per step, per update and per job of everything else, and steps per second, of a training run."""
    where = {
        "workers": workers,
        "policy_lag": policy_lag,
        "engine": engine if workers else "processes",
        "schedule": schedule,
    }
    options = {
        "hidden": (64, 64),
        "random_steps": 0,
        "updates_per_step": updates_per_step,
        "eval_every": 0,
        "agent": "ddpg",
    }
    with HER(env, recipe="point_reach", **options, **where) as model:
        model.learn(max(10, 4 * workers) * EPISODE)  # everything is loaded and compiled
        before, started = replace(model.trainer.counts), time.perf_counter()
        model.learn(steps)
        wall, after = time.perf_counter() - started, model.trainer.counts
    jobs, done = after.finished_jobs - before.finished_jobs, after.env_steps - before.env_steps
    collecting, updating = after.collect_seconds - before.collect_seconds, after.update_seconds - before.update_seconds
    return {
        "step": collecting / done,
        "update": updating / max(1, after.updates - before.updates),
        "store": max(0.0, wall - collecting - updating) / jobs,
        "rate": done / wall,
    }


def measure_trip(env: Callable[[], Any], engine: str) -> float:
    """Return the median time from submitting a job of one step to its episode."""
    with HER(env, "ddpg", "point_reach", workers=1, engine=engine, max_episode_steps=1, eval_every=0) as model:
        source, weights, times = model.source, model.weights, []
        for number in range(60):
            started = time.perf_counter()
            source.result(source.submit(Job(0, TRAINING, (number,), weights)))
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def collect(env: str, engine: str, workers: list[int], seconds: float) -> None:
    """Print steps per second of a bare loop and of workers. They alternate, in another order each round."""
    models = {n: HER(env, workers=n, engine=engine if n else "processes", eval_every=0) for n in [0, *workers]}
    environment, policy = make_goal_env(env), models[0].policy
    try:
        candidates: dict[str, Callable[[float], Slice]] = {"bare loop": partial(bare_slice, environment, policy)}
        candidates |= {f"{engine}, {n}" if n else "in process": partial(source_slice, models[n], n) for n in models}
        slices: dict[str, list[Slice]] = {name: [] for name in candidates}
        for play in candidates.values():
            play(1.0)
        generator = np.random.default_rng(0)
        for _ in range(max(3, round(seconds / SLICE / len(candidates)))):
            for name in generator.permutation(list(candidates)):
                slices[name].append(candidates[name](SLICE))
    finally:
        environment.close()
        for model in models.values():
            model.close()
    print(f"{env}, {len(slices['bare loop'])} rounds of {SLICE} s each")
    print("                  steps/s   of bare   of in process   per core-s   of bare")
    rates = {name: np.array([each.steps / each.seconds for each in of_one]) for name, of_one in slices.items()}
    per_core = {
        name: sum(each.all_steps for each in s) / sum(each.core_seconds for each in s) for name, s in slices.items()
    }
    for name, values in rates.items():
        ratios = [statistics.median(values / rates[other]) for other in ("bare loop", "in process")]
        print(
            f"  {name:14} {statistics.median(values):8.0f} {ratios[0]:9.3f} {ratios[1]:15.3f} {per_core[name]:12.0f} "
            f"{per_core[name] / per_core['bare loop']:9.3f}"
        )


@dataclass(frozen=True)
class Slice:
    """One measurement: steps and wall time, and all steps with the core time of the collecting processes."""

    steps: int
    seconds: float
    all_steps: int
    core_seconds: float


def bare_slice(environment: Any, policy: Any, seconds: float) -> Slice:
    """Act and step."""
    started, worked, steps, number = time.perf_counter(), time.process_time(), 0, 0
    while time.perf_counter() - started < seconds:
        observation, _ = environment.reset(seed=environment_seed(0, TRAINING, number))
        ended, number = False, number + 1
        while not ended:
            action = policy.act(*(observation[key] for key in ("observation", "achieved_goal", "desired_goal")))
            observation, _, terminated, truncated, _ = environment.step(action)
            ended, steps = terminated or truncated, steps + 1
    return Slice(steps, time.perf_counter() - started, steps, time.process_time() - worked)


def source_slice(model: HER, workers: int, seconds: float) -> Slice:
    """Measure a source that always has one job more than workers. At the end no job is left.

    The clock starts when the first job is done, so that the start of a run is not measured.
    """
    source, weights, numbers = model.source, model.weights, itertools.count()
    collecting = source.process_ids if isinstance(source, WorkerSource) else [os.getpid()]

    def submit() -> Ticket:
        return source.submit(Job(0, TRAINING, (next(numbers),), weights))

    def collect_one() -> int:
        ticket = source.wait_any(tickets)
        tickets.remove(ticket)
        count = sum(map(len, source.result(ticket)))
        tickets.append(submit())
        return count

    before, tickets = core_seconds(collecting), deque(submit() for _ in range(workers + 1))
    first, started, steps = collect_one(), time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        steps += collect_one()
    wall = time.perf_counter() - started
    rest = sum(len(episode) for ticket in tickets for episode in source.result(ticket))
    return Slice(steps, wall, first + steps + rest, core_seconds(collecting) - before)


def core_seconds(processes: list[int]) -> float:
    """Return the core time of processes of this machine since their start."""
    fields = [Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split() for number in processes]
    return sum(int(user) + int(system) for *_, user, system in (f[:13] for f in fields)) / os.sysconf("SC_CLK_TCK")


def predict(plan: Plan, policy_lag_per_worker: float) -> None:
    """Print a simulation for each number of workers."""
    print(plan)
    print("workers   lag   steps/s  updates/s    age   stale  learner busy  workers busy")
    for count in WORKERS:
        policy_lag = round(policy_lag_per_worker * count)
        forecast = simulate(replace(plan, workers=count, policy_lag=policy_lag), max(2_000, 20 * count))
        print(
            f"{count:7} {policy_lag:5} {forecast.steps_per_second:9.0f} {forecast.updates_per_second:10.0f} "
            f"{forecast.age:6.1f} {forecast.stale_fraction:7.1%} {forecast.learner_busy:13.0%} "
            f"{forecast.workers_busy:13.0%}"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("collect", "check", "predict"))
    parser.add_argument("--env", default="FetchReach-v4")
    parser.add_argument("--engine", default="ray", choices=("ray", "processes"))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=4_000, help="environment steps of each run of check")
    parser.add_argument("--step", type=float, help="0.01 to check, 0.001 to predict")
    parser.add_argument("--update", type=float, default=0.003)
    parser.add_argument("--network", type=float, default=0.007)
    parser.add_argument("--store", type=float, default=0.002)
    parser.add_argument("--updates-per-step", type=float, default=0.1)
    parser.add_argument("--steps-per-job", type=int, default=EPISODE)
    parser.add_argument("--policy-lag-per-worker", type=float, default=1.0)
    parser.add_argument("--schedule", default="deterministic", choices=("deterministic", "free"))
    parser.add_argument("--deviation", type=float, default=0.0)
    given = parser.parse_args()
    if given.what == "collect":
        collect(given.env, given.engine, given.workers, given.seconds)
    elif given.what == "check":
        check(given.engine, given.workers, given.step or 0.01, given.updates_per_step, given.steps)
    else:
        given.step = given.step or 0.001
        names = ("step", "update", "network", "store", "updates_per_step", "steps_per_job", "schedule", "deviation")
        predict(Plan(workers=1, **{name: getattr(given, name) for name in names}), given.policy_lag_per_worker)


if __name__ == "__main__":
    main()
