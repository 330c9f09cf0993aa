"""Further columns of the observation: what functions make of it, so that subgoals can name it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import GoalEnvError
from ..records import Array
from .probe import Environment, name_of

Function = Callable[[Array], Any]


class AddColumns(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A goal environment that shows what `functions` say of its observation too, behind what it shows itself.

    functions: observation (n,) -> (k,) or a number, in the order of their columns. A subgoal is so a pair of functions: of an
    observation of 10 columns and two functions of three, "reach achieved=10,11,12 goal=13,14,15 ...". Raises GoalEnvError
    where the observation is not one flat array of floats.
    """

    def __init__(self, env: Environment, *functions: Function) -> None:
        super().__init__(env)
        self.functions = functions
        parts: Any = getattr(env.observation_space, "spaces", {})
        seen = parts.get("observation")
        if not isinstance(seen, spaces.Box) or len(seen.shape) != 1 or seen.dtype.kind != "f":
            raise GoalEnvError(
                f"columns can be added to a flat observation of floats alone, but that of {name_of(env)} is {seen}"
            )
        added = len(self._all_of(seen.sample())) - seen.shape[0]
        low, high = (np.append(bound, np.full(added, end)) for bound, end in ((seen.low, -np.inf), (seen.high, np.inf)))
        box = spaces.Box(low.astype(seen.dtype), high.astype(seen.dtype), dtype=seen.dtype.type)
        self.observation_space = spaces.Dict({**parts, "observation": box})

    def observation(self, observation: Any) -> Any:
        """The observation with its columns added."""
        return {**observation, "observation": self._all_of(np.asarray(observation["observation"]))}

    def _all_of(self, seen: Array) -> Array:
        return np.concatenate([seen, *(np.atleast_1d(function(seen)) for function in self.functions)]).astype(seen.dtype)
