"""The source that collects in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..agents.policy import PolicySpec
from ..envs.random_play import Environment
from ..errors import CollectError
from ..records import Episode
from ..seeds import EVALUATION, TRAINING
from .collect import Collector, Job, RolloutSetup
from .time_limit import DEFAULT_SECONDS, OutOfTimeError, TimeLimit


class LocalSource:
    """Runs jobs in this process, each when `result` is called.

    setup: makes environments.
    training: the environment for training jobs.
    evaluation: the environment for evaluation jobs. None: the setup makes one when it is first needed. If the setup
        cannot make environments, `training` serves both.
    time_limit: of a step or reset of an environment.
    The source does not close environments that it is given.
    """

    def __init__(
        self,
        setup: RolloutSetup,
        training: Environment,
        evaluation: Environment | None = None,
        time_limit: TimeLimit | None = None,
    ) -> None:
        collector = Collector(setup, training)
        is_shared = evaluation is None and setup.environment is None
        self._collectors = {TRAINING: collector, EVALUATION: collector if is_shared else Collector(setup, evaluation)}
        self.time_limit = time_limit or TimeLimit(DEFAULT_SECONDS)
        self.policy: PolicySpec | None = None
        self._jobs: dict[int, Job] = {}
        self._last_ticket = 0
        self.call_between_steps(lambda: None)

    def submit(self, job: Job) -> int:
        """Keep the job and return its ticket."""
        self._last_ticket += 1
        self._jobs[self._last_ticket] = replace(job, policy=self.policy)
        return self._last_ticket

    def result(self, ticket: int) -> list[Episode]:
        """Run the job and return its episodes. A job that raises can be run again."""
        episodes = self.run(self._jobs[ticket])
        del self._jobs[ticket]
        return episodes

    def run(self, job: Job) -> list[Episode]:
        """Run a job that was not submitted. Raises CollectError if the environment fails, or does not return in time."""
        collector = self._collectors[job.stream]
        try:
            with self.time_limit.watch(job):
                return collector.collect(job)
        except OutOfTimeError:
            with contextlib.suppress(OutOfTimeError), self.time_limit.watch("closing an environment"):
                collector.replace_environment()
            raise CollectError(
                f"{job}: the environment did not return within job_timeout ({self.time_limit.seconds:g} s). If it is only "
                f"slow, increase job_timeout."
            ) from None

    def call_between_steps(self, poll: Callable[[], None]) -> None:
        """Call `poll` between the steps of episodes, so that workers that are free get their next job."""

        def renew_and_poll() -> None:
            self.time_limit.renew()
            poll()

        for collector in self._collectors.values():
            collector.poll = renew_and_poll

    def wait_any(self, tickets: Sequence[int]) -> int:
        """Return the oldest ticket."""
        return min(tickets)

    def has_result(self, ticket: int) -> bool:
        """Return True: `result` runs the job in this process, so it never waits for a worker."""
        return True

    def poll(self) -> None:
        """Do nothing, since jobs run in `result`."""

    def drop(self, ticket: int) -> None:
        """Forget the job."""
        self._jobs.pop(ticket, None)

    def take_fault_counts(self) -> Mapping[str, int]:
        """Return no faults, since no worker can be lost."""
        return {}

    def close(self) -> None:
        """Close the environments that the source made."""
        self._jobs.clear()
        for collector in self._collectors.values():
            collector.close()
