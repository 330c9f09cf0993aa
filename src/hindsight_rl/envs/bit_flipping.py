"""BitFlipping: n bits must become n given bits, one flip per step. The first task that hindsight was used for.

One of 2**n states is rewarded, so without hindsight no reward is ever seen for 15 bits or more (Andrychowicz et al. 2017,
"Hindsight Experience Replay", section 3.1).
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from ..errors import InputError, OptionError, nearest
from ..records import Array
from .small_task import SmallTask

GOALS = ("random", "ones")
OBSERVATIONS = ("multibinary", "box", "discrete", "image")
IMAGE_SIDE = 36  # pixels; the smallest image that the usual three convolutions accept
MOST_BITS = {"discrete": 20, "image": IMAGE_SIDE**2}  # a million values; one pixel per bit
SQUARE = 12  # pixels, width of a bit in a rendered frame


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
        self.place_space = spaces.MultiBinary(n_bits)
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

    def move(self, state: Array, action: Any) -> Array:
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
