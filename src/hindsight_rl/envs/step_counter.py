"""Count the steps of an environment."""

from __future__ import annotations

from typing import Any

import gymnasium

from .random_play import Environment


class StepCounter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps that are played through it, and changes nothing else.

    n_steps: how many so far, those of failed attempts included.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.n_steps = 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step and count it."""
        self.n_steps += 1
        return self.env.step(action)
