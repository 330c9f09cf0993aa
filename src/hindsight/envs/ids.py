"""Make environments by id: import the package of a simulator, and suggest ids for unknown and retired ones."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from ..errors import GoalEnvError, HindsightError, MissingExtraError, UnknownNameError, nearest
from .random_play import Environment
from .rendering import APT_GL

MUJOCO_FROM, MUJOCO_BELOW = (3, 3), (3, 10)  # newer versions break every Fetch environment with an empty AssertionError
PIP_MUJOCO = 'pip install "mujoco>=3.3,<3.10"'
ROBOTICS = "gymnasium_robotics"
WITHOUT_GOALS = ("AdroitHand", "FrankaKitchen", "GymV")  # prefixes of ids that are not goal environments


@dataclass(frozen=True)
class Simulator:
    """A package of goal environments.

    module: to import.
    prefixes: of its ids.
    install: the command that installs it.
    examples: ids to suggest while it is not installed.
    prints: whether it writes to the process's output from C when an environment is made.
    """

    module: str
    prefixes: tuple[str, ...]
    install: str
    examples: tuple[str, ...]
    prints: bool = False


SIMULATORS = (
    Simulator(
        ROBOTICS,
        ("Fetch", "Hand", "AntMaze", "PointMaze", "AdroitHand", "FrankaKitchen"),
        'pip install "hindsight-rl[robotics]"',
        (
            "FetchReach-v4",
            "FetchPush-v4",
            "FetchSlide-v4",
            "FetchPickAndPlace-v4",
            "HandReach-v3",
            "HandManipulateBlock-v1",
        ),
    ),
    Simulator(
        "panda_gym",
        ("Panda",),
        'pip install "hindsight-rl[panda]"',
        ("PandaReach-v3", "PandaPush-v3", "PandaSlide-v3", "PandaPickAndPlace-v3", "PandaStack-v3"),
        prints=True,
    ),
    Simulator("highway_env", ("parking",), 'pip install "hindsight-rl[parking]"', ("parking-v0",)),
)


def make_by_id(env_id: str, render_mode: str | None, options: Mapping[str, Any]) -> Environment:
    """Return a registered environment, after importing the package that registers it.

    env_id: "module:id" imports that module first. Of a simulator's ids, only the newest version is accepted; a function can
        make an older one.
    options: keyword arguments of its constructor.
    Raises UnknownNameError for an unknown or retired id, MissingExtraError for a missing package, GoalEnvError if the
    environment cannot be made.
    """
    module, _, env_id = env_id.rpartition(":")
    simulator = _simulator_of(env_id)
    if module:
        _import(module, f"Install the package of {module}, or run where it can be found.")
    elif simulator:
        _import_simulator(simulator)
    require_current(env_id, is_simulated=simulator is not None)
    given: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    try:
        with _quiet(simulator):
            return gymnasium.make(env_id, disable_env_checker=True, **given, **options)  # check_goal_env checks more
    except HindsightError:
        raise
    except gymnasium.error.DependencyNotInstalled as problem:
        fix = simulator.install if simulator else "install the package that it names"
        raise MissingExtraError(f"{env_id} needs a package that cannot be imported ({problem}). Try: {fix}") from problem
    except Exception as problem:
        raise GoalEnvError(
            f"{env_id} cannot be made with the options {dict(options)} ({type(problem).__name__}: {problem})."
        ) from problem


def require_current(env_id: str, is_simulated: bool) -> None:
    """Raise UnknownNameError unless the id is registered and, if it is a simulator's, has the newest version."""
    match = re.fullmatch(r"(.+?)(?:-v(\d+))?", env_id)
    name, version = (match[1], match[2]) if match else (env_id, None)
    newest = max((spec.version or 0 for spec in gymnasium.registry.values() if _full_name(spec) == name), default=None)
    is_newest = version is not None and newest == int(version)
    if env_id in gymnasium.registry and (is_newest or not is_simulated):
        return
    if newest is None:
        known = known_goal_ids()
        if env_id in gymnasium.registry:  # of a package that was imported for the suggestions
            return
        raise UnknownNameError(f"Environment {env_id!r} is not registered.{nearest(env_id, known)}")
    current = f"{name}-v{newest}"
    if version is None:
        raise UnknownNameError(f"{env_id!r} has no version. Use {current!r}.")
    if int(version) > newest:
        raise UnknownNameError(f"{env_id!r} is not registered. The newest version installed is {current!r}.")
    raise UnknownNameError(f"{env_id!r} is retired. Use {current!r}.")


