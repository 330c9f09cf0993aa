"""The rollout schedule: which jobs are submitted, with which weights and exploration, and in which order they return."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from ..records import Episode
from ..records.exploration import Exploration
from ..rollout.collect import Job
from ..rollout.workers import Ticket
from ..seeds import TRAINING
from .evaluate import result_with_retries
from .run_state import RunState
from .structure_search import StructureSearch


class RolloutSchedule:
    """Keep `policy_lag` + 1 training jobs in flight, and return the episodes of one after another.

    in_flight: tickets and jobs, oldest first.
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self.in_flight: deque[tuple[Ticket, Job]] = deque()

    def next_episodes(self, search: StructureSearch | None) -> list[Episode]:
        """Return the episodes of the next job: the oldest one, or with the free schedule the first that is done.

        With the free schedule weights may be older than `policy_lag` jobs. Such episodes are dropped and counted.
        search: decides how the first episodes explore; None: they act at random.
        """
        run = self._run
        while True:
            self._submit(search)
            job, episodes = self._collect()
            if run.counts.finished_jobs - job.version <= run.settings.rollout.policy_lag:
                return episodes
            run.counts.stale_episodes += len(episodes)

    def resubmit(self, jobs: Iterable[Job] | None = None) -> None:
        """Submit the jobs in flight to a source that is new. jobs: in place of them, those of a checkpoint."""
        jobs = [job for _, job in self.in_flight] if jobs is None else jobs
        self.in_flight = deque((self._run.source.submit(job), job) for job in jobs)

    def drop(self) -> None:
        """Drop the jobs in flight. The next jobs get the numbers of the episodes after the last one that was played."""
        counts = self._run.counts
        for ticket, job in reversed(self.in_flight):
            self._run.source.drop(ticket)
            if job.episodes[-1] == counts.submitted_episodes - 1:  # else the free schedule took a later job before
                counts.submitted_episodes = job.episodes[0]
        self.in_flight.clear()

    def exploration(self, episode: int, search: StructureSearch | None) -> Exploration:
        """Return how an episode explores. episode: its number, which decides, and not the size of the jobs."""
        agent, rollout, env_steps = self._run.agent, self._run.settings.rollout, self._run.counts.env_steps
        if search is not None and search.is_warm_up:
            return search.exploration(agent.exploration(True, env_steps), episode)
        is_random = env_steps < self._run.settings.training.random_steps
        low, high = rollout.lowest_achieved, rollout.highest_achieved
        exploration = replace(
            agent.exploration(is_random, env_steps),
            lowest_achieved=low,
            highest_achieved=high,
            episode_steps=rollout.training_episode_steps,
        )
        if is_random or not agent.policy_spec.subgoals:
            return exploration
        guided_episodes = rollout.guided_episodes * (1.0 - self._run.success.recent_rate)
        return replace(exploration, guided_episodes=guided_episodes, guided_fraction=rollout.guided_fraction)

    def _submit(self, search: StructureSearch | None) -> None:
        settings, counts = self._run.settings, self._run.counts
        missing = settings.rollout.policy_lag + 1 - len(self.in_flight)
        if missing <= 0:
            return
        weights = self._run.agent.collecting_weights()
        for _ in range(missing):
            numbers = tuple(counts.submitted_episodes + i for i in range(settings.rollout.episodes_per_job))
            explorations = tuple(self.exploration(number, search) for number in numbers)
            job = Job(settings.training.seed, TRAINING, numbers, weights, explorations, counts.finished_jobs)
            self.in_flight.append((self._run.source.submit(job), job))
            counts.submitted_episodes += len(numbers)  # last: an interrupted `submit` skips no episode

    def _collect(self) -> tuple[Job, list[Episode]]:
        source, counts, first = self._run.source, self._run.counts, 0
        if self._run.settings.rollout.schedule == "free":
            tickets = [ticket for ticket, _ in self.in_flight]
            first = tickets.index(source.wait_any(tickets))
        ticket, job = self.in_flight[first]
        episodes = result_with_retries(source, ticket, counts)
        del self.in_flight[first]
        counts.add_faults(source.take_fault_counts())
        return job, episodes
