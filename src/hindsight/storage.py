"""What is on disk is data: arrays and JSON, written whole or not at all, and read without running anything.

A saved folder holds `arrays.safetensors` (small arrays), one .npy per large array, `data.json`, and `MANIFEST.json` with
the size and the SHA-256 of each, written last. It comes into being by a rename; the one before is kept until then.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
import safetensors
import safetensors.numpy

from .errors import FileError
from .records import Array

FORMAT = 1
_LARGE = 1 << 20  # bytes from which an array has a file of its own, written without a copy in memory
_LARGEST_JSON = 64 << 20


def save_folder(folder: Path, kind: str, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
    """Write `arrays` and `data` (strict JSON) as the folder `folder`, atomically; `kind` says what they are.

    Raises FileError where the disk is too small, and OSError where it fails; what stood there before is then untouched.
    """
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    _refuse_short_disk(folder.parent, sum(a.nbytes for a in arrays.values()))
    fresh, before = _beside(folder, f"tmp-{os.getpid()}"), _beside(folder, "old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        large = {name: array for name, array in arrays.items() if array.nbytes >= _LARGE}
        small = {name: array for name, array in arrays.items() if name not in large}
        _write(fresh / "arrays.safetensors", lambda file: file.write(safetensors.numpy.save(small)))
        names = {}
        for i, (name, array) in enumerate(large.items()):
            names[f"large-{i}.npy"] = name
            _write(fresh / f"large-{i}.npy", lambda file, array=array: np.save(file, array, allow_pickle=False))
        _write_json(fresh / "data.json", data)
        files = {p.name: {"bytes": p.stat().st_size, "sha256": _sha256(p)} for p in sorted(fresh.iterdir())}
        _write_json(fresh / "MANIFEST.json", {"format": FORMAT, "kind": kind, "large": names, "files": files})
        _sync_folder(fresh)
        if folder.exists():
            shutil.rmtree(before, ignore_errors=True)
            folder.rename(before)
        fresh.rename(folder)
        _sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(before, ignore_errors=True)


def load_folder(folder: Path, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the data of a saved folder; of the one before it, where a crash came between two renames.

    Raises FileError naming the file that is missing, damaged, foreign or of another format.
    """
    problems = []
    for candidate in (folder, _beside(folder, "old")):
        if candidate.is_dir():
            try:
                return _load(candidate, kind)
            except FileError as problem:
                problems.append(str(problem))
    raise FileError("; ".join(problems) or f"there is no saved {kind} at {folder}")


def has_folder(folder: Path) -> bool:
    """Whether something was saved at `folder`."""
    return folder.is_dir() or _beside(folder, "old").is_dir()


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file, atomically."""

    def put(file: BinaryIO) -> None:
        file.write(content)

    save_file(path, put)


def save_file(path: Path, put: Callable[[BinaryIO], Any]) -> None:
    """Write what `put` writes into an open file as the file `path`, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(path, f"tmp-{os.getpid()}")
    try:
        _write(fresh, put)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def parse_json(text: str | bytes, place: str) -> Any:
    """Strict JSON (no NaN), or FileError naming `place`."""
    try:
        return json.loads(text, parse_constant=lambda word: _refuse_constant(word, place))
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{place} is not valid JSON: {problem}") from None


def _refuse_constant(word: str, place: str) -> float:
    raise FileError(f"{place} holds the number {word}, which is no JSON")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")


