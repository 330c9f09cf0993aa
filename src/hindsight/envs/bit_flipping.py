"""BitFlipping: n bits must become n others, flip by flip; the task that hindsight was introduced with.

One of 2**n states pays, so that without hindsight no reward is ever seen where n is 15 or more (Andrychowicz et al. 2017,
"Hindsight Experience Replay", section 3.1).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from ..errors import InputError, OptionError, nearest
from ..records import Array
from .task import TaskEnv, TaskVectorEnv, whole

GOALS = ("random", "ones")
KINDS = ("multibinary", "box", "discrete", "image")
IMAGE_SIDE = 36  # pixels; the least that the usual three convolutions take
MOST_BITS = {"discrete": 20, "image": IMAGE_SIDE**2}  # a million values; one pixel each
SQUARE = 12  # pixels, the side of a bit in a picture


@dataclass(frozen=True)
class BitTask:
    """The rules of BitFlipping, as functions of arrays whose leading axes are free.

    States and goals are bits (..., n_bits) int8; `show` gives them the form in which they are seen.
    """

    name: ClassVar[str] = "BitFlipping"
    terminates: ClassVar[bool] = True

    n_bits: int
    continuous: bool  # actions are n numbers, of which the positive ones flip their bits
    goal: str  # one of GOALS
    observation: str  # one of KINDS

    def __post_init__(self) -> None:
        whole(self.name, "n_bits", self.n_bits)
        for option, value, known in (("goal", self.goal, GOALS), ("observation", self.observation, KINDS)):
            if value not in known:
                hint = nearest(str(value), known)
                raise OptionError(f"{option} of {self.name} must be one of {', '.join(known)}, got {value!r}.{hint}")
        most = MOST_BITS.get(self.observation, self.n_bits)
        if self.n_bits > most:
            raise OptionError(
                f"n_bits of {self.name} must be at most {most} with observation={self.observation!r}, got {self.n_bits}: "
                f"use observation='multibinary'"
            )

    @property
    def frames_per_second(self) -> int:
        """Slow enough to follow each flip."""
        return 4

    def draw(self, rng: np.random.Generator, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """A start (n_bits,) and a goal (n_bits,), uniform among those that differ: equal ones are drawn again.

        Where both are given they are taken as they are, equal or not.
        """
        if goal is None and self.goal == "ones":
            goal = np.ones(self.n_bits)
        while True:
            first, other = rng.integers(0, 2, (2, self.n_bits), np.int8)
            state = first if start is None else start.astype(np.int8)
            asked = other if goal is None else goal.astype(np.int8)
            if (state != asked).any() or (start is not None and goal is not None):
                return state, asked

    def move(self, state: Array, action: Array) -> Array:
        """The state with some bits flipped. action: (...) the one, or (..., n_bits) numbers, of which the positive ones."""
        if self.continuous:
            return state ^ (np.asarray(action) > 0)
        flips: Array = np.arange(self.n_bits) == np.asarray(action)[..., None]
        if np.count_nonzero(flips) < np.size(action):
            raise InputError(f"an action of {self.name} is the number of a bit, 0 to {self.n_bits - 1}, got {action}")
        return state ^ flips

    def observe(self, state: Array, goal: Array) -> dict[str, Array]:
        """The state, as what is seen and as what is achieved, and the goal."""
        shown = self.show(state)
        return {"observation": shown, "achieved_goal": shown.copy(), "desired_goal": self.show(goal)}

    def show(self, bits: Array) -> Array:
        """Bits (..., n_bits) in the form in which they are seen, as a copy; see BitFlipping."""
        if self.observation == "multibinary":
            return bits.copy()
        if self.observation == "box":
            return bits.astype(np.float32)
        if self.observation == "discrete":
            return np.asarray(bits @ (1 << np.arange(self.n_bits)))[()]
        lit = np.concatenate([bits, np.zeros_like(bits[..., :1])], axis=-1).astype(np.uint8) * np.uint8(255)
        return lit.take(self._bit_of_pixel, axis=-1)

    def place_space(self) -> spaces.MultiBinary:
        """Starts and goals: bits, in whatever form they are seen."""
        return spaces.MultiBinary(self.n_bits)

    def observation_space(self) -> spaces.Dict:
        """The same space three times."""
        return spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), self._shown_space))

    def action_space(self) -> spaces.Space[Any]:
        """Which bit to flip, or a number for each bit."""
        return spaces.Box(-1.0, 1.0, (self.n_bits,), np.float32) if self.continuous else spaces.Discrete(self.n_bits)

    def success(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Whether goals, as they are seen, are the same in every bit; (...) bool."""
        same = np.asarray(np.equal(achieved_goal, desired_goal))
        return np.asarray(same.all(axis=tuple(range(-len(self._shown_space.shape), 0))))

    def picture(self, state: Array, goal: Array) -> Array:
        """A row of squares for the state, blue where a bit is set, above one for the goal, green; (24, 12 n, 3) uint8."""
        colours = np.where(np.stack([state, goal])[..., None], [[[40, 80, 200]], [[80, 180, 110]]], 225)
        image = colours.astype(np.uint8).repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)
        image[::SQUARE] = image[:, ::SQUARE] = 255
        return image

    @functools.cached_property
    def _shown_space(self) -> Any:
        if self.observation == "multibinary":
            return spaces.MultiBinary(self.n_bits)
        if self.observation == "box":
            return spaces.Box(0.0, 1.0, (self.n_bits,), np.float32)
        if self.observation == "discrete":
            return spaces.Discrete(2**self.n_bits)
        return spaces.Box(0, 255, (IMAGE_SIDE, IMAGE_SIDE, 1), np.uint8)

    @functools.cached_property
    def _bit_of_pixel(self) -> Array:
        """(36, 36, 1): which bit each pixel shows; n_bits, which is one past the last, where it shows none."""
        across = math.ceil(math.sqrt(self.n_bits))
        row, column = np.indices((IMAGE_SIDE, IMAGE_SIDE, 1))[:2] // (IMAGE_SIDE // across)
        return np.minimum(np.where(column < across, row * across + column, self.n_bits), self.n_bits)


