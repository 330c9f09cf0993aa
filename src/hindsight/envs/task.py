"""The rules of a task as functions of arrays, played as one environment or as many in one NumPy step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import InputError, OptionError, ShapeError, nearest
from ..records import Array

RESET_OPTIONS = ("start", "goal")


class GoalTask(Protocol):
    """A task with a sparse goal, as functions; but for `draw` and `picture`, arrays may have any leading axes.

    name: what errors call it. terminates: whether a goal reached ends the episode. frames_per_second: of its pictures.
    The spaces are those of one environment; place_space is that of the reset options "start" and "goal". draw: a first
    state and a goal, at random or as given. move: the state one step later, a new array. observe: what is seen, as copies.
    success: whether goals, as they are seen, are reached; bool. picture: (height, width, 3) uint8.
    """

    name: ClassVar[str]
    terminates: ClassVar[bool]

    @property
    def frames_per_second(self) -> int: ...
    def observation_space(self) -> spaces.Dict: ...
    def action_space(self) -> spaces.Space[Any]: ...
    def place_space(self) -> spaces.Space[Any]: ...
    def draw(self, rng: np.random.Generator, start: Array | None, goal: Array | None) -> tuple[Array, Array]: ...
    def move(self, state: Array, action: Array) -> Array: ...
    def observe(self, state: Array, goal: Array) -> dict[str, Array]: ...
    def success(self, achieved_goal: Array, desired_goal: Array) -> Array: ...
    def picture(self, state: Array, goal: Array) -> Array: ...


class GoalFunctions:
    """What one environment and many share: options, and what goals with any leading axes are worth. `info` is not read."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (Gymnasium's own form)

    def __init__(self, task: GoalTask, max_steps: int, render_mode: str | None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise OptionError(f"{task.name} renders as 'rgb_array' or not at all (None), got render_mode={render_mode!r}")
        self.task, self.render_mode = task, render_mode
        self.max_steps = whole(task.name, "max_steps", max_steps)
        self.metadata = GoalFunctions.metadata | {"render_fps": task.frames_per_second}

    def compute_success(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Whether the goals are reached, bool."""
        return self.task.success(achieved_goal, desired_goal)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Any:
        """0 where the goal is reached and -1 elsewhere, float32; success - 1, so that 0 is never -0."""
        return self.compute_success(achieved_goal, desired_goal).astype(np.float32) - np.float32(1)

    def compute_terminated(self, achieved_goal: Array, desired_goal: Array, info: Any = None) -> Any:
        """Whether the goals end an episode for good, bool."""
        return self.compute_success(achieved_goal, desired_goal) & self.task.terminates


class TaskEnv(GoalFunctions, gymnasium.Env[dict[str, Any], Any]):
    """One environment that plays a task; it truncates by itself, and its infos hold `is_success`, at a reset too."""

    def __init__(self, task: GoalTask, max_steps: int, render_mode: str | None) -> None:
        super().__init__(task, max_steps, render_mode)
        self.observation_space, self.action_space = task.observation_space(), task.action_space()
        self._state: Array | None = None
        self._goal: Array = np.zeros(0)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode. options: "start" and "goal" fix either; the random numbers are drawn all the same."""
        super().reset(seed=seed)
        start, goal = _fixed(self.task, options, ())
        self._state, self._goal = self.task.draw(self.np_random, start, goal)
        self._steps = 0
        return self._seen(self._state)

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Do one step; raises InputError before the first reset, and for an action that is none."""
        if self._state is None:
            raise InputError(f"{self.task.name} was stepped before its first reset: call reset() first")
        _require_shape(self.task, action, self.action_space)
        self._state = self.task.move(self._state, action)
        self._steps += 1
        observation, info = self._seen(self._state)
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"])
        return observation, reward, info["is_success"] and self.task.terminates, self._steps >= self.max_steps, info

    def render(self) -> Any:
        """The picture (height, width, 3) uint8 of the present state, or None without a render mode."""
        if self.render_mode is None or self._state is None:
            return None
        return self.task.picture(self._state, self._goal)

    def _seen(self, state: Array) -> tuple[dict[str, Any], dict[str, Any]]:
        observation = self.task.observe(state, self._goal)
        success = self.compute_success(observation["achieved_goal"], observation["desired_goal"])
        return observation, {"is_success": bool(success)}


class TaskVectorEnv(GoalFunctions, VectorEnv[dict[str, Any], Array, Array]):
    """`num_envs` environments of a task in one NumPy step, byte for byte what a SyncVectorEnv of them gives.

    Environment i of `reset(seed=s)` is one reset with seed s + i. Episodes that end begin anew as `autoreset_mode` says,
    an AutoresetMode or its value ("NextStep", "SameStep", "Disabled"). The reset options "start" and "goal" may be one for
    all or one for each; "reset_mask", (num_envs,) bool, resets those alone.
    """

    def __init__(
        self, task: GoalTask, num_envs: int, max_steps: int, render_mode: str | None, autoreset_mode: AutoresetMode | str
    ) -> None:
        super().__init__(task, max_steps, render_mode)
        self.num_envs, self.autoreset_mode = whole(task.name, "num_envs", num_envs), AutoresetMode(autoreset_mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode
        self.single_observation_space, self.single_action_space = task.observation_space(), task.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        state, goal = task.draw(np.random.default_rng(0), None, None)
        self._state, self._goal = np.stack([state] * self.num_envs), np.stack([goal] * self.num_envs)
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
        self._begin(mask, seeds, options)
        observation, success = self._seen()
        return observation, _success_info(success, mask)

    def step(self, actions: Array) -> tuple[dict[str, Array], Array, Array, Array, dict[str, Any]]:
        """Step every environment with its row of actions (num_envs, ...); rewards are float32."""
        begins, unseeded = self._over, [None] * self.num_envs
        if begins.any() and self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            raise InputError(f"environments {np.flatnonzero(begins).tolist()} are over or were never reset: reset them")
        _require_shape(self.task, actions, self.action_space)
        self._state = self.task.move(self._state, actions)
        self._steps += 1
        if begins.any():  # NEXT_STEP: this step only shows the first observation of the next episode
            self._begin(begins, unseeded, {})
        observation, success = self._seen()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"])
        reward, terminated = np.where(begins, np.float32(0), reward), success & self.task.terminates & ~begins
        truncated = self._steps >= self.max_steps
        self._over = over = terminated | truncated
        info: dict[str, Any] = {}
        if over.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            info = _final_info(observation, success, over)
            self._begin(over, unseeded, {})
            observation, success = self._seen()
        return observation, reward, terminated, truncated, info | _success_info(success, np.ones(self.num_envs, bool))

    def render(self) -> tuple[Array, ...] | None:
        """One picture (height, width, 3) uint8 per environment, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self.task.picture(state, goal) for state, goal in zip(self._state, self._goal, strict=True))

    def _begin(self, mask: Array, seeds: Sequence[int | None], options: Mapping[str, Any]) -> None:
        starts, goals = _fixed(self.task, options, (self.num_envs,))
        for i in np.flatnonzero(mask).tolist():
            generator = self._generators[i]
            if generator is None or seeds[i] is not None:
                generator = self._generators[i] = seeding.np_random(seeds[i])[0]
            fixed = (None if places is None else places[i] for places in (starts, goals))
            self._state[i], self._goal[i] = self.task.draw(generator, *fixed)
        self._steps[mask] = 0
        self._over = self._over & ~mask

    def _seen(self) -> tuple[dict[str, Array], Array]:
        observation = self.task.observe(self._state, self._goal)
        return observation, self.compute_success(observation["achieved_goal"], observation["desired_goal"])


def whole(task_name: str, option: str, value: int) -> int:
    """The value of an option that counts something; raises OptionError unless it is a whole number of at least 1."""
    if not isinstance(value, int | np.integer) or value < 1:
        raise OptionError(f"{option} of {task_name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def _require_shape(task: GoalTask, action: Any, space: spaces.Space[Any]) -> None:
    if np.shape(action) != space.shape:
        raise ShapeError(f"{task.name} takes actions of the shape {space.shape}, got {np.shape(action)}")


def _fixed(task: GoalTask, options: Mapping[str, Any] | None, leading: tuple[int, ...]) -> list[Array | None]:
    """The start and the goal that a reset's options ask for, (*leading, ...) float32 each; None where they do not."""
    unknown = [k for k in options or {} if k not in RESET_OPTIONS]
    if unknown:
        raise OptionError(f"{task.name} has no reset option {unknown[0]!r}.{nearest(unknown[0], RESET_OPTIONS)}")
    return [None if (value := (options or {}).get(k)) is None else _places(task, k, value, leading) for k in RESET_OPTIONS]


def _places(task: GoalTask, option: str, value: Any, leading: tuple[int, ...]) -> Array:
    space, wanted = task.place_space(), np.asarray(value, np.float32)
    one: tuple[int, ...] = space.shape or ()
    if wanted.shape not in (one, leading + one) or not all(place in space for place in wanted.reshape(-1, *one)):
        raise OptionError(
            f"the reset option {option!r} of {task.name} must be in {space}, of shape {leading + one}, got {value!r}"
        )
    return np.broadcast_to(wanted, leading + one)


def _success_info(success: Array, mask: Array) -> dict[str, Any]:
    return {"is_success": success & mask, "_is_success": mask.copy()}


def _final_info(observation: Mapping[str, Array], success: Array, over: Array) -> dict[str, Any]:
    final = np.full(len(over), None, object)
    for i in np.flatnonzero(over):
        final[i] = {key: values[i] for key, values in observation.items()}
    return {
        "final_obs": final,
        "_final_obs": over.copy(),
        "final_info": _success_info(success, over),
        "_final_info": over.copy(),
    }
