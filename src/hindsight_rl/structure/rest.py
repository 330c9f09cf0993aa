"""How much of the time the achieved goal rests: with an object that must be touched first, it mostly does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .steps import Steps

AT_REST, MOVING = 1e-3, 1e-2  # distance of a step, relative to the standard deviation of the goals
MOSTLY = 0.5  # fraction of the steps that an object rests while the agent acts at random
ENERGY_CAP = 0.4  # of the standard deviation of the goals: an object that moved so far was touched, and not only shaken


@dataclass(frozen=True)
class Rest:
    """fraction: of the random steps in which the achieved goal rests. goal_std: see `Steps.goal_std`."""

    fraction: float
    goal_std: float

    @property
    def is_object(self) -> bool:
        """Whether the achieved goal is that of an object: it rests most of the time, and goals differ."""
        return self.fraction >= MOSTLY and self.goal_std > 0

    def options(self) -> dict[str, Any]:
        """Return hyperparameters for tasks with an object. Few episodes move it, so these are sampled more often."""
        cap = float(f"{ENERGY_CAP * self.goal_std:.2g}")
        return {
            "energy_priority": True,
            "energy_cap": cap,
            "energy_remaining": True,
            "relabel": "future=0.6,desired=0.2",
            "action_l2": 0.5,
            "random_eps": 0.3,
            "noise": 0.2,
            "n_critics": 1,
        }

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return f"the achieved goal rests in {self.fraction:.0%} of the random steps"


def measure_rest(steps: Steps) -> Rest:
    """Return how much the achieved goal rests in steps with random actions."""
    goal_std = steps.goal_std
    return Rest(float((steps.move <= AT_REST * goal_std).mean()), goal_std)
