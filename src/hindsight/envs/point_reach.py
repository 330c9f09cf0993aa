"""PointReach: a point in a square must come to rest near a goal, one at a time or many in one NumPy step.

The smallest task on which hindsight matters: a random walk hardly ever meets the goal, so the reward is -1 nearly
everywhere, while every position that was visited would have been a goal reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import InputError, OptionError, nearest
from ..records import Array

RESET_OPTIONS = ("start", "goal")


@dataclass(frozen=True)
class PointTask:
    """The rules of PointReach, as functions of arrays whose leading axes are free.

    A state (..., 4) is position and velocity; a goal (..., 2) is a position. Everything is float32, so that what is
    observed is exactly what is simulated. Distances are in units of the square, times in seconds.
    """

    dt: float = 0.05  # time between two steps
    goal_range: float = 1.0  # half the side of the square
    max_speed: float = 1.0  # per axis
    distance_threshold: float = 0.05  # a goal this near is reached
    action_scale: float = 10.0  # acceleration of a full action

    def __post_init__(self) -> None:
        for name, value in ((f.name, getattr(self, f.name)) for f in fields(self)):
            if not (np.isfinite(value) and value > 0):
                raise OptionError(f"{name} of PointReach must be a finite number above 0, got {value!r}")

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """A start at rest (4,) and a goal (2,), uniform in the square."""
        start, goal = rng.uniform(-self.goal_range, self.goal_range, (2, 2)).astype(np.float32)
        return np.concatenate([start, np.zeros(2, np.float32)]), goal

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

    def reward(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """0 where the goal is reached and -1 elsewhere, (...) float32; success - 1, so that 0 is never -0."""
        return self.success(achieved_goal, desired_goal).astype(np.float32) - np.float32(1)

    def observation_space(self) -> spaces.Dict:
        """The space of one environment; its bounds are reached and never left."""
        high = np.array([self.goal_range] * 2 + [self.max_speed] * 2, np.float32)
        goal = spaces.Box(-high[:2], high[:2], dtype=np.float32)
        return spaces.Dict(
            {"observation": spaces.Box(-high, high, dtype=np.float32), "achieved_goal": goal, "desired_goal": goal}
        )

    def action_space(self) -> spaces.Box:
        """Accelerations along x and y, as shares of `action_scale`."""
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def fixed(self, options: Mapping[str, Any] | None, name: str, drawn: Array) -> Array:
        """The position that a reset's options ask for, in the shape of `drawn`; `drawn` where they do not."""
        unknown = [k for k in options or {} if k not in RESET_OPTIONS]
        if unknown:
            raise OptionError(f"PointReach has no reset option {unknown[0]!r}.{nearest(unknown[0], RESET_OPTIONS)}")
        if not options or options.get(name) is None:
            return drawn
        wanted = np.asarray(options[name], np.float32)
        if wanted.shape not in ((2,), drawn.shape) or not (np.abs(wanted) <= np.float32(self.goal_range)).all():
            raise OptionError(
                f"the reset option {name!r} must be a position of shape {drawn.shape} within {self.goal_range} of 0 on "
                f"each axis, got {options[name]!r}"
            )
        return np.broadcast_to(wanted, drawn.shape).copy()

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


