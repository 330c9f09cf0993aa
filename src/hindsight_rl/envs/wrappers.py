"""Wrappers of goal environments: flat observations, added columns, numbered actions, recomputed rewards, counted steps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import GoalEnvError, OptionError
from ..records import OBSERVATION_KEYS, Array
from .goal_functions import CallForm, Function, GoalFunction, find_reward, own_function, sample_goals
from .random_play import Environment, name_of, numeric_info

_NUMBERS_OF_KEY = re.compile(r"(.+)\[(\d+(?:,\d+)*)\]")
MOST_ACTIONS = 4_096  # combinations, each of which is an output of the network
NUMBERED = (spaces.MultiDiscrete, spaces.MultiBinary)  # spaces of actions whose combinations are numbered
PLAIN = (spaces.Box, spaces.Discrete, spaces.MultiBinary)  # spaces that need no flattening


class FlattenGoalEnv(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Make each nested part of the observation one flat array: a dictionary, a tuple, or a MultiDiscrete space (one-hot).

    env: its observation is a dictionary with the three keys of a goal environment.
    observation_keys: further keys of the dictionary. They are appended to the observation, in this order. KEY[0,2] appends
        two numbers of a flat array.
    If the goals are nested, compute_reward and compute_terminated of `env` are called for each goal of a batch, in its
    original form. Raises OptionError for a missing key.
    """

    def __init__(self, env: Environment, observation_keys: Sequence[str] = ()) -> None:
        super().__init__(env)
        parts: dict[str, Any] = getattr(env.observation_space, "spaces", {})
        self._appended = [_read_key(text, parts) for text in observation_keys]
        if unknown := [key for key in (*(key for key, _ in self._appended), *OBSERVATION_KEYS) if key not in parts]:
            raise OptionError(f"{name_of(env)} has no observation {unknown[0]!r}, only {', '.join(parts)}.")
        self._nested: dict[str, Any] = {key: parts[key] for key in OBSERVATION_KEYS}
        if self._appended:
            appended = [_part_of(parts[key], numbers, key) for key, numbers in self._appended]
            self._nested["observation"] = spaces.Tuple([parts["observation"], *appended])
        flat = {key: each if isinstance(each, PLAIN) else spaces.flatten_space(each) for key, each in self._nested.items()}
        self.observation_space = spaces.Dict(cast(dict[str, Any], flat))
        if not all(isinstance(parts[key], PLAIN) for key in OBSERVATION_KEYS[1:]):
            for name in ("compute_reward", "compute_terminated"):
                if function := own_function(env, name):
                    setattr(self, name, self._with_flat_goals(function, name))

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the observation with flat parts."""
        given = {key: observation[key] for key in OBSERVATION_KEYS}
        if self._appended:
            appended = (observation[k] if at is None else np.asarray(observation[k])[at] for k, at in self._appended)
            given["observation"] = (observation["observation"], *appended)
        spaces_of = self._nested.items()
        return {key: given[key] if isinstance(each, PLAIN) else spaces.flatten(each, given[key]) for key, each in spaces_of}

    def _with_flat_goals(self, function: Function, name: str) -> GoalFunction:
        """Return a function of flat goals that calls one of nested goals."""
        achieved_space, desired_space = (self._nested[key] for key in OBSERVATION_KEYS[1:])

        def call(achieved: Array, desired: Array, info: Any) -> Any:
            return function(spaces.unflatten(achieved_space, achieved), spaces.unflatten(desired_space, desired), info)

        space: Any = self.observation_space
        return GoalFunction(call, name, space["desired_goal"].shape, CallForm("single"))


def _read_key(text: str, parts: Mapping[str, Any]) -> tuple[str, list[int] | None]:
    """Return the key that KEY or KEY[0,2] names, and the numbers; None for all. parts: of the observation, by key."""
    match = _NUMBERS_OF_KEY.fullmatch(text)
    if text in parts or not match:
        return text, None
    return match[1], [int(number) for number in match[2].split(",")]


def append_keys(observation: Mapping[str, Any], keys: Sequence[str], size: int) -> Mapping[str, Any]:
    """Return an observation with further keys appended, as `FlattenGoalEnv` does with arrays of one axis.

    observation: of the environment, with or without one leading axis. It is returned as it is if it has `size` numbers
        already, or if a key is missing or has other axes.
    """
    seen = np.asarray(observation.get("observation"))
    named = [_read_key(text, observation) for text in keys]
    if seen.shape[-1:] == (size,) or any(np.asarray(observation.get(key)).ndim != seen.ndim for key, _ in named):
        return observation
    values = [np.asarray(observation[key])[..., slice(None) if at is None else at] for key, at in named]
    return {**observation, "observation": np.concatenate([seen, *values], axis=-1)}


def _part_of(space: spaces.Space[Any], numbers: list[int] | None, key: str) -> spaces.Space[Any]:
    """Return the space of some numbers of a flat array. Raises OptionError if it has no such numbers."""
    if numbers is None:
        return space
    if not isinstance(space, spaces.Box) or len(space.shape) != 1 or max(numbers) >= space.shape[0]:
        raise OptionError(f"observation_keys: {key} has no numbers {', '.join(map(str, numbers))}, as it is {space}.")
    return spaces.Box(space.low[numbers], space.high[numbers], dtype=space.dtype.type)


class AddColumns(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Append the values of functions to the observation of a goal environment.

    env: its observation must be a flat array of floats.
    functions: observation (n,) -> (k,) or a number; their columns follow in this order. With an observation of 10 columns
        and two functions of three, a subgoal can be "reach achieved=10,11,12 goal=13,14,15 ...".
    Raises GoalEnvError if the observation is not a flat array of floats.
    """

    def __init__(self, env: Environment, *functions: Callable[[Array], Any]) -> None:
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


class DiscreteActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Number the combinations of MultiDiscrete or MultiBinary actions, so that DQN can choose one.

    With MultiDiscrete([2, 3]), actions 0 to 5 are (0, 0), (0, 1), (0, 2), (1, 0), (1, 1) and (1, 2).
    env: its actions have at most MOST_ACTIONS combinations.
    Raises GoalEnvError for other action spaces, and for more combinations.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        space: Any = env.action_space
        if not isinstance(space, NUMBERED):
            raise GoalEnvError(
                f"DiscreteActions needs MultiDiscrete or MultiBinary actions, but {name_of(env)} has {space}."
            )
        self._sizes, self._start = np.full(space.shape or (), 2), np.zeros((), np.int64)
        if isinstance(space, spaces.MultiDiscrete):
            self._sizes, self._start = space.nvec, space.start
        n_combinations = math.prod(self._sizes.ravel().tolist())
        if n_combinations > MOST_ACTIONS:
            raise GoalEnvError(
                f"{name_of(env)} has more than {MOST_ACTIONS:,} combinations of actions: {space}. Use fewer values."
            )
        self.action_space = spaces.Discrete(n_combinations)

    def action(self, action: Any) -> Array:
        """Return the combination of a number."""
        values = np.array(np.unravel_index(int(action), self._sizes.ravel())).reshape(self._sizes.shape)
        return np.asarray((values + self._start).astype(self.env.action_space.dtype))

    def number(self, combination: Array) -> int:
        """Return the number of a combination, an action of the environment that is wrapped."""
        return int(np.ravel_multi_index((combination - self._start).ravel(), self._sizes.ravel()))


class RecomputedReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Return compute_reward of the goals of each step as its reward, whatever `step` of the environment returns.

    Goals are the achieved one after the step and the desired one before it, as in a replay buffer.
    env: a goal environment. It is reset; reset it again before the next step.
    Raises GoalEnvError if compute_reward cannot be used.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._compute_reward, _ = find_reward(env, sample_goals(env))
        self._desired_goal = np.zeros(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._desired_goal = np.array(observation["desired_goal"])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment. The reward is that of compute_reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        numbers = {key: values[0] for key, values in numeric_info([info]).items()}
        reward = self._compute_reward(observation["achieved_goal"], self._desired_goal, numbers)
        self._desired_goal = np.array(observation["desired_goal"])
        return observation, float(reward), terminated, truncated, info


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
