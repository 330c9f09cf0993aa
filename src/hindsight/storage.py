"""Read and write every file of ours: arrays and JSON, hashed, replaced atomically, without pickle.

One format holds buffers, checkpoints and policies: a safetensors file. Its header has an entry `hindsight`, the JSON text
{"format", "kind", "data", "sha256"}. Metrics, evaluations and episodes are lines of JSON.

JSON is strict. A number that is not finite is written as null.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors

from .errors import FileError, OptionError
from .records import Array

FORMAT = 1
_DTYPES = {"b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "f2": "F16"} | {
    f"{kind}{size}": f"{kind.upper()}{8 * size}" for size in (4, 8) for kind in "uif"
}
_LARGEST_JSON = 64 << 20  # bytes


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
    Raises OSError if the disk fails. A good file is then left at the path or at `previous`.
    """
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header: dict[str, Any] = {"format": FORMAT, "kind": kind, "data": json.loads(json_text(data))}
    header["sha256"] = _digest(header, arrays)
    if isinstance(path_or_file, str | Path):
        save_file(Path(path_or_file), lambda file: _write_tensors(file, arrays, header), previous)
    else:
        _require_binary(path_or_file, "write")
        _write_tensors(path_or_file, arrays, header)


def load_arrays(path_or_file: str | Path | BinaryIO, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the data that `save_arrays` wrote.

    Raises FileError if the file is missing, damaged, of another kind or of another format.
    """
    if isinstance(path_or_file, str | Path):
        return _load(str(path_or_file), kind, str(path_or_file))
    _require_binary(path_or_file, "read")
    with tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(path_or_file, copy)
        copy.flush()
        return _load(copy.name, kind, "the file")


def as_path(name: str, value: Any) -> Path:
    """Return a path as Path. Raises OptionError for something else, and for "", which would be the current folder."""
    if not isinstance(value, str | Path) or value == "":
        raise OptionError(f"{name} must be a path, got {value!r}.")
    return Path(value)


def _require_binary(file: Any, method: str) -> None:
    if not hasattr(file, method) or isinstance(file, io.TextIOBase):
        raise OptionError(f"Expected a path or an open binary file, got {file!r}.")


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file, atomically."""
    save_file(path, lambda file: file.write(content))


def save_file(path: Path, put: Callable[[BinaryIO], Any], previous: Path | None = None) -> None:
    """Write a file, atomically.

    put: writes the content into an open file.
    previous: where the file that stands at the path is kept; None replaces it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        with _named_errors(fresh), fresh.open("wb") as file:
            put(file)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            os.replace(path, previous)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    with _named_errors(path):
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
        return json.loads(text, parse_constant=_finite_number, parse_float=_finite_number)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{place} is not valid JSON: {problem}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises FileError if it is missing, too large or not an object."""
    if not path.is_file() or path.stat().st_size > _LARGEST_JSON:
        raise FileError(f"{path} is missing, or has more than {_LARGEST_JSON >> 20} MB")
    data = parse_json(path.read_bytes(), str(path))
    if not isinstance(data, dict):
        raise FileError(f"{path} holds a {type(data).__name__}, expected a JSON object")
    return data


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the records of a file of JSON lines, and how many lines were skipped because they hold no JSON object.

    A missing file has no records. A line is torn if the process was killed, or the disk was full, while it was written.
    """
    records, torn = [], 0
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            records.append(dict(parse_json(line, str(path))))
        except (FileError, TypeError, ValueError):
            torn += 1
    return records, torn


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as lines of JSON."""
    return "".join(f"{json_text(record)}\n" for record in records)


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV with a column for every name that occurs, "" without records."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for record in records for name in record)), lineterminator="\n")
    if records:
        writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def append_text(path: Path, lines: str) -> None:
    """Add whole lines to a text file. If that fails, the file keeps its former size.

    Raises OSError if the disk is full, and for a symbolic link.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with _named_errors(path), open(handle, "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        content = b"\n" * is_torn + lines.encode()
        try:
            if file.write(content) != len(content):
                raise OSError(errno.ENOSPC, "the disk is full")
        except OSError:
            file.truncate(size)
            raise


def truncate(path: Path, size: int) -> None:
    """Shorten a file to `size` bytes, if it is longer. Raises OSError for a symbolic link."""
    if path.is_file():
        with _named_errors(path), open(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:
            file.truncate(min(size, file.seek(0, os.SEEK_END)))


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


def _load(path: str, kind: str, place: str) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, framework="np") as file:
            header = _parse_header((file.metadata() or {}).get("hindsight", "{}"), kind, place)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileError:
        raise
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, MemoryError) as problem:
        raise FileError(
            f"{place} cannot be read. It is not a {kind} file of hindsight, or it is damaged ({problem})"
        ) from None
    if header.pop("sha256", None) != _digest(header, arrays):
        raise FileError(f"{place} is damaged: its SHA-256 differs from the one that was written")
    return arrays, header["data"]


def _parse_header(text: str, kind: str, place: str) -> dict[str, Any]:
    header = parse_json(text, place)
    found = (header.get("kind"), header.get("format")) if isinstance(header, dict) else (None, None)
    if found != (kind, FORMAT) or not isinstance(header.get("data"), dict):
        raise FileError(f"{place} holds a {found[0]!r} of format {found[1]!r}, expected a {kind!r} of format {FORMAT}")
    return dict(header)


def _finite_number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Add the path to errors of the disk that have none, as those of `write` and `fsync`."""
    try:
        yield
    except OSError as problem:
        problem.filename = problem.filename or str(path)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
