"""PointReach: a point in a square must come near a goal.

The smallest task on which hindsight matters. A random walk hardly ever reaches the goal, so nearly every reward is -1, but
each visited position would have been a goal reached.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from ..errors import OptionError
from ..records import Array
from .small_task import SmallTask


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
        place = self.place_space = spaces.Box(-self.goal_range, self.goal_range, (2,), np.float32)
        state = spaces.Box(-high, high, dtype=np.float32)
        self.observation_space = spaces.Dict({"observation": state, "achieved_goal": place, "desired_goal": place})
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def draw(self, start: Array | None, goal: Array | None) -> tuple[Array, Array]:
        """Return a start at rest (4,) and a goal (2,), uniform in the square or as given."""
        drawn = self.np_random.uniform(-self.goal_range, self.goal_range, (2, 2)).astype(np.float32)
        position = drawn[0] if start is None else start
        return np.concatenate([position, np.zeros(2, np.float32)]), drawn[1] if goal is None else goal.copy()

    def move(self, state: Array, action: Array) -> Array:
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
        tick = 0.2 * state[2:]  # the way that the point covers in 0.2 seconds
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