class BitFlipping(TaskEnv):
    """`n_bits` bits, flipped one per step, must become the bits of a goal; after Andrychowicz et al. 2017, section 3.1.

    Action i flips bit i; with `continuous`, an action (n_bits,) in [-1, 1] flips the bits of its positive components.
    Reward -1, or 0 where the step makes all bits equal to the goal's, float32; that terminates. Truncates by itself after
    `max_steps` steps, `n_bits` unless given. `is_success` is in the info of reset and step.

    goal: "random", drawn anew in each episode, or "ones". The start is drawn until it is not the goal: a finished task
    would have to be left before it can be reached. observation: how the state, as observation and as achieved goal, and
    the goal are seen:
    "multibinary": (n_bits,) int8. "box": (n_bits,) float32, 0 or 1. "discrete": one number, of which bit i is worth 2**i;
    up to 20 bits. "image": (36, 36, 1) uint8, height, width, channel: the bits as squares of 0 or 255, row after row in
    the smallest square grid that has room for them; up to 1,296 bits.

    `reset(options={"start": bits, "goal": bits})` fixes either, as (n_bits,) of 0 and 1 whatever is seen; both together
    are taken even if equal. `render_mode="rgb_array"` draws with NumPy alone. Raises OptionError for an option out of its
    range, InputError for an action that is none.
    """

    def __init__(
        self,
        n_bits: int = 10,
        continuous: bool = False,
        max_steps: int | None = None,
        goal: str = "random",
        observation: str = "multibinary",
        render_mode: str | None = None,
    ) -> None:
        task = BitTask(n_bits, continuous, goal, observation)
        super().__init__(task, n_bits if max_steps is None else max_steps, render_mode)


class BitFlippingVector(TaskVectorEnv):
    """`num_envs` BitFlipping environments in one NumPy step; options as BitFlipping's, the rest as in TaskVectorEnv."""

    def __init__(
        self,
        num_envs: int = 1,
        n_bits: int = 10,
        continuous: bool = False,
        max_steps: int | None = None,
        goal: str = "random",
        observation: str = "multibinary",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        task = BitTask(n_bits, continuous, goal, observation)
        super().__init__(task, num_envs, n_bits if max_steps is None else max_steps, render_mode, autoreset_mode)
