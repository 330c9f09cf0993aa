"""Demonstrations: recorded episodes in a buffer of their own, a fixed fraction of every batch (Nair et al. 2018).

Each buffer relabels and transforms its own samples, because transforms such as n-step returns read the timeline of their
buffer. The two parts are joined after that.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..envs.goal_functions import GoalFunction
from ..errors import FileError, InputError
from ..records import BATCH_FIELDS, Batch, Episode
from ..replay.buffer import HindsightBuffer
from ..rollout.workers import checksum


class Demonstrations:
    """The episodes of a data set, in a buffer.

    name: of the data set. episodes: its episodes. buffer: an empty buffer with room for all of them.
    facts: what identifies the data set, for the settings of a run.
    """

    def __init__(self, name: str, episodes: Sequence[Episode], buffer: HindsightBuffer) -> None:
        self.episodes, self.buffer = episodes, buffer
        for episode in episodes:
            try:
                buffer.add_episode(episode)
            except InputError as problem:
                raise FileError(f"Episode {episode.number} of the data set {name!r} cannot be used: {problem}") from None
        self.facts: dict[str, Any] = {
            "name": name,
            "episodes": len(episodes),
            "steps": len(buffer),
            "successes": sum(bool(episode.success) for episode in episodes),
            "crc32": checksum(episodes),
        }

    def extend(self, batches: Batch, size: int) -> Batch:
        """Return batches (n, B, ...) with `size` samples of the demonstrations after the B samples of each."""
        return _join(batches, self.sample(len(batches), size))

    def sample(self, n: int, size: int) -> Batch:
        """Return n batches of demonstrations alone."""
        batches = self.buffer.sample_many(n, size)
        batches.n_demonstrations = size
        return batches


def warn_of_other_rewards(name: str, episodes: Sequence[Episode], compute_reward: GoalFunction) -> None:
    """Warn if rewards of a data set are not those of the environment: it may have been recorded with other options."""
    n_different = 0
    for episode in episodes:
        reward = compute_reward(episode.achieved_goal[1:], episode.desired_goal[:-1], dict(episode.info))
        rounding = 1e-4 * float(np.abs(episode.reward).max(initial=0.0))
        n_different += int(np.count_nonzero(~np.isclose(reward, episode.reward, rtol=1e-3, atol=rounding)))
    if n_different:
        warnings.warn(
            f"{n_different} of {sum(map(len, episodes))} rewards of the data set {name!r} are not those of the "
            f"environment's compute_reward. Was it recorded with other options of the environment?",
            UserWarning,
            stacklevel=2,
        )


def _join(own: Batch, demonstrated: Batch) -> Batch:
    """Return the samples of both along axis 1. Demonstrations have no priorities: their weight is 1."""

    def joined(name: str) -> Any:
        return np.concatenate((getattr(own, name), getattr(demonstrated, name)), axis=1)

    batch = Batch(**{name: joined(name) for name in BATCH_FIELDS})
    batch.n_demonstrations = demonstrated.n_demonstrations
    if own.weight is not None:
        batch.weight = np.concatenate((own.weight, np.ones_like(demonstrated.reward)), axis=1)
    for name in ("discount", "subgoal", "place"):
        if getattr(own, name) is not None:
            setattr(batch, name, joined(name))
    return batch
