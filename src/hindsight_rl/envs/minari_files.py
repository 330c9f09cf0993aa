"""The files of Minari data sets: what is checked before Minari reads them, and a checksum of what was written here.

A data set of somebody else may have any sizes in it. Its description may name an environment that Minari would make, with
any function of any module. HDF5 files may refer to other files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError
from ..records import Array
from ..storage import add_array, free_memory, read_json, save_bytes

DESCRIPTION, CONTENT = "metadata.json", "main_data.hdf5"
OURS = "hindsight_rl"  # the entry of the description that holds the checksum
SMALLEST_EPISODE = 100  # bytes that an episode takes in a file at least, with all its names
SMALLEST_OBJECT = 50  # bytes that an array or a group takes in a file at least
COMPRESSION = 1_100  # bytes that a byte of a compressed array can hold: deflate reaches 1,032
LARGEST_UNWRITTEN = 100_000  # bytes that arrays may have without being in the file: HDF5 fills what was not written


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
