"""Check declared symmetries on rewards and, where an episode can start anywhere, on steps.

How an episode starts at a given place:
- small tasks: by the options of reset;
- point mazes and parking: the point or the car is moved, and the goal;
- Fetch and Panda tasks: the object is moved, if there is one, and the goal. The arm always starts in the middle, and an
  object is not rotated. There the check compares how the environment reacts to transformed actions at a transformed place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..records import OBSERVATION_KEYS, Array
from ..records.symmetries import Symmetries
from .goal_functions import GoalFunction
from .random_play import Environment, random_actions
from .small_task import SmallTask

SEEDS, STEPS = (1, 2, 3), 20  # episodes for each group element, and their steps
EXACT, CLOSE = 1e-5, 0.02  # largest differences: by rounding only, and of an environment that is nearly symmetric
PARTS = ("observation", "goal", "goal")  # of a symmetry, for OBSERVATION_KEYS

StartAt = Callable[[Environment, Array, Array], Any]  # env, start (g,), goal (g,) -> first observation


def compare_rewards(reward: GoalFunction, goals: list[tuple[Array, Array, Any]], group: Symmetries) -> tuple[str, str]:
    """Return whether rewards are the same for transformed goals, as a level and a sentence.

    goals: achieved (N, g), desired (N, g) and info of steps. Goals achieved one step before are tried as well.
    """
    n_wrong = n_rewards = 0
    for achieved, desired, info in goals:
        for goal in (desired, np.roll(achieved, 1, axis=0)):
            rewards = np.asarray(reward(achieved, goal, info))
            for element in range(1, len(group)):
                other = [group.transformed("goal", values, element) for values in (achieved, goal)]
                n_wrong += int((~np.isclose(np.asarray(reward(other[0], other[1], info)), rewards)).sum())
                n_rewards += len(rewards)
    if n_wrong:
        return "error", f"{n_wrong} of {n_rewards} rewards differ for transformed goals. Correct or remove the symmetries"
    return "ok", f"{n_rewards} rewards are the same under the {len(group)} elements of the group"


def compare_steps(env: Environment, group: Symmetries) -> tuple[str, str]:
    """Return whether transformed actions lead to transformed observations, as a level and a sentence.

    The median difference decides, since contacts of bodies enlarge the smallest differences.
    """
    start_at = _find_start(env)
    if start_at is None:
        return "ok", "not checked on steps: an episode cannot start at a given place in this environment"
    differences = np.concatenate([_differences(env, start_at, group, seed) for seed in SEEDS])
    median, largest = float(np.median(differences)), float(differences.max())
    if largest <= EXACT:
        return "ok", f"transformed actions lead to transformed observations in {len(differences)} steps"
    sentence = (
        f"transformed actions lead to transformed observations within {median:.2g} (median) and {largest:.2g} (largest of "
        f"{len(differences)} steps)"
    )
    if median <= CLOSE:
        return "ok", sentence
    return "warning", f"{sentence}. The environment does not have these symmetries"


def _differences(env: Environment, start_at: StartAt, group: Symmetries, seed: int) -> Array:
    """Return the largest difference of an observation, after each step of one episode under each group element."""
    first = copy.deepcopy(env.reset(seed=seed)[0])
    start, goal = (np.asarray(first[key], np.float64)[None] for key in OBSERVATION_KEYS[1:])
    actions = np.stack([action for _, action in zip(range(STEPS), random_actions(env, seed), strict=False)])
    original = _play(env, start_at(env, start[0], goal[0]), actions)
    differences = []
    for element in range(1, len(group)):
        places = [group.transformed("goal", place, element)[0] for place in (start, goal)]
        env.reset(seed=seed)
        other = _play(env, start_at(env, places[0], places[1]), group.transformed("action", actions, element))
        expected = [group.transformed(part, values, element) for part, values in zip(PARTS, original, strict=True)]
        largest = [np.abs(a - b).max(axis=1) for a, b in zip(expected, other, strict=True)]
        differences.append(np.max(largest, axis=0))
    return np.concatenate(differences)


def _play(env: Environment, first: Any, actions: Array) -> list[Array]:
    """Return observation, achieved goal and desired goal before and after each action, (T + 1, n) each."""
    observations = [first, *(copy.deepcopy(env.step(action)[0]) for action in actions)]
    return [np.stack([np.asarray(each[key], np.float64) for each in observations]) for key in OBSERVATION_KEYS]


def _find_start(env: Environment) -> StartAt | None:
    """Return the function that starts an episode at a place, by the module of the environment's class, or None."""
    if isinstance(env.unwrapped, SmallTask):
        return _start_small_task
    classes = (type(env.unwrapped), type(getattr(env.unwrapped, "task", None)))
    modules = {base.__module__ for each in classes for base in each.__mro__}
    return next((start_at for module, start_at in _STARTS.items() if module in modules), None)


def _start_small_task(env: Environment, start: Array, goal: Array) -> Any:
    return env.reset(options={"start": start, "goal": goal})[0]


def _start_fetch(env: Environment, start: Array, goal: Array) -> Any:
    """start: position of the object; without an object the gripper stays where it is."""
    inner: Any = env.unwrapped
    if inner.has_object:
        joint = inner._utils.get_joint_qpos(inner.model, inner.data, "object0:joint")
        joint[: len(start)] = start
        inner._utils.set_joint_qpos(inner.model, inner.data, "object0:joint", joint)
    inner.goal = goal.copy()
    inner._mujoco.mj_forward(inner.model, inner.data)
    return inner._get_obs()


def _start_panda(env: Environment, start: Array, goal: Array) -> Any:
    """start: position of the object; without an object the gripper stays where it is."""
    inner: Any = env.unwrapped
    if "object" in inner.sim._bodies_idx:
        inner.sim.set_base_pose("object", start, np.array([0.0, 0.0, 0.0, 1.0]))
    inner.task.goal = goal.copy()
    return inner._get_obs()


def _start_point_maze(env: Environment, start: Array, goal: Array) -> Any:
    inner: Any = env.unwrapped
    inner.point_env.set_state(start, np.zeros(2))
    inner.goal = goal.copy()
    return inner._get_obs(np.r_[start, np.zeros(2)])


def _start_parking(env: Environment, start: Array, goal: Array) -> Any:
    """start, goal: x, y, velocities, cosine and sine of the heading. The car starts at rest."""
    inner: Any = env.unwrapped
    scales = np.asarray(inner.config["observation"]["scales"])
    for body, (x, y, _, _, cosine, sine) in ((inner.vehicle, start * scales), (inner.vehicle.goal, goal * scales)):
        body.position, body.heading = np.array([x, y]), float(np.arctan2(sine, cosine))
    return inner.observation_type.observe()


_STARTS: dict[str, StartAt] = {  # by the module of the environment's class, or of its task; called after a reset
    "gymnasium_robotics.envs.fetch.fetch_env": _start_fetch,
    "gymnasium_robotics.envs.maze.point_maze": _start_point_maze,
    **{f"panda_gym.envs.tasks.{task}": _start_panda for task in ("reach", "push", "slide", "pick_and_place")},
    "highway_env.envs.parking_env": _start_parking,
}
