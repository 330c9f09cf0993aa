"""Read and write every file of ours: arrays and JSON, hashed, replaced atomically, without pickle.

One format holds buffers, checkpoints and policies: a safetensors file. Its header has an entry `hindsight`, the JSON text
{"format", "kind", "data", "sha256"}. Metrics, evaluations and episodes are lines of JSON.

JSON is strict. A number that is not finite is written as null.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors
import safetensors.numpy

from .errors import FileError
from .records import Array

FORMAT = 1
_DTYPES = {"b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "f2": "F16"} | {
    f"{kind}{size}": f"{kind.upper()}{8 * size}" for size in (4, 8) for kind in "uif"
}
_LARGEST_HEADER = 64 << 20  # bytes
_LARGEST_JSON = 64 << 20
_LARGEST_STREAM = 1 << 30  # of an open file, which is read into memory
_CHUNK = 1 << 20


def save_arrays(
    path_or_file: str | Path | BinaryIO,
    kind: str,
    arrays: Mapping[str, Array],
    data: Mapping[str, Any],
    previous: Path | None = None,
) -> None:
    """Write arrays and data to a file, atomically, or to an open binary file.

    kind: what the file holds; `load_arrays` asks for the same.
    arrays: of booleans, integers or floats.
    data: as JSON can hold it.
    previous: where the file that stands at the path is kept; None replaces it.
    Raises FileError if the disk is too small, OSError if it fails. The file that stood at the path is then as it was.
    """
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header: dict[str, Any] = {"format": FORMAT, "kind": kind, "data": json.loads(json_text(data))}
    header["sha256"] = _digest(header, arrays)
    if not isinstance(path_or_file, str | Path):
        _write_tensors(path_or_file, arrays, header)
        return
    path = Path(path_or_file)
    _require_space(path.parent, sum(array.nbytes for array in arrays.values()))
    save_file(path, lambda file: _write_tensors(file, arrays, header), previous)


def load_arrays(path_or_file: str | Path | BinaryIO, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the data that `save_arrays` wrote.

    Raises FileError if the file is missing, damaged, of another kind or of another format.
    """
    if isinstance(path_or_file, str | Path):
        place = str(path_or_file)
        with _open_plain(Path(path_or_file)) as file:
            header = _read_header(file, kind, place)
            arrays = _parsed(place, lambda: safetensors.numpy.load_file(path_or_file))
    else:
        place, content = "the file", _read_stream(path_or_file)
        header = _parse_header(content[8 : 8 + int.from_bytes(content[:8], "little")], kind, place)
        arrays = _parsed(place, lambda: safetensors.numpy.load(content))
    if header.pop("sha256", None) != _digest(header, arrays):
        raise FileError(f"{place} is damaged: its SHA-256 differs from the one that was written")
    return arrays, header["data"]


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file, atomically."""

    def put(file: BinaryIO) -> None:
        file.write(content)

    save_file(path, put)


def save_file(path: Path, put: Callable[[BinaryIO], Any], previous: Path | None = None) -> None:
    """Write a file, atomically.

    put: writes the content into an open file.
    previous: where the file that stands at the path is kept; None replaces it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            put(file)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            os.replace(path, previous)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def json_text(data: Any, indent: int | None = None) -> str:
    """Return strict JSON. Numbers that are not finite become null."""
    return json.dumps(finite(data), allow_nan=False, indent=indent)


def finite(data: Any) -> Any:
    """Return plain data in which numbers that are not finite are None."""
    if isinstance(data, Mapping):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def parse_json(text: str | bytes, place: str) -> Any:
    """Return what strict JSON holds. Raises FileError, naming `place`, for anything else, NaN and infinity included."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{place} is not valid JSON: {problem}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises FileError if it is missing, a link, too large or not an object."""
    with _open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _LARGEST_JSON:
            raise FileError(f"{path} has {size} bytes, expected at most {_LARGEST_JSON}: it is not a file of hindsight")
        data = parse_json(file.read(), str(path))
    if not isinstance(data, dict):
        raise FileError(f"{path} holds a {type(data).__name__}, expected a JSON object")
    return data


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the records of a file of JSON lines, and how many lines were skipped because they hold no JSON object.

    A missing file has no records. A line is torn if the process was killed, or the disk was full, while it was written.
    """
    records, torn = [], 0
    if not os.path.lexists(path):
        return [], 0
    with _open_plain(path) as file:
        for line in file:
            try:
                record = parse_json(line, str(path))
            except FileError:
                record = None
            if isinstance(record, dict):
                records.append(record)
            else:
                torn += 1
    return records, torn


def append_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Add records to a file of JSON lines, all or none, see `append_text`."""
    append_text(path, "".join(f"{json_text(record)}\n" for record in records))


