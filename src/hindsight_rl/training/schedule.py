"""The rollout schedule: which jobs are submitted, with which weights and exploration, and in which order they return."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from ..agents import Agent
from ..options import Settings
from ..records import Episode
from ..records.exploration import Exploration
from ..rollout.collect import Job
from ..rollout.episode_sources import Source
from ..rollout.workers import Ticket
from ..seeds import TRAINING
from .counts import Counts, UnguidedSuccess
from .evaluate import result_with_retries
from .structure_search import StructureSearch


class RolloutSchedule:
    """Keep `policy_lag` + 1 training jobs in flight, and return the episodes of one after another.

    in_flight: tickets and jobs, oldest first.
    success: of the agent without guidance. The higher it is, the fewer episodes are guided.
    search: decides how the first episodes explore; None: they act at random.
    """

    def __init__(
        self, agent: Agent, settings: Settings, success: UnguidedSuccess, search: StructureSearch | None = None
    ) -> None:
        self.agent, self.settings, self.success, self.search = agent, settings, success, search
        self.in_flight: deque[tuple[Ticket, Job]] = deque()

    def next_episodes(self, source: Source, counts: Counts) -> list[Episode]:
        """Return the episodes of the next job: the oldest one, or with the free schedule the first that is done.

        With the free schedule weights may be older than `policy_lag` jobs. Such episodes are dropped and counted.
        """
        while True:
            self._submit(source, counts)
            job, episodes = self._collect(source, counts)
            if counts.finished_jobs - job.version <= self.settings.rollout.policy_lag:
                return episodes
            counts.stale_episodes += len(episodes)

    def resubmit(self, source: Source, jobs: Iterable[Job] | None = None) -> None:
        """Submit the jobs in flight to another source. jobs: in place of them, those of a checkpoint."""
        jobs = [job for _, job in self.in_flight] if jobs is None else jobs
        self.in_flight = deque((source.submit(job), job) for job in jobs)

    def drop(self, source: Source, counts: Counts) -> None:
        """Drop the jobs in flight. The next jobs get the numbers of the episodes after the last one that was played."""
        for ticket, job in reversed(self.in_flight):
            source.drop(ticket)
            if job.episodes[-1] == counts.submitted_episodes - 1:  # else the free schedule took a later job before
                counts.submitted_episodes = job.episodes[0]
        self.in_flight.clear()

    def exploration(self, counts: Counts, episode: int) -> Exploration:
        """Return how an episode explores. episode: its number, which decides, and not the size of the jobs."""
        rollout, random_steps = self.settings.rollout, self.settings.training.random_steps
        if self.search is not None and self.search.is_warm_up:
            return self.search.exploration(self.agent.exploration(True, counts.env_steps), episode)
        is_random = counts.env_steps < random_steps
        exploration = self.agent.exploration(is_random, counts.env_steps)
        low, high = rollout.lowest_achieved, rollout.highest_achieved
        exploration = replace(
            exploration, lowest_achieved=low, highest_achieved=high, episode_steps=rollout.training_episode_steps
        )
        if is_random or not self.agent.policy_spec.subgoals:
            return exploration
        guided_episodes = rollout.guided_episodes * (1.0 - self.success.recent_rate)
        return replace(exploration, guided_episodes=guided_episodes, guided_fraction=rollout.guided_fraction)

    def _submit(self, source: Source, counts: Counts) -> None:
        rollout = self.settings.rollout
        missing = rollout.policy_lag + 1 - len(self.in_flight)
        if missing <= 0:
            return
        weights = self.agent.collecting_weights()
        for _ in range(missing):
            numbers = tuple(counts.submitted_episodes + i for i in range(rollout.episodes_per_job))
            explorations = tuple(self.exploration(counts, number) for number in numbers)
            job = Job(self.settings.training.seed, TRAINING, numbers, weights, explorations, counts.finished_jobs)
            self.in_flight.append((source.submit(job), job))
            counts.submitted_episodes += rollout.episodes_per_job  # last: an interrupted `submit` skips no episode

    def _collect(self, source: Source, counts: Counts) -> tuple[Job, list[Episode]]:
        place = 0
        if self.settings.rollout.schedule == "free":
            tickets = [ticket for ticket, _ in self.in_flight]
            place = tickets.index(source.wait_any(tickets))
        ticket, job = self.in_flight[place]
        episodes = result_with_retries(source, ticket, counts)
        del self.in_flight[place]
        counts.add_faults(source.take_fault_counts())
        return job, episodes
