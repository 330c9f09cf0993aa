"""Read and write Minari data sets as episodes. Only what lies on this machine is read: nothing is downloaded.

Minari stores episodes as HDF5 or Arrow, and descriptions as JSON. Reading them runs no code: `check_files` looks at them
before Minari does. A data set of somebody else may have any sizes in it, its description may name an environment that
Minari would make with any function of any module, and HDF5 files may refer to other files. Data sets that were written
here have a checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ..errors import FileError, HindsightError, MissingExtraError, OptionError, needs_extra
from ..records import OBSERVATION_KEYS, Array, ArraySpec, Episode, GoalSpec
from ..records.info_keys import info_shapes
from ..storage import add_array, free_memory, read_json, save_bytes
from .goal_functions import SUCCESS_KEYS, read_success
from .random_play import Environment

BOUNDS_MARGIN = 1e-4  # by which a float may be outside its bounds, relative to them
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, MemoryError)
DESCRIPTION, CONTENT = "metadata.json", "main_data.hdf5"
OURS = "hindsight_rl"  # the entry of the description that holds the checksum
SMALLEST_EPISODE = 100  # bytes that an episode takes in a file at least, with all its names
SMALLEST_OBJECT = 50  # bytes that an array or a group takes in a file at least
COMPRESSION = 1_100  # bytes that a byte of a compressed array can hold: deflate reaches 1,032
LARGEST_UNWRITTEN = 100_000  # bytes that arrays may have without being in the file: HDF5 fills what was not written


def read_episodes(name: str, spec: GoalSpec, info_keys: Sequence[str] = ()) -> list[Episode]:
    """Return the episodes of a Minari data set on this machine.

    spec: the task that the data must fit.
    info_keys: entries of the info that the reward needs.
    Raises MissingExtraError without minari. Raises FileError, which names what is wrong: the data set is missing or
    damaged, it has no goals, its spaces differ from the task's, numbers are not finite, or an episode is not whole.
    Warns of observations and goals outside the bounds of their spaces.
    """
    dataset, metadata = _open(name)
    _check_spaces(name, dataset, spec)
    episodes, digest, ours = [], hashlib.sha256(), metadata.get(OURS)
    for number, data in enumerate(_iterate(dataset, name)):
        try:
            if ours is not None:
                add_episode(digest, data)
            episodes.append(_episode(data, spec, info_keys, number))
        except MALFORMED as problem:
            what = f"lacks {problem}" if isinstance(problem, KeyError) else str(problem)
            raise FileError(f"Episode {number} of the data set {name!r} cannot be used: {what}") from None
    if ours is not None and ours != {"sha256": digest.hexdigest()}:
        raise FileError(f"The data set {name!r} is damaged: its SHA-256 differs from the one that was written.")
    if not episodes:
        raise FileError(f"The data set {name!r} has no episodes.")
    found = {"episodes": len(episodes), "steps": sum(map(len, episodes))}
    if wrong := [f"{count} {kind}" for kind, count in found.items() if metadata[f"total_{kind}"] != count]:
        raise FileError(f"The data set {name!r} has {' and '.join(wrong)}, but its description has other numbers.")
    outside = [key for key, part in _parts(spec) if any(_is_outside(getattr(each, key), part) for each in episodes)]
    if outside:
        warnings.warn(
            f"The data set {name!r} has values outside the bounds of the spaces: {', '.join(outside)}. It may be damaged, "
            f"or of another version of the environment.",
            UserWarning,
            stacklevel=2,
        )
    return episodes


def _parts(spec: GoalSpec) -> Iterator[tuple[str, ArraySpec]]:
    """Yield the keys of an observation with their arrays."""
    return zip(OBSERVATION_KEYS, (spec.observation, spec.goal, spec.goal), strict=True)


def write_episodes(name: str, environment: Environment, episodes: Sequence[Episode], author: str) -> None:
    """Write episodes as a new Minari data set on this machine, whole or not at all.

    name: as in "fetch/pick-v0": letters, digits, - and _, with the version at the end.
    author: what chose the actions.
    The description names the environment if it can be made from a name: not if it was registered by a class or a function.
    Raises MissingExtraError without minari, OptionError for a name of another form or spaces that cannot be stored,
    FileError if the data set exists, and OSError if the disk fails.
    """
    minari = _minari()
    check_new(name, environment)
    dataset, _, version = name.rpartition("-v")
    unfinished = f"{dataset}-unfinished-{uuid.uuid4().hex[:8]}-v{version}"
    folder = Path(minari.storage.get_dataset_path(unfinished))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about each description that is left out
            written = minari.create_dataset_from_buffers(
                unfinished,
                [_buffer(episode) for episode in episodes],
                **_spaces_of(environment),
                algorithm_name=author,
                data_format="hdf5",
                jpeg_encoding=False,  # it would change images
            )
        mark_as_written(folder, name, environment.unwrapped.spec, written.iterate_episodes())
        folder.rename(minari.storage.get_dataset_path(name))
    except (HindsightError, OSError):
        raise
    except Exception as problem:
        raise FileError(f"The data set {name!r} cannot be written ({type(problem).__name__}: {problem}).") from problem
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # nothing is there if it has its name


def check_new(name: str, environment: Environment) -> None:
    """Raise an error if episodes of an environment cannot be written as the data set `name`.

    Raises OptionError for a name of the wrong form and for spaces that Minari does not store, FileError if there is a data
    set of this name already.
    """
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
    for key, space in _spaces_of(environment).items():
        try:
            minari.serialization.serialize_space(space)
        except Exception as problem:
            raise OptionError(f"The {key} cannot be stored in a data set ({problem}). Wrap the environment.") from None


def _spaces_of(environment: Environment) -> dict[str, Any]:
    """Return the spaces of what is written, as Minari names them."""
    found: Any = environment.observation_space
    observation = spaces.Dict({key: found[key] for key in OBSERVATION_KEYS})
    return {"observation_space": observation, "action_space": environment.action_space}


def _minari() -> Any:
    with needs_extra("minari", "Data sets need minari and h5py"):
        import h5py  # noqa: F401
        import minari
    return minari


def _open(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the data set as Minari has it, and its description."""
    minari = _minari()
    folder = Path(minari.storage.get_dataset_path(name)) / "data"
    if not folder.is_dir():
        raise FileError(
            f"There is no data set {name!r} on this machine. Download it: minari download {name}. Or record it: "
            f"hindsight-rl record RUN --output {name}"
        )
    description = check_files(folder)
    try:
        return minari.load_dataset(name), description
    except ImportError as problem:
        raise MissingExtraError(f"The data set {name!r} needs a further package: {problem}") from None
    except Exception as problem:
        raise FileError(f"The data set {name!r} cannot be read ({type(problem).__name__}: {problem}).") from None


