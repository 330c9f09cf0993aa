"""Read and write Minari data sets as episodes. Only what lies on this machine is read: nothing is downloaded.

Minari stores episodes as HDF5 or Arrow, and descriptions as JSON. Reading them runs no code.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import FileError, GoalEnvError, MissingExtraError, OptionError
from ..extras import install_line
from ..records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from .goal_functions import SUCCESS_KEYS
from .random_play import Environment


def read_episodes(name: str, spec: GoalSpec, info_keys: Sequence[str] = ()) -> list[Episode]:
    """Return the episodes of a Minari data set on this machine.

    spec: the task that the data must fit.
    info_keys: numbers of the info that the reward needs.
    Raises MissingExtraError without minari. Raises FileError, which names what is wrong: the data set is missing or
    damaged, it has no goals, its spaces differ from the task's, numbers are not finite, or an episode is not whole.
    """
    dataset = _open(name)
    try:
        found = GoalSpec.from_spaces(dataset.observation_space, dataset.action_space)
    except GoalEnvError as problem:
        raise FileError(f"The data set {name!r} has no goals: {problem}") from None
    if difference := found.difference(spec):
        raise FileError(f"The data set {name!r} does not fit the environment: {difference}. Give data of this environment.")
    episodes = []
    for number, data in enumerate(_iterate(dataset, name)):
        try:
            episodes.append(_episode(data, info_keys, number))
        except (KeyError, TypeError, ValueError) as problem:
            what = f"lacks {problem}" if isinstance(problem, KeyError) else str(problem)
            raise FileError(f"Episode {number} of the data set {name!r} cannot be used: {what}") from None
    if not episodes:
        raise FileError(f"The data set {name!r} has no episodes.")
    return episodes


def write_episodes(name: str, environment: Environment, episodes: Sequence[Episode], author: str) -> None:
    """Write episodes as a new Minari data set on this machine.

    name: as in "fetch/pick-v0": letters, digits, - and _, with the version at the end.
    author: what chose the actions.
    Raises MissingExtraError without minari, OptionError for a name of another form, FileError if the data set exists.
    """
    minari, spec = _minari(), environment.unwrapped.spec
    check_new(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about each description that is left out
        minari.create_dataset_from_buffers(
            name,
            [_buffer(episode) for episode in episodes],
            env=spec,
            observation_space=environment.observation_space,
            action_space=environment.action_space,
            algorithm_name=author,
            data_format="hdf5",
            jpeg_encoding=False,  # it would change images
        )


def check_new(name: str) -> None:
    """Raise OptionError for a name of the wrong form, FileError if there is a data set of this name already."""
    minari = _minari()
    try:
        minari.dataset.minari_dataset.parse_dataset_id(name)
    except (ValueError, TypeError):  # TypeError: without a version
        raise OptionError(
            f"The name of a data set must be written as in fetch/pick-v0, got {name!r}. Minari requires at least two "
            f"characters before the slash."
        ) from None
    if minari.storage.get_dataset_path(name).exists():
        raise FileError(f"There is a data set {name!r} already. Give another name, or remove it: minari delete {name}")


def _minari() -> Any:
    try:
        import h5py  # noqa: F401
        import minari
    except ImportError as problem:
        raise MissingExtraError(f"Data sets need minari ({problem}): {install_line('minari')}") from None
    return minari


def _open(name: str) -> Any:
    minari = _minari()
    try:
        return minari.load_dataset(name)
    except FileNotFoundError:
        raise FileError(
            f"There is no data set {name!r} on this machine. Download it: minari download {name}. Or record it: "
            f"hindsight record RUN --output {name}"
        ) from None
    except ImportError as problem:
        raise MissingExtraError(f"The data set {name!r} needs a further package: {problem}") from None
    except Exception as problem:
        raise FileError(f"The data set {name!r} cannot be read ({type(problem).__name__}: {problem}).") from None


def _iterate(dataset: Any, name: str) -> Iterator[Any]:
    """Yield the episodes as Minari returns them."""
    try:
        yield from dataset.iterate_episodes()
    except (OSError, KeyError, AssertionError) as problem:
        raise FileError(f"The data set {name!r} is damaged ({type(problem).__name__}: {problem}).") from None


def _episode(data: Any, info_keys: Sequence[str], number: int) -> Episode:
    """Return an episode of Minari as ours. Raises ValueError or KeyError, naming what is wrong."""
    steps = len(data.rewards)
    ended = np.asarray(data.terminations, bool) | np.asarray(data.truncations, bool)
    if not steps or ended[:-1].any() or not ended[-1]:
        places = np.flatnonzero(ended).tolist()
        raise ValueError(f"expected one end, after the last of its {steps} steps, but it ends after the steps {places}.")
    rows = {key: _finite(np.asarray(data.observations[key]), key) for key in OBSERVATION_KEYS}
    infos = data.infos or {}
    success = next((bool(infos[key][-1]) for key in SUCCESS_KEYS if key in infos), None)
    return Episode(
        rows["observation"],
        rows["achieved_goal"],
        rows["desired_goal"],
        action=_finite(np.asarray(data.actions), "action"),
        reward=_finite(np.asarray(data.rewards), "reward"),
        terminated=bool(data.terminations[-1]),
        success=success,
        info={key: _finite(np.asarray(infos[key])[-steps:], f"info {key}") for key in info_keys},
        number=number,
    )


def _finite(values: Array, name: str) -> Array:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is NaN or infinite in row {int(np.argwhere(~np.isfinite(values))[0][0])}.")
    return values


def _buffer(episode: Episode) -> Any:
    """Return an episode as Minari writes it."""
    from minari.data_collector import EpisodeBuffer

    steps = len(episode)
    ends: Array = np.arange(steps) == steps - 1
    infos: dict[str, Any] = dict(episode.info)
    if episode.success is not None:
        infos["is_success"] = ends & episode.success  # known at the last step
    return EpisodeBuffer(
        observations={key: getattr(episode, key) for key in OBSERVATION_KEYS},
        actions=episode.action,
        rewards=episode.reward,
        terminations=ends & episode.terminated,
        truncations=ends & (not episode.terminated),
        infos=infos,
    )
