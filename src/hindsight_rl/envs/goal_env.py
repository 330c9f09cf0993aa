"""Make any Gymnasium goal environment from an id or a function, and read its task."""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import VectorEnv

from ..errors import GoalEnvError, HindsightError, OptionError
from ..options import ReplayOptions
from ..options.replay import RewardSource
from ..records import Array, GoalSpec
from .call_forms import GoalFunction
from .flatten import FlattenGoalEnv
from .goal_functions import find_reward, own_function
from .ids import make_by_id
from .random_play import Environment, name_of, play_actions, random_actions, random_state_kept
from .recomputed_reward import RecomputedReward
from .rendering import prepare_rendering, render_once
from .sample_goals import SampleGoals, sample_goals
from .step_counter import StepCounter

EnvSource = str | Callable[..., Environment] | Environment
KEEP_THE_TASK = (  # wrappers that change neither observations nor actions nor rewards
    FlattenGoalEnv,  # its keys are an option of the run
    RecomputedReward,  # so is this
    StepCounter,
    wrappers.HumanRendering,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.TimeLimit,
)
INFO_STEPS = 10  # of which infos are tried, if the reward reads the info
LIMIT_NAMES = ("_max_episode_steps", "max_episode_steps", "max_steps")  # attributes of environments and wrappers


def make_goal_env(
    env: EnvSource,
    render_mode: str | None = None,
    env_options: Mapping[str, Any] | None = None,
    observation_keys: Sequence[str] = (),
    reward: RewardSource = "step",
) -> Environment:
    """Return a goal environment.

    env: a registered id ("module:id" imports the module first), a function that makes an environment, or an environment.
    render_mode: passed to the id's constructor, or to a function with a parameter of that name. "rgb_array" renders one
        frame, so that a machine that cannot render fails here.
    env_options: keyword arguments of the id's constructor, or of the function.
    observation_keys: further keys of the observation to append to it.
    reward: "recompute" replaces the rewards of `step` by those of compute_reward.
    Raises UnknownNameError for an unknown or retired id, MissingExtraError for a missing package (with the line that
    installs it), GoalEnvError for what is not a goal environment, OptionError for wrong arguments.
    """
    recomputes = ReplayOptions(reward=reward).reward == "recompute"
    prepare_rendering(render_mode)
    made = _make(env, render_mode, dict(env_options or {}))
    try:
        wrapped = FlattenGoalEnv(made, observation_keys) if observation_keys else made
        require_goals(wrapped)
        wrapped = RecomputedReward(wrapped) if recomputes else wrapped
        if render_mode is not None and made.render_mode != render_mode:
            raise OptionError(f"render_mode must be {render_mode!r}, but {name_of(made)} has {made.render_mode!r}.")
        if render_mode == "rgb_array":
            render_once(wrapped)
    except Exception:
        if made is not env:
            with contextlib.suppress(Exception):  # the first error is the one to report
                made.close()
        raise
    return wrapped


def _make(env: EnvSource, render_mode: str | None, options: dict[str, Any]) -> Environment:
    if isinstance(env, str):
        return make_by_id(env, render_mode, options)
    if isinstance(env, gymnasium.Env):
        if options:
            raise OptionError(f"env_options {sorted(options)} need an id or a function, got an environment that exists.")
        return env
    if isinstance(env, VectorEnv):
        raise OptionError(
            f"An environment must be a single one, got the vector environment {env!r}. Pass one environment, its id, or a "
            f"function that makes one: `workers` plays in parallel. make_buffer accepts vector environments."
        )
    if not callable(env):
        raise OptionError(f"An environment must be an id, a function that makes one, or a gymnasium.Env, got {env!r}.")
    if render_mode is not None and "render_mode" in inspect.signature(env).parameters:
        options["render_mode"] = render_mode
    try:
        made = env(**options)
    except HindsightError:
        raise
    except Exception as problem:
        raise GoalEnvError(f"{env!r} failed to make an environment ({type(problem).__name__}: {problem}).") from problem
    if not isinstance(made, gymnasium.Env):
        raise GoalEnvError(f"{env!r} must return a gymnasium.Env, got {type(made).__name__}.")
    return made


def require_goals(env: Environment) -> None:
    """Raise GoalEnvError unless the spaces are those of a goal environment and it has a compute_reward."""
    spaces: list[Any] = [getattr(env, name, None) for name in ("observation_space", "action_space")]
    try:
        GoalSpec.from_spaces(spaces[0], spaces[1])
    except GoalEnvError as problem:
        raise GoalEnvError(f"{name_of(env)} is not a goal environment: {problem}") from None
    if own_function(env, "compute_reward") is None:
        raise GoalEnvError(
            f"{name_of(env)} is not a goal environment: it has no compute_reward(achieved_goal, desired_goal, info), which "
            f"relabelling needs."
        )