def _check_spaces(name: str, dataset: Any, spec: GoalSpec) -> None:
    """Raise FileError if the spaces of a data set are not those of the task."""
    try:
        found = GoalSpec.from_spaces(dataset.observation_space, dataset.action_space)
    except ValueError as problem:
        raise FileError(f"The data set {name!r} has no goals: {problem}") from None
    if difference := found.difference(spec):
        raise FileError(f"The data set {name!r} does not fit the environment: {difference}. Give data of this environment.")


def _iterate(dataset: Any, name: str) -> Iterator[Any]:
    """Yield the episodes as Minari returns them. A damaged file may cause any error in HDF5, Arrow or Minari."""
    try:
        yield from dataset.iterate_episodes()
    except Exception as problem:
        raise FileError(f"The data set {name!r} is damaged ({type(problem).__name__}: {problem}).") from None


def _episode(data: Any, spec: GoalSpec, info_keys: Sequence[str], number: int) -> Episode:
    """Return an episode of Minari as ours. Raises one of MALFORMED, naming what is wrong."""
    steps = len(data.rewards)
    terminated, truncated = (_flags(getattr(data, name), name, steps) for name in ("terminations", "truncations"))
    ends = np.flatnonzero(terminated | truncated).tolist()
    if not steps or ends != [steps - 1]:
        raise ValueError(f"expected one end, after the last of its {steps} steps, but it ends after the steps {ends}.")
    rows = {key: _values(data.observations[key], key, steps + 1, part) for key, part in _parts(spec)}
    infos = data.infos or {}
    return Episode(
        rows["observation"],
        rows["achieved_goal"],
        rows["desired_goal"],
        action=_values(data.actions, "action", steps, spec.action),
        reward=_numbers(data.rewards, "reward", (steps,)),
        terminated=bool(terminated[-1]),
        success=read_success({key: _of_steps(infos[key], key, steps)[-1] for key in SUCCESS_KEYS if key in infos}),
        info={key: _of_steps(infos[key], key, steps) for key in info_shapes(info_keys)},
        number=number,
    )


