"""Base class of the small goal environments of this library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import InputError, OptionError, ShapeError
from ..records import Array


class SmallTask(gymnasium.Env[dict[str, Any], Any]):
    """A goal environment with a sparse reward, -1 or 0, and a limit on its steps.

    A subclass defines the spaces and `draw`, `move`, `observe`, `compute_success` and `picture`. The info of reset and
    step holds `is_success`.

    max_steps: an episode is truncated after this many.
    render_mode: None or "rgb_array".
    frames_per_second: of a video.
    Raises OptionError for an option out of its range.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (Gymnasium's own form)
    terminates: ClassVar[bool] = False  # whether success ends the episode
    place_space: spaces.Space[Any]  # of the reset options "start" and "goal"

    def __init__(self, max_steps: int, render_mode: str | None, frames_per_second: int) -> None:
        if render_mode not in (None, "rgb_array"):
            raise OptionError(f"render_mode of {self.name} must be 'rgb_array' or None, got {render_mode!r}.")
        self.max_steps, self.render_mode = self.whole("max_steps", max_steps), render_mode
        self.metadata = SmallTask.metadata | {"render_fps": frames_per_second}
        self._state: Array | None = None
        self._goal: Array = np.zeros(0)
        self._steps = 0

    @property
    def name(self) -> str:
        """The name of the class, for messages."""
        return type(self).__name__

    def draw(self, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """Return a first state and a goal: at random, or as given."""
        raise NotImplementedError

    def move(self, state: Array, action: Any) -> Array:
        """Return the state one step later, a new array."""
        raise NotImplementedError

    def observe(self, state: Array, goal: Array) -> dict[str, Any]:
        """Return the observation, as copies."""
        raise NotImplementedError

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether goals (..., goal shape) are reached, (...) bool."""
        raise NotImplementedError

    def picture(self, state: Array, goal: Array) -> Array:
        """Return an image of a state, (height, width, 3) uint8."""
        raise NotImplementedError

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Any:
        """Return 0 where a goal is reached and -1 elsewhere, (...) float32. `info` is not read."""
        success = self.compute_success(achieved_goal, desired_goal)
        return success.astype(np.float32) - np.float32(1)  # success - 1 is never -0

    def compute_terminated(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Any:
        """Return whether goals end an episode, (...) bool. `info` is not read."""
        return self.compute_success(achieved_goal, desired_goal) & self.terminates

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode. options: "start" and "goal" fix either; the same random numbers are drawn in any case."""
        super().reset(seed=seed)
        start, goal = (self._place(key, (options or {}).get(key)) for key in ("start", "goal"))
        self._state, self._goal = self.draw(start, goal)
        self._steps = 0
        return self._observe(self._state)

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Take one step. Raises InputError before the first reset, ShapeError for an action of another shape."""
        if self._state is None:
            raise InputError(f"{self.name} must be reset before its first step.")
        if np.shape(action) != self.action_space.shape:
            raise ShapeError(
                f"Expected shape {self.action_space.shape} for an action of {self.name}, got {np.shape(action)}."
            )
        self._state = self.move(self._state, action)
        self._steps += 1
        observation, info = self._observe(self._state)
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"])
        return observation, reward, info["is_success"] and self.terminates, self._steps >= self.max_steps, info

    def render(self) -> Any:
        """Return an image of the present state, or None without a render mode."""
        if self.render_mode is None or self._state is None:
            return None
        return self.picture(self._state, self._goal)

    def whole(self, option: str, value: int) -> int:
        """Return the value of an option that is a whole number of at least 1. Raises OptionError otherwise."""
        if not isinstance(value, int | np.integer) or value < 1:
            raise OptionError(f"{option} of {self.name} must be a whole number of at least 1, got {value!r}.")
        return int(value)

    def _observe(self, state: Array) -> tuple[dict[str, Any], dict[str, Any]]:
        observation = self.observe(state, self._goal)
        success = self.compute_success(observation["achieved_goal"], observation["desired_goal"])
        return observation, {"is_success": bool(success)}

    def _place(self, option: str, value: Any) -> Array | None:
        """Return the start or the goal that the options of reset give, None if they do not."""
        if value is None:
            return None
        place = np.asarray(value, np.float32)
        if place not in self.place_space:
            raise OptionError(f"The reset option {option!r} of {self.name} must be in {self.place_space}, got {value!r}.")
        return place
