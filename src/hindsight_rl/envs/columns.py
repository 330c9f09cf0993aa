"""Append computed columns to the observation, so that subgoals can name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import GoalEnvError
from ..records import Array
from .random_play import Environment, name_of

Function = Callable[[Array], Any]


class AddColumns(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Append the values of functions to the observation of a goal environment.

    env: its observation must be a flat array of floats.
    functions: observation (n,) -> (k,) or a number; their columns follow in this order. With an observation of 10 columns
        and two functions of three, a subgoal can be "reach achieved=10,11,12 goal=13,14,15 ...".
    Raises GoalEnvError if the observation is not a flat array of floats.
    """

    def __init__(self, env: Environment, *functions: Function) -> None:
        super().__init__(env)
        self.functions = functions
        parts: Any = getattr(env.observation_space, "spaces", {})
        box = parts.get("observation")
        if not isinstance(box, spaces.Box) or len(box.shape) != 1 or box.dtype.kind != "f":
            raise GoalEnvError(f"AddColumns needs a flat observation of floats, but that of {name_of(env)} is {box}.")
        n_added = len(self._with_columns(box.sample())) - box.shape[0]
        low, high = np.append(box.low, np.full(n_added, -np.inf)), np.append(box.high, np.full(n_added, np.inf))
        extended = spaces.Box(low.astype(box.dtype), high.astype(box.dtype), dtype=box.dtype.type)
        self.observation_space = spaces.Dict({**parts, "observation": extended})

    def observation(self, observation: Any) -> Any:
        """Return the observation with its columns appended."""
        return {**observation, "observation": self._with_columns(np.asarray(observation["observation"]))}

    def _with_columns(self, values: Array) -> Array:
        columns = [np.atleast_1d(function(values)) for function in self.functions]
        return np.concatenate([values, *columns]).astype(values.dtype)
