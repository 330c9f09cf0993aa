"""Environment ids: the package that each needs, why an old one is retired, what is near to a misspelt one."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import gymnasium

from ..errors import GoalEnvError, HindsightError, MissingExtraError, UnknownNameError, nearest

MUJOCO_FROM, MUJOCO_BELOW = (3, 3), (3, 10)  # newer ones break every Fetch environment with an empty AssertionError
APT_GL = "apt-get install -y libegl1 libgl1-mesa-dri"
PIP_MUJOCO = 'pip install "mujoco>=3.3,<3.10"'
ROBOTICS = "gymnasium_robotics"


@dataclass(frozen=True)
class Simulator:
    """A package of goal environments: its module, how its ids begin, the line that installs it, some ids to suggest.

    chatters: it writes to the process's output behind Python's back, whenever an environment is made.
    """

    module: str
    prefixes: tuple[str, ...]
    install: str
    examples: tuple[str, ...]
    chatters: bool = False


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
        chatters=True,
    ),
    Simulator("highway_env", ("parking",), 'pip install "hindsight-rl[parking]"', ("parking-v0",)),
)
WITHOUT_GOALS = ("AdroitHand", "FrankaKitchen")  # of these packages, but not goal environments; never suggested

_MUJOCO_PY = "it runs on mujoco-py, which is no longer maintained"
_RESET = "its reset did not restore the whole state of the simulator"
_START = "its first states are not those that its description promises"
_D4RL = "it belongs to D4RL, which is no longer maintained"
_GYM = "it was made for gym, the predecessor of Gymnasium"
RETIRED = {  # from the version histories in the packages' own descriptions
    "Fetch": {1: _MUJOCO_PY, 2: _RESET, 3: _START},
    "HandReach": {0: _MUJOCO_PY, 1: _RESET, 2: _START},
    "HandManipulate": {0: _MUJOCO_PY},
    "PointMaze": {1: _D4RL, 2: _D4RL},
    "AntMaze": {1: _D4RL, 2: _D4RL, 3: "its sparse reward is always 0", 4: "it is built on the older Ant-v4"},
    "Panda": {1: _GYM, 2: _GYM},
}


def make_by_id(env_id: str, render_mode: str | None, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make a registered environment, importing the package that registers it; "module:id" imports that module first.

    Raises UnknownNameError for an unknown or retired id, MissingExtraError for a missing or unfit package, GoalEnvError
    where the environment itself fails. The ids of a simulator are taken in their newest version only; who needs an older
    one hands over a function that makes it.
    """
    module, _, env_id = env_id.rpartition(":")
    simulator = _simulator_of(env_id)
    if module:
        _import(module, f"install the package that {module} belongs to, or run where it can be found")
    elif simulator:
        _import_simulator(simulator)
    require_current(env_id, is_simulated=simulator is not None)
    wanted: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    try:
        with _silence() if simulator and simulator.chatters else contextlib.nullcontext():
            return gymnasium.make(env_id, disable_env_checker=True, **wanted, **options)  # check_goal_env checks more
    except HindsightError:
        raise
    except gymnasium.error.DependencyNotInstalled as problem:
        fix = simulator.install if simulator else "install what it names"
        raise MissingExtraError(f"{env_id} needs a package that cannot be imported ({problem}): {fix}") from problem
    except Exception as problem:
        raise GoalEnvError(
            f"{env_id} cannot be made with the options {dict(options)} ({type(problem).__name__}: {problem})"
        ) from problem


def require_current(env_id: str, is_simulated: bool) -> None:
    """Raise UnknownNameError unless the id is registered and, for one of a simulator package, the newest of its name."""
    match = re.fullmatch(r"(.+?)(?:-v(\d+))?", env_id)
    name, version = (match[1], match[2]) if match else (env_id, None)
    newest = max((s.version or 0 for s in gymnasium.registry.values() if _full_name(s) == name), default=None)
    is_newest = version is not None and newest == int(version)
    if env_id in gymnasium.registry and (is_newest or not is_simulated):
        return
    if newest is None:
        raise UnknownNameError(f"there is no environment {env_id!r}.{nearest(env_id, known_goal_ids())}")
    current = f"{name}-v{newest}"
    if version is None:
        raise UnknownNameError(f"{env_id!r} lacks its version: write {current!r}")
    if int(version) > newest:
        raise UnknownNameError(f"there is no {env_id!r} yet: the newest version installed is {current!r}")
    why = next((w[int(version)] for p, w in RETIRED.items() if name.startswith(p) and int(version) in w), None)
    raise UnknownNameError(f"{env_id!r} is retired ({why or 'a newer version replaced it'}): use {current!r}")


