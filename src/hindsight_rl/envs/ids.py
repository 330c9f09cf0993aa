"""Make environments by id, after importing the package that registers them."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

import gymnasium
from gymnasium.envs.registration import find_highest_version, parse_env_id

from ..errors import GoalEnvError, HindsightError, MissingExtraError, UnknownNameError, nearest
from ..extras import install_line
from .random_play import Environment
from .rendering import APT_GL

ROBOTICS = "gymnasium_robotics"
SIMULATORS = {  # prefixes of ids: (module that registers them, extra that installs it)
    ("Fetch", "Hand", "AntMaze", "PointMaze", "FrankaKitchen"): (ROBOTICS, "robotics"),
    ("Panda",): ("panda_gym", "panda"),
    ("parking",): ("highway_env", "parking"),
}
MUJOCO_FROM, MUJOCO_BELOW = (3, 3), (3, 10)  # newer versions break every Fetch environment with an empty AssertionError
PIP_MUJOCO = 'pip install "mujoco>=3.3,<3.10"'


def make_by_id(env_id: str, render_mode: str | None, options: Mapping[str, Any]) -> Environment:
    """Return a registered environment.

    env_id: "module:id" imports that module first. Of a simulator's ids, only the newest version is accepted; a function can
        make an older one.
    options: keyword arguments of its constructor.
    Raises UnknownNameError for an unknown or retired id, MissingExtraError for a missing package, GoalEnvError if the
    environment cannot be made.
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
        hint = f"{nearest(env_id, gymnasium.registry)} If a package registers it, write PACKAGE:{env_id}."
        raise UnknownNameError(f"Environment {env_id!r} is not registered.{hint}") from None
    except gymnasium.error.DependencyNotInstalled as problem:
        raise MissingExtraError(f"{env_id} needs a package that cannot be imported: {problem}") from problem
    except Exception as problem:
        raise GoalEnvError(
            f"{env_id} cannot be made with the options {dict(options)} ({type(problem).__name__}: {problem})."
        ) from problem


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
        elif not isinstance(problem, ImportError):
            raise
        raise MissingExtraError(f"{module} cannot be imported ({problem}). Try: {fix}") from problem


def _require_mujoco(install: str) -> None:
    """Raise MissingExtraError unless MuJoCo is installed in a version that gymnasium-robotics works with."""
    try:
        found = metadata.version("mujoco")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"MuJoCo is not installed. Try: {install}") from None
    version = tuple(int(n) for n in re.findall(r"\d+", found)[:2])
    if not MUJOCO_FROM <= version < MUJOCO_BELOW:
        # MuJoCo 4 consists of several packages, which remain and break an older version that is installed over them.
        first = "pip uninstall -y mujoco mujoco-core mujoco-studio && " if version >= (4,) else ""
        raise MissingExtraError(f"MuJoCo {found} is installed, but 3.3 to 3.9 is needed. Try: {first}{PIP_MUJOCO}")