class PointReach(gymnasium.Env[dict[str, Any], Array]):
    """A 2-D point, pushed by bounded accelerations, must reach a goal drawn anew in each episode.

    Observation: position and velocity (4,); achieved goal: position (2,); desired goal (2,); all float32. Action (2,) in
    [-1, 1], times `action_scale` an acceleration. Reward -1, or 0 within `distance_threshold` of the goal, float32.
    Never terminates; truncates by itself after `max_steps` steps. `is_success` is in the info of reset and step.

    `reset(options={"start": (2,), "goal": (2,)})` fixes either; the random numbers are drawn all the same.
    `render_mode="rgb_array"` draws with NumPy alone. Raises OptionError for an option out of its range.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012  (Gymnasium's own form)

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
        self.task = PointTask(*map(float, (dt, goal_range, max_speed, distance_threshold, action_scale)))
        self.max_steps = _whole("max_steps", max_steps)
        self.render_mode = _known_render_mode(render_mode)
        self.metadata = PointReach.metadata | {"render_fps": max(1, round(1 / self.task.dt))}
        self.observation_space = self.task.observation_space()
        self.action_space = self.task.action_space()
        self._state: Array | None = None
        self._goal = np.zeros(2, np.float32)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin an episode; `seed` and `options` as in Gymnasium and above."""
        super().reset(seed=seed)
        state, goal = self.task.draw(self.np_random)
        state[:2] = self.task.fixed(options, "start", state[:2])
        self._state, self._goal, self._steps = state, self.task.fixed(options, "goal", goal), 0
        return _observation(state, self._goal), self._info(state)

    def step(self, action: Array) -> tuple[dict[str, Array], Any, bool, bool, dict[str, Any]]:
        """Push the point for one step; raises InputError before the first reset."""
        if self._state is None:
            raise InputError("PointReach was stepped before its first reset: call reset() first")
        self._state = state = self.task.move(self._state, action)
        self._steps += 1
        reward = self.compute_reward(state[:2], self._goal)
        return _observation(state, self._goal), reward, False, self._steps >= self.max_steps, self._info(state)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Any:
        """The reward of goals (..., 2), of shape (...), float32; `info` is not read."""
        return self.task.reward(achieved_goal, desired_goal)

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Whether goals (..., 2) are reached, (...) bool."""
        return self.task.success(achieved_goal, desired_goal)

    def render(self) -> Any:
        """The picture (240, 240, 3) uint8 of the present state, or None without a render mode."""
        if self.render_mode is None or self._state is None:
            return None
        return self.task.picture(self._state, self._goal)

    def _info(self, state: Array) -> dict[str, Any]:
        return {"is_success": bool(self.compute_success(state[:2], self._goal))}


class PointReachVector(VectorEnv[dict[str, Any], Array, Array]):
    """`num_envs` PointReach environments in one NumPy step, byte for byte what a SyncVectorEnv of PointReach gives.

    Environment i of `reset(seed=s)` is a PointReach reset with seed s + i. Episodes that end begin anew as
    `autoreset_mode` says, an AutoresetMode or its value ("NextStep", "SameStep", "Disabled"). Options as PointReach's,
    where start and goal may also be (num_envs, 2); "reset_mask", (num_envs,) bool, resets those alone.
    """

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
        self.task = PointTask(*map(float, (dt, goal_range, max_speed, distance_threshold, action_scale)))
        self.num_envs, self.max_steps = _whole("num_envs", num_envs), _whole("max_steps", max_steps)
        self.render_mode = _known_render_mode(render_mode)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        fps = max(1, round(1 / self.task.dt))
        self.metadata = PointReach.metadata | {"render_fps": fps, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space, self.single_action_space = self.task.observation_space(), self.task.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        self._state = np.zeros((self.num_envs, 4), np.float32)
        self._goal = np.zeros((self.num_envs, 2), np.float32)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._over = np.ones(self.num_envs, bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin an episode in every environment, or in those of the option "reset_mask"."""
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"{len(seeds)} seeds were given for {self.num_envs} environments: give one each")
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise InputError(
                f"reset_mask must be {self.num_envs} bools, one per environment, got {mask.dtype} {mask.shape}"
            )
        for i in np.flatnonzero(mask).tolist():
            if seeds[i] is not None:
                self._generators[i] = seeding.np_random(seeds[i])[0]
        self._begin(mask, options)
        return _observation(self._state, self._goal), self._info(mask)

    def step(self, actions: Array) -> tuple[dict[str, Array], Array, Array, Array, dict[str, Any]]:
        """Step every environment with its row of actions (num_envs, 2); as SyncVectorEnv, rewards in float32."""
        begins = self._over.copy()
        if begins.any() and self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            raise InputError(f"environments {np.flatnonzero(begins).tolist()} are over or were never reset: reset them")
        self._state = self.task.move(self._state, actions)
        self._steps += 1
        if begins.any():  # NEXT_STEP: this step only shows the first observation of the next episode
            self._begin(begins, {})
        reward = np.where(begins, np.float32(0), self.task.reward(self._state[:, :2], self._goal))
        self._over = truncated = (self._steps >= self.max_steps) & ~begins
        info: dict[str, Any] = {}
        if truncated.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            info = self._final(truncated)
            self._begin(truncated, {})
        info |= self._info(np.ones(self.num_envs, bool))
        terminated = np.zeros(self.num_envs, bool)
        return _observation(self._state, self._goal), reward, terminated, truncated.copy(), info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Array:
        """The reward of goals (..., 2), of shape (...), float32; `info` is not read."""
        return self.task.reward(achieved_goal, desired_goal)

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Whether goals (..., 2) are reached, (...) bool."""
        return self.task.success(achieved_goal, desired_goal)

    def render(self) -> tuple[Array, ...] | None:
        """One picture (240, 240, 3) uint8 per environment, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self.task.picture(state, goal) for state, goal in zip(self._state, self._goal, strict=True))

    def _begin(self, mask: Array, options: Mapping[str, Any]) -> None:
        state, goal = self._state.copy(), self._goal.copy()
        for i in np.flatnonzero(mask):
            generator = self._generators[i] or seeding.np_random()[0]
            self._generators[i] = generator
            state[i], goal[i] = self.task.draw(generator)
        state[:, :2] = np.where(mask[:, None], self.task.fixed(options, "start", state[:, :2]), state[:, :2])
        goal = np.where(mask[:, None], self.task.fixed(options, "goal", goal), goal)
        self._state, self._goal = state, goal
        self._steps = np.where(mask, 0, self._steps)
        self._over = self._over & ~mask

    def _info(self, mask: Array) -> dict[str, Any]:
        return {"is_success": self.compute_success(self._state[:, :2], self._goal) & mask, "_is_success": mask.copy()}

    def _final(self, mask: Array) -> dict[str, Any]:
        final = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(mask):
            final[i] = _observation(self._state[i], self._goal[i])
        return {"final_obs": final, "_final_obs": mask, "final_info": self._info(mask), "_final_info": mask.copy()}


def _observation(state: Array, goal: Array) -> dict[str, Array]:
    return {"observation": state.copy(), "achieved_goal": state[..., :2].copy(), "desired_goal": goal.copy()}


def _whole(name: str, value: int) -> int:
    if int(value) != value or value < 1:
        raise OptionError(f"{name} of PointReach must be a whole number of at least 1, got {value!r}")
    return int(value)


def _known_render_mode(render_mode: str | None) -> str | None:
    if render_mode not in (None, *PointReach.metadata["render_modes"]):
        raise OptionError(f"PointReach renders as 'rgb_array' or not at all (None), got render_mode={render_mode!r}")
    return render_mode