def read_spec(env: Environment, env_options: Mapping[str, Any] | None = None) -> GoalSpec:
    """Return the task of a goal environment: shapes, dtypes, bounds, time limit, reward range, id.

    The reward range is known if `compute_reward` returns exactly two values, such as -1 and 0, for goals from reached to
    far away; otherwise it is infinite. The environment is reset with a fixed seed and stepped once. If the reward reads
    the info, a few random steps are played besides. The random state is kept; reset the environment before the next step.
    env_options: the arguments with which the registered environment was made. If others or a wrapper may change its task,
        the spec has no id.
    """
    require_goals(env)
    spec = env.unwrapped.spec
    env_id = spec.id if spec is not None and change_of(env, env_options or {}) is None else None
    return GoalSpec.from_spaces(env.observation_space, env.action_space, time_limit(env), _reward_range(env), env_id)


def change_of(env: Environment, env_options: Mapping[str, Any]) -> str | None:
    """Return the wrapper or argument that may change the task of a registered environment; None if there is none.

    env_options: the arguments that belong to the task. Wrappers inside that of `gymnasium.make` belong to it too.
    """
    layer, spec = env, env.unwrapped.spec
    while isinstance(layer, gymnasium.Wrapper) and type(layer) is not wrappers.OrderEnforcing:
        if type(layer) not in KEEP_THE_TASK:
            return type(layer).__name__
        layer = layer.env
    registered = gymnasium.registry.get(spec.id) if spec is not None else None
    known = {**(registered.kwargs if registered else {}), **env_options}
    given = spec.kwargs.items() if spec is not None else ()
    return next((f"{k}={v!r}" for k, v in given if k != "render_mode" and repr(known.get(k)) != repr(v)), None)


def _reward_range(env: Environment) -> tuple[float, float]:
    """Return the two values of a sparse reward, or infinities."""
    try:
        samples = sample_goals(env)
        reward, _ = find_reward(env, samples)
        rewards = np.asarray(reward(samples.achieved, samples.desired, samples.info), np.float64)
        if _reads_info(reward, samples):  # other steps may add something else, such as the cost of their action
            rewards = np.append(rewards, _rewards_of_other_steps(env, reward, samples))
    except Exception:  # it rejects made-up goals; `reward_function` reports other errors
        return -np.inf, np.inf
    values = np.unique(rewards + 0.0)  # -0.0 becomes 0.0
    return (float(values[0]), float(values[1])) if len(values) == 2 else (-np.inf, np.inf)


def _reads_info(reward: GoalFunction, samples: SampleGoals) -> bool:
    """Return whether a reward changes with the numbers of the info, or fails for others."""
    other = {key: ~values if values.dtype.kind == "b" else values + 1 for key, values in samples.info.items()}
    try:
        rewards, others = (reward(samples.achieved, samples.desired, info) for info in (samples.info, other))
    except GoalEnvError:
        return True
    return not np.array_equal(rewards, others)


def _rewards_of_other_steps(env: Environment, reward: GoalFunction, samples: SampleGoals) -> Array:
    """Return the rewards of the sample goals with the infos of an episode of random actions."""
    with random_state_kept(env):
        episode = play_actions(env, 0, islice(random_actions(env, 0), INFO_STEPS))
    info, steps, n_goals = episode.goals()[2], len(episode), len(samples.achieved)
    achieved, desired = (np.repeat(goals, steps, axis=0) for goals in (samples.achieved, samples.desired))
    repeated = {key: np.concatenate([values] * n_goals) for key, values in info.items()}
    return np.asarray(reward(achieved, desired, repeated), np.float64)


def close_env(env: Environment) -> None:
    """Close an environment. If that raises, warn: what was collected is not affected."""
    try:
        env.close()
    except Exception as problem:
        message = f"close() of {name_of(env)} failed ({type(problem).__name__}: {problem})."
        warnings.warn(message, UserWarning, stacklevel=2)


def time_limit(env: Environment) -> int | None:
    """Return the smallest limit of steps per episode that the environment or a wrapper names; None if there is none.

    env: of a vector environment, the first one counts.
    """
    limits: list[Any] = []
    layer: Any = getattr(env.unwrapped, "envs", [env])[0]
    while layer is not None:
        limits += [getattr(layer, name, None) for name in LIMIT_NAMES]
        layer = layer.env if isinstance(layer, gymnasium.Wrapper) else None
    if env.unwrapped.spec is not None:
        limits.append(env.unwrapped.spec.max_episode_steps)
    config = getattr(env.unwrapped, "config", None)
    if isinstance(config, Mapping) and {"duration", "policy_frequency"} <= set(config):  # highway-env counts seconds
        limits.append(math.ceil(config["duration"] * config["policy_frequency"]))
    return min((int(n) for n in limits if isinstance(n, int | np.integer) and n > 0), default=None)


def resets_exactly(env: Environment, max_steps: int = 100) -> bool:
    """Return whether a reset with a seed makes a used environment equal to a new one, bit by bit.

    env: a new environment. It plays an episode of up to `max_steps` seeded random actions, then another, then the first one
        again. Reset it before the next step.
    False for panda-gym's tasks with objects, because their contacts outlast a reset.
    """
    new, _, used = (play_actions(env, seed, islice(random_actions(env, seed), max_steps)) for seed in (1, 2, 1))
    return used.to_bytes() == new.to_bytes()
