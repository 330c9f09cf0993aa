"""Make the source of a run's episodes: this process, workers, or both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gymnasium

from ..options import RolloutOptions
from ..rollout.collect import RolloutSetup
from ..rollout.episode_sources import LocalSource, Source, WorkerSource
from ..rollout.ray_workers import RayEngine
from ..rollout.time_limit import TimeLimit
from ..rollout.workers import Engine, ProcessEngine
from .machine import usable_cores

MOST_EVALUATORS = 4  # processes of workers="auto": an evaluation of 20 episodes occupies no more
MakeEnvironment = Callable[[], gymnasium.Env[Any, Any]]


def make_source(setup: RolloutSetup, rollout: RolloutOptions, environment: MakeEnvironment) -> Source:
    """Return a new source of episodes.

    setup: makes the environments of workers.
    environment: returns the environment of this process. It is called when this process needs it.
    """

    def make_local(time_limit: TimeLimit) -> LocalSource:
        env = environment()
        return LocalSource(setup, env, env, time_limit)

    spare = min(usable_cores() - 1, MOST_EVALUATORS) if isinstance(setup.environment, str) else 0
    if rollout.workers == 0 or (rollout.workers == "auto" and not spare):
        return LocalSource(setup, environment(), time_limit=TimeLimit(rollout.job_timeout))
    if rollout.workers == "auto":
        return _with_workers(setup, rollout, spare, make_local)
    is_ray = rollout.engine == "ray"
    engine: Engine = RayEngine(setup, rollout.workers, rollout.ray_address) if is_ray else ProcessEngine(setup)
    return WorkerSource(engine, rollout.workers, rollout.job_timeout, make_local=make_local)


def _with_workers(
    setup: RolloutSetup, rollout: RolloutOptions, workers: int, make_local: Callable[[TimeLimit], LocalSource]
) -> Source:
    """Return this process with workers. They start while this process makes its environment.

    Without policy lag the workers only evaluate: the learner waits for each training job, and may as well run it.
    """
    source = WorkerSource(ProcessEngine(setup), workers, rollout.job_timeout, only_evaluate=rollout.policy_lag == 0)
    with ExitStack() as on_error:
        on_error.callback(source.close)
        source.local = make_local(source.time_limit)
        on_error.pop_all()
    return source
