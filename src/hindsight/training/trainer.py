"""The trainer: collect episodes, store them, update the agent, evaluate its policy."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing

from ..agents import Agent
from ..errors import HindsightError, InputError
from ..options import Settings
from ..records import Episode
from ..replay.buffer import HindsightBuffer
from ..rollout.workers import Source
from .counts import Counts
from .demonstrations import Demonstrations
from .evaluator import Evaluator
from .events import Event, JobFinished, OptionsChanged
from .metrics import Meter
from .schedule import RolloutSchedule
from .structure_search import StructureSearch
from .unguided import UnguidedSuccess
from .updates import UpdateLoop
from .waypoints import is_planning_due, plan_waypoints

REFUSED_IN_A_ROW = 10  # the run ends after so many consecutive episodes that the buffer refuses
OFFLINE_UPDATES = 1_000  # from demonstrations alone, at a time


class Trainer:
    """Train an agent on the episodes of a source.

    agent: the agent to train.
    buffer: stores the episodes and samples relabelled batches.
    source: collects the episodes. `move_to` replaces it.
    settings: the options of the run.
    counts: how far the run is: zero for a new run. The trainer updates them.
    demonstrations: recorded episodes to learn from as well, or None.
    search: finds the structure of the task during the run, and may replace agent, buffer and settings; None: none does.
    success: of the agent in its unguided training episodes.
    is_between_jobs: whether every job is either complete (stored, observed and followed by its updates) or not stored at
        all. Otherwise an error or Ctrl-C interrupted a job, and a run cannot be resumed from this state.
    """

    def __init__(
        self,
        agent: Agent,
        buffer: HindsightBuffer,
        source: Source,
        settings: Settings,
        counts: Counts,
        demonstrations: Demonstrations | None = None,
        search: StructureSearch | None = None,
    ) -> None:
        self.agent, self.buffer, self.source, self.settings = agent, buffer, source, settings
        self.counts, self.demonstrations, self.search = counts, demonstrations, search
        self.is_between_jobs = True
        self._changes: list[OptionsChanged] = []  # since the last event
        self.meter, self.success = Meter(), UnguidedSuccess()
        self.rollouts = RolloutSchedule(agent, settings, self.success, search)
        self.updates = UpdateLoop(agent, buffer, settings, demonstrations)
        self.evaluator = Evaluator(agent, settings)
        if not counts.episodes and not agent.n_updates:  # a run that goes on has observed them
            self._observe_demonstrations()

    @property
    def is_solved(self) -> bool:
        """Whether the task counts as solved, see `Evaluator.is_solved`."""
        return self.evaluator.is_solved

    @property
    def history(self) -> list[dict[str, float]]:
        """The evaluations that took effect, see `Evaluator.history`."""
        return self.evaluator.history

    @property
    def offline_updates_left(self) -> int:
        """How many updates from demonstrations alone are still to be made, at most 0 if none."""
        return self.settings.training.offline_steps - self.counts.offline_updates

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
            while self.offline_updates_left > 0:
                self.learn_offline(OFFLINE_UPDATES)
                yield JobFinished([])
            while not evaluator.is_solved:
                if evaluator.takes_effect(counts, until):
                    yield from self._timed(evaluator.finish(self.source, counts, until))
                elif evaluator.is_due(counts, until):
                    evaluator.begin(self.source, counts, self.meter.take_means())
                elif counts.env_steps < until:
                    episodes = self.learn_from_next_job()
                    yield JobFinished(episodes, evaluator.is_due(counts, until), self.take_changes())
                    yield from self._timed(evaluator.outcomes(self.source, counts, waits=False))
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

    def learn_offline(self, at_most: int | None = None) -> None:
        """Make the updates from demonstrations alone that are left. at_most: not more than about so many."""
        started, left = time.perf_counter(), self.offline_updates_left
        if left <= 0:
            return
        self.is_between_jobs = False
        self.updates.run_offline(min(left, at_most or left), self.counts, self.meter)
        self.counts.update_seconds += time.perf_counter() - started
        self.is_between_jobs = True

    def learn_from_next_job(self) -> list[Episode]:
        """Store the episodes of the next job, make the updates that are due, and return the episodes.

        Raises HindsightError if the buffer refused too many episodes in a row, or if weights are not finite.
        """
        started = time.perf_counter()
        episodes = self.rollouts.next_episodes(self.source, self.counts)
        collected = time.perf_counter()
        self.is_between_jobs = False
        stored = []
        for episode in episodes:
            refusal = self._store(episode)
            if refusal is None:  # NaN would spoil the statistics that normalize the inputs
                self._observe(episode)
                stored.append(episode)
        if (count := self.counts.refused_in_a_row) >= REFUSED_IN_A_ROW:
            raise HindsightError(f"The buffer refused {count} episodes in a row. The last error: {refusal}") from refusal
        if self.search is not None:
            self.search.after_job(self, stored)
        if is_planning_due(self.counts.env_steps, sum(map(len, episodes))):
            plan_waypoints(self.agent, self.buffer)
        if self.search is None or not self.search.is_warm_up:
            self.updates.run(self.counts, self.meter, self.source.poll)
        self.counts.finished_jobs += 1
        self.counts.collect_seconds += collected - started
        self.counts.update_seconds += time.perf_counter() - collected
        self.is_between_jobs = True
        return episodes

    def take_changes(self) -> tuple[OptionsChanged, ...]:
        """Return the changes of the options since the last call."""
        changes, self._changes = tuple(self._changes), []
        return changes

    def rebuild(
        self,
        agent: Agent,
        buffer: HindsightBuffer,
        demonstrations: Demonstrations | None,
        settings: Settings,
        why_new: str = "",
    ) -> None:
        """Go on with other buffers, which get the stored episodes, and maybe another agent. Jobs in flight are dropped.

        why_new: why the agent is a new one.
        """
        self.rollouts.drop(self.source, self.counts)
        self.evaluator.drop()
        stored, is_new = self.buffer.timeline.episodes(), agent is not self.agent
        why = why_new if is_new and self.counts.updates else ""  # an agent without updates had learned nothing
        self._changes.append(OptionsChanged.between(self.settings, settings, self.counts, why))
        self.agent, self.buffer, self.demonstrations, self.settings = agent, buffer, demonstrations, settings
        for episode in stored:
            buffer.add_episode(episode)
        if is_new:
            self.success.clear()
            self._observe_demonstrations()
            for episode in stored:
                self._observe(episode)
            plan_waypoints(agent, buffer)
        self.source.policy = agent.policy_spec
        self.evaluator.agent = agent
        self.rollouts = RolloutSchedule(agent, settings, self.success, self.search)
        last_step = self.updates.last_step
        self.updates = UpdateLoop(agent, buffer, settings, demonstrations)
        self.updates.last_step = last_step

    def move_to(self, source: Source) -> None:
        """Go on with another source. The jobs in flight are submitted again."""
        self.source = source
        self.rollouts.resubmit(source)

    def _observe_demonstrations(self) -> None:
        for episode in self.demonstrations.episodes if self.demonstrations else ():
            self._observe(episode)

    def _observe(self, episode: Episode) -> None:
        """Add an episode and its images under the symmetries to the statistics that normalize the inputs."""
        for augmented in self.buffer.symmetries.augmented(episode):
            self.agent.observe(augmented)

    def _is_success(self, episode: Episode) -> bool:
        """Whether the goal was met at the end; with waypoints at any step, as repeated random actions lead away again."""
        has_met_goal = self.settings.agent_options.n_waypoints > 0 and len(set(episode.reward.tolist())) == 2
        return has_met_goal or bool(episode.success)

    def _store(self, episode: Episode) -> InputError | None:
        """Add an episode to the buffer and to the counts. Return the error if the buffer refuses it."""
        counts = self.counts
        counts.env_steps += len(episode)
        counts.episodes += 1
        try:
            self.buffer.add_episode(episode)
        except InputError as problem:
            counts.refused_episodes += 1
            counts.refused_in_a_row += 1
            return problem
        counts.refused_in_a_row = 0
        self.meter.add_episode(episode)
        if episode.is_unguided:
            self.success.add(self._is_success(episode))
        options = self.settings.training
        makes_up = self.search is not None and self.search.is_used  # a search of structure makes up for all updates
        if makes_up or counts.env_steps > options.random_steps:
            counts.owed_updates += options.updates_per_step * len(episode)
        return None
