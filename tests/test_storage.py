"""What is on disk is written whole or not at all, and read without trust."""

import contextlib
import hashlib
import json
import os
import shutil

import numpy as np
import pytest

from hindsight import storage as files
from hindsight.errors import FileError

SMALL = {"a/b": np.arange(6, dtype=np.int16).reshape(2, 3), "flag": np.array([True, False]), "count": np.array(7)}
LARGE = {"rows": np.arange(400_000, dtype=np.float32).reshape(1000, 400)}
DATA = {"count": 3, "name": "x"}


def save(folder, count=3):
    files.save_folder(folder, "test", {**SMALL, **LARGE}, DATA | {"count": count})


def test_what_was_saved_is_loaded(tmp_path):
    save(tmp_path / "saved")
    arrays, data = files.load_folder(tmp_path / "saved", "test")
    assert data == DATA
    for name, array in {**SMALL, **LARGE}.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(arrays[name], array)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["saved"]


class DiskError(OSError):
    pass


def fail_at(monkeypatch, number):
    """Let the number-th call that changes the disk fail; returns a list that grows with each call."""
    calls = []

    def counted(real):
        def call(*arguments, **options):
            calls.append(real.__name__)
            if len(calls) == number:
                raise DiskError(28, "No space left on device")
            return real(*arguments, **options)

        return call

    monkeypatch.setattr(files.os, "fsync", counted(os.fsync))
    monkeypatch.setattr(files.Path, "rename", counted(files.Path.rename))
    monkeypatch.setattr(files.Path, "mkdir", counted(files.Path.mkdir))
    monkeypatch.setattr(files.json, "dumps", counted(json.dumps))
    monkeypatch.setattr(files.np, "save", counted(np.save))
    return calls


def test_whatever_fails_while_saving_the_last_good_one_loads(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        calls = fail_at(patch, -1)
        save(tmp_path / "count")
    assert len(calls) >= 10
    folder = tmp_path / "saved"
    for number in range(1, len(calls) + 2):
        shutil.rmtree(folder, ignore_errors=True)
        save(folder, count=1)
        with monkeypatch.context() as patch:
            fail_at(patch, number)
            with contextlib.suppress(DiskError):
                save(folder, count=2)
        assert files.load_folder(folder, "test")[1]["count"] in (1, 2), number
        assert not list(tmp_path.glob("saved.tmp*")), number


def test_a_crash_between_the_two_renames_leaves_the_one_before(tmp_path):
    save(tmp_path / "saved")
    (tmp_path / "saved").rename(tmp_path / "saved.old")
    assert files.has_folder(tmp_path / "saved")
    assert files.load_folder(tmp_path / "saved", "test")[1] == DATA


@pytest.mark.parametrize("name", ["arrays.safetensors", "large-0.npy", "data.json", "MANIFEST.json"])
@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "remove", "link"])
def test_every_harmed_file_is_found_and_named(tmp_path, name, harm):
    folder = tmp_path / "saved"
    save(folder)
    path = folder / name
    content = path.read_bytes()
    if harm == "flip":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1 :])
    elif harm == "cut":
        path.write_bytes(content[:-5])
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "remove":
        path.unlink()
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=name if name != "MANIFEST.json" else "saved"):
        files.load_folder(folder, "test")


def forge(folder, name, content):
    """Replace a file and make the manifest agree with it."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def npy(shape, dtype):
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (118 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("large-0.npy", npy((10**12,), "<f4") + b"1234"),
        ("large-0.npy", npy((-1,), "<f4") + b"1234"),
        ("large-0.npy", npy((1,), "|O") + b"cos\nsystem\n(S'true'\ntR."),
        ("large-0.npy", b"\x80\x04."),
        ("arrays.safetensors", (10**15).to_bytes(8, "little") + b"{}"),
        ("arrays.safetensors", b"{}"),
        ("data.json", b'{"x": NaN}'),
        ("data.json", b"[" * 100_000),
        ("data.json", b"[1]"),
    ],
)
def test_hostile_files_are_refused_without_running_or_allocating(tmp_path, name, content):
    save(tmp_path / "saved")
    forge(tmp_path / "saved", name, content)
    with pytest.raises(FileError):
        files.load_folder(tmp_path / "saved", "test")


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../outside": {"bytes": 1, "sha256": "0"}}},
        {"files": []},
        {"files": {}},
        {"large": {"x": 1}},
        {"format": 2},
        {"kind": "other"},
    ],
)
def test_a_forged_manifest_is_refused(tmp_path, change):
    save(tmp_path / "saved")
    path = tmp_path / "saved" / "MANIFEST.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError):
        files.load_folder(tmp_path / "saved", "test")


def test_nothing_there_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileError, match="no saved test"):
        files.load_folder(tmp_path / "absent", "test")


def test_a_short_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 1000))
    with pytest.raises(FileError, match="make room"):
        save(tmp_path / "saved")
    assert not list(tmp_path.iterdir())