def _values(values: Any, name: str, length: int, part: ArraySpec) -> Array:
    """Return the values of a space, (length, ...). Whole numbers must be within its bounds."""
    array = _numbers(values, name, (length, *part.shape))
    if np.dtype(part.dtype).kind in "biu" and _is_outside(array, part):
        raise ValueError(
            f"{name} has {array.min():g} to {array.max():g}, outside its space {min(part.low)} to {max(part.high)}."
        )
    return array


def _numbers(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}, expected numbers of shape {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is NaN or infinite in row {int(np.argwhere(~np.isfinite(array))[0][0])}.")
    return array


def _flags(values: Any, name: str, steps: int) -> Array:
    array = _numbers(values, name, (steps,))
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} has {array.min():g} to {array.max():g}, expected 0 and 1.")
    return array.astype(np.bool_)


def _of_steps(values: Any, key: str, steps: int) -> Array:
    """Return the values of an info after each step: the info of a reset may stand before them."""
    array = np.asarray(values)
    if len(array) not in (steps, steps + 1):
        raise ValueError(f"info {key} has {len(array)} rows, expected {steps}, or one more.")
    return _numbers(array[-steps:], f"info {key}", (steps, *array.shape[1:]))


def _is_outside(array: Array, part: ArraySpec) -> bool:
    """Return whether values are outside the bounds of their space. Floats have a small margin, for rounding."""
    low, high = np.asarray(part.low), np.asarray(part.high)
    margin = BOUNDS_MARGIN * np.maximum(1, np.maximum(np.abs(low), np.abs(high))) if np.dtype(part.dtype).kind == "f" else 0
    flat = array.reshape(len(array), -1)
    return bool(((flat < low - margin) | (flat > high + margin)).any())


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


def add_episode(digest: Any, data: Any) -> None:
    """Add the arrays of an episode, as Minari returns it, to a digest of hashlib.

    Raises ValueError for arrays that are not of numbers: no data set of ours has them.
    """
    names = ("observations", "actions", "rewards", "terminations", "truncations", "infos")
    for name, array in _leaves("", {name: getattr(data, name) for name in names}):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} has the dtype {array.dtype}, expected numbers.")
        add_array(digest, name, array)


def mark_as_written(folder: Path, name: str, spec: Any, episodes: Iterable[Any]) -> None:
    """Write the checksum, the name and the environment into the description of a new data set.

    folder: of the data set. spec: of Gymnasium; it is left out if it holds a class or a function, which JSON cannot.
    episodes: as Minari reads them.
    """
    digest = hashlib.sha256()
    for data in episodes:
        add_episode(digest, data)
    path = folder / "data" / DESCRIPTION
    description = read_json(path) | {"dataset_id": name, OURS: {"sha256": digest.hexdigest()}}
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        description["env_spec"] = spec.to_json()
    save_bytes(path, json.dumps(description).encode())
    with (folder / "data" / CONTENT).open("rb") as file:
        os.fsync(file.fileno())