def append_text(path: Path, lines: str) -> None:
    """Add whole lines to a text file. If that fails, the file keeps its former size.

    Raises OSError if the disk is full, and for a symbolic link.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        size = os.fstat(handle).st_size
        is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        try:
            _write_all(handle, b"\n" * is_torn + lines.encode(), size)
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


def truncate(path: Path, size: int) -> None:
    """Shorten a file to `size` bytes, if it is longer. Raises OSError for a symbolic link."""
    if os.path.lexists(path):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            os.ftruncate(handle, min(size, os.fstat(handle).st_size))
        finally:
            os.close(handle)


def _write_tensors(file: BinaryIO, arrays: Mapping[str, Array], header: Mapping[str, Any]) -> None:
    """Write the safetensors format array by array. The library would copy all of them in memory first."""
    by_alignment = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    entries: dict[str, Any] = {"__metadata__": {"hindsight": json.dumps(header, allow_nan=False)}}
    offset = 0
    for name, array in by_alignment:
        dtype = _DTYPES[array.dtype.str[1:]]
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, array in by_alignment:
        file.write(_bytes_of(array))


def _bytes_of(array: Array) -> memoryview:
    """Return the memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def _digest(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\0{name}\0{array.dtype.str}{array.shape}\0".encode())
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _read_header(file: BinaryIO, kind: str, place: str) -> dict[str, Any]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(os.fstat(file.fileno()).st_size - 8, _LARGEST_HEADER):
        raise FileError(f"{place} is not a file of hindsight, or it is truncated")
    return _parse_header(file.read(length), kind, place)


def _parse_header(text: bytes, kind: str, place: str) -> dict[str, Any]:
    """Return our part of a safetensors header."""
    outer = parse_json(text, place)
    metadata = outer.get("__metadata__") if isinstance(outer, dict) else None
    inner = metadata.get("hindsight") if isinstance(metadata, dict) else None
    header = parse_json(inner, place) if isinstance(inner, str) else None
    if not isinstance(header, dict):
        raise FileError(f"{place} holds arrays, but was not written by hindsight")
    if (header.get("kind"), header.get("format")) != (kind, FORMAT) or not isinstance(header.get("data"), dict):
        raise FileError(
            f"{place} holds a {header.get('kind')!r} of format {header.get('format')!r}, "
            f"expected a {kind!r} of format {FORMAT}"
        )
    return header


def _parsed(place: str, load: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    try:
        return load()
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError) as problem:
        raise FileError(f"{place} is damaged: {problem}") from None


def _read_stream(file: BinaryIO) -> bytes:
    content = bytearray()
    while part := file.read(_CHUNK):
        content += part
        if len(content) > _LARGEST_STREAM:
            raise FileError(f"the file has more than {_LARGEST_STREAM} bytes: load it from a path")
    return bytes(content)


def _open_plain(path: Path) -> BinaryIO:
    """Open a file to read it. Raises FileError if it is missing or something else."""
    if not path.is_file():
        raise FileError(f"there is no file {path}")
    try:
        return path.open("rb")
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem}") from None


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _finite_float(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"the number {text} is too large")
    return number


def _write_all(handle: int, content: bytes, offset: int) -> None:
    while content:
        written = os.pwrite(handle, content, offset)
        content, offset = content[written:], offset + written


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_space(folder: Path, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size + (1 << 20):
        raise FileError(
            f"saving needs {size / 1e6:.0f} MB, but the disk of {folder} has {free / 1e6:.0f} MB free: free some space"
        )
