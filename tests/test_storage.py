"""Files are written whole or not at all, and read without trust."""

import contextlib
import io
import json
import os
import resource
import threading

import numpy as np
import pytest

from hindsight_rl import storage
from hindsight_rl.errors import FileError

ARRAYS = {
    "a/b": np.arange(6, dtype=np.int16).reshape(2, 3),
    "flag": np.array([True, False]),
    "count": np.array(7),
    "none": np.zeros((0, 3), np.float32),
    "bytes": np.arange(5, dtype=np.uint8),
    "rows": np.arange(400_000, dtype=np.float32).reshape(1000, 400),
}


def save(path, count=3, previous=None):
    storage.save_arrays(path, "test", ARRAYS, {"count": count, "name": "x"}, previous)


def assert_equal(arrays):
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(arrays[name], array)


def test_what_was_saved_is_loaded(tmp_path):
    save(tmp_path / "saved")
    arrays, data = storage.load_arrays(tmp_path / "saved", "test")
    assert data == {"count": 3, "name": "x"}
    assert_equal(arrays)
    assert os.listdir(tmp_path) == ["saved"]


def test_an_open_file_holds_the_same_bytes(tmp_path):
    save(tmp_path / "saved")
    file = io.BytesIO()
    save(file)
    assert file.getvalue() == (tmp_path / "saved").read_bytes()
    file.seek(0)
    assert_equal(storage.load_arrays(file, "test")[0])


def test_two_threads_save_to_one_path(tmp_path):
    def save_within(file):
        thread = threading.Thread(target=save, args=(tmp_path / "saved",))
        thread.start()
        thread.join()
        assert (tmp_path / "saved").exists()
        file.write(b"last")

    storage.save_file(tmp_path / "saved", save_within)
    assert (tmp_path / "saved").read_bytes() == b"last"
    assert os.listdir(tmp_path) == ["saved"]


def test_arrays_that_are_not_contiguous_are_saved(tmp_path):
    storage.save_arrays(tmp_path / "saved", "test", {"t": ARRAYS["a/b"].T}, {})
    assert np.array_equal(storage.load_arrays(tmp_path / "saved", "test")[0]["t"], ARRAYS["a/b"].T)


def test_the_previous_file_is_kept_at_the_path_given(tmp_path):
    for count in (1, 2, 3):
        save(tmp_path / "saved", count, previous=tmp_path / "before")
    assert storage.load_arrays(tmp_path / "saved", "test")[1]["count"] == 3
    assert storage.load_arrays(tmp_path / "before", "test")[1]["count"] == 2


class DiskError(OSError):
    pass


def fail_at(monkeypatch, number):
    """Let the number-th call that changes the disk fail. Returns a list that grows with each call."""
    calls = []

    def counted(real):
        def call(*arguments, **options):
            calls.append(real.__name__)
            if len(calls) == number:
                raise DiskError(28, "No space left on device")
            return real(*arguments, **options)

        return call

    monkeypatch.setattr(storage.os, "fsync", counted(os.fsync))
    monkeypatch.setattr(storage.os, "replace", counted(os.replace))
    monkeypatch.setattr(storage.Path, "mkdir", counted(storage.Path.mkdir))
    monkeypatch.setattr(storage.json, "dumps", counted(json.dumps))
    return calls


def test_if_saving_fails_anywhere_a_good_file_is_left(tmp_path, monkeypatch):
    path, before = tmp_path / "saved", tmp_path / "before"
    with monkeypatch.context() as patch:
        calls = fail_at(patch, -1)
        save(path)
        save(path, previous=before)
    assert calls.count("replace") == 3
    for number in range(1, len(calls) + 2):
        save(path, count=1)
        with monkeypatch.context() as patch:
            fail_at(patch, number)
            with contextlib.suppress(DiskError):
                save(path, count=2, previous=before)
        good = path if path.exists() else before
        assert storage.load_arrays(good, "test")[1]["count"] in (1, 2), number
        assert not list(tmp_path.glob("*tmp*")), number


@pytest.mark.parametrize("place", [4, 40, 200, -40])
def test_a_flipped_byte_is_found_and_the_file_named(tmp_path, place):
    path = tmp_path / "saved"
    save(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(FileError, match="saved"):
        storage.load_arrays(path, "test")


@pytest.mark.parametrize("content", [b"", b"1234", b"PK\x03\x04" + bytes(100)])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "saved"
    path.write_bytes(content)
    with pytest.raises(FileError, match="saved"):
        storage.load_arrays(path, "test")
    with pytest.raises(FileError, match="the file"):
        storage.load_arrays(io.BytesIO(content), "test")


def test_a_file_that_was_cut_is_refused(tmp_path):
    save(tmp_path / "saved")
    os.truncate(tmp_path / "saved", 1000)
    with pytest.raises(FileError, match="saved cannot be read"):
        storage.load_arrays(tmp_path / "saved", "test")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match="absent"):
        storage.load_arrays(tmp_path / "absent", "test")
    with pytest.raises(FileError, match="cannot be read"):
        storage.load_arrays(tmp_path, "test")


def test_another_kind_is_refused(tmp_path):
    save(tmp_path / "saved")
    with pytest.raises(FileError, match="holds a 'test' of format 1, expected a 'other' of format 1"):
        storage.load_arrays(tmp_path / "saved", "other")


