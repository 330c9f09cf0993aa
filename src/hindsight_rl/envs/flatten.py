"""Flatten nested observations and goals, and append further keys to the observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import OptionError
from ..records import OBSERVATION_KEYS, Array
from .call_forms import CallForm, Function, GoalFunction
from .goal_functions import own_function
from .random_play import Environment, name_of

PLAIN = (spaces.Box, spaces.Discrete, spaces.MultiBinary)  # spaces that need no flattening


class FlattenGoalEnv(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Make each nested part of the observation one flat array: a dictionary, a tuple, or a MultiDiscrete space (one-hot).

    env: its observation is a dictionary with the three keys of a goal environment.
    observation_keys: further keys of the dictionary. They are appended to the observation, in this order.
    If the goals are nested, compute_reward and compute_terminated of `env` are called for each goal of a batch, in its
    original form. Raises OptionError for a missing key.
    """

    def __init__(self, env: Environment, observation_keys: Sequence[str] = ()) -> None:
        super().__init__(env)
        self._parts: dict[str, Any] = getattr(env.observation_space, "spaces", {})
        self._keys = {"observation": ("observation", *observation_keys), "achieved_goal": ("achieved_goal",)}
        self._keys["desired_goal"] = ("desired_goal",)
        unknown = [key for keys in self._keys.values() for key in keys if key not in self._parts]
        if unknown:
            raise OptionError(f"{name_of(env)} has no observation {unknown[0]!r}, only {', '.join(self._parts)}.")
        self.observation_space = spaces.Dict({name: self._space(keys) for name, keys in self._keys.items()})
        if not all(isinstance(self._parts[key], PLAIN) for key in OBSERVATION_KEYS[1:]):
            for name in ("compute_reward", "compute_terminated"):
                if function := own_function(env, name):
                    setattr(self, name, self._with_flat_goals(function, name))

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the observation with flat parts."""
        flat = {}
        for name, keys in self._keys.items():
            parts: list[Any] = [spaces.flatten(self._parts[key], observation[key]) for key in keys]
            flat[name] = observation[name] if self._is_plain(keys) else np.concatenate(parts)
        return flat

    def _is_plain(self, keys: Sequence[str]) -> bool:
        return len(keys) == 1 and isinstance(self._parts[keys[0]], PLAIN)

    def _space(self, keys: Sequence[str]) -> spaces.Space[Any]:
        """Return the space of some parts, each flattened, one after another."""
        if self._is_plain(keys):
            return cast(spaces.Space[Any], self._parts[keys[0]])
        flat: list[Any] = [spaces.flatten_space(self._parts[key]) for key in keys]
        low, high = (np.concatenate([getattr(each, name) for each in flat]) for name in ("low", "high"))
        return spaces.Box(low, high, dtype=low.dtype.type)

    def _with_flat_goals(self, function: Function, name: str) -> GoalFunction:
        """Return a function of flat goals that calls one of nested goals."""
        achieved_space, desired_space = (self._parts[key] for key in OBSERVATION_KEYS[1:])

        def call(achieved: Array, desired: Array, info: Any) -> Any:
            return function(spaces.unflatten(achieved_space, achieved), spaces.unflatten(desired_space, desired), info)

        space: Any = self.observation_space
        return GoalFunction(call, name, space["desired_goal"].shape, CallForm("single"))