def check_files(folder: Path) -> dict[str, Any]:
    """Return the description of a data set. Raises FileError unless Minari can read its files without danger.

    folder: the folder of its files.
    """
    path = folder / DESCRIPTION
    description = read_json(path)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    _check_description(path, description, size)
    if description.get("data_format") == "hdf5":
        _check_hdf5(folder / CONTENT)
    return description


def _check_description(path: Path, description: Mapping[str, Any], size: int) -> None:
    """Raise FileError for a description without spaces, or with more episodes and steps than `size` bytes can hold."""
    for key in ("observation_space", "action_space"):
        if not isinstance(description.get(key), str):
            raise FileError(f"{path} has no {key}: Minari would make the environment that the file names")
    episodes, steps = (description.get(f"total_{kind}") for kind in ("episodes", "steps"))
    if not isinstance(episodes, int) or not isinstance(steps, int) or not 0 <= episodes <= steps:
        raise FileError(f"{path} is damaged: it has {episodes!r:.50} episodes and {steps!r:.50} steps")
    if episodes * SMALLEST_EPISODE > size:
        raise FileError(f"{path} is damaged: {episodes:,} episodes cannot be in files of {size:,} bytes")


def _check_hdf5(path: Path) -> None:
    """Raise FileError for a file that refers to other files, or whose arrays are larger than what is in it."""
    import h5py

    if not path.is_file():
        raise FileError(f"There is no file {path}")
    try:
        with h5py.File(path) as file:
            _check_arrays(file, path.stat().st_size, str(path))
    except FileError:
        raise
    except Exception as problem:  # a damaged file may cause any error
        raise FileError(f"{path} is damaged ({type(problem).__name__}: {problem})") from None


def _check_arrays(file: Any, size: int, path: str) -> None:
    """Raise FileError if the arrays of a file of `size` bytes are larger than it can hold, or than the free memory."""
    needed, missing, free = 0, 0, free_memory()
    for number, array in enumerate(_arrays(file, path), 1):
        is_compressed = array.id.get_create_plist().get_nfilters() > 0
        missing += max(0, array.nbytes - array.id.get_storage_size() * (COMPRESSION if is_compressed else 1))
        if number * SMALLEST_OBJECT > size:
            raise FileError(f"{path} is damaged: it has the same arrays many times")
        if missing > LARGEST_UNWRITTEN:
            raise FileError(f"{path} is damaged: its arrays would have {missing:,} bytes more than the file holds")
        needed += array.nbytes if array.dtype.kind != "O" else _bytes_of_texts(array, free)
        if needed > free:
            raise FileError(f"{path} needs {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB of memory are free")


def _bytes_of_texts(array: Any, most: int) -> int:
    """Return the bytes of values of any length, such as texts, or more than `most`: many may be the same long one."""
    total = 0
    for index in np.ndindex(array.shape):
        total += len(array[index])
        if total > most:
            break
    return total


def _arrays(group: Any, path: str) -> Iterator[Any]:
    """Yield every array below a group of HDF5. Raises FileError for what is in another file."""
    import h5py

    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise FileError(f"{path} refers to another object in {name!r}, which is not followed")
        found = group[name]
        if isinstance(found, h5py.Group):
            yield from _arrays(found, path)
        elif isinstance(found, h5py.Dataset):
            if found.is_virtual or found.external:
                raise FileError(f"{path} refers to another file in {name!r}, which is not followed")
            yield found


def _leaves(name: str, values: Any) -> Iterator[tuple[str, Array]]:
    """Yield the arrays in nested dicts, by their paths."""
    if isinstance(values, dict):
        for key in sorted(values):
            yield from _leaves(f"{name}/{key}", values[key])
    elif values is not None:
        yield name, np.asarray(values)
