"""Whether objects that move on by themselves drift to one side, as on a slope or in a current.

In one step this changes hardly anything, so models that predict single steps do not see it. Over many steps it decides
where an object comes to rest.
"""

from __future__ import annotations

import numpy as np

from ..records import Array
from .contact import Contact, is_far
from .model import Difference, mean_and_error
from .parts import AT_REST
from .steps import FEWEST, MOST_DEVIATIONS, TINY, Steps


def find_drift(steps: Steps, contact: Contact) -> tuple[Difference, ...]:
    """Return the drift of objects along each axis, relative to how their velocity usually changes while nothing is near.

    Friction is subtracted: what is proportional to the velocity, and what depends on its direction alone. If there are such
    steps in fewer than FEWEST episodes, the drift is unknown: 0, with an infinite error.
    """
    n_axes = len(contact.axes)
    episode, before, change = _moving_on(steps, contact, n_axes)
    if len(np.unique(episode)) < FEWEST:
        return (Difference(0.0, np.inf),) * n_axes
    speed = np.linalg.norm(before, axis=1)
    usual = float(np.median(np.linalg.norm(change, axis=1))) + TINY
    drifts = []
    for axis in range(n_axes):
        velocity, target = before[:, axis], np.clip(change[:, axis] / usual, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        friction = np.column_stack([velocity, velocity / speed])
        left = target - friction @ np.linalg.lstsq(friction, target, rcond=None)[0]
        drift = mean_and_error(np.bincount(episode, left) / (len(left) / (episode.max() + 1)))
        drifts.append(Difference(abs(drift.mean), drift.error))
    return tuple(drifts)


def _moving_on(steps: Steps, contact: Contact, n_axes: int) -> tuple[Array, Array, Array]:
    """Return steps in which an object moves on while the tool is far from it: episode, velocity before, and its change.

    Those of all objects follow one another: (N,) numbers of the episodes from 0, (N, axes), (N, axes).
    """
    is_beyond = is_far(steps, contact.tool, contact.object_columns, contact.distances[1])
    velocity = steps.displacement.reshape(len(steps), -1, n_axes)
    before = steps.of_step_before(steps.displacement).reshape(velocity.shape)
    moves, moved = (np.linalg.norm(each, axis=2) > AT_REST * steps.goal_std for each in (velocity, before))
    moves_on = is_beyond & (steps.of_step_before(is_beyond) > 0) & moves & moved
    _, episode = np.unique(np.broadcast_to(steps.episode[:, None], is_beyond.shape)[moves_on], return_inverse=True)
    return episode, before[moves_on], (velocity - before)[moves_on]
