"""Whether what moves keeps its speed: then single random actions cancel out before they get anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .steps import Steps

KEEPS_SPEED = 0.9  # correlation of the moves of successive steps under independent random actions
FAR = 40  # steps to a goal at the speed of random actions
LONGEST_REPEAT = 20  # steps: half of FAR


@dataclass(frozen=True)
class Inertia:
    """correlation: of successive moves of the achieved goal. steps_to_goal: at the speed that 5 % of the steps exceed."""

    correlation: float
    steps_to_goal: float

    def options(self) -> dict[str, Any]:
        """Return hyperparameters for tasks whose goals are far away for what keeps its speed."""
        if self.correlation < KEEPS_SPEED or self.steps_to_goal < FAR:
            return {}
        return {
            "random_action_repeat": LONGEST_REPEAT,
            "random_eps": 0.3,
            "noise": 0.2,
            "relabel": "future=0.6,desired=0.2",
        }

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return (
            f"successive moves of the achieved goal correlate with {self.correlation:.2f}, and goals are "
            f"{self.steps_to_goal:.0f} steps away at the speed of random actions"
        )


def measure_inertia(steps: Steps) -> Inertia:
    """Return how the achieved goal moves in steps with independent random actions."""
    move, start = steps.next_achieved_goal - steps.achieved_goal, steps.starts_episode
    correlation = (move * steps.of_step_before(move)).sum() / max(np.square(move[~start]).sum(), 1e-12)
    distance = np.linalg.norm(steps.desired_goal - steps.achieved_goal, axis=1)[start].mean()
    return Inertia(float(correlation), float(distance / max(np.quantile(steps.move, 0.95), 1e-12)))
