"""The episodes of a run: the jobs that play them, and the store that adds them to the buffer, the counts and the agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..agents import Agent
from ..agents.policy import PolicySpec
from ..errors import HindsightError, InputError
from ..records import Array, Episode
from ..records.exploration import Exploration
from ..records.reward_scale import is_close
from ..replay.buffer import HindsightBuffer
from ..rollout.collect import Job
from ..rollout.workers import Ticket
from ..seeds import TRAINING
from .evaluate import result_with_retries
from .run_state import RunState
from .structure_search import StructureSearch

ACTION_ROUNDING = 1e-5  # relative, by which a stored action may exceed the range
REFUSED_IN_A_ROW = 10  # the run ends after so many consecutive episodes that the buffer refuses


class RolloutSchedule:
    """Keep `policy_lag` + 1 training jobs in flight, and return the episodes of one after another.

    in_flight: the tickets of the jobs, oldest first.
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self.in_flight: list[Ticket] = []

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
        jobs = [ticket.job for ticket in self.in_flight] if jobs is None else jobs
        self.in_flight = [self._run.source.submit(job) for job in jobs]

    def drop(self) -> None:
        """Drop the jobs in flight. The next jobs get the numbers of the episodes after the last one that was played."""
        counts = self._run.counts
        for ticket in reversed(self.in_flight):
            self._run.source.drop(ticket)
            if ticket.job.episodes[-1] == counts.submitted_episodes - 1:  # else the free schedule took a later job before
                counts.submitted_episodes = ticket.job.episodes[0]
        self.in_flight.clear()

    def exploration(self, episode: int, search: StructureSearch | None) -> Exploration:
        """Return how an episode explores. episode: its number, which decides, and not the size of the jobs."""
        agent, rollout, env_steps = self._run.agent, self._run.settings.rollout, self._run.counts.env_steps
        if search is not None and search.is_warm_up:
            return search.exploration(agent.exploration(True, env_steps), episode)
        is_random = env_steps < self._run.settings.training.random_steps
        exploration = replace(
            agent.exploration(is_random, env_steps),
            lowest_achieved=rollout.lowest_achieved,
            highest_achieved=rollout.highest_achieved,
            rest_displacement=rollout.rest_displacement,
            episode_steps=rollout.training_episode_steps,
        )
        if search is not None and episode < search.state.noiseless_until:
            return exploration.without_noise()
        if search is not None:
            exploration = search.state.searching(exploration, episode, self._run.success)
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
            self.in_flight.append(self._run.source.submit(job))
            counts.submitted_episodes += len(numbers)  # last: an interrupted `submit` skips no episode

    def _collect(self) -> tuple[Job, list[Episode]]:
        source, counts = self._run.source, self._run.counts
        is_free = self._run.settings.rollout.schedule == "free"
        ticket = source.wait_any(self.in_flight) if is_free else self.in_flight[0]
        episodes = result_with_retries(source, ticket, counts)
        self.in_flight.remove(ticket)
        counts.add_faults(source.take_fault_counts())
        return ticket.job, episodes


class EpisodeStore:
    """Stores the episodes of jobs, and counts the updates that are due for them.

    updates_random_steps: whether updates are due for the random steps at the beginning too.
    is_storing: whether episodes are being stored. If an error interrupts that, this stays True: a part of them is stored.
    """

    def __init__(self, run: RunState, updates_random_steps: bool) -> None:
        self._run = run
        self.is_storing = False
        self._updates_random_steps = updates_random_steps
        self._refusal: InputError | None = None  # the last one of the buffer

    def store(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Store the episodes of a job, and return those that the buffer did not refuse."""
        run, self.is_storing = self._run, True
        stored = [episode for episode in episodes if self._store(episode)]
        for episode in stored:
            run.meter.add_episode(episode)
            if episode.is_unguided:
                run.success.add(self._is_success(episode))
        observe(run.agent, run.buffer, stored)  # not the others: NaN would spoil the statistics
        run.counts.unfinished_steps, run.counts.is_searched = sum(map(len, episodes)), False
        self.is_storing = False
        return stored

    def require_valid_episodes(self) -> None:
        """Raise HindsightError if the buffer refused too many episodes in a row."""
        refused = self._run.counts.refused_in_a_row
        if refused >= REFUSED_IN_A_ROW:
            message = f"The buffer refused {refused} episodes in a row. The last error: {self._refusal}"
            raise HindsightError(message) from self._refusal

    def _store(self, episode: Episode) -> bool:
        """Add an episode to the buffer and to the counts. Return False if the buffer refuses it."""
        counts, options = self._run.counts, self._run.settings.training
        counts.env_steps += len(episode)
        counts.episodes += 1
        try:
            self._run.buffer.add_episode(episode)
        except InputError as problem:
            counts.refused_episodes += 1
            counts.refused_in_a_row += 1
            self._refusal = problem
            return False
        counts.refused_in_a_row = 0
        if self._updates_random_steps or counts.env_steps > options.random_steps:
            fraction = options.planned_updates if self._run.agent.knows_path(episode) else 1.0
            counts.due_updates += fraction * options.updates_per_step * len(episode)
        return True

    def _is_success(self, episode: Episode) -> bool:
        """Whether the goal was met at the end; with waypoints at any step, as repeated random actions lead away again."""
        scale, has_waypoints = self._run.agent.reward_scale, self._run.settings.agent_options.n_waypoints > 0
        if not has_waypoints or scale is None or not scale.is_sparse:
            return bool(episode.success)
        return bool(episode.success) or bool(is_close(episode.reward, np.full(len(episode), scale.success)).any())


def observe(agent: Agent, buffer: HindsightBuffer, episodes: Iterable[Episode]) -> None:
    """Add episodes and their images under the symmetries of a buffer to the statistics that normalize the inputs."""
    for episode in episodes:
        for augmented in buffer.symmetries.augmented(episode):
            agent.observe(augmented)


def can_take(policy: PolicySpec, action: Array) -> bool:
    """Return whether all these actions, (T, *action), are in the range that the policy uses: `action_scale` narrows it."""
    if policy.n_actions:
        return True
    middle, half_width = policy.action_range
    distance = np.abs(action.reshape(len(action), -1) - middle)
    return bool((distance <= half_width * (1 + ACTION_ROUNDING)).all())
