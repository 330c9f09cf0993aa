"""PointReach: a point in a square must come to rest near a goal, one at a time or many in one NumPy step.

The smallest task on which hindsight matters: a random walk hardly ever meets the goal, so the reward is -1 nearly
everywhere, while every position that was visited would have been a goal reached.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from ..errors import OptionError
from ..records import Array
from .task import TaskEnv, TaskVectorEnv


@dataclass(frozen=True)
class PointTask:
    """The rules of PointReach, as functions of arrays whose leading axes are free.

    A state (..., 4) is position and velocity; a goal (..., 2) is a position. Everything is float32, so that what is
    observed is exactly what is simulated. Distances are in units of the square, times in seconds.
    """

    name: ClassVar[str] = "PointReach"
    terminates: ClassVar[bool] = False

    dt: float = 0.05  # time between two steps
    goal_range: float = 1.0  # half the side of the square
    max_speed: float = 1.0  # per axis
    distance_threshold: float = 0.05  # a goal this near is reached
    action_scale: float = 10.0  # acceleration of a full action

    def __post_init__(self) -> None:
        for name, value in ((f.name, getattr(self, f.name)) for f in fields(self)):
            if not (np.isfinite(value) and value > 0):
                raise OptionError(f"{name} of PointReach must be a finite number above 0, got {value!r}")

    @property
    def frames_per_second(self) -> int:
        """Real time, as nearly as whole frames allow."""
        return max(1, round(1 / self.dt))

    def draw(self, rng: np.random.Generator, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """A start at rest (4,) and a goal (2,), uniform in the square, or where they are given."""
        drawn = rng.uniform(-self.goal_range, self.goal_range, (2, 2)).astype(np.float32)
        place = drawn[0] if start is None else start
        return np.concatenate([place, np.zeros(2, np.float32)]), drawn[1] if goal is None else goal.copy()

    def move(self, state: Array, action: Array) -> Array:
        """The state (..., 4) one step later: the velocity changes first, then the position; both are clipped per axis.

        action: (..., 2), clipped to [-1, 1].
        """
        push = np.clip(np.asarray(action, np.float32), -1.0, 1.0) * (self.action_scale * self.dt)
        velocity = np.clip(state[..., 2:] + push, -self.max_speed, self.max_speed)
        position = np.clip(state[..., :2] + velocity * self.dt, -self.goal_range, self.goal_range)
        return np.concatenate([position, velocity], axis=-1)

    def success(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Whether the goals (..., 2) lie within the threshold, the threshold itself included; (...) bool."""
        offset = np.asarray(achieved_goal, np.float32) - np.asarray(desired_goal, np.float32)
        return np.asarray(np.sqrt(np.square(offset).sum(axis=-1)) <= self.distance_threshold)

    def observe(self, state: Array, goal: Array) -> dict[str, Array]:
        """The state, the position in it, and the goal."""
        return {"observation": state.copy(), "achieved_goal": state[..., :2].copy(), "desired_goal": goal.copy()}

    def observation_space(self) -> spaces.Dict:
        """The space of one environment; its bounds are reached and never left."""
        high = np.array([self.goal_range] * 2 + [self.max_speed] * 2, np.float32)
        goal = self.place_space()
        return spaces.Dict(
            {"observation": spaces.Box(-high, high, dtype=np.float32), "achieved_goal": goal, "desired_goal": goal}
        )

    def place_space(self) -> spaces.Box:
        """Starts and goals: the square."""
        return spaces.Box(-self.goal_range, self.goal_range, (2,), np.float32)

    def action_space(self) -> spaces.Box:
        """Accelerations along x and y, as shares of `action_scale`."""
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def picture(self, state: Array, goal: Array, size: int = 240) -> Array:
        """The square from above, (size, size, 3) uint8: the goal with its threshold, the point, and where it is going."""
        edge = 1.1 * self.goal_range
        x, y = np.meshgrid(np.linspace(-edge, edge, size), np.linspace(edge, -edge, size))
        pixel = 2 * edge / size
        tick = 0.2 * state[2:]  # as far as the point comes in 0.2 seconds
        along = np.clip(((x - state[0]) * tick[0] + (y - state[1]) * tick[1]) / max(float(tick @ tick), 1e-12), 0, 1)
        image = np.full((size, size, 3), 255, np.uint8)
        image[np.maximum(np.abs(x), np.abs(y)) > self.goal_range] = (205, 205, 210)
        image[np.hypot(x - goal[0], y - goal[1]) <= max(self.distance_threshold, 2 * pixel)] = (80, 180, 110)
        image[np.hypot(x - state[0] - along * tick[0], y - state[1] - along * tick[1]) <= pixel] = (230, 120, 50)
        image[np.hypot(x - state[0], y - state[1]) <= 3 * pixel] = (40, 80, 200)
        return image


class PointReach(TaskEnv):
    """A 2-D point, pushed by bounded accelerations, must reach a goal drawn anew in each episode.

    Observation: position and velocity (4,); achieved goal: position (2,); desired goal (2,); all float32. Action (2,) in
    [-1, 1], times `action_scale` an acceleration. Reward -1, or 0 within `distance_threshold` of the goal, float32.
    Never terminates; truncates by itself after `max_steps` steps. `is_success` is in the info of reset and step.

    `reset(options={"start": (2,), "goal": (2,)})` fixes either; the random numbers are drawn all the same.
    `render_mode="rgb_array"` draws with NumPy alone. Raises OptionError for an option out of its range.
    """

    def __init__(
        self,
        max_steps: int = 50,
        dt: float = PointTask.dt,
        goal_range: float = PointTask.goal_range,
        max_speed: float = PointTask.max_speed,
        distance_threshold: float = PointTask.distance_threshold,
        action_scale: float = PointTask.action_scale,
        render_mode: str | None = None,
    ) -> None:
        task = PointTask(*map(float, (dt, goal_range, max_speed, distance_threshold, action_scale)))
        super().__init__(task, max_steps, render_mode)


class PointReachVector(TaskVectorEnv):
    """`num_envs` PointReach environments in one NumPy step; options as PointReach's, the rest as in TaskVectorEnv."""

    def __init__(
        self,
        num_envs: int = 1,
        max_steps: int = 50,
        dt: float = PointTask.dt,
        goal_range: float = PointTask.goal_range,
        max_speed: float = PointTask.max_speed,
        distance_threshold: float = PointTask.distance_threshold,
        action_scale: float = PointTask.action_scale,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        task = PointTask(*map(float, (dt, goal_range, max_speed, distance_threshold, action_scale)))
        super().__init__(task, num_envs, max_steps, render_mode, autoreset_mode)
