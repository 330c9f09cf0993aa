"""Whether an environment really is the same from every side that is declared: its rewards, and its steps where that can be.

Steps are tried where an episode can be begun from another side: in hindsight's own tasks, by the options of reset; in the
point's mazes and in parking by moving the point or the car, and the goal; in the Fetch and Panda tasks by moving the goal,
and the object where there is one. Their arm starts in the middle and cannot be turned, and the object is moved, not turned:
what is tried there is how the world answers turned actions from a turned place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..records import OBSERVATION_KEYS, Array, GoalSpec
from ..records.symmetries import Symmetries
from .probe import Environment, GoalFunction, seeded_actions
from .task import TaskEnv

SEEDS, STEPS = (1, 2, 3), 20  # of the episodes that are played from each side, and no more of their steps
EXACT, CLOSE = 1e-5, 0.02  # largest difference of a number that is seen: by rounding alone; as of a world nearly the same
_JOINT = "object0:joint"  # of the object in Fetch

Begin = Callable[[Environment, Array, Array], Any]  # env, start (g,), goal (g,) -> first observation


def compare_rewards(reward: GoalFunction, goals: list[tuple[Array, Array, Any]], group: Symmetries) -> tuple[str, str]:
    """Whether no side changes a reward: of the goals of steps, (N, g) each, and of goals achieved one step before."""
    n_wrong = n_asked = 0
    for achieved, desired, info in goals:
        for asked in (desired, np.roll(achieved, 1, axis=0)):
            paid = np.asarray(reward(achieved, asked, info))
            for element in range(1, len(group)):
                turned, goal = (group.transformed("goal", each, element) for each in (achieved, asked))
                n_wrong += int((~np.isclose(np.asarray(reward(turned, goal, info)), paid)).sum())
                n_asked += len(paid)
    if n_wrong:
        return "error", (
            f"of {n_asked} rewards {n_wrong} are others on another of the {len(group)} augmented: the declaration is not true"
        )
    return "ok", f"{len(group)} augmented, from which {n_asked} rewards are the same"


def compare_steps(env: Environment, spec: GoalSpec, group: Symmetries) -> tuple[str, str]:
    """Whether turned actions lead to turned observations, from every side.

    The median difference decides, for contacts of bodies make the smallest ones large.
    """
    begin = _find_beginning(env)
    if begin is None:
        return "ok", "steps were not tried: it is not known how an episode is begun from another side here"
    differences = np.concatenate([_differences(env, begin, group, seed) for seed in SEEDS])
    usual, worst = float(np.median(differences)), float(differences.max())
    if worst <= EXACT:
        return "ok", f"turned actions lead to turned observations in {len(differences)} steps, but for rounding"
    said = (
        f"turned actions lead to turned observations within {usual:.2g} in half of {len(differences)} steps, and within "
        f"{worst:.2g} in all"
    )
    return ("ok", said) if usual <= CLOSE else ("warning", said + ": the world is not the same from every side")


def _differences(env: Environment, begin: Begin, group: Symmetries, seed: int) -> Array:
    """The largest difference of any number that is seen, after each step of one seeded episode on each other side."""
    first = copy.deepcopy(env.reset(seed=seed)[0])
    start, goal = (np.asarray(first[key], np.float64)[None] for key in OBSERVATION_KEYS[1:])
    actions = np.stack([action for _, action in zip(range(STEPS), seeded_actions(env, seed), strict=False)])
    was = _play(env, begin(env, start[0], goal[0]), actions)
    names, differences = ("observation", "goal", "goal"), []
    for element in range(1, len(group)):
        places = [group.transformed("goal", each, element)[0] for each in (start, goal)]
        env.reset(seed=seed)
        now = _play(env, begin(env, places[0], places[1]), group.transformed("action", actions, element))
        turned = [group.transformed(name, each, element) for name, each in zip(names, was, strict=True)]
        largest = [np.abs(one - other).max(axis=1) for one, other in zip(turned, now, strict=True)]
        differences.append(np.max(largest, axis=0))
    return np.concatenate(differences)


def _play(env: Environment, first: Any, actions: Array) -> list[Array]:
    """What is seen before and after each action, (T + 1, n): observation, achieved goal, desired goal."""
    seen = [first, *(copy.deepcopy(env.step(action)[0]) for action in actions)]
    return [np.stack([np.asarray(each[key], np.float64) for each in seen]) for key in OBSERVATION_KEYS]


def _find_beginning(env: Environment) -> Begin | None:
    """How an episode of this kind of environment is begun, told by the module of its class; None where it is not known."""
    if isinstance(env.unwrapped, TaskEnv):
        return _begin_task
    kinds = (type(env.unwrapped), type(getattr(env.unwrapped, "task", None)))
    modules = [each.__module__ for kind in kinds for each in kind.__mro__]
    for module, begin in _BEGINNINGS.items():
        if module in modules:
            return begin
    return None


def _begin_task(env: Environment, start: Array, goal: Array) -> Any:
    return env.reset(options={"start": start, "goal": goal})[0]


def _begin_fetch(env: Environment, start: Array, goal: Array) -> Any:
    """`start` is the object's place, or the gripper's, which stays where it is."""
    inner: Any = env.unwrapped
    if inner.has_object:
        place = inner._utils.get_joint_qpos(inner.model, inner.data, _JOINT)
        place[: len(start)] = start
        inner._utils.set_joint_qpos(inner.model, inner.data, _JOINT, place)
    inner.goal = goal.copy()
    inner._mujoco.mj_forward(inner.model, inner.data)
    return inner._get_obs()


def _begin_panda(env: Environment, start: Array, goal: Array) -> Any:
    """`start` is the object's place, or the gripper's, which stays where it is."""
    inner: Any = env.unwrapped
    if "object" in inner.sim._bodies_idx:
        inner.sim.set_base_pose("object", start, np.array([0.0, 0.0, 0.0, 1.0]))
    inner.task.goal = goal.copy()
    return inner._get_obs()


def _begin_point_maze(env: Environment, start: Array, goal: Array) -> Any:
    inner: Any = env.unwrapped
    inner.point_env.set_state(start, np.zeros(2))
    inner.goal = goal.copy()
    return inner._get_obs(np.r_[start, np.zeros(2)])


def _begin_parking(env: Environment, start: Array, goal: Array) -> Any:
    """start, goal: x, y, the velocities, and the heading's cosine and sine; the car stands."""
    inner: Any = env.unwrapped
    scales = np.asarray(inner.config["observation"]["scales"])
    for thing, (x, y, _, _, cosine, sine) in ((inner.vehicle, start * scales), (inner.vehicle.goal, goal * scales)):
        thing.position, thing.heading = np.array([x, y]), float(np.arctan2(sine, cosine))
    return inner.observation_type.observe()


_BEGINNINGS: dict[str, Begin] = {  # by the module of the class, or of its task's; each is called after a reset
    "gymnasium_robotics.envs.fetch.fetch_env": _begin_fetch,
    "gymnasium_robotics.envs.maze.point_maze": _begin_point_maze,
    **{f"panda_gym.envs.tasks.{task}": _begin_panda for task in ("reach", "push", "slide", "pick_and_place")},
    "highway_env.envs.parking_env": _begin_parking,
}
