"""What an environment's own functions really do, found out by one reset and one step.

`compute_reward` and `compute_terminated` are written by many hands: some take a batch, some only one goal, some give a
wrong answer without a word. Each is tried here on a few rows, and the answer is a function that can be trusted.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ..errors import GoalEnvError, InputError
from ..records import OBSERVATION_KEYS, Array

GoalFunction = Callable[[Any, Any, Any], Any]
Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True, eq=False)
class Probe:
    """N rows of goals (N, ...) with the info (N, ...) of a step: the step itself, two successes, then invented goals.

    terminated: what the step gave, which is row 0.
    """

    achieved: Array
    desired: Array
    info: dict[str, Array]
    terminated: bool

    def seen_rows(self) -> Probe:
        """The rows whose goals were really seen, for functions that refuse invented ones."""
        return Probe(self.achieved[:3], self.desired[:3], {k: v[:3] for k, v in self.info.items()}, self.terminated)


@dataclass(frozen=True, eq=False)
class Played:
    """An episode of T steps as the environment gave it: lists of T, and of T + 1 for each part of the observation."""

    seed: int
    seen: Mapping[str, list[Array]]
    rewards: list[float]
    terminated: list[bool]
    infos: list[Mapping[str, Any]]

    def goals(self) -> tuple[Array, Array, dict[str, Array]]:
        """Achieved after each step and desired before it (a goal may move once it is reached), with the numeric infos."""
        return np.stack(self.seen["achieved_goal"][1:]), np.stack(self.seen["desired_goal"][:-1]), numeric_info(self.infos)

    def rows(self) -> list[tuple[bytes, ...]]:
        """What was seen, and after it what was paid, as bytes: equal only where every bit is."""
        parts = zip(*(self.seen[key] for key in OBSERVATION_KEYS), [0.0, *self.rewards], strict=True)
        return [tuple(np.asarray(part).tobytes() for part in row) for row in parts]

    def see(self, observation: Any) -> None:
        """Take one more observation, as a copy."""
        for key in OBSERVATION_KEYS:
            self.seen[key].append(np.array(observation[key]))


def name_of(env: Environment) -> str:
    """The id of an environment, or the name of its class."""
    spec = env.unwrapped.spec
    return spec.id if spec is not None else type(env.unwrapped).__name__


@contextlib.contextmanager
def random_state_kept(env: Environment) -> Iterator[None]:
    """Give the environment its random generator back afterwards. (Others, hidden in a simulator, are not reached.)"""
    kept = {name: copy.deepcopy(vars(env.unwrapped).get(name)) for name in ("_np_random", "_np_random_seed")}
    try:
        yield
    finally:
        vars(env.unwrapped).update(kept)


def seeded_actions(env: Environment, seed: int) -> Iterator[Any]:
    """Random actions without end, from a copy of the action space: the environment's own is left as it is."""
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    while True:
        yield space.sample()


def probe(env: Environment) -> Probe:
    """Reset and step once, and arrange in rows what was seen; raises GoalEnvError where that fails."""
    with random_state_kept(env):
        try:
            first = copy.deepcopy(env.reset(seed=0)[0])
            second, _, terminated, _, info = env.step(next(seeded_actions(env, 0)))
            start, goal = np.asarray(first["achieved_goal"]), np.asarray(first["desired_goal"])
            space: Any = env.observation_space
            invented = _from_near_to_far(start, goal, space["desired_goal"])
            achieved = np.stack([np.asarray(second["achieved_goal"]), goal, start, *invented])
            desired = np.stack([goal if i != 2 else start for i in range(len(achieved))])
        except Exception as problem:
            raise GoalEnvError(
                f"{name_of(env)} fails in its first reset and step ({type(problem).__name__}: {problem})"
            ) from problem
    return Probe(achieved, desired, numeric_info([info] * len(achieved)), bool(terminated))


def play(env: Environment, seed: int, max_steps: int) -> Played:
    """An episode of random actions, up to `max_steps` of them; raises GoalEnvError that says at which step it failed."""
    played = Played(seed, {k: [] for k in OBSERVATION_KEYS}, [], [], [])
    try:
        played.see(env.reset(seed=seed)[0])
        for _, action in zip(range(max_steps), seeded_actions(env, seed), strict=False):
            observation, reward, terminated, truncated, info = env.step(action)
            played.see(observation)
            played.rewards.append(float(reward))
            played.terminated.append(bool(terminated))
            played.infos.append(dict(info))
            if terminated or truncated:
                break
    except Exception as problem:
        raise GoalEnvError(
            f"step {len(played.rewards)} of an episode with seed {seed} fails ({type(problem).__name__}: {problem})"
        ) from problem
    return played


