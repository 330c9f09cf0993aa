"""Find waypoints: a graph of visited places, whose edges are the moves that stored episodes have made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Array
from ..records.waypoints import GOAL, Waypoints, median_gap
from .steps import at_equal_intervals

MOST_CANDIDATES = 10_000  # achieved goals from which the places are chosen
AHEAD = 2.0  # distances between neighbouring places: the policy acts for the first place on the way that is so far away
BEYOND = 1.4  # times the distance of a success: nearer places count as reached, and the policy would stop
FINE = 0.6  # of the distance of a success: places are not nearer to each other
BACK = 3.0  # factor on the length of a move that was made in the other direction only: it may be impossible
BLOCK = 4_096  # achieved goals whose nearest places are sought at once


def find_waypoints(paths: Sequence[Array], n_places: int, success_distance: float = 0.0) -> Waypoints:
    """Return waypoints over the places that episodes have visited.

    The way from one place to another is the shortest over moves that were made. Where no way is known, it leads as near to
    the goal as ways do. On short ways the goal is sought directly. Places that few episodes have visited come first.

    paths: achieved goals of each episode, (T+1, g). success_distance: at which a goal counts as reached; 0: not known.
    """
    places = _spread_out(np.concatenate(paths), n_places, FINE * success_distance)
    visited = [_nearest(path, places) for path in paths]
    n_visits = np.bincount(np.concatenate([np.unique(each) for each in visited]), minlength=len(places))
    rank = np.argsort(order := np.argsort(n_visits, kind="stable"))
    places, visited = places[order], [rank[each] for each in visited]
    straight = np.sqrt(np.square(places[:, None] - places).sum(-1))
    following = _shortest_ways(_edges(visited, straight))
    is_ahead = straight >= max(AHEAD * median_gap(straight), BEYOND * success_distance)
    table = np.full((n_places, n_places), GOAL, np.int16)
    table[: len(places), : len(places)] = _next_places(following, is_ahead, straight)
    padding = np.repeat(places[:1], n_places - len(places), axis=0)  # the first of equal places is the nearest
    return Waypoints(np.concatenate([places, padding]).astype(np.float32), table)


def _spread_out(visited: Array, n_places: int, near: float) -> Array:
    """Return at most so many visited places, (M, g), each as far as possible from those before it.

    near: distance within which one place stands for all others.
    """
    candidates = visited[at_equal_intervals(len(visited), MOST_CANDIDATES)].astype(np.float64)
    chosen, distance = [0], np.square(candidates - candidates[0]).sum(1)
    while len(chosen) < n_places and distance.max() > near**2:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.square(candidates - candidates[chosen[-1]]).sum(1))
    return np.asarray(candidates[chosen])


def _edges(visited: Sequence[Array], straight: Array) -> Array:
    """Return the lengths of moves from place to place, (M, M), infinite for those that were not made in any direction.

    visited: numbers of the places on each path, (T+1,). straight: distances of places, (M, M).
    """
    was_made = np.eye(len(straight), dtype=np.bool_)
    for each in visited:
        was_made[each[:-1], each[1:]] = True
    return np.where(was_made, straight, np.where(was_made.T, BACK * straight, np.inf))


def _nearest(goals: Array, places: Array) -> Array:
    parts = [goals[first : first + BLOCK, None] - places for first in range(0, len(goals), BLOCK)]
    return np.concatenate([np.square(part).sum(-1).argmin(1) for part in parts])


def _shortest_ways(length: Array) -> Array:
    """Return the place that follows first on the shortest way from place i to place j, (M, M); -1 if there is none.

    This is the algorithm of Floyd and Warshall.
    """
    distance, following = length.copy(), np.where(np.isfinite(length), np.arange(len(length)), -1)
    for over in range(len(length)):
        detour = distance[:, over, None] + distance[over]
        is_shorter = detour < distance
        distance = np.where(is_shorter, detour, distance)
        following = np.where(is_shorter, following[:, over, None], following)
    return following


def _next_places(following: Array, is_ahead: Array, straight: Array) -> Array:
    """Return the first place on each way that is far enough ahead, and the end itself if there is none before it.

    Where no way to the end is known, it is the way to the place nearest to it that a way leads to, and GOAL there.
    """
    goal = np.broadcast_to(np.arange(len(following)), following.shape)
    start = goal.T
    end = np.stack([np.where(ways >= 0, 0.0, np.inf)[:, None] + straight for ways in following]).argmin(1)
    place = start
    while (goes_on := ~is_ahead[start, place] & (place != end)).any():
        place = np.where(goes_on, following[place, end], place)
    return np.where(place != end, place, np.where(end == goal, end, GOAL))
