"""The trainer: collect episodes, store them, update the agent, evaluate its policy."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing

from ..agents import Agent
from ..options import Settings
from ..records import Episode, Finding
from ..replay.buffer import HindsightBuffer
from ..rollout.episode_sources import EpisodeSource
from ..task_structure.waypoints import is_planning_due
from .demonstrations import Demonstrations
from .episodes import EpisodeStore, RolloutSchedule, can_take, observe
from .evaluator import Evaluator
from .events import EpisodesStored, Event, JobFinished, OptionsChanged
from .path_search import plan_waypoints
from .run_state import Counts, Parts, RunState
from .structure_search import StructureSearch
from .updates import UpdateLoop

OFFLINE_UPDATES = 1_000  # from demonstrations alone, at a time


class Trainer(RunState):
    """Train an agent on the episodes of a source. The trainer is the state of the run, which its parts share.

    search: finds the structure of the task during the run, and may replace agent, buffer and settings; None: no search.

    A job has two parts. `store_next_job` stores its episodes and counts the updates that are due for them. `finish_job`
    makes these updates, and counts each of them down. The state between two updates is complete. So after an error of the
    environment or of its reward function, a run resumes to the same bytes as without the error.
    """

    def __init__(
        self,
        agent: Agent,
        buffer: HindsightBuffer,
        source: EpisodeSource,
        settings: Settings,
        counts: Counts,
        demonstrations: Demonstrations | None = None,
        search: StructureSearch | None = None,
    ) -> None:
        super().__init__(agent, buffer, source, settings, counts, demonstrations)
        self.search = search
        self._changes: list[OptionsChanged] = []  # since the last event
        self.rollouts, self.updates, self.evaluator = RolloutSchedule(self), UpdateLoop(self), Evaluator(self)
        self.storing = EpisodeStore(
            self, updates_random_steps=search is not None and search.is_used
        )  # all updates come later
        if not counts.episodes and not agent.n_updates:  # a run that goes on has observed them
            observe(agent, buffer, demonstrations.episodes if demonstrations else ())

    @property
    def is_resumable(self) -> bool:
        """Whether a run can be resumed from the state as it is.

        It cannot if the weights are not finite, or if an error interrupted the storing of episodes or an update.
        """
        return not self.storing.is_storing and not self.updates.is_updating and self.agent.is_finite()

    @property
    def is_solved(self) -> bool:
        """Whether the task counts as solved, see `Evaluator.is_solved`."""
        return self.evaluator.is_solved

    @property
    def history(self) -> list[dict[str, float]]:
        """The evaluations that took effect, see `Evaluator.history`."""
        return self.evaluator.history

    @property
    def not_found(self) -> tuple[str, ...]:
        """What the search for structure did not find, and why, in sentences."""
        return self.search.state.missing if self.search else ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the search for structure found, each with its figures."""
        return self.search.state.findings if self.search else ()

    def run(self, until: int) -> Iterator[Event]:
        """Train and evaluate until `until` environment steps, or until the task is solved, and yield each event.

        The caller may stop after any event and call `run` again. Evaluations run beside training, see `Evaluator`.
        """
        with closing(self._events(until)) as events:
            for event in events:
                started = time.perf_counter()
                yield event
                self.counts.write_seconds += time.perf_counter() - started

    def _events(self, until: int) -> Generator[Event]:
        evaluator, counts = self.evaluator, self.counts
        try:
            yield from self._offline()
            while not evaluator.is_solved:
                if counts.unfinished_steps:
                    self.finish_job()
                    yield JobFinished(evaluator.is_due(until), self.take_changes())
                    yield from self._timed(evaluator.outcomes(waits=False))
                elif evaluator.takes_effect(until):
                    yield from self._timed(evaluator.finish(until))
                elif evaluator.is_due(until):
                    evaluator.begin()
                elif counts.env_steps < until:
                    yield EpisodesStored(self.store_next_job())
                else:
                    return
        finally:
            evaluator.suspend()

    def _timed(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events, and count the time that they take as `evaluate_seconds`."""
        while True:
            started = time.perf_counter()
            event = next(events, None)
            self.counts.evaluate_seconds += time.perf_counter() - started
            if event is None:
                return
            yield event

    def learn(self, until: int) -> Iterator[EpisodesStored | JobFinished]:
        """Train until `until` environment steps, without evaluations, and yield each event."""
        yield from self._offline()
        while True:
            if self.counts.unfinished_steps:
                self.finish_job()
                yield JobFinished(changes=self.take_changes())
            elif self.counts.env_steps < until:
                yield EpisodesStored(self.store_next_job())
            else:
                return

    def _offline(self) -> Iterator[JobFinished]:
        """Make the updates from demonstrations alone that are left."""
        while (left := self.settings.training.offline_steps - self.counts.offline_updates) > 0:
            started = time.perf_counter()
            self.updates.run_offline(min(left, OFFLINE_UPDATES))
            self.counts.update_seconds += time.perf_counter() - started
            yield JobFinished()

    def learn_from_next_job(self) -> list[Episode]:
        """Store the episodes of the next job, make the updates that are due, and return the episodes.

        If an error interrupted the job before, that one is finished first.
        """
        self.finish_job()
        episodes = self.store_next_job()
        self.finish_job()
        return episodes

    def store_next_job(self) -> list[Episode]:
        """Wait for the episodes of the next job, store them, and return them."""
        started, counts = time.perf_counter(), self.counts
        episodes = self.rollouts.next_episodes(self.search)
        collected = time.perf_counter()
        stored = self.storing.store(episodes)
        if self.search is not None:
            self.search.observe(stored)
        counts.collect_seconds += collected - started
        counts.update_seconds += time.perf_counter() - collected
        return episodes

    def finish_job(self) -> None:
        """Make the updates that are due for the last job, if there are any. After an error, call it again to go on.

        Raises HindsightError if the buffer refused too many episodes in a row, or if weights are not finite.
        """
        started, counts, search = time.perf_counter(), self.counts, self.search
        if not counts.unfinished_steps:
            return
        if search is not None and not counts.is_searched:
            search.after_job(self)
            counts.is_searched = True
        if is_planning_due(counts.env_steps, counts.unfinished_steps):
            plan_waypoints(self.agent, self.buffer)
        if search is None or not search.is_warm_up:
            self.updates.run()
        counts.finished_jobs += 1
        counts.unfinished_steps = 0
        counts.update_seconds += time.perf_counter() - started
        self.storing.require_valid_episodes()

    def take_changes(self) -> tuple[OptionsChanged, ...]:
        """Return the changes of the options since the last call."""
        changes, self._changes = tuple(self._changes), []
        return changes

    def rebuild(self, parts: Parts, settings: Settings, why_new: str = "") -> None:
        """Go on with other buffers, which get the stored episodes, and maybe another agent. Jobs in flight are dropped.

        If the agent now uses a part of the action range, episodes with larger actions are left out: networks would see
        these actions as several times the largest one. why_new: why the agent is a new one.
        """
        agent, buffer, demonstrations = parts
        stored = [each for each in self.buffer.timeline.episodes() if can_take(agent.policy_spec, each.action)]
        is_new = agent is not self.agent and not agent.n_updates  # one that took over has the statistics of these episodes
        for episode in stored:
            buffer.add_episode(episode)
        if is_new:
            observe(agent, buffer, demonstrations.episodes if demonstrations else ())
            observe(agent, buffer, stored)
            plan_waypoints(agent, buffer)
        self.drop_jobs()
        self.evaluator.drop()
        why = why_new if is_new and self.counts.updates else ""  # an agent without updates had learned nothing
        self._changes.append(OptionsChanged.between(self.settings, settings, self.counts, why))
        if is_new:
            self.success.clear()
        self.agent, self.buffer, self.demonstrations, self.settings = agent, buffer, demonstrations, settings
        self.source.policy = agent.policy_spec
        self.updates.forget_batches()

    def drop_jobs(self) -> None:
        """Drop the jobs in flight."""
        self.rollouts.drop()

    def move_to(self, source: EpisodeSource) -> None:
        """Go on with another source. The jobs in flight are submitted again."""
        self.source = source
        self.rollouts.resubmit()