def numeric_info(infos: list[Mapping[str, Any]]) -> dict[str, Array]:
    """The numeric values that all of these infos have, as arrays over them."""
    columns = {k: [np.asarray(info.get(k)) for info in infos] for k in (infos[0] if infos else ())}
    return {k: np.stack(v) for k, v in columns.items() if all(x.dtype.kind in "biuf" and x.shape == v[0].shape for x in v)}


def row_by_row(function: GoalFunction) -> GoalFunction:
    """A function of N goals (N, ...) that asks `function` for one goal at a time and gives (N,)."""

    def by_row(achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        infos = _info_rows(info, len(achieved_goal))
        rows = zip(achieved_goal, desired_goal, infos, strict=True)
        return np.array([np.asarray(function(a.copy(), d.copy(), i)).item() for a, d, i in rows])

    return by_row


def reward_function(env: Environment) -> GoalFunction:
    """The environment's reward for N goals: (achieved_goal (N, ...), desired_goal (N, ...), info) -> (N,) floats.

    info: a dict of (N, ...) arrays, or {}. A `compute_reward` that already does this is handed out as it is (the outermost
    wrapper's that has one). One that takes a single goal only, or gives another shape, or writes into its arguments, is
    wrapped so that it works, with one warning. Raises GoalEnvError where there is none, or where it fails or gives NaN.
    The environment is reset, and must be reset again before it goes on.
    """
    function, complaint = measured_reward(env, probe(env))
    if complaint:
        warnings.warn(complaint, UserWarning, stacklevel=2)
    return function


def measured_reward(env: Environment, seen: Probe) -> tuple[GoalFunction, str]:
    """The function of `reward_function` and what is wrong with the environment's own, in a sentence; "" if nothing."""
    name, compute = name_of(env), own_function(env, "compute_reward")
    if compute is None:
        raise GoalEnvError(
            f"{name} has no compute_reward(achieved_goal, desired_goal, info): hindsight cannot do without it"
        )
    try:
        seen, expected = _one_by_one(compute, seen)
    except Exception as problem:
        raise GoalEnvError(
            f"compute_reward of {name} fails for one goal of shape {seen.desired.shape[1:]} "
            f"({type(problem).__name__}: {problem})"
        ) from problem
    if not np.isfinite(expected).all():
        raise GoalEnvError(f"compute_reward of {name} gives {expected.tolist()}: rewards must be finite")
    achieved, desired = seen.achieved.copy(), seen.desired.copy()
    given, is_array = _given(compute, achieved, desired, seen.info)
    fix = "make it take (N, ...) arrays and return an array of shape (N,)"
    if given is None or given.size != expected.size:
        return _flat(row_by_row(compute)), f"compute_reward of {name} takes one goal at a time, which is slow: {fix}"
    n_wrong = int((~np.isclose(given.ravel(), expected, rtol=1e-4, atol=1e-5)).sum())  # a batch may round otherwise
    if n_wrong:
        return _flat(row_by_row(compute)), (
            f"compute_reward of {name} gives other rewards for N goals at once than for each alone ({n_wrong} of "
            f"{len(expected)} tried), so it is asked for each, which is slow: mend it"
        )
    if not (np.array_equal(achieved, seen.achieved) and np.array_equal(desired, seen.desired)):
        return _on_copies(compute), f"compute_reward of {name} writes into its arguments: let it work on copies"
    if given.shape != expected.shape or not is_array:
        what = f"shape {given.shape}" if is_array else "a list"
        return _flat(compute), f"compute_reward of {name} gives {what} for {len(expected)} goals: {fix}"
    return (compute, "") if given.dtype.kind == "f" else (_flat(compute), "")


def terminated_function(env: Environment) -> GoalFunction | None:
    """The environment's own word on which goals end an episode: (achieved_goal, desired_goal, info) -> (N,) bools, or None.

    None where there is no `compute_terminated`, where it fails or contradicts a real step, and where it says no to a goal
    reached as well as to one missed (Fetch, Hand, mazes as continuing tasks): then no goal ends an episode, and what was
    stored stays true. One that is wrong for batches is asked row by row. The environment is reset.
    """
    return None if own_function(env, "compute_terminated") is None else measured_terminated(env, probe(env))[0]


def measured_terminated(env: Environment, seen: Probe) -> tuple[GoalFunction | None, str]:
    """The function of `terminated_function`, and what is wrong with the environment's own in a sentence; "" if nothing."""
    compute = own_function(env, "compute_terminated")
    if compute is None:
        return None, ""
    try:
        seen, expected = _one_by_one(compute, seen)
    except Exception as problem:
        return None, f"compute_terminated fails, so it is not used ({type(problem).__name__}: {problem})"
    expected = expected.astype(bool)
    if expected[0] != seen.terminated:
        return None, f"compute_terminated says {bool(expected[0])} where step says {seen.terminated}, so it is not used"
    if not expected.any():
        return None, ""
    given, is_array = _given(compute, seen.achieved.copy(), seen.desired.copy(), seen.info)
    if is_array and given is not None and given.shape == expected.shape and (given.astype(bool) == expected).all():
        return (compute if given.dtype == bool else _flat(compute, bool)), ""
    return _flat(row_by_row(compute), bool), (
        "compute_terminated is wrong for N goals at once, so it is asked for each, which is slow: give an array (N,)"
    )


def read_success(info: Mapping[str, Any]) -> bool | None:
    """`is_success` of an info, else `success`; None where neither is there. Raises InputError unless it is one value."""
    for key in ("is_success", "success"):
        if info.get(key) is not None:
            value = np.asarray(info[key])
            if value.size != 1 or value.dtype.kind not in "biuf":
                raise InputError(f"{key} in an info must be one truth value, got {info[key]!r}")
            return bool(value.item())
    return None


def own_function(env: Environment, name: str) -> GoalFunction | None:
    """A function of the outermost wrapper that has it, or of the environment; None where there is none."""
    try:
        found = env.get_wrapper_attr(name)
    except AttributeError:
        return None
    return found if callable(found) else None


def _one_by_one(compute: GoalFunction, seen: Probe) -> tuple[Probe, Array]:
    """The rows, and what a function says of each; only the rows really seen, where it has no answer for invented ones."""
    try:
        values = _flat(row_by_row(compute))(seen.achieved, seen.desired, seen.info)
        if np.isfinite(values).all():
            return seen, values
    except Exception:  # the goals that were seen decide
        pass
    seen = seen.seen_rows()
    return seen, _flat(row_by_row(compute))(seen.achieved, seen.desired, seen.info)


def _from_near_to_far(start: Array, goal: Array, space: gymnasium.Space[Any]) -> Array:
    """Achieved goals on the line from `goal` through `start`, close together near the goal, where rewards change.

    They stay in the box of goals. Whole numbers are mixed instead, the first ones of `start` with the last ones of `goal`.
    """
    if goal.dtype.kind == "f":
        shares = np.r_[np.geomspace(0.001, 1, 48), 2, 10, 100].reshape(-1, *[1] * goal.ndim)
        goals = np.asarray(goal + shares * (start - goal), goal.dtype)
        return np.clip(goals, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else goals
    cuts = np.unique(np.linspace(0, goal.size, 9).astype(int))
    return np.stack([np.r_[start.ravel()[:cut], goal.ravel()[cut:]].reshape(goal.shape) for cut in cuts])


def _info_rows(info: Any, n_rows: int) -> list[Mapping[str, Any]]:
    if isinstance(info, Mapping):
        return [{k: v[i] for k, v in info.items()} for i in range(n_rows)]
    return list(info)


def _given(compute: GoalFunction, achieved: Array, desired: Array, info: Any) -> tuple[Array | None, bool]:
    """What a function says about a batch, None where that is no numbers at all, and whether it is an array."""
    try:
        raw = compute(achieved, desired, info)
        given = np.asarray(raw)
    except Exception:  # it does not take batches; what it says about single goals decides
        return None, False
    return (given if given.dtype.kind in "biuf" else None), isinstance(raw, np.ndarray)


def _flat(compute: GoalFunction, dtype: type = np.float64) -> GoalFunction:
    return lambda achieved, desired, info: np.asarray(compute(achieved, desired, info), dtype).reshape(len(achieved))


def _on_copies(compute: GoalFunction) -> GoalFunction:
    flat = _flat(compute)
    return lambda achieved, desired, info: flat(achieved.copy(), desired.copy(), info)
