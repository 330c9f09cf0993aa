"""Plan waypoints again when a run has grown: new episodes show new ways."""

from __future__ import annotations

import math

from ..agents import Agent
from ..replay.buffer import HindsightBuffer
from ..structure.success import MOST_GOALS, find_success_distance
from ..structure.waypoints import find_waypoints

GROWTH = 1.1  # factor on the environment steps of a run from one plan to the next


def is_planning_due(env_steps: int, new_steps: int) -> bool:
    """Whether the last `new_steps` of the environment steps so far crossed a power of GROWTH."""
    before = env_steps - new_steps
    return new_steps > 0 and (before == 0 or math.floor(math.log(env_steps, GROWTH)) > math.floor(math.log(before, GROWTH)))


def plan_waypoints(agent: Agent, buffer: HindsightBuffer) -> None:
    """Give the agent waypoints over the stored episodes, if it has the option."""
    n_places, timeline = agent.policy_spec.options.n_waypoints, buffer.timeline
    if n_places and timeline.num_episodes:
        distance = find_success_distance(buffer.compute_reward, timeline.episodes(MOST_GOALS)) or 0.0
        agent.waypoints = find_waypoints(timeline.paths(), n_places, distance)
