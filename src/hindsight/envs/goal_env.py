"""Any Gymnasium goal environment: made from an id or a function, its task read, its promises checked."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..errors import GoalEnvError, MissingExtraError, OptionError
from ..records import OBSERVATION_KEYS, GoalSpec
from .check import CheckReport, Finding, examine
from .ids import APT_GL, make_by_id, prepare_rendering
from .probe import (
    Environment,
    Probe,
    measured_reward,
    name_of,
    own_function,
    play,
    probe,
    random_state_kept,
    read_success,
    reward_function,
    terminated_function,
)

__all__ = [
    "CheckReport",
    "Finding",
    "check_goal_env",
    "make_goal_env",
    "read_spec",
    "read_success",
    "resets_exactly",
    "reward_function",
    "terminated_function",
]

EnvSource = str | Callable[..., Environment] | Environment


def make_goal_env(
    env: EnvSource, render_mode: str | None = None, env_options: Mapping[str, Any] | None = None
) -> Environment:
    """A goal environment from a registered id ("module:id" imports the module first), a function, or an environment.

    render_mode: the environment is reset and drawn once, so that a machine that cannot draw says so here; a function gets
    it where it has a parameter of that name. env_options: keyword arguments for the id's constructor, or for the function.
    Raises UnknownNameError (the nearest names, the current one of a retired id), MissingExtraError (the line that installs
    what is missing) and GoalEnvError (what is not as a goal environment must be).
    """
    made = make_env(env, render_mode, env_options)
    try:
        _require_goals(made)
        if render_mode == "rgb_array":
            _draw_once(made)
    except Exception:
        if made is not env:
            with contextlib.suppress(Exception):  # what cannot draw may not close either; the first problem is told
                made.close()
        raise
    return made


def make_env(env: EnvSource, render_mode: str | None, env_options: Mapping[str, Any] | None) -> Environment:
    """As `make_goal_env`, without a look at the goals."""
    prepare_rendering(render_mode)
    options = dict(env_options or {})
    if isinstance(env, str):
        return make_by_id(env, render_mode, options)
    if not isinstance(env, gymnasium.Env):
        if not callable(env):
            raise OptionError(f"an environment is an id, a function that makes one or a gymnasium.Env, got {env!r}")
        if render_mode is not None and "render_mode" in inspect.signature(env).parameters:
            options["render_mode"] = render_mode
        made = _call(env, options)
        if not isinstance(made, gymnasium.Env):
            raise GoalEnvError(f"{env!r} made a {type(made).__name__}, but a gymnasium.Env is needed")
        env = made
    elif options:
        raise OptionError(
            f"env_options {sorted(options)} cannot be given to an environment that exists: give its id, or a function"
        )
    if render_mode is not None and env.render_mode != render_mode:
        raise OptionError(
            f"{name_of(env)} has render_mode={env.render_mode!r} where {render_mode!r} is wanted: make it with that, or "
            f"give its id, or a function with a parameter render_mode"
        )
    return env


def _call(function: Callable[..., Environment], options: Mapping[str, Any]) -> Any:
    if not options:
        return function()
    try:
        inspect.signature(function).bind(**options)
    except TypeError as problem:
        raise OptionError(
            f"{getattr(function, '__name__', function)} cannot be called with env_options {dict(options)} ({problem}): "
            f"name what it takes"
        ) from None
    return function(**options)


def read_spec(env: Environment) -> GoalSpec:
    """The task of a goal environment: shapes, dtypes, bounds, time limit, reward range, id.

    The time limit is the smallest of what TimeLimit, the spec, `max_episode_steps`, `max_steps` and highway-env's duration
    say. The reward range is known where `compute_reward` gives exactly two values for goals from reached to far off, as -1
    and 0, and infinite otherwise. The environment is reset with a fixed seed and stepped once; it must be reset before it
    goes on, and draws the same random numbers as if nothing had happened.
    """
    _require_goals(env)
    try:
        reward_range = _reward_range(env, probe(env))
    except GoalEnvError:  # the shapes are known all the same; reward_function tells what is wrong
        reward_range = (-np.inf, np.inf)
    spec = env.unwrapped.spec
    env_id = spec.id if spec is not None else None
    return GoalSpec.from_spaces(env.observation_space, env.action_space, time_limit(env), reward_range, env_id)


def check_goal_env(
    env: EnvSource, env_options: Mapping[str, Any] | None = None, symmetries: Sequence[str] = ()
) -> CheckReport:
    """What an environment keeps of the promises that hindsight rests on, found by playing two seeded random episodes.

    Takes what `make_goal_env` takes, and raises only for an unknown id, a missing package or a wrong option; whatever the
    environment does wrong stands in the report. symmetries: turns and mirrors that are said to change nothing, as
    `hindsight.records.symmetries` writes them: tried on rewards, and on steps where that can be. An environment that is
    handed over is left reset, and must be reset again.
    """
    try:
        made = make_env(env, None, env_options)
    except (OptionError, MissingExtraError):
        raise
    except Exception as problem:
        return CheckReport(str(env), (Finding("error", "making", f"{type(problem).__name__}: {problem}"),))
    try:
        return examine(made, read_spec(made), symmetries)
    except GoalEnvError as problem:
        return CheckReport(name_of(made), (Finding("error", "spaces", str(problem)),))
    finally:
        if made is not env:
            made.close()


def time_limit(env: Environment) -> int | None:
    """The smallest limit on the steps of an episode that the environment or a wrapper names, None without one."""
    limits: list[Any] = []
    layer: Any = env
    while layer is not None:
        limits += [getattr(layer, name, None) for name in ("_max_episode_steps", "max_episode_steps", "max_steps")]
        layer = layer.env if isinstance(layer, gymnasium.Wrapper) else None
    if env.unwrapped.spec is not None:
        limits.append(env.unwrapped.spec.max_episode_steps)
    config = getattr(env.unwrapped, "config", None)
    if isinstance(config, Mapping) and {"duration", "policy_frequency"} <= set(config):  # highway-env counts seconds
        limits.append(math.ceil(config["duration"] * config["policy_frequency"]))
    return min((int(n) for n in limits if isinstance(n, int | np.integer) and n > 0), default=None)


def resets_exactly(
    env: str | Callable[..., Environment], env_options: Mapping[str, Any] | None = None, max_steps: int = 100
) -> bool:
    """Whether a reset with a seed makes a used environment the same, bit by bit, as a fresh one.

    Two environments are made; one plays an episode first, then both play one of up to `max_steps` seeded random actions.
    False for panda-gym's tasks with objects, whose contacts outlive a reset.
    """
    fresh, used = make_goal_env(env, env_options=env_options), make_goal_env(env, env_options=env_options)
    try:
        play(used, 2, max_steps)
        return play(used, 1, max_steps).rows() == play(fresh, 1, max_steps).rows()
    finally:
        fresh.close()
        used.close()


def _require_goals(env: Environment) -> None:
    name = name_of(env)
    space: Any = getattr(env, "observation_space", None)
    action: Any = getattr(env, "action_space", None)
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    for key in OBSERVATION_KEYS:
        if isinstance(part := parts.get(key), spaces.Dict | spaces.Tuple):
            raise GoalEnvError(
                f"{key} of {name} is itself a {type(part).__name__} space, but one array is needed: wrap the environment "
                f"in a gymnasium.Wrapper that flattens its goals with gymnasium.spaces.flatten, in the observations and in "
                f"a compute_reward of its own"
            )
    try:
        GoalSpec.from_spaces(space, action)
    except GoalEnvError as problem:
        raise GoalEnvError(f"{name} is no goal environment: {problem}") from None
    if own_function(env, "compute_reward") is None:
        raise GoalEnvError(
            f"{name} is no goal environment: it has no compute_reward(achieved_goal, desired_goal, info), without which a "
            f"goal cannot be put in hindsight"
        )


def _draw_once(env: Environment) -> None:
    with random_state_kept(env):
        try:
            env.reset(seed=0)
            if env.render() is None:
                raise GoalEnvError("render() gives None")
        except Exception as problem:
            said = f"{name_of(env)} cannot draw ({type(problem).__name__}: {problem})"
            if "mujoco" in sys.modules:
                raise MissingExtraError(f"{said}: {APT_GL}") from problem
            raise GoalEnvError(said) from problem


def _reward_range(env: Environment, seen: Probe) -> tuple[float, float]:
    reward, _ = measured_reward(env, seen)
    try:
        values = np.unique(np.asarray(reward(seen.achieved.copy(), seen.desired.copy(), seen.info), np.float64) + 0.0)
    except Exception:  # it refuses invented goals, and the few that were seen do not tell sparse from dense
        values = np.zeros(0)
    return (float(values[0]), float(values[1])) if len(values) == 2 else (-np.inf, np.inf)  # + 0.0: -0.0 is 0.0
