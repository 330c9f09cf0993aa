"""The trainer: collect episodes, store them, update the agent, evaluate its policy."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..agents import Agent
from ..errors import HindsightError, InputError
from ..options import Settings
from ..records import Episode
from ..replay.buffer import HindsightBuffer
from ..rollout.workers import Source
from .counts import Counts
from .evaluator import Evaluator
from .events import Event, JobFinished
from .metrics import Meter
from .schedule import RolloutSchedule
from .updates import UpdateLoop

REFUSED_IN_A_ROW = 10  # episodes with bad values, one after another, that end a run
SUCCESS_RATE = 0.1  # weight of the newest episode in the running mean success of episodes without guidance


class Trainer:
    """Train an agent on the episodes of a source.

    agent: it learns.
    buffer: it stores episodes and relabels batches.
    source: it collects episodes. Another may be set with `move_to`.
    counts: how far the run is.
    """

    def __init__(self, agent: Agent, buffer: HindsightBuffer, source: Source, settings: Settings, counts: Counts) -> None:
        self.agent, self.buffer, self.source, self.settings = agent, buffer, source, settings
        self.counts = counts
        self.meter = Meter()
        self.rollouts = RolloutSchedule(agent, settings)
        self.updates = UpdateLoop(agent, buffer, settings)
        self.evaluator = Evaluator(agent, settings.training)

    @property
    def is_solved(self) -> bool:
        """Whether the task counts as solved, see `Evaluator.is_solved`."""
        return self.evaluator.is_solved

    @property
    def history(self) -> list[dict[str, float]]:
        """The complete evaluations, see `Evaluator.history`."""
        return self.evaluator.history

    def run(self, until: int) -> Iterator[Event]:
        """Train and evaluate until `until` environment steps, or until the task is solved, and yield each event.

        The caller may stop after any event and call `run` again. The deterministic schedule waits for an evaluation. The
        free schedule trains on meanwhile, until the next evaluation is due.
        """
        evaluator, waits = self.evaluator, self.settings.rollout.schedule == "deterministic"
        try:
            while not evaluator.is_solved:
                is_due = evaluator.is_due(self.counts, until)
                if evaluator.running and (waits or is_due):
                    yield from evaluator.rest(self.counts)
                elif is_due:
                    evaluator.begin(self.source, self.counts)
                elif self.counts.env_steps < until:
                    episodes = self.learn_from_next_job()
                    yield JobFinished(episodes, evaluator.is_due(self.counts, until))
                    yield from evaluator.ready(self.counts)
                elif evaluator.running:
                    yield from evaluator.rest(self.counts)
                else:
                    return
        finally:
            evaluator.drop()

    def learn_from_next_job(self) -> list[Episode]:
        """Store the episodes of the next job, make the updates that are due, and return the episodes."""
        started = time.perf_counter()
        episodes = self.rollouts.next_episodes(self.source, self.counts)
        collected = time.perf_counter()
        for episode in [episode for episode in episodes if self._store(episode)]:
            for augmented in self.buffer.symmetries.augmented(episode):
                self.agent.observe(augmented)
        self.updates.run(self.counts, self.meter)
        self.counts.finished_jobs += 1
        self.counts.collect_seconds += collected - started
        self.counts.update_seconds += time.perf_counter() - collected
        return episodes

    def move_to(self, source: Source) -> None:
        """Go on with another source. The jobs in flight are submitted again."""
        self.source = source
        self.rollouts.resubmit(source)

    def _store(self, episode: Episode) -> bool:
        """Add an episode to the buffer and to the counts. Return False if the buffer refuses it."""
        counts = self.counts
        counts.env_steps += len(episode)
        counts.episodes += 1
        try:
            self.buffer.add_episode(episode)
        except InputError as problem:
            self._count_refused(problem)
            return False
        counts.refused_in_a_row = 0
        self.meter.add_episode(episode)
        if not episode.is_guided:
            counts.unguided_success += SUCCESS_RATE * (float(bool(episode.success)) - counts.unguided_success)
        options = self.settings.training
        if counts.env_steps > options.random_steps:
            counts.owed_updates += options.updates_per_step * len(episode)
        return True

    def _count_refused(self, problem: InputError) -> None:
        self.counts.refused_episodes += 1
        self.counts.refused_in_a_row += 1
        if self.counts.refused_in_a_row == REFUSED_IN_A_ROW:
            raise HindsightError(
                f"the buffer refused {REFUSED_IN_A_ROW} episodes in a row. The last error: {problem}"
            ) from problem
