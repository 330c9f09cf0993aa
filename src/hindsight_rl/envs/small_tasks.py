"""Small goal environments: PointReach and BitFlipping, the smallest tasks on which hindsight matters, and their base."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import InputError, OptionError, ShapeError, nearest
from ..records import Array

GOALS = ("random", "ones")
OBSERVATIONS = ("multibinary", "box", "discrete", "image")
IMAGE_SIDE = 36  # pixels; the smallest image that the usual three convolutions accept
MOST_BITS = {"discrete": 20, "image": IMAGE_SIDE**2}  # a million values; one pixel per bit
SQUARE = 12  # pixels, width of a bit in a rendered frame


class SmallTask(gymnasium.Env[dict[str, Any], Any]):
    """A goal environment with a sparse reward, -1 or 0, and a limit on its steps.

    A subclass defines the spaces and `draw`, `next_state`, `observe`, `compute_success` and `picture`. The info of reset
    and step holds `is_success`.

    max_steps: an episode is truncated after this many.
    render_mode: None or "rgb_array".
    frames_per_second: of a video.
    Raises OptionError for an option out of its range.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (Gymnasium's own form)
    terminates: ClassVar[bool] = False  # whether success ends the episode
    reset_space: spaces.Space[Any]  # of the reset options "start" and "goal"

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

    def next_state(self, state: Array, action: Any) -> Array:
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
        start, goal = (self._given(key, (options or {}).get(key)) for key in ("start", "goal"))
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
        self._state = self.next_state(self._state, action)
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

    def _given(self, option: str, value: Any) -> Array | None:
        """Return the start or the goal that the options of reset give, None if they do not."""
        if value is None:
            return None
        given = np.asarray(value, np.float32)
        if given not in self.reset_space:
            raise OptionError(f"The reset option {option!r} of {self.name} must be in {self.reset_space}, got {value!r}.")
        return given


class PointReach(SmallTask):
    """A point in a square, moved by bounded accelerations, must come near a goal that is drawn for each episode.

    Observation: position and velocity (4,). Achieved goal: position (2,). Desired goal: position (2,). All are float32, so
    that what is observed is what is simulated. Action: (2,) in [-1, 1], an acceleration in units of `action_scale`.
    Reward: 0 within `distance_threshold` of the goal, -1 elsewhere, float32. Success does not end the episode.

    max_steps: an episode is truncated after this many.
    dt: seconds between two steps.
    goal_range: half the width of the square.
    max_speed: per axis.
    distance_threshold: a goal at this distance or nearer is reached.
    action_scale: acceleration of a full action.
    render_mode: "rgb_array" draws with NumPy alone.
    `reset(options={"start": (2,), "goal": (2,)})` fixes the start, the goal or both.
    Raises OptionError for an option out of its range.
    """

    def __init__(
        self,
        max_steps: int = 50,
        dt: float = 0.05,
        goal_range: float = 1.0,
        max_speed: float = 1.0,
        distance_threshold: float = 0.05,
        action_scale: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        self.dt, self.goal_range = _positive("dt", dt), _positive("goal_range", goal_range)
        self.max_speed = _positive("max_speed", max_speed)
        self.distance_threshold = _positive("distance_threshold", distance_threshold)
        self.action_scale = _positive("action_scale", action_scale)
        super().__init__(max_steps, render_mode, frames_per_second=max(1, round(1 / self.dt)))
        high = np.array([self.goal_range] * 2 + [self.max_speed] * 2, np.float32)
        positions = self.reset_space = spaces.Box(-self.goal_range, self.goal_range, (2,), np.float32)
        state = spaces.Box(-high, high, dtype=np.float32)
        self.observation_space = spaces.Dict({"observation": state, "achieved_goal": positions, "desired_goal": positions})
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def draw(self, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """Return a start at rest (4,) and a goal (2,), uniform in the square or as given."""
        drawn = self.np_random.uniform(-self.goal_range, self.goal_range, (2, 2)).astype(np.float32)
        position = drawn[0] if start is None else start
        return np.concatenate([position, np.zeros(2, np.float32)]), drawn[1] if goal is None else goal.copy()

    def next_state(self, state: Array, action: Array) -> Array:
        """Return the state (..., 4) one step later: first the velocity changes, then the position. Both are clipped."""
        acceleration = np.clip(np.asarray(action, np.float32), -1.0, 1.0) * (self.action_scale * self.dt)
        velocity = np.clip(state[..., 2:] + acceleration, -self.max_speed, self.max_speed)
        position = np.clip(state[..., :2] + velocity * self.dt, -self.goal_range, self.goal_range)
        return np.concatenate([position, velocity], axis=-1)

    def observe(self, state: Array, goal: Array) -> dict[str, Array]:
        """Return the state, its position and the goal."""
        return {"observation": state.copy(), "achieved_goal": state[..., :2].copy(), "desired_goal": goal.copy()}

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether goals (..., 2) are within the threshold of each other, (...) bool."""
        offset = np.asarray(achieved_goal, np.float32) - np.asarray(desired_goal, np.float32)
        return np.asarray(np.sqrt(np.square(offset).sum(axis=-1)) <= self.distance_threshold)

    def picture(self, state: Array, goal: Array, size: int = 240) -> Array:
        """Return the square from above, (size, size, 3) uint8: the goal with its threshold, the point and its velocity."""
        edge = 1.1 * self.goal_range
        x, y = np.meshgrid(np.linspace(-edge, edge, size), np.linspace(edge, -edge, size))
        pixel = 2 * edge / size
        tick = 0.2 * state[2:]  # the path that the point covers in 0.2 seconds
        along = np.clip(((x - state[0]) * tick[0] + (y - state[1]) * tick[1]) / max(float(tick @ tick), 1e-12), 0, 1)
        image = np.full((size, size, 3), 255, np.uint8)
        image[np.maximum(np.abs(x), np.abs(y)) > self.goal_range] = (205, 205, 210)
        image[np.hypot(x - goal[0], y - goal[1]) <= max(self.distance_threshold, 2 * pixel)] = (80, 180, 110)
        image[np.hypot(x - state[0] - along * tick[0], y - state[1] - along * tick[1]) <= pixel] = (230, 120, 50)
        image[np.hypot(x - state[0], y - state[1]) <= 3 * pixel] = (40, 80, 200)
        return image


def _positive(option: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0):
        raise OptionError(f"{option} of PointReach must be a finite number above 0, got {value!r}.")
    return float(value)


class BitFlipping(SmallTask):
    """`n_bits` bits must become the bits of a goal, one flip per step; Andrychowicz et al. 2017, section 3.1.

    Action: the index of the bit to flip; with `continuous`, (n_bits,) in [-1, 1], where each positive component flips its
    bit. Reward: 0 if all bits equal the goal's, which ends the episode, -1 otherwise, float32.

    n_bits: how many.
    continuous: whether actions are continuous.
    max_steps: an episode is truncated after this many; None: `n_bits`.
    goal: "random", drawn for each episode, or "ones". The start is drawn until it differs from the goal.
    observation: the form of the observation, the achieved and the desired goal:
        "multibinary": (n_bits,) int8.
        "box": (n_bits,) float32, 0 or 1.
        "discrete": one integer in which bit i counts 2**i; up to 20 bits.
        "image": (36, 36, 1) uint8; each bit is a square of 0 or 255 in the smallest square grid; up to 1,296 bits.
    render_mode: "rgb_array" draws with NumPy alone.
    `reset(options={"start": bits, "goal": bits})` fixes either, as (n_bits,) of 0 and 1 in every form; both together may be
    equal. Raises OptionError for an option out of its range, InputError for an action that is not a bit.
    """

    terminates: ClassVar[bool] = True

    def __init__(
        self,
        n_bits: int = 10,
        continuous: bool = False,
        max_steps: int | None = None,
        goal: str = "random",
        observation: str = "multibinary",
        render_mode: str | None = None,
    ) -> None:
        self.n_bits = self.whole("n_bits", n_bits)
        super().__init__(n_bits if max_steps is None else max_steps, render_mode, frames_per_second=4)
        self.continuous = continuous
        self._goals = _choice("goal", goal, GOALS)
        self._form = _choice("observation", observation, OBSERVATIONS)
        most = MOST_BITS.get(observation, n_bits)
        if n_bits > most:
            raise OptionError(
                f"n_bits of BitFlipping must be at most {most} with observation={observation!r}, got {n_bits}. Use "
                f"observation='multibinary'."
            )
        self.reset_space = spaces.MultiBinary(n_bits)
        shown = self._form_space()
        self._n_axes = len(shown.shape or ())
        self.observation_space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), shown))
        self.action_space = spaces.Box(-1.0, 1.0, (n_bits,), np.float32) if continuous else spaces.Discrete(n_bits)

    def draw(self, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """Return a start (n_bits,) and a goal (n_bits,), drawn again until they differ, unless both are given."""
        if goal is None and self._goals == "ones":
            goal = np.ones(self.n_bits)
        while True:
            drawn_start, drawn_goal = self.np_random.integers(0, 2, (2, self.n_bits), np.int8)
            state = drawn_start if start is None else start.astype(np.int8)
            desired = drawn_goal if goal is None else goal.astype(np.int8)
            if (state != desired).any() or (start is not None and goal is not None):
                return state, desired

    def next_state(self, state: Array, action: Any) -> Array:
        """Return the bits with some of them flipped."""
        if self.continuous:
            return state ^ (np.asarray(action) > 0)
        flips: Array = np.arange(self.n_bits) == np.asarray(action)[..., None]
        if np.count_nonzero(flips) < np.size(action):
            raise InputError(f"An action of BitFlipping must be 0 to {self.n_bits - 1}, got {action}.")
        return state ^ flips

    def observe(self, state: Array, goal: Array) -> dict[str, Array]:
        """Return the state, as observation and as achieved goal, and the goal."""
        shown = self.show(state)
        return {"observation": shown, "achieved_goal": shown.copy(), "desired_goal": self.show(goal)}

    def show(self, bits: Array) -> Array:
        """Return bits (..., n_bits) in the form of the observation, as a copy."""
        if self._form == "multibinary":
            return bits.copy()
        if self._form == "box":
            return bits.astype(np.float32)
        if self._form == "discrete":
            return np.asarray(bits @ (1 << np.arange(self.n_bits)))[()]
        values = np.concatenate([bits, np.zeros_like(bits[..., :1])], axis=-1).astype(np.uint8) * np.uint8(255)
        return values.take(self._bit_of_pixel, axis=-1)

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether goals, in the form of the observation, are equal in every bit, (...) bool."""
        same = np.asarray(np.equal(achieved_goal, desired_goal))
        return np.asarray(same.all(axis=tuple(range(-self._n_axes, 0))))

    def picture(self, state: Array, goal: Array) -> Array:
        """Return (24, 12 n_bits, 3) uint8: a row of squares for the state, blue for 1, above one for the goal, green."""
        colours = np.where(np.stack([state, goal])[..., None], [[[40, 80, 200]], [[80, 180, 110]]], 225)
        image = colours.astype(np.uint8).repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)
        image[::SQUARE] = image[:, ::SQUARE] = 255
        return image

    def _form_space(self) -> spaces.Space[Any]:
        if self._form == "multibinary":
            return spaces.MultiBinary(self.n_bits)
        if self._form == "box":
            return spaces.Box(0.0, 1.0, (self.n_bits,), np.float32)
        if self._form == "discrete":
            return spaces.Discrete(2**self.n_bits)
        return spaces.Box(0, 255, (IMAGE_SIDE, IMAGE_SIDE, 1), np.uint8)

    @functools.cached_property
    def _bit_of_pixel(self) -> Array:
        """(36, 36, 1): the index of the bit that each pixel shows; n_bits if it shows none."""
        across = math.ceil(math.sqrt(self.n_bits))
        row, column = np.indices((IMAGE_SIDE, IMAGE_SIDE, 1))[:2] // (IMAGE_SIDE // across)
        return np.minimum(np.where(column < across, row * across + column, self.n_bits), self.n_bits)


def _choice(option: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        hint = nearest(str(value), known)
        raise OptionError(f"{option} of BitFlipping must be one of {', '.join(known)}, got {value!r}.{hint}")
    return value
