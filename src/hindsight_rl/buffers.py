"""make_buffer: a HindsightBuffer for a Gymnasium environment or vector environment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from .envs.check import check_goal_env
from .envs.goal_env import read_spec
from .envs.goal_functions import reward_function, success_function, terminated_function
from .envs.random_play import name_of
from .errors import GoalEnvError, OptionError, UnknownNameError
from .options import ReplayOptions
from .options.record import unknown_option
from .records.reward_scale import RewardScale
from .replay.buffer import HindsightBuffer
from .training.resolve import with_checked

NOT_FOR_BUFFERS = ("action bounds", "time limit", "success")  # checks of what only `train` and HER need


def make_buffer(
    env: Any,
    capacity: int,
    options: ReplayOptions = ReplayOptions(),  # noqa: B008 - the record is frozen
    *,
    seed: int | np.random.Generator = 0,
    discount: float = 0.98,
    subgoals: Sequence[str] = (),
    success_reward: float | None = None,
    episode_length: int | None = None,
    **unknown: object,
) -> HindsightBuffer:
    """Return a HindsightBuffer for `env`, a goal environment of Gymnasium or a vector environment of them.

    Spaces, compute_reward, compute_terminated, the number of environments, the time limit (inside wrappers too) and the
    autoreset mode are read from `env`. The environment is played, as `hindsight-rl check` does, to find whether
    successes end an episode, and which entries of info the reward needs. Call it before `env.reset()`: the play leaves
    it in another state. Errors that the play shows are warnings, and so is a task in which no success was seen.
    capacity, options, seed, discount, subgoals: as for HindsightBuffer.
    success_reward: reward of a success. None: compute_success of `env` decides, else the higher of two rewards, else 0.
        Samples with a subgoal get it where the subgoal is reached, elsewhere the lower of two rewards, else one less.
    episode_length: usual number of steps per episode. None: the time limit.
    Raises GoalEnvError if `env` is not a goal environment, and OptionError for options that do not fit it.
    """
    _refuse_other_arguments(env, options, unknown)
    single = _one_of(env) if isinstance(env, VectorEnv) else env
    _warn_if_reset(single)
    spec = read_spec(single)
    compute_terminated = terminated_function(single)
    options = _with_findings(options, single, compute_terminated is not None, bool(subgoals))
    compute_success, scale = None, RewardScale.of_task(spec)
    if success_reward is None:
        success_reward = scale.success if scale else 0.0
        compute_success = success_function(single) if options.relabel_terminated == "success" else None
    return HindsightBuffer(
        capacity,
        single.observation_space,
        single.action_space,
        reward_function(single),
        n_envs=getattr(env, "num_envs", 1),
        autoreset=_autoreset(env),
        seed=seed,
        options=options,
        compute_terminated=compute_terminated,
        compute_success=compute_success,
        success_reward=success_reward,
        failure_reward=scale.failure if scale else None,
        episode_length=spec.max_episode_steps if episode_length is None else episode_length,
        discount=discount,
        subgoals=subgoals,
    )


def _refuse_other_arguments(env: Any, options: Any, unknown: dict[str, object]) -> None:
    """Raise OptionError for another environment or record of options, and UnknownNameError for unknown arguments."""
    if not isinstance(env, gymnasium.Env | VectorEnv):
        raise OptionError(f"`env` must be an environment, for example gymnasium.make('PointReach-v0'), got {env!r}.")
    if not isinstance(options, ReplayOptions):
        raise OptionError(f"`options` must be a ReplayOptions, for example ReplayOptions(n_steps=3), got {options!r}.")
    for name, value in unknown.items():
        if name in ReplayOptions.model_fields:
            raise UnknownNameError(f"`{name}` is a replay option. Pass options=ReplayOptions({name}={value!r}).")
        raise UnknownNameError(unknown_option(name, make_buffer.__annotations__, "make_buffer"))


def _warn_if_reset(env: Any) -> None:
    """Warn if the environment was reset before. Environments that gymnasium.make returns know it."""
    if isinstance(env, gymnasium.Wrapper) and env.has_wrapper_attr("has_reset") and env.get_wrapper_attr("has_reset"):
        _warn(f"make_buffer plays {name_of(env)}, which was reset before. Reset it again before the next step.")


def _with_findings(options: ReplayOptions, env: Any, has_termination: bool, has_subgoals: bool) -> ReplayOptions:
    """Return the options, with those that follow from a check of the environment where none are given.

    Errors of the check are warnings here. has_termination: whether compute_terminated of the environment is used.
    has_subgoals: then no extra reward can be added.
    """
    report = check_goal_env(env, reward=options.reward)
    for finding in report.of("error"):
        if finding.name not in NOT_FOR_BUFFERS and not (finding.name == "reward values" and options.extra_reward):
            _warn(f"check of {report.env}: {finding.name}: {finding.sentence}.")
    if report.facts is None:
        return options
    options = with_checked(options, report.facts.choices(), ["extra_reward"] if has_subgoals else [])
    if report.facts.terminates_on_success is None and options.relabel_terminated is None and not has_termination:
        _warn(
            f"The play of {report.env} does not show whether a success ends an episode, so `terminated` of relabelled "
            f'samples stays as stored. Pass ReplayOptions(relabel_terminated="success") if a success ends it, else "keep".'
        )
    return options


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)


def _one_of(env: Any) -> Any:
    """Return one environment of a vector environment: its first, or a new one if they run in other processes."""
    base = env.unwrapped
    if getattr(base, "envs", None):
        return base.envs[0]
    if getattr(base, "env_fns", None):
        return base.env_fns[0]()
    if base.spec is not None:
        return gymnasium.make(base.spec.id, **base.spec.kwargs)
    name = type(base).__name__
    raise GoalEnvError(f"make_buffer needs one environment of {name}, but finds none. Use HindsightBuffer instead.")


def _autoreset(env: Any) -> Any:
    """Return the autoreset mode. For a single environment, Gymnasium's wrapper Autoreset resets in the next step."""
    if isinstance(env, VectorEnv):
        if "autoreset_mode" not in env.metadata:
            name = type(env.unwrapped).__name__
            raise GoalEnvError(f"metadata of {name} must have 'autoreset_mode', a gymnasium.vector.AutoresetMode.")
        return env.metadata["autoreset_mode"]
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.Autoreset):
            return "next_step"
        env = env.env
    return "disabled"
