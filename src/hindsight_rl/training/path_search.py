"""The plan of paths over waypoints, and the trial of it where an agent mostly fails.

Walls may make paths longer than random actions show, and joints that move together make them shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..agents import Agent
from ..options import Choice, Settings
from ..recipes.presets import load_preset
from ..records import Array
from ..replay.buffer import HindsightBuffer
from ..structure import Structure
from ..structure.steps import LITTLE, MOSTLY, SAMPLED
from ..structure.success import find_success_distance
from ..task_structure.waypoints import Waypoints
from .replacement import AGAIN_FROM, LOOK_EVERY
from .resolve import Found
from .run_state import Parts, RunState, SearchState
from .unguided_success import PathTrial

Resolve = Callable[[Found], Settings]
Build = Callable[[Settings, Agent | None, Mapping[str, Array] | None], Parts]


class PathSearch:
    """Lets every second episode of an agent that mostly fails follow planned paths, and plans them for good if that helps.

    Where paths were planned from the start, as goals are far away, every fourth episode of an agent that fails in a fifth
    of them follows none, and the plan is given up if that helps. The networks stay the same.

    resolve, build: see `StructureSearch`.
    """

    def __init__(self, resolve: Resolve, build: Build) -> None:
        self._resolve, self._build = resolve, build

    def look(self, run: RunState, state: SearchState, found: Structure) -> None:
        """Begin or end the trial if that is due. found: what the episodes so far show."""
        trial, has_waypoints = state.open_trial, run.settings.agent_options.n_waypoints > 0
        may_plan = found.has_paths and not has_waypoints and not run.settings.agent_options.subgoals
        # episodes that end early do not show how whole ones end, so paths that are usual are not tried there
        ends_early = run.settings.rollout.training_episode_steps is not None
        are_usual = trial.are_usual if trial is not None else has_waypoints and bool(state.found.value("n_waypoints"))
        falls_short = run.success.recent_rate < 1 - LITTLE if are_usual else run.success.interval[1] < MOSTLY
        falls_short = falls_short and run.counts.env_steps >= AGAIN_FROM
        if state.trial is None and falls_short:
            if are_usual and not ends_early:
                state.trial = PathTrial(are_usual=True)
            elif may_plan and self._plan(run, state, "it is tried whether planned paths help", is_followed=False):
                state.trial = PathTrial()
        elif trial is not None and (trial.is_clear or not (falls_short or are_usual)):
            self.decide(run, state)
        if state.open_trial is not None:
            state.next_at = run.counts.env_steps + LOOK_EVERY

    def decide(self, run: RunState, state: SearchState) -> None:
        """End the trial, if one is open, by the episodes so far."""
        if (trial := state.open_trial) is not None:
            trial.is_over = True
            self._plan(run, state, str(trial) if trial.is_followed else "")

    def _plan(self, run: RunState, state: SearchState, reason: str, is_followed: bool = True) -> bool:
        """Go on with waypoints, or without any if there is no reason for them. Return whether there are some.

        is_followed: whether evaluation acts for them.
        """
        choices = [Choice("n_waypoints", load_preset("waypoints").options["n_waypoints"], reason)] if reason else []
        state.found = state.found.with_option("n_waypoints", choices)
        settings = self._resolve(state.found)
        n_waypoints = settings.agent_options.n_waypoints
        if n_waypoints != run.settings.agent_options.n_waypoints:
            run.agent.plan_paths(n_waypoints, is_followed)
            run.rebuild(self._build(settings, run.agent, None), settings)
            plan_waypoints(run.agent, run.buffer)
        run.settings, run.agent.follows_paths = settings, is_followed
        return n_waypoints > 0


def plan_waypoints(agent: Agent, buffer: HindsightBuffer) -> None:
    """Give the agent waypoints over the stored episodes, if it has the option."""
    n_waypoints, timeline = agent.policy_spec.options.n_waypoints, buffer.timeline
    if n_waypoints and timeline.num_episodes:
        paths, episodes = timeline.paths(), timeline.episodes(SAMPLED)
        along = [find_success_distance(buffer.compute_reward, episodes, [[k]]) for k in range(paths[0].shape[1])]
        known = [each for each in along if each] or [0.0]
        agent.waypoints = Waypoints.plan(paths, n_waypoints, (min(known), max(known)))
