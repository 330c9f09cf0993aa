"""Read and write every file of ours, in the memory that is free: arrays and JSON, hashed, replaced atomically, no pickle.

One format holds buffers, checkpoints and policies: a safetensors file. Its header has an entry `hindsight_rl`, the JSON
text {"format", "kind", "data", "sha256"}. Metrics, evaluations and episodes are lines of JSON.

JSON is strict. A number that is not finite is written as null.
Sizes are checked before anything is read: a file of somebody else may have any size.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors

from .errors import FileError, OptionError
from .records import Array

FORMAT = 1
VIDEO_SUFFIXES = (".mp4", ".webp", ".gif")  # the report of a run shows the first that it finds
_MEMORY = "/proc/meminfo"
_CGROUPS = (  # versions 2 and 1: files of the limit and of the statistics, and the name of what cannot be given back there
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon "),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_rss "),
)
_PART = 1 << 20  # bytes of an open file that are copied at once
_DTYPES = {"b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "f2": "F16"} | {
    f"{kind}{size}": f"{kind.upper()}{8 * size}" for size in (4, 8) for kind in "uif"
}
_LARGEST_JSON = 16 << 20  # bytes
_LARGEST_HEADER = 64 << 20  # bytes; a checkpoint has the evaluations so far in it
_MOST_VALUES = 1_000_000  # of a file or a line; three goals that are images have 300,000
_MOST_VALUES_OF_HEADER = 4_000_000
_LARGEST_LINES = 4 << 30  # bytes of a file of JSON lines: with the default options, the records of 10^9 steps
_LONGEST_LINE = 16 << 20  # bytes; an evaluation episode of a task with images as goals has about 1 MB


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
        left = free_memory()
        while left > 0 and (part := path_or_file.read(min(left, _PART))):
            left -= copy.write(part)
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
    fresh = path.with_name(f"{path.name}.tmp-{os.getpid()}-{threading.get_native_id()}")  # threads may save at once
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


def parse_json(text: str | bytes, source: str, most_values: int = _MOST_VALUES) -> Any:
    """Return what strict JSON holds. Raises FileError, naming `source`, for anything else, NaN and infinity included.

    most_values: each takes up to 100 bytes of memory, however short it is in the text.
    """
    plain = text if isinstance(text, str) else text.decode("latin-1")
    if sum(plain.count(mark) for mark in ",[{") > most_values:
        raise FileError(f"{source} has more than {most_values:,} values: it is damaged, or not ours")
    try:
        return json.loads(text, parse_constant=_finite_number, parse_float=_finite_number)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{source} is not valid JSON: {problem}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises FileError if it is missing, too large or not an object."""
    data = parse_json(read_bytes(path, _LARGEST_JSON), str(path))
    if not isinstance(data, dict):
        raise FileError(f"{path} holds a {type(data).__name__}, expected a JSON object")
    return data


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file. Raises FileError if it is missing or has more than `most` bytes."""
    if not path.is_file():
        raise FileError(f"There is no file {path}")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise FileError(f"{path} has more than {most / 1e6:.0f} MB: it is damaged, or not ours")
    return content


def read_lines(path: Path, starts: Iterable[int] | None = None) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the first byte and the record of lines of a file of JSON lines; None for a line without a JSON object.

    starts: the first bytes of the lines; None: all lines in their order.
    A missing file has no lines. A line is torn if the process was killed, or the disk was full, while it was written.
    One line is in memory at a time. Raises FileError if the file has more than 4 GB.
    """
    if not path.is_file():
        return
    if path.stat().st_size > _LARGEST_LINES:
        raise FileError(f"{path} has more than {_LARGEST_LINES >> 30} GB: it is damaged, or not ours")
    with path.open("rb") as file:
        for start in iter(file.tell, -1) if starts is None else starts:
            file.seek(start)
            line, is_whole = file.readline(_LONGEST_LINE), True
            if not line:
                return
            while len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                line, is_whole = file.readline(_LONGEST_LINE), False
            record = None
            if is_whole:
                with suppress(FileError):
                    record = parse_json(line, str(path))
            yield start, record if isinstance(record, dict) else None


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as lines of JSON."""
    return "".join(f"{json_text(record)}\n" for record in records)


def write_csv(path: Path, names: Sequence[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as CSV, atomically. names: of the columns; a record may lack some. Without records there is no line."""

    def put(file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, "utf-8", errors="replace", newline="")
        writer = csv.DictWriter(text, names, lineterminator="\n")
        for number, record in enumerate(records):
            if number == 0:
                writer.writeheader()
            writer.writerow(record)
        text.detach()

    save_file(path, put)


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
    entries: dict[str, Any] = {"__metadata__": {"hindsight_rl": json.dumps(header, allow_nan=False)}}
    offset = 0
    for name, array in by_alignment:
        dtype = _DTYPES[array.dtype.str[1:]]
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise FileError(
            f"The header has {len(text) / 1e6:.0f} MB, at most {_LARGEST_HEADER / 1e6:.0f} MB can be read again"
        )
    file.write(len(text).to_bytes(8, "little") + text)
    for _, array in by_alignment:
        file.write(_bytes_of(array))


