"""make_buffer: a HindsightBuffer for a Gymnasium environment or vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from .envs.check import check_goal_env
from .envs.goal_env import read_spec
from .envs.goal_functions import reward_function, terminated_function
from .errors import GoalEnvError
from .options import ReplayOptions
from .replay.buffer import HindsightBuffer


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
) -> HindsightBuffer:
    """Return a HindsightBuffer for `env`, a goal environment of Gymnasium or a vector environment of them.

    Spaces, compute_reward, compute_terminated, the number of environments, the time limit (inside wrappers too) and the
    autoreset mode are read from `env`. The environment is played, as `hindsight check` does, to find whether successes end
    an episode, and which entries of info the reward needs. Call it before `env.reset()`.
    capacity, options, seed, discount, subgoals: as for HindsightBuffer.
    success_reward: reward of a success. None: the higher one if there are two rewards, else 0.
    episode_length: usual number of steps per episode. None: the time limit.
    Raises GoalEnvError if `env` is not a goal environment, and OptionError for options that do not fit it.
    """
    single = _one_of(env) if isinstance(env, VectorEnv) else env
    spec = read_spec(single)
    options = _with_findings(options, single)
    if success_reward is None:
        success_reward = spec.reward_high if np.isfinite(spec.reward_high) else 0.0
    return HindsightBuffer(
        capacity,
        single.observation_space,
        single.action_space,
        reward_function(single),
        n_envs=getattr(env, "num_envs", 1),
        autoreset=_autoreset(env),
        seed=seed,
        options=options,
        compute_terminated=terminated_function(single),
        success_reward=success_reward,
        episode_length=spec.max_episode_steps if episode_length is None else episode_length,
        discount=discount,
        subgoals=subgoals,
    )


def _with_findings(options: ReplayOptions, env: Any) -> ReplayOptions:
    """Return the options, with those that follow from a check of the environment where none are given."""
    facts = check_goal_env(env).facts
    found = {name: value for name, (value, _) in facts.settings().items()} if facts else {}
    is_open = ReplayOptions.model_fields.keys() - options.model_fields_set
    return options.replace(**{name: found[name] for name in found.keys() & is_open})


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
