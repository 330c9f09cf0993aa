"""Samples told under the goals of subgoals: what the gripper reached, where the object lay, read off the observations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError
from ..records import Array, Batch
from ..records.subgoals import Subgoal, parse_subgoals
from ..records.symmetries import Symmetries
from .kernels import row_layout
from .timeline import Timeline


class SubgoalGoals:
    """Tells a share of every batch under the goals of subgoals, in hindsight as the task's own, and pays what that is worth.

    texts: subgoals, as `hindsight.records.subgoals` writes them. share: of the samples, split evenly between the subgoals.
    success_reward: what is paid where a subgoal is met; one less elsewhere. symmetries: what will turn the samples.
    """

    def __init__(
        self, timeline: Timeline, texts: Sequence[str], share: float, success_reward: float, symmetries: Symmetries
    ) -> None:
        self.subgoals: tuple[Subgoal, ...] = parse_subgoals(texts, timeline.spec)
        _refuse_other_turns(self.subgoals, symmetries)
        self.share, self.success_reward = share, success_reward
        self._observations: Array = timeline.rows["observation"]
        *_, self._row_bytes, _, self._desired_at = row_layout(timeline.rows.dtype).tolist()

    def tell(self, batch: Batch, goal_at: Array, u: Array) -> Array:
        """Put goals and rewards of subgoals into some samples, in place; returns which subgoal each is of, (B,), 0 for none.

        goal_at: where in the ring, in bytes, each sample's goal stands; a subgoal's goal comes from the same row: what was
        achieved there where the sample is told in hindsight, else what that subgoal asked there. u: (B,) in [0, 1).
        """
        subgoal = np.where(u < self.share, 1 + (u / max(self.share, 1e-9) * len(self.subgoals)).astype(np.int64), 0)
        for number, each in enumerate(self.subgoals, 1):
            here = np.flatnonzero(subgoal == number)
            goal_row, place = np.divmod(goal_at[here], self._row_bytes)
            is_asked = (place == self._desired_at)[:, None]
            there = self._observations[goal_row]
            batch.achieved_goal[here] = batch.observation[here][:, each.achieved]
            batch.next_achieved_goal[here] = reached = batch.next_observation[here][:, each.achieved]
            batch.goal[here] = goal = np.where(is_asked, there[:, each.goal], there[:, each.achieved])
            is_met = np.sqrt(np.square(reached - goal).sum(1)) < each.tolerance
            batch.reward[here] = self.success_reward - 1.0 + is_met
            batch.terminated[here] = False
        return subgoal


def _refuse_other_turns(subgoals: Sequence[Subgoal], symmetries: Symmetries) -> None:
    """The columns of a subgoal are goals, and must turn as those of the task do."""
    seen, goal = symmetries.maps["observation"], symmetries.maps["goal"]
    for subgoal in subgoals:
        for columns in (subgoal.achieved, subgoal.goal):
            at = list(columns)
            is_same = np.array_equal(seen.source[:, at], np.array(columns)[goal.source])
            is_same &= np.array_equal(seen.sign[:, at], goal.sign) and np.allclose(seen.offset[:, at], goal.offset)
            if not is_same:
                raise OptionError(
                    f"the columns {columns} of the subgoal {subgoal.name} do not turn as the goals do: correct the subgoal, or "
                    f"the symmetries, which say what becomes of each column"
                )