def known_goal_ids() -> list[str]:
    """The newest id of every goal environment at hand, and examples from the simulator packages that are not installed."""
    known: list[str] = []
    for simulator in SIMULATORS:
        try:
            _import_simulator(simulator)
        except Exception:  # missing or broken; who misspelt something else need not know
            known += simulator.examples
    prefixes = tuple(p for s in SIMULATORS for p in s.prefixes)
    newest: dict[str, str] = {}
    for spec in sorted(gymnasium.registry.values(), key=lambda s: s.version or 0):
        foreign = str(spec.entry_point).startswith(("gymnasium.envs", ROBOTICS)) and not spec.name.startswith(prefixes)
        if not foreign and not spec.name.startswith((*WITHOUT_GOALS, "GymV")):
            newest[_full_name(spec)] = spec.id
    return sorted({*known, *newest.values()})


def has_display() -> bool:
    """Whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def prepare_rendering(render_mode: str | None) -> None:
    """Choose a way to draw where there is no display, before a simulator is imported; an own choice of MUJOCO_GL stands."""
    if render_mode is None or has_display():
        return
    if render_mode == "human":
        raise GoalEnvError("render_mode='human' needs a display, and there is none: use render_mode='rgb_array'")
    os.environ.setdefault("MUJOCO_GL", "egl")


def _simulator_of(env_id: str) -> Simulator | None:
    """The package whose ids begin like this one; none for somebody's own environment that only sounds alike."""
    simulator = next((s for s in SIMULATORS if env_id.startswith(s.prefixes)), None)
    spec = gymnasium.registry.get(env_id)
    is_own = simulator and spec and not str(spec.entry_point).startswith(simulator.module)
    return None if is_own else simulator


def _full_name(spec: gymnasium.envs.registration.EnvSpec) -> str:
    return f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name


def _import_simulator(simulator: Simulator) -> None:
    if simulator.module == ROBOTICS:
        _require_mujoco(simulator)
    quiet = _silence() if simulator.chatters else contextlib.nullcontext()
    with quiet, contextlib.redirect_stderr(io.StringIO()) as said:
        gymnasium.register_envs(_import(simulator.module, simulator.install))
    for line in said.getvalue().splitlines():  # a notice about AdroitHand, which has no goals, at every start
        if not line.startswith("AdroitHand"):
            print(line, file=sys.stderr)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let nothing through that the process writes itself, not even from C: PyBullet tells its arguments at every start."""
    _flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        _flush()
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _flush() -> None:
    """Write out what Python and C still hold back, as they do where the output is no terminal."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _import(module: str, fix: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as problem:
        if os.environ.get("MUJOCO_GL") and module == ROBOTICS and not isinstance(problem, ModuleNotFoundError):
            fix = f"MUJOCO_GL={os.environ['MUJOCO_GL']} needs libraries that may be missing: {APT_GL}"
        elif not isinstance(problem, ImportError):
            raise
        raise MissingExtraError(f"{module} cannot be imported ({problem}): {fix}") from problem


def _require_mujoco(simulator: Simulator) -> None:
    try:
        found = metadata.version("mujoco")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"MuJoCo is not installed: {simulator.install}") from None
    numbers = tuple(int(n) for n in re.findall(r"\d+", found)[:2])
    if MUJOCO_FROM <= numbers < MUJOCO_BELOW:
        return
    # MuJoCo 4 is split over several packages, which stay behind and break an older one that is put over them.
    first = "pip uninstall -y mujoco mujoco-core mujoco-studio && " if numbers >= (4,) else ""
    raise MissingExtraError(
        f"MuJoCo {found} is installed, but gymnasium-robotics works with 3.3 to 3.9 only: {first}{PIP_MUJOCO}"
    )