def _write(path: Path, put: Any) -> None:
    file: BinaryIO
    with path.open("wb") as file:
        put(file)
        file.flush()
        os.fsync(file.fileno())


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, allow_nan=False, indent=1)
    _write(path, lambda file: file.write(text.encode()))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_short_disk(folder: Path, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size + (1 << 20):
        raise FileError(
            f"saving needs {size / 1e6:.0f} MB, but the disk of {folder} has {free / 1e6:.0f} MB free: make room"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(folder: Path, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    manifest = _read_json(folder / "MANIFEST.json")
    try:
        found_kind, version, large, files = (manifest[key] for key in ("kind", "format", "large", "files"))
        expected = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
        large = {str(name): str(array) for name, array in large.items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise FileError(f"{folder / 'MANIFEST.json'} is malformed: the folder is not ours, or damaged") from None
    if (found_kind, version) != (kind, FORMAT):
        raise FileError(
            f"{folder} holds a {found_kind!r} of format {version!r}, but a {kind!r} of format {FORMAT} is needed"
        )
    if not {"arrays.safetensors", "data.json", *large} <= set(expected):
        raise FileError(f"{folder / 'MANIFEST.json'} lacks files that every saved {kind} has")
    for name, (size, digest) in expected.items():
        _verify(folder / name, name, size, digest)
    try:
        arrays = safetensors.numpy.load_file(folder / "arrays.safetensors")
    except (safetensors.SafetensorError, ValueError, KeyError) as problem:
        raise FileError(f"{folder / 'arrays.safetensors'} is damaged: {problem}") from None
    arrays |= {name: _read_npy(folder / file) for file, name in large.items()}
    return arrays, _read_json(folder / "data.json")


def _verify(path: Path, name: str, size: int, digest: str) -> None:
    """Before anything is parsed: a plain file of this folder, of the right size and content."""
    if Path(name).name != name or path.is_symlink() or not path.is_file():
        raise FileError(f"{path} is missing, or not a plain file of its folder")
    if path.stat().st_size != size:
        raise FileError(f"{path} has {path.stat().st_size} bytes, but {size} were written: it is truncated or was changed")
    if _sha256(path) != digest:
        raise FileError(f"{path} is damaged: its SHA-256 is not the one that was written")


def _read_json(path: Path) -> dict[str, Any]:
    if path.is_symlink() or not path.is_file():
        raise FileError(f"{path} is missing: the folder was not written to its end, or is not ours")
    if path.stat().st_size > _LARGEST_JSON:
        raise FileError(f"{path} has {path.stat().st_size} bytes, far more than ours have: it is not ours")
    data = parse_json(path.read_bytes(), str(path))
    if not isinstance(data, dict):
        raise FileError(f"{path} holds a {type(data).__name__}, but an object is needed")
    return data


def _read_npy(path: Path) -> Array:
    """Check the declared size against the file's before memory is asked for."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
        except (ValueError, EOFError) as problem:
            raise FileError(f"{path} is not a .npy file: {problem}") from None
        declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or declared != path.stat().st_size - file.tell():
            raise FileError(f"{path} declares {shape} of {dtype}, which is not what it holds")
        file.seek(0)
        return np.asarray(np.load(file, allow_pickle=False))


def save_arrays(file: str | Path | BinaryIO, kind: str, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
    """Write `arrays` and `data` (strict JSON) as one .npz, without pickle; a path is written atomically."""
    text = json.dumps({"format": FORMAT, "kind": kind, "data": data}, allow_nan=False).encode()
    parts: Any = {**arrays, "about": np.frombuffer(text, np.uint8)}

    def put(out: BinaryIO) -> None:
        np.savez(out, **parts)

    if isinstance(file, str | Path):
        save_file(Path(file), put)
    else:
        put(file)


def load_arrays(file: str | Path | BinaryIO, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The inverse of `save_arrays`. Raises FileError for what is missing, damaged, foreign or of another format."""
    if not isinstance(file, str | Path):
        return _read_arrays(file, kind, "the file")
    try:
        with Path(file).open("rb") as opened:
            return _read_arrays(opened, kind, str(file))
    except OSError as problem:
        raise FileError(f"{file} cannot be read: {problem}") from None


def _read_arrays(file: BinaryIO, kind: str, place: str) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
        about = parse_json(arrays.pop("about").tobytes(), place)
        found = about["kind"], about["format"]
    except (EOFError, ValueError, KeyError, TypeError, AttributeError, MemoryError, BadZipFile) as problem:
        raise FileError(
            f"{place} is damaged, or no saved {kind}: {type(problem).__name__} when read as plain arrays"
        ) from None
    if found != (kind, FORMAT) or not isinstance(about.get("data"), dict):
        raise FileError(f"{place} holds {found[0]!r} of format {found[1]!r}, but a {kind!r} of format {FORMAT} is needed")
    return arrays, about["data"]