def tensors(header, payload=b""):
    """Return a safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + payload


def described(**changes):
    data = {"format": 1, "kind": "test", "data": {}, "sha256": "0"} | changes
    return {"__metadata__": {"hindsight_rl": json.dumps(data)}}


LARGE = {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}


@pytest.mark.parametrize(
    "content",
    [
        (10**15).to_bytes(8, "little") + b"{}",
        tensors(b"[" * 100_000),
        tensors(b'{"x": NaN}'),
        tensors({}),
        tensors({"__metadata__": 3}),
        tensors({"__metadata__": {"hindsight_rl": "[]"}}),
        tensors({"__metadata__": {"hindsight_rl": '{"kind": "test", "format": 1e999, "data": {}}'}}),
        tensors(described(data=3)),
        tensors(described(kind=["test"])),
        tensors(described()),
        tensors(described() | {"x": LARGE}, b"1234"),
        tensors(described() | {"x": LARGE | {"shape": [-1]}}, b"1234"),
        tensors(described() | {"x": LARGE | {"shape": [1], "dtype": "object"}}, b"1234"),
        tensors(described() | {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"1234"),
    ],
)
def test_hostile_files_are_refused_without_running_or_allocating(tmp_path, content):
    (tmp_path / "saved").write_bytes(content)
    for place in (tmp_path / "saved", io.BytesIO(content)):
        with pytest.raises(FileError):
            storage.load_arrays(place, "test")


def test_a_sparse_file_of_many_gigabytes_is_refused_before_it_is_read(tmp_path):
    for name, read in (("saved", lambda p: storage.load_arrays(p, "test")), ("settings.json", storage.read_json)):
        (tmp_path / name).write_bytes(b"")
        os.truncate(tmp_path / name, 50 << 30)
        with pytest.raises(FileError, match=name):
            read(tmp_path / name)


def test_numbers_that_are_not_finite_are_null():
    data = {"a": [1.5, float("nan")], "b": (float("inf"), True), "c": {"d": float("-inf")}}
    assert json.loads(storage.json_text(data)) == {"a": [1.5, None], "b": [None, True], "c": {"d": None}}


@pytest.mark.parametrize("text", ["NaN", '{"x": Infinity}', "1e999", "{", "[" * 100_000, b"\xff"])
def test_what_is_not_strict_json_is_refused(text):
    with pytest.raises(FileError, match="here is not valid JSON"):
        storage.parse_json(text, "here")


def test_many_small_values_are_refused_before_they_take_memory(tmp_path):
    (tmp_path / "settings.json").write_text('{"x": [' + "[]," * 500_001 + "0]}")
    with pytest.raises(FileError, match=r"settings\.json has more than 1,000,000 values"):
        storage.read_json(tmp_path / "settings.json")


def test_an_open_file_larger_than_the_memory_is_not_copied(monkeypatch):
    monkeypatch.setattr(storage, "free_memory", lambda: 1_000)
    file = io.BytesIO(bytes(5_000_000))
    with pytest.raises(FileError, match="the file"):
        storage.load_arrays(file, "test")
    assert file.tell() == 1_000


def test_only_an_object_is_a_json_file(tmp_path):
    (tmp_path / "settings.json").write_text("[1]")
    with pytest.raises(FileError, match="holds a list"):
        storage.read_json(tmp_path / "settings.json")


def test_lines_are_appended_and_torn_ones_are_skipped_and_counted(tmp_path):
    path = tmp_path / "lines.jsonl"
    assert list(storage.read_lines(path)) == []
    storage.append_text(path, storage.json_lines([{"n": 1}, {"n": 2.5}]))
    with path.open("a") as file:
        file.write('{"n": 3, "me')  # a process was killed here
    storage.append_text(path, storage.json_lines([{"n": 4}]))
    with path.open("ab") as file:
        file.write(b'[1]\n{"n": NaN}\n\xff\n')
    records = [record for _, record in storage.read_lines(path)]
    assert records == [{"n": 1}, {"n": 2.5}, None, {"n": 4}, None, None, None]
    places = [place for place, _ in storage.read_lines(path)]
    assert list(storage.read_lines(path, [places[3], places[0]])) == [(places[3], {"n": 4}), (0, {"n": 1})]


def test_a_line_that_is_too_long_counts_as_torn_and_is_never_whole_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_LONGEST_LINE", 16)
    path = tmp_path / "lines.jsonl"
    for length in (6, 7, 8, 23, 24, 40):
        path.write_text(f'{{"n": 1}}\n{{"x": "{"a" * length}"}}\n{{"n": 2}}\n')
        first, middle, last = (record for _, record in storage.read_lines(path))
        assert (first, last) == ({"n": 1}, {"n": 2})
        assert (middle is None) == (length > 6)  # with the end of the line, 16 bytes


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "lines.jsonl"
    storage.append_text(path, storage.json_lines([{"n": 1}]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
    try:
        with pytest.raises(OSError, match=r"lines\.jsonl"):  # the first bytes fit, the rest does not
            storage.append_text(path, storage.json_lines([{"n": 2, "text": "long enough"}]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert path.read_text() == '{"n": 1}\n'


def test_an_error_of_the_disk_names_the_file(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(storage.os, "fsync", fail)
    with pytest.raises(OSError, match=r"Input/output error: .*saved"):
        save(tmp_path / "saved")


def test_symbolic_links_are_not_followed_when_writing(tmp_path):
    (tmp_path / "mine").write_text("important")
    (tmp_path / "lines.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        storage.append_text(tmp_path / "lines.jsonl", storage.json_lines([{}]))
    with pytest.raises(OSError, match="symbolic links"):
        storage.truncate(tmp_path / "lines.jsonl", 0)
    storage.save_bytes(tmp_path / "lines.jsonl", b"{}\n")
    assert (tmp_path / "mine").read_text() == "important"


def test_truncating_never_lengthens(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    storage.truncate(tmp_path / "file", 9)
    storage.truncate(tmp_path / "file", 3)
    storage.truncate(tmp_path / "absent", 3)
    assert (tmp_path / "file").read_bytes() == b"123"
    assert not (tmp_path / "absent").exists()
