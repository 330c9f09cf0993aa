"""Waypoints: places on the way to a far goal, which the policy seeks one after another.

Networks represent values badly that change suddenly, as at the two sides of a wall: a policy then pushes against the wall
in front of its goal. The paths of stored episodes show which ways are open. From them a table is made that names, for the
place where the agent is and the place where the goal lies, the next place on the way. The policy acts for that place, and
for the goal itself once it is near (planning over landmarks: Huang et al. 2019, Eysenbach et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import Array

GOAL = -1  # in the table: no way is known, act for the goal itself


@dataclass(frozen=True, eq=False)
class Waypoints:
    """Places and the table of the next place.

    places: (M, g) float32, in the units of the goal. Those that few episodes have visited come first.
    next_place: (M, M) int16, the place to act for at place i if the goal lies at place j; j: act for the goal itself, which
        is near on a known way. GOAL: act for the goal too, but no way is known, and no way leads nearer to it.
    """

    places: Array
    next_place: Array

    @classmethod
    def unknown(cls, n_places: int, goal_size: int) -> Waypoints:
        """Return waypoints before any episode: every goal is sought directly."""
        return cls(np.zeros((n_places, goal_size), np.float32), np.full((n_places, n_places), GOAL, np.int16))

    def toward(self, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
        """Return the goal to act for, (..., g), of achieved and desired goals (..., g). xp: as in `acting_goals`."""
        places, table = xp.asarray(self.places), xp.asarray(self.next_place)
        start, end = (xp.square(goals[..., None, :] - places).sum(-1).argmin(-1) for goals in (achieved_goal, goal))
        place = xp.asarray(table[start, end], xp.int64)
        return xp.where(((place == GOAL) | (place == end))[..., None], goal, places[place])

    def nearest(self, goal: Array) -> int:
        """Return the number of the place nearest to a goal, (g,)."""
        return int(np.square(self.places - goal).sum(1).argmin())

    def split(self, start: int) -> tuple[Array, Array]:
        """Return the places that known ways lead to from a place, (N, g), and those that are cut off, each in order."""
        end = np.arange(len(self.places))
        place = np.full_like(end, start)
        for _ in end:  # a way has at most so many places
            place = np.where((place != GOAL) & (place != end), self.next_place[place, end], place)
        is_known = place == end
        is_padding = (self.places == self.places[0]).all(1) & (end > 0)
        return self.places[is_known & ~is_padding], self.places[~is_known & ~is_padding]

    def spacing(self) -> float:
        """Return the median distance between neighbouring places, 0 for a single one."""
        return median_gap(np.sqrt(np.square(self.places[:, None] - self.places).sum(-1)))


def median_gap(distance: Array) -> float:
    """Return the median distance of places to the nearest other one, 0 for a single place. distance: (M, M).

    Equal places count as one.
    """
    gaps = np.where(distance > 0, distance, np.inf).min(0)
    return float(np.median(gaps)) if np.isfinite(gaps).all() else 0.0