def known_goal_ids() -> list[str]:
    """Return the newest id of every installed goal environment, and examples from simulators that are not installed."""
    known: list[str] = []
    for simulator in SIMULATORS:
        try:
            _import_simulator(simulator)
        except Exception:  # missing or broken, which does not matter for a suggestion
            known += simulator.examples
    newest: dict[str, str] = {}
    for spec in sorted(gymnasium.registry.values(), key=lambda spec: spec.version or 0):
        if _may_have_goals(spec):
            newest[_full_name(spec)] = spec.id
    return sorted({*known, *newest.values()})


def _may_have_goals(spec: EnvSpec) -> bool:
    prefixes = tuple(prefix for simulator in SIMULATORS for prefix in simulator.prefixes)
    is_other = str(spec.entry_point).startswith(("gymnasium.envs", ROBOTICS)) and not spec.name.startswith(prefixes)
    return not is_other and not spec.name.startswith(WITHOUT_GOALS)


def _simulator_of(env_id: str) -> Simulator | None:
    """Return the simulator of an id, or None if another package registered it."""
    simulator = next((each for each in SIMULATORS if env_id.startswith(each.prefixes)), None)
    spec = gymnasium.registry.get(env_id)
    is_other = simulator and spec and not str(spec.entry_point).startswith(simulator.module)
    return None if is_other else simulator


def _full_name(spec: EnvSpec) -> str:
    return f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name


def _import_simulator(simulator: Simulator) -> None:
    if simulator.module == ROBOTICS:
        _require_mujoco(simulator)
    with _quiet(simulator), contextlib.redirect_stderr(io.StringIO()) as printed:
        gymnasium.register_envs(_import(simulator.module, simulator.install))
    for line in printed.getvalue().splitlines():
        if not line.startswith("AdroitHand"):  # a notice at every start about environments without goals
            print(line, file=sys.stderr)


def _quiet(simulator: Simulator | None) -> contextlib.AbstractContextManager[None]:
    return _output_silenced() if simulator and simulator.prints else contextlib.nullcontext()


@contextlib.contextmanager
def _output_silenced() -> Iterator[None]:
    """Discard what the process writes, from C too: PyBullet prints its arguments at every start."""
    _flush()
    copies = {number: os.dup(number) for number in (1, 2)}
    try:
        with open(os.devnull, "w") as nowhere:
            for number in copies:
                os.dup2(nowhere.fileno(), number)
        yield
    finally:
        _flush()
        for number, copy in copies.items():
            os.dup2(copy, number)
            os.close(copy)


def _flush() -> None:
    """Write the buffered output of Python and C, which both buffer unless the output is a terminal."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _import(module: str, fix: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as problem:
        if os.environ.get("MUJOCO_GL") and module == ROBOTICS and not isinstance(problem, ModuleNotFoundError):
            fix = f"MUJOCO_GL={os.environ['MUJOCO_GL']} needs libraries that may be missing. Try: {APT_GL}"
        elif not isinstance(problem, ImportError):
            raise
        raise MissingExtraError(f"{module} cannot be imported ({problem}). {fix}") from problem


def _require_mujoco(simulator: Simulator) -> None:
    """Raise MissingExtraError unless MuJoCo is installed in a version that gymnasium-robotics works with."""
    try:
        found = metadata.version("mujoco")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"MuJoCo is not installed. Try: {simulator.install}") from None
    version = tuple(int(n) for n in re.findall(r"\d+", found)[:2])
    if MUJOCO_FROM <= version < MUJOCO_BELOW:
        return
    # MuJoCo 4 consists of several packages, which remain and break an older version that is installed over them.
    first = "pip uninstall -y mujoco mujoco-core mujoco-studio && " if version >= (4,) else ""
    raise MissingExtraError(
        f"gymnasium-robotics needs MuJoCo 3.3 to 3.9, but {found} is installed. Try: {first}{PIP_MUJOCO}"
    )
