"""The episodes of a run: they are stored, counted, and added to the statistics that normalize the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..agents import Agent
from ..agents.policy import PolicySpec
from ..errors import HindsightError, InputError
from ..records import Array, Episode
from ..replay.buffer import HindsightBuffer
from ..structure.success import MOST_EPISODES_COMPARED, find_success_distance
from ..task_structure.waypoints import Waypoints
from .run_state import RunState

ACTION_ROUNDING = 1e-5  # relative, by which a stored action may exceed the range
REFUSED_IN_A_ROW = 10  # the run ends after so many consecutive episodes that the buffer refuses


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
            counts.due_updates += options.updates_per_step * len(episode)
        return True

    def _is_success(self, episode: Episode) -> bool:
        """Whether the goal was met at the end; with waypoints at any step, as repeated random actions lead away again."""
        has_met_goal = self._run.settings.agent_options.n_waypoints > 0 and len(set(episode.reward.tolist())) == 2
        return has_met_goal or bool(episode.success)


def observe(agent: Agent, buffer: HindsightBuffer, episodes: Iterable[Episode]) -> None:
    """Add episodes and their images under the symmetries of a buffer to the statistics that normalize the inputs."""
    for episode in episodes:
        for augmented in buffer.symmetries.augmented(episode):
            agent.observe(augmented)


def plan_waypoints(agent: Agent, buffer: HindsightBuffer) -> None:
    """Give the agent waypoints over the stored episodes, if it has the option."""
    n_waypoints, timeline = agent.policy_spec.options.n_waypoints, buffer.timeline
    if n_waypoints and timeline.num_episodes:
        distance = find_success_distance(buffer.compute_reward, timeline.episodes(MOST_EPISODES_COMPARED)) or 0.0
        agent.waypoints = Waypoints.plan(timeline.paths(), n_waypoints, distance)


def can_take(policy: PolicySpec, action: Array) -> bool:
    """Return whether all these actions, (T, *action), are in the range that the policy uses: `action_scale` narrows it."""
    if policy.n_actions:
        return True
    middle, half_width = policy.action_range
    distance = np.abs(action.reshape(len(action), -1) - middle)
    return bool((distance <= half_width * (1 + ACTION_ROUNDING)).all())
