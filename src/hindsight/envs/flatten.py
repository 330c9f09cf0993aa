"""Flatten nested observations and goals, and append further keys to the observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import GoalEnvError, OptionError
from ..records import OBSERVATION_KEYS, Array
from .goal_functions import GoalFunction, own_function, row_by_row
from .random_play import Environment, name_of

PLAIN = (spaces.Box, spaces.Discrete, spaces.MultiBinary)  # spaces that need no flattening


class FlattenGoalEnv(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Make each nested part of the observation one flat array: a dictionary, a tuple, or a MultiDiscrete space (one-hot).

    env: its observation is a dictionary with the three keys of a goal environment.
    observation_keys: further keys of the dictionary. They are appended to the observation, in this order.
    If the goals are nested, compute_reward and compute_terminated of `env` are called for each goal of a batch, in its
    original form. Raises GoalEnvError if one of the three keys is missing, OptionError for an unknown further key.
    """

    def __init__(self, env: Environment, observation_keys: Sequence[str] = ()) -> None:
        super().__init__(env)
        parts: Any = getattr(env.observation_space, "spaces", {})
        if missing := [key for key in OBSERVATION_KEYS if key not in parts]:
            raise GoalEnvError(f"The observation of {name_of(env)} has no key {', '.join(missing)}.")
        if unknown := [key for key in observation_keys if key not in parts]:
            raise OptionError(f"The observation of {name_of(env)} has no key {unknown[0]!r}, only {', '.join(parts)}.")
        self._parts: dict[str, spaces.Space[Any]] = dict(parts)
        self._joined = ("observation", *observation_keys) if observation_keys else ()
        flat = {key: _flat_space([parts[key]]) if self._is_nested(key) else parts[key] for key in OBSERVATION_KEYS}
        if self._joined:
            flat["observation"] = _flat_space([parts[key] for key in self._joined])
        self.observation_space = spaces.Dict(flat)
        if any(self._is_nested(key) for key in OBSERVATION_KEYS[1:]):
            for name in ("compute_reward", "compute_terminated"):
                if function := own_function(env, name):
                    setattr(self, name, self._with_flat_goals(function))

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the observation with flat parts."""
        flat = {
            key: self._flatten(key, observation) if self._is_nested(key) else observation[key] for key in OBSERVATION_KEYS
        }
        if self._joined:
            flat["observation"] = np.concatenate([self._flatten(key, observation) for key in self._joined])
        return flat

    def _is_nested(self, key: str) -> bool:
        return not isinstance(self._parts[key], PLAIN)

    def _flatten(self, key: str, observation: Mapping[str, Any]) -> Array:
        return np.asarray(spaces.flatten(self._parts[key], observation[key]))

    def _with_flat_goals(self, function: GoalFunction) -> GoalFunction:
        """Return a function of flat goals that calls one of nested goals."""
        achieved_space, desired_space = (self._parts[key] for key in OBSERVATION_KEYS[1:])

        def call(achieved: Array, desired: Array, info: Any) -> Any:
            return function(spaces.unflatten(achieved_space, achieved), spaces.unflatten(desired_space, desired), info)

        call_batch = row_by_row(call)
        return lambda achieved, desired, info: (call_batch if np.ndim(achieved) > 1 else call)(achieved, desired, info)


def _flat_space(parts: Sequence[spaces.Space[Any]]) -> spaces.Box:
    """Return the space of the parts, each flattened, one after another."""
    flat: list[Any] = [spaces.flatten_space(part) for part in parts]
    if not all(isinstance(each, spaces.Box) for each in flat):
        raise GoalEnvError(f"Spaces of variable size cannot be flattened: {', '.join(map(str, parts))}.")
    low, high = (np.concatenate([getattr(each, name) for each in flat]) for name in ("low", "high"))
    return spaces.Box(low, high, dtype=low.dtype.type)
