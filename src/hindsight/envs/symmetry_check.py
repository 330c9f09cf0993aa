"""Check declared symmetries on rewards and, if the options of reset fix the start and the goal, on steps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..errors import GoalEnvError
from ..records import OBSERVATION_KEYS, Array
from ..records.symmetries import Symmetries
from .goal_functions import GoalFunction
from .random_play import Environment, random_actions

SEEDS, STEPS = (1, 2, 3), 20  # episodes for each group element, and their steps
TOLERANCE = 1e-5  # largest difference by rounding


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
    """Return whether transformed actions lead to transformed observations, as a level and a sentence."""
    try:
        differences = np.concatenate([_differences(env, group, seed) for seed in SEEDS])
    except Exception:  # reset has no such options
        return "not seen", "an episode cannot start at a given place: reset needs the options start and goal"
    if differences.max() <= TOLERANCE:
        return "ok", f"transformed actions lead to transformed observations in {len(differences)} steps"
    return "warning", (
        f"after transformed actions, observations differ from the transformed ones by {np.median(differences):.2g} (median "
        f"of {len(differences)} steps) and at most {differences.max():.2g}. The environment does not have these symmetries"
    )


def _differences(env: Environment, group: Symmetries, seed: int) -> Array:
    """Return the largest difference of an observation, after each step of one episode under each group element."""
    first = env.reset(seed=seed)[0]
    start, goal = (np.asarray(first[key], np.float64)[None] for key in OBSERVATION_KEYS[1:])
    actions = np.stack([action for _, action in zip(range(STEPS), random_actions(env, seed), strict=False)])
    original = _play(env, start, goal, actions)
    differences = []
    for element in range(1, len(group)):
        moved = [group.transformed("goal", place, element) for place in (start, goal)]
        other = _play(env, moved[0], moved[1], group.transformed("action", actions, element))
        pairs = zip(("observation", "goal", "goal"), original, other, strict=True)
        largest = [np.abs(group.transformed(part, a, element) - b).max(axis=1) for part, a, b in pairs]
        differences.append(np.max(largest, axis=0))
    return np.concatenate(differences)


def _play(env: Environment, start: Array, goal: Array, actions: Array) -> list[Array]:
    """Return observation, achieved goal and desired goal before and after each action, (T + 1, n) each."""
    observations = [env.reset(options={"start": start[0], "goal": goal[0]})[0]]
    if not (np.allclose(observations[0]["achieved_goal"], start) and np.allclose(observations[0]["desired_goal"], goal)):
        raise GoalEnvError("reset ignores the options start and goal")
    observations += [copy.deepcopy(env.step(action)[0]) for action in actions]
    return [np.stack([np.asarray(each[key], np.float64) for each in observations]) for key in OBSERVATION_KEYS]
