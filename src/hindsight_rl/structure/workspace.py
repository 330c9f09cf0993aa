"""Where nothing can move an object any more: outside the range of the task, or at rest where the tool does not get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, Episode
from .contact import MIN_ONSETS, Contact, tool_range
from .parts import AT_REST, Dimensions
from .steps import BESIDE, LITTLE, MOST_DEVIATIONS, Steps, rounded


@dataclass(frozen=True)
class Workspace:
    """A range of positions that objects leave for good, as nothing moves them back.

    n_left: number of episodes that sought contact in which the object left it. n_back: number of these in which it came
    back, or moved again. n_episodes: that sought contact.
    rest_displacement: the object has left it once it rests outside, where it moves by less than this in a step; 0: at once.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    n_left: int
    n_back: int
    n_episodes: int
    rest_displacement: float = 0.0

    @property
    def is_left(self) -> bool:
        """Whether objects leave it, in more than one episode, and do not come back."""
        return self.n_left >= max(MIN_ONSETS, LITTLE * self.n_episodes) and self.n_back <= LITTLE * self.n_left

    def options(self) -> dict[str, Any]:
        """Return the options that end an episode of training where the object leaves it."""
        found: dict[str, Any] = {"lowest_achieved": self.low, "highest_achieved": self.high}
        return found | ({"rest_displacement": self.rest_displacement} if self.rest_displacement else {})

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        if self.rest_displacement:
            left, back = "came to rest farther away than the tool got", "moved again"
        else:
            left, back = f"left the range of goals and starts, widened by {BESIDE:.0%} of its diagonal,", "came back"
        n_episodes = f"{self.n_left} of {self.n_episodes} episodes that sought contact"
        return f"the object {left} in {n_episodes}, and {back} in {self.n_back}"


def whole_episodes(episodes: Sequence[Episode]) -> list[Episode]:
    """Return those that were not cut short: an object that came to rest in one might have been moved again."""
    longest = max(map(len, episodes))
    return [episode for episode in episodes if episode.terminated or len(episode) == longest]


def find_workspace(steps: Steps, probing: Steps, objects: Sequence[Dimensions] = ()) -> Workspace:
    """Return the range of goals and starts, widened. steps: all of them. probing: those of episodes that sought contact.

    objects: the dimensions of the goal of each object, which together are all of them in their order; empty: one object.
    """
    ranges = [_widened_range(one) for one in steps.of_objects(objects or [tuple(range(steps.goal_size))])]
    low, high = np.concatenate(ranges, axis=1)
    is_outside = _is_outside(probing, low, high)
    last = np.append(np.flatnonzero(probing.starts_episode)[1:], len(probing)) - 1
    left = np.unique(probing.episode[is_outside])
    back = left[~is_outside[last][left]]
    return Workspace(tuple(low.tolist()), tuple(high.tolist()), len(left), len(back), len(last))


def find_reach(steps: Steps, probing: Steps, contact: Contact) -> Workspace:
    """Return the range of positions at which the tool can touch an object that must be hit.

    Nothing moves an object that comes to rest outside. steps, probing: as in `find_workspace`.
    """
    low, high = (rounded(bound, steps.goal_std) for bound in tool_range(steps, contact.tool, contact.distances[1]))
    rest = AT_REST * steps.goal_std
    if steps.noise is not None:
        rest = max(rest, MOST_DEVIATIONS * float(np.linalg.norm(steps.noise)))
    rest = float(rounded(np.array(rest), rest))
    # as the option compares them: noise is not subtracted
    change = np.linalg.norm(probing.next_achieved_goal - probing.achieved_goal, axis=1)
    rests = _is_outside(probing, low, high) & (change < rest)
    has_left = rests & (probing.of_step_before(rests[:, None])[:, 0] > 0)
    n_episodes = int(probing.starts_episode.sum())
    left_at = np.full(n_episodes, np.inf)  # the time in each episode
    np.minimum.at(left_at, probing.episode[has_left], probing.time[has_left])
    back = np.unique(probing.episode[(change >= rest) & (probing.time > left_at[probing.episode])])
    n_left = int(np.isfinite(left_at).sum())
    return Workspace(tuple(low.tolist()), tuple(high.tolist()), n_left, len(back), n_episodes, rest)


def _is_outside(steps: Steps, low: Array, high: Array) -> Array:
    """Return whether the achieved goal is outside a range after each step, (N,) bool."""
    return np.asarray(((steps.next_achieved_goal < low) | (steps.next_achieved_goal > high)).any(1))


def _widened_range(steps: Steps) -> tuple[Array, Array]:
    """Return the lowest and the highest position of one object."""
    start = steps.starts_episode
    ends = np.concatenate([steps.desired_goal[start], steps.achieved_goal[start]])
    low, high = ends.min(0), ends.max(0)
    margin = BESIDE * float(np.linalg.norm(high - low))
    return rounded(low - margin, margin), rounded(high + margin, margin)
