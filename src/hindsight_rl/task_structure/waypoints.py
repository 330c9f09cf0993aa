"""Waypoints: visited positions on the path to a far goal, which the policy seeks one after another.

Networks represent values badly that change suddenly, as at the two sides of a wall: a policy then pushes against the wall
in front of its goal. The stored episodes show which paths are open. A graph joins the positions that they have visited.
From it a table is made that names, for the waypoint nearest to the agent and the one nearest to the goal, the next waypoint
on the shortest path. The policy acts for that waypoint, and for the goal itself once it is near (planning over landmarks:
Huang et al. 2019, Eysenbach et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array

GOAL = -1  # in the table: no path is known, act for the goal itself
PLAN_GROWTH = 1.1  # factor on the environment steps of a run from one plan to the next
MOST_CANDIDATES = 10_000  # achieved goals from which the waypoints are chosen
GAPS_AHEAD = 2.0  # distances between neighbours: the policy acts for the first waypoint on the path that is so far away
SUCCESSES_AHEAD = 1.4  # times the largest distance of a success: nearer waypoints may be reached, and the policy would stop
FINE = 0.6  # of the smallest distance of a success: waypoints are not nearer to each other
BACK = 3.0  # factor on the length of a displacement that was made in the other direction only: it may be impossible
BLOCK = 4_096  # achieved goals whose nearest waypoints are sought at once


@dataclass(frozen=True, eq=False)
class Waypoints:
    """Positions and the table of the next waypoint.

    waypoints: (M, g) float32, in the units of the goal. Those that few episodes have visited come first.
    next_waypoint: (M, M) int16, the waypoint to act for at waypoint i if the goal lies at waypoint j; j: act for the goal
        itself, which is near on a known path. GOAL: act for the goal too, but no path is known, and none leads nearer.
    """

    waypoints: Array
    next_waypoint: Array

    @classmethod
    def unknown(cls, n_waypoints: int, goal_size: int) -> Waypoints:
        """Return waypoints before any episode: every goal is sought directly."""
        return cls(np.zeros((n_waypoints, goal_size), np.float32), np.full((n_waypoints, n_waypoints), GOAL, np.int16))

    @classmethod
    def plan(
        cls, paths: Sequence[Array], n_waypoints: int, success_distances: tuple[float, float] = (0.0, 0.0)
    ) -> Waypoints:
        """Return waypoints over the positions that episodes have visited.

        Paths are the shortest over displacements that were made. Where no path is known, they lead as near to the goal as
        they can. On short paths the goal is sought directly.

        paths: achieved goals of each episode, (T+1, g). success_distances: the smallest and the largest, along dimensions
        of the goal, at which it counts as reached; 0: not known.
        """
        smallest, largest = success_distances
        positions = _spread_out(np.concatenate(paths), n_waypoints, FINE * smallest)
        visited = [_nearest(path, positions) for path in paths]
        n_visits = np.bincount(np.concatenate([np.unique(each) for each in visited]), minlength=len(positions))
        rank = np.argsort(order := np.argsort(n_visits, kind="stable"))
        positions, visited = positions[order], [rank[each] for each in visited]
        straight = np.sqrt(np.square(positions[:, None] - positions).sum(-1))
        following = shortest_paths(_edges(visited, straight))
        is_ahead = straight >= max(GAPS_AHEAD * _median_gap(straight), SUCCESSES_AHEAD * largest)
        table = np.full((n_waypoints, n_waypoints), GOAL, np.int16)
        table[: len(positions), : len(positions)] = _next_waypoints(following, is_ahead, straight)
        padding = np.repeat(positions[:1], n_waypoints - len(positions), axis=0)  # the first of equal ones is the nearest
        return cls(np.concatenate([positions, padding]).astype(np.float32), table)

    def toward(self, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
        """Return the goal to act for, (..., g), of achieved and desired goals (..., g). xp: see `Subgoals.acting_goals`."""
        positions, table = xp.asarray(self.waypoints), xp.asarray(self.next_waypoint)
        start, end = (xp.square(goals[..., None, :] - positions).sum(-1).argmin(-1) for goals in (achieved_goal, goal))
        at = xp.asarray(table[start, end], xp.int64)
        return xp.where(((at == GOAL) | (at == end))[..., None], goal, positions[at])

    def nearest(self, goal: Array) -> int:
        """Return the index of the waypoint nearest to a goal, (g,)."""
        return int(np.square(self.waypoints - goal).sum(1).argmin())

    def split(self, start: int) -> tuple[Array, Array]:
        """Return the waypoints that known paths lead to from a waypoint, (N, g), and the others, each in order."""
        end = np.arange(len(self.waypoints))
        at = np.full_like(end, start)
        for _ in end:  # a path has at most so many waypoints
            at = np.where((at != GOAL) & (at != end), self.next_waypoint[at, end], at)
        is_known = at == end
        is_padding = (self.waypoints == self.waypoints[0]).all(1) & (end > 0)
        return self.waypoints[is_known & ~is_padding], self.waypoints[~is_known & ~is_padding]

    def spacing(self) -> float:
        """Return the median distance between neighbouring waypoints, 0 for a single one."""
        return _median_gap(np.sqrt(np.square(self.waypoints[:, None] - self.waypoints).sum(-1)))


def is_planning_due(env_steps: int, new_steps: int) -> bool:
    """Whether the last `new_steps` of the environment steps so far crossed a power of PLAN_GROWTH."""
    before = env_steps - new_steps
    return new_steps > 0 and (
        before == 0 or math.floor(math.log(env_steps, PLAN_GROWTH)) > math.floor(math.log(before, PLAN_GROWTH))
    )


def _median_gap(distance: Array) -> float:
    """Return the median distance of positions to the nearest other one, 0 for a single one. distance: (M, M).

    Equal positions count as one.
    """
    gaps = np.where(distance > 0, distance, np.inf).min(0)
    return float(np.median(gaps)) if np.isfinite(gaps).all() else 0.0


def _spread_out(visited: Array, n_waypoints: int, near: float) -> Array:
    """Return at most so many visited positions, (M, g), each as far as possible from those before it.

    near: distance within which one position stands for all others.
    """
    at = np.unique(np.linspace(0, len(visited) - 1, MOST_CANDIDATES).astype(np.int64))
    candidates = visited[at].astype(np.float64)
    chosen, distance = [0], np.square(candidates - candidates[0]).sum(1)
    while len(chosen) < n_waypoints and distance.max() > near**2:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.square(candidates - candidates[chosen[-1]]).sum(1))
    return np.asarray(candidates[chosen])


def _edges(visited: Sequence[Array], straight: Array) -> Array:
    """Return the lengths of displacements between waypoints, (M, M), infinite for those made in no direction.

    visited: indices of the waypoints on each path, (T+1,). straight: distances of waypoints, (M, M).
    """
    was_made = np.eye(len(straight), dtype=np.bool_)
    for each in visited:
        was_made[each[:-1], each[1:]] = True
    return np.where(was_made, straight, np.where(was_made.T, BACK * straight, np.inf))


def _nearest(goals: Array, positions: Array) -> Array:
    parts = [goals[first : first + BLOCK, None] - positions for first in range(0, len(goals), BLOCK)]
    return np.concatenate([np.square(part).sum(-1).argmin(1) for part in parts])


def shortest_paths(length: Array) -> Array:
    """Return the node that follows first on the shortest path from node i to node j, (M, M); -1 if there is none.

    This is the algorithm of Floyd and Warshall. length: of the edges, (M, M), infinite without one.
    """
    distance, following = length.copy(), np.where(np.isfinite(length), np.arange(len(length)), -1)
    for over in range(len(length)):
        detour = distance[:, over, None] + distance[over]
        is_shorter = detour < distance
        distance = np.where(is_shorter, detour, distance)
        following = np.where(is_shorter, following[:, over, None], following)
    return following


def _next_waypoints(following: Array, is_ahead: Array, straight: Array) -> Array:
    """Return the first waypoint on each path that is far enough ahead, and the end itself if there is none before it.

    Where no path to the end is known, it is the path to the waypoint nearest to it that a path leads to, and GOAL there.
    """
    goal = np.broadcast_to(np.arange(len(following)), following.shape)
    start = goal.T
    end = np.stack([np.where(paths >= 0, 0.0, np.inf)[:, None] + straight for paths in following]).argmin(1)
    at = start
    while (goes_on := ~is_ahead[start, at] & (at != end)).any():
        at = np.where(goes_on, following[at, end], at)
    return np.where(at != end, at, np.where(end == goal, end, GOAL))
