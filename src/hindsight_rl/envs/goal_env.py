"""Make any Gymnasium goal environment from an id or a function, and read its task."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import io
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.envs.registration import find_highest_version, parse_env_id
from gymnasium.vector import VectorEnv
from packaging.requirements import Requirement

from ..errors import GoalEnvError, HindsightError, MissingExtraError, OptionError, UnknownNameError, install_line, nearest
from ..options import ReplayOptions
from ..options.replay import RewardSource
from ..records import GoalSpec
from .goal_functions import find_reward, own_reward, sample_goals
from .random_play import Environment, describe_failure, name_of, play, random_state_kept
from .wrappers import NUMBERED, DiscreteActions, FlattenGoalEnv, RecomputedReward, StepCounter

EnvSource = str | Callable[..., Environment] | Environment
ROBOTICS = "gymnasium_robotics"
SIMULATORS = {  # prefixes of ids: (module that registers them, extra that installs it)
    ("Fetch", "Hand", "AntMaze", "PointMaze", "FrankaKitchen"): (ROBOTICS, "robotics"),
    ("Panda",): ("panda_gym", "panda"),
    ("parking",): ("highway_env", "parking"),
}
MUJOCO = "mujoco>=3.3,<3.10"  # newer versions break every Fetch environment with an empty AssertionError
PIP_MUJOCO = f'pip install "{MUJOCO}"'
APT_GL = "apt-get install -y libegl1 libgl1-mesa-dri"
KEEP_THE_TASK = (  # wrappers that change neither observations nor actions nor rewards, or that runs use by themselves
    FlattenGoalEnv,  # its keys are an option of the run
    RecomputedReward,  # so is this
    DiscreteActions,  # the task decides it
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
    """Return a goal environment. MultiDiscrete and MultiBinary actions are numbered, see `DiscreteActions`.

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
        wrapped = DiscreteActions(wrapped) if isinstance(wrapped.action_space, NUMBERED) else wrapped
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
        raise GoalEnvError(f"{env!r} failed to make an environment ({describe_failure(problem)}).") from problem
    if not isinstance(made, gymnasium.Env):
        raise GoalEnvError(f"{env!r} must return a gymnasium.Env, got {type(made).__name__}.")
    return made


def make_by_id(env_id: str, render_mode: str | None, options: Mapping[str, Any]) -> Environment:
    """Return a registered environment.

    env_id: "module:id" imports that module first. Of a simulator's ids, only the newest version is accepted; a function can
        make an older one.
    options: keyword arguments of its constructor.
    Raises UnknownNameError for an unknown or retired id, MissingExtraError for a missing package, GoalEnvError if the
    environment cannot be made or its module fails.
    """
    module, _, env_id = env_id.rpartition(":")
    if module:
        _import(module, f"install the package of {module}, run it in the folder of {module}.py, or set PYTHONPATH.")
    elif env_id not in gymnasium.registry or str(gymnasium.registry[env_id].entry_point).startswith(ROBOTICS):
        _import_simulator(env_id)
    given: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    try:
        with _c_output_on_stderr():
            return gymnasium.make(env_id, disable_env_checker=True, **given, **options)  # check_goal_env checks more
    except HindsightError:
        raise
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
        hint = f"If a package registers it, write PACKAGE:{env_id}."
        if module:
            name, _, version = env_id.partition("-v")
            registers = (
                f'gymnasium.register("{name}-v{version or 0}", entry_point="{module}:{name}", max_episode_steps=100)'
            )
            hint = f"The module {module} must register it, as with {registers}."
        in_namespace = [each for each in gymnasium.registry if each.endswith(f"/{env_id}")]
        near = f" Did you mean '{module}:{in_namespace[0]}'?" if in_namespace else nearest(env_id, gymnasium.registry)
        raise UnknownNameError(f"Environment {env_id!r} is not registered.{near} {hint}") from None
    except gymnasium.error.DependencyNotInstalled as problem:
        raise MissingExtraError(f"{env_id} needs a package that cannot be imported: {problem}") from problem
    except Exception as problem:
        with_options = f" with the options {dict(options)}" if options else ""
        raise GoalEnvError(f"{env_id} cannot be made{with_options} ({describe_failure(problem)}).") from problem


def _import_simulator(env_id: str) -> None:
    """Import the package of a simulator's id, if it is one. Raises UnknownNameError unless it is the newest version."""
    found = next((package for prefixes, package in SIMULATORS.items() if env_id.startswith(prefixes)), None)
    if found is None:
        return
    module, extra = found
    install = install_line(extra)
    if module == ROBOTICS:
        _require_mujoco(install)
    with contextlib.redirect_stderr(io.StringIO()):  # notices about environments without goals
        gymnasium.register_envs(_import(module, install))
    namespace, name, version = parse_env_id(env_id)
    newest = find_highest_version(namespace, name)
    if newest is not None and (version is None or version < newest):
        raise UnknownNameError(f"{env_id!r} is not the newest version. Use '{name}-v{newest}'.")


