"""Seek one place after another: episodes that see more of the task than the way to their own goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..records import Array
from ..task_structure.waypoints import Waypoints

ANOTHER = 0.005  # probability of each step that another place is sought
BEYOND = (
    3.0  # distances between neighbouring places: so far from a visited place the sought one lies at most, in each number
)
STILL = 30  # steps near one place: the sought place is reached, or the way to it is closed
FIRST = 2.0  # exponent: a third of the sought places is among the first tenth in their order
CUT_OFF = 0.5  # fraction of the sought places that no known way leads to, if there are such places


class RoamingActor:
    """Act for a random place near one that the known ways lead to, then for another.

    A place may lie where no episode has been, and places that few episodes have visited are sought more often, so what is
    known grows (Ecoffet et al. 2021, Pitis et al. 2020). Places that no known way leads to are sought too, the nearest ones
    more often, so that ways are found that join what is known. An episode that seeks its own goal begins to roam where it
    gets stuck.

    act: chooses an action for an observation whose desired goal is the place. roams: from the start, or from then on.
    """

    def __init__(
        self, act: Callable[[Mapping[str, Array]], Array], waypoints: Waypoints, rng: np.random.Generator, roams: bool
    ) -> None:
        self._act, self._waypoints, self._rng, self.roams = act, waypoints, rng, roams
        self._beyond = BEYOND * waypoints.spacing()
        self._sought: Array | None = None
        self._near, self._steps_near = -1, 0

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        place = self._waypoints.nearest(observation["achieved_goal"])
        self._steps_near = self._steps_near + 1 if place == self._near else 0
        self._near, is_still = place, self._steps_near >= STILL
        if is_still and place != self._waypoints.nearest(observation["desired_goal"]):
            self.roams = True
        if not self.roams:
            return self._act(observation)
        if self._sought is None or is_still or self._rng.random() < ANOTHER:
            self._sought, self._steps_near = self._another(place), 0
        return self._act({**observation, "desired_goal": self._sought})

    def _another(self, start: int) -> Array:
        known, cut_off = self._waypoints.split(start)
        if len(cut_off) and self._rng.random() < CUT_OFF:
            gap = np.square(cut_off[:, None] - known).sum(-1).min(1)
            return self._one_of(cut_off[np.argsort(gap, kind="stable")])
        place = self._one_of(known)
        return np.asarray(place + self._rng.uniform(-self._beyond, self._beyond, len(place)).astype(place.dtype))

    def _one_of(self, places: Array) -> Array:
        """Return one of these places, (g,), the first ones more often."""
        return np.asarray(places[int(self._rng.random() ** FIRST * len(places))])