def _bytes_of(array: Array) -> memoryview:
    """Return the memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def _digest(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        add_array(digest, name, array)
    return digest.hexdigest()


def add_array(digest: Any, name: str, array: Array) -> None:
    """Add a named array to a digest of hashlib."""
    digest.update(f"\0{name}\0{array.dtype.str}{array.shape}\0".encode())
    digest.update(_bytes_of(np.ascontiguousarray(array)))


def _load(path: str, kind: str, source: str) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        _check_sizes(Path(path), source)
        with safetensors.safe_open(path, framework="np") as file:
            header = _parse_header((file.metadata() or {}).get("hindsight_rl", "{}"), kind, source)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileError:
        raise
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, MemoryError) as problem:
        raise FileError(
            f"{source} cannot be read. It is not a {kind} file of hindsight-rl, or it is damaged ({problem})"
        ) from None
    if header.pop("sha256", None) != _digest(header, arrays):
        raise FileError(f"{source} is damaged: its SHA-256 differs from the one that was written")
    return arrays, header["data"]


def _check_sizes(path: Path, source: str) -> None:
    """Raise FileError for a file larger than the free memory, OSError and ValueError for what is no file of ours."""
    size, free = path.stat().st_size, free_memory()
    if not path.is_file():
        raise OSError("it is no file")
    if size > free:
        raise FileError(f"{source} has {size / 1e9:.1f} GB, but {free / 1e9:.1f} GB of memory are free. End other programs")
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > _LARGEST_HEADER:
        raise ValueError(f"its header would have {header:,} bytes, at most {_LARGEST_HEADER:,} are read")


def _parse_header(text: str, kind: str, source: str) -> dict[str, Any]:
    header = parse_json(text, source, _MOST_VALUES_OF_HEADER)
    found = (header.get("kind"), header.get("format")) if isinstance(header, dict) else (None, None)
    if found != (kind, FORMAT) or not isinstance(header.get("data"), dict):
        raise FileError(
            f"{source} holds a {found[0]!r:.50} of format {found[1]!r:.50}, expected a {kind!r} of format {FORMAT}"
        )
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


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def free_memory() -> int:
    """Return the bytes that this process may still use: of the machine, and of its cgroup, as far as they are known."""
    free = [sys.maxsize]
    if (available := _read_number(_MEMORY, "MemAvailable:")) is not None:
        free.append(available * 1024)
    for limit, statistics, used in _CGROUPS:
        most = _read_number(limit, "")
        if most is not None:
            free.append(most - (_read_number(statistics, used) or 0))
    return max(0, min(free))


def _read_number(path: str, name: str) -> int | None:
    """Return the number after a name at the start of a line, None if there is none. Limits may be the word "max"."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path(path).read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).removeprefix(name).split()[0])
    return None