@contextlib.contextmanager
def _c_output_on_stderr() -> Iterator[None]:
    """Keep what C code prints away from stdout: PyBullet prints its arguments whenever an environment is made."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(stdout, 1)
        os.close(stdout)


def _import(module: str, fix: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as problem:
        if os.environ.get("MUJOCO_GL") and module == ROBOTICS and not isinstance(problem, ModuleNotFoundError):
            fix = f"MUJOCO_GL={os.environ['MUJOCO_GL']} needs libraries that may be missing: {APT_GL}"
        elif not isinstance(problem, ModuleNotFoundError):
            raise GoalEnvError(f"{module} cannot be imported ({describe_failure(problem)}).") from problem
        raise MissingExtraError(f"{module} cannot be imported ({problem}). Try: {fix}") from problem


def _require_mujoco(install: str) -> None:
    """Raise MissingExtraError unless MuJoCo is installed in a version that gymnasium-robotics works with."""
    try:
        found = metadata.version("mujoco")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"MuJoCo is not installed. Try: {install}") from None
    if not Requirement(MUJOCO).specifier.contains(found, prereleases=True):
        # MuJoCo 4 consists of several packages, which remain and break an older version that is installed over them.
        first = "pip uninstall -y mujoco mujoco-core mujoco-studio && " if found.startswith("4") else ""
        raise MissingExtraError(f"MuJoCo {found} is installed, but 3.3 to 3.9 is needed. Try: {first}{PIP_MUJOCO}")


def has_display() -> bool:
    """Return whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def prepare_rendering(render_mode: str | None) -> None:
    """Select EGL if there is no display and MUJOCO_GL is not set. Call it before a simulator is imported.

    Raises GoalEnvError for render_mode="human" without a display.
    """
    if render_mode is None or has_display():
        return
    if render_mode == "human":
        raise GoalEnvError("render_mode='human' needs a display, and there is none. Use render_mode='rgb_array'.")
    os.environ.setdefault("MUJOCO_GL", "egl")


def render_once(env: Environment) -> None:
    """Reset the environment and render one frame. Raises MissingExtraError or GoalEnvError if that fails."""
    with random_state_kept(env):
        try:
            env.reset(seed=0)
            if env.render() is None:
                raise GoalEnvError("render() returned None")
        except Exception as problem:
            message = f"{name_of(env)} cannot be rendered ({type(problem).__name__}: {problem})."
            if "mujoco" in sys.modules:
                raise MissingExtraError(f"{message} Try: {APT_GL}") from problem
            raise GoalEnvError(message) from problem


def require_goals(env: Environment) -> None:
    """Raise GoalEnvError unless the spaces are those of a goal environment and it has a compute_reward."""
    spaces: list[Any] = [getattr(env, name, None) for name in ("observation_space", "action_space")]
    try:
        GoalSpec.from_spaces(spaces[0], spaces[1])
    except GoalEnvError as problem:
        raise GoalEnvError(f"{name_of(env)} is not a goal environment: {problem}") from None
    own_reward(env)


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
        rewards = reward(samples.achieved, samples.desired, samples.info)
        if samples.info.keys() & reward.entries_read(*samples.goals([0])):
            # other steps may add another number, such as the cost of their action
            with random_state_kept(env):
                episode = play(env, 0, INFO_STEPS)
            goal, at = np.indices((len(rewards), len(episode))).reshape(2, -1)
            info = {key: values[at] for key, values in episode.goals()[2].items()}
            rewards = np.append(rewards, reward(*samples.goals(goal)[:2], info))
    except Exception:  # it rejects made-up goals; `reward_function` reports other errors
        return -np.inf, np.inf
    values = np.unique(rewards.astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    return (float(values[0]), float(values[1])) if len(values) == 2 else (-np.inf, np.inf)


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
    steps = [int(n) for n in limits if isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0]
    return min(steps, default=None)


def resets_exactly(env: Environment, max_steps: int = 100) -> bool:
    """Return whether a reset with a seed makes a used environment equal to a new one, bit by bit.

    env: a new environment. It plays an episode of up to `max_steps` seeded random actions, then another, then the first one
        again. Reset it before the next step.
    False for panda-gym's tasks with objects, because their contacts outlast a reset.
    """
    new, _, used = (play(env, seed, max_steps) for seed in (1, 2, 1))
    return used.to_bytes() == new.to_bytes()
