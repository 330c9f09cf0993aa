"""Samples told under the goals of stages: what the gripper reached, where the object lay, read off the observations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError
from ..records import Array, Batch
from ..records.stages import Stage, parse_stages
from ..records.symmetries import Symmetries
from .kernels import row_layout
from .timeline import Timeline


class StageGoals:
    """Tells a share of every batch under the goals of stages, in hindsight as the task's own, and pays what that is worth.

    texts: stages, as `hindsight.records.stages` writes them. share: of the samples, split evenly between the stages.
    success_reward: what is paid where a stage is met; one less elsewhere. symmetries: what will turn the samples.
    """

    def __init__(
        self, timeline: Timeline, texts: Sequence[str], share: float, success_reward: float, symmetries: Symmetries
    ) -> None:
        self.stages: tuple[Stage, ...] = parse_stages(texts, timeline.spec)
        _refuse_other_turns(self.stages, symmetries)
        self.share, self.success_reward = share, success_reward
        self._observations: Array = timeline.rows["observation"]
        *_, self._row_bytes, _, self._desired_at = row_layout(timeline.rows.dtype).tolist()

    def tell(self, batch: Batch, goal_at: Array, u: Array) -> Array:
        """Put goals and rewards of stages into some samples, in place; returns which stage each is of, (B,), 0 for none.

        goal_at: where in the ring, in bytes, each sample's goal stands; a stage's goal comes from the same row: what was
        achieved there where the sample is told in hindsight, else what that stage asked there. u: (B,) in [0, 1).
        """
        stage = np.where(u < self.share, 1 + (u / max(self.share, 1e-9) * len(self.stages)).astype(np.int64), 0)
        for number, each in enumerate(self.stages, 1):
            here = np.flatnonzero(stage == number)
            goal_row, place = np.divmod(goal_at[here], self._row_bytes)
            is_asked = (place == self._desired_at)[:, None]
            there = self._observations[goal_row]
            batch.achieved_goal[here] = batch.observation[here][:, each.achieved]
            batch.next_achieved_goal[here] = reached = batch.next_observation[here][:, each.achieved]
            batch.goal[here] = goal = np.where(is_asked, there[:, each.goal], there[:, each.achieved])
            is_met = np.sqrt(np.square(reached - goal).sum(1)) < each.tolerance
            batch.reward[here] = self.success_reward - 1.0 + is_met
            batch.terminated[here] = False
        return stage


def _refuse_other_turns(stages: Sequence[Stage], symmetries: Symmetries) -> None:
    """The columns of a stage are goals, and must turn as those of the task do."""
    seen, goal = symmetries.maps["observation"], symmetries.maps["goal"]
    for stage in stages:
        for columns in (stage.achieved, stage.goal):
            at = list(columns)
            is_same = np.array_equal(seen.source[:, at], np.array(columns)[goal.source])
            is_same &= np.array_equal(seen.sign[:, at], goal.sign) and np.allclose(seen.offset[:, at], goal.offset)
            if not is_same:
                raise OptionError(
                    f"the columns {columns} of the stage {stage.name} do not turn as the goals do: correct the stage, or "
                    f"the symmetries, which say what becomes of each column"
                )
