"""A disk that fails: the calls below a folder are counted, and chosen ones raise OSError."""

import builtins
import errno
import io
import os
from unittest.mock import patch

import safetensors

FAULTS = {
    "EIO": errno.EIO,  # the call fails
    "ENOSPC": errno.ENOSPC,
    "torn": errno.ENOSPC,  # half of a write arrives, then it fails. Other calls are not counted
    "full": errno.ENOSPC,  # this call and all later ones that need space fail
}
BY_PATH = ("stat", "lstat", "scandir", "mkdir", "unlink", "replace", "rename", "truncate")
NEED_SPACE = {"open to write", "write", "fsync", "mkdir"}


class FailingDisk:
    """Let the `number`-th call of storage below `folder` fail, in a `with` block. calls: names of the calls so far."""

    def __init__(self, folder, number=0, fault="EIO"):
        self.folder, self.number, self.fault, self.calls = str(folder), number, fault, []
        self._paths = {}  # of open file descriptors
        self._real = {name: getattr(os, name) for name in (*BY_PATH, "open", "fsync", "write")}
        self._open, self._safe_open = io.open, safetensors.safe_open

    def __enter__(self):
        patched = {name: self._counted(name) for name in BY_PATH}
        patched |= {"open": self._open_descriptor, "fsync": self._fsync, "write": self._write}
        self._patches = [patch.object(os, name, function) for name, function in patched.items()]
        self._patches += [patch.object(module, "open", self._open_file) for module in (io, builtins)]
        self._patches.append(patch.object(safetensors, "safe_open", self._read_tensors))
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *problem):
        for each in self._patches:
            each.stop()

    def call(self, name, path, half=None):
        """Count a call, and fail if it is its turn. half: writes half of what was to be written."""
        if not self._is_below(path) or (self.fault == "torn" and half is None):
            return
        self.calls.append(name)
        is_later = self.fault == "full" and 0 < self.number < len(self.calls) and name in NEED_SPACE
        if len(self.calls) == self.number or is_later:
            if self.fault == "torn":
                half()
            code = FAULTS[self.fault]
            named = () if name in ("write", "fsync") or isinstance(path, int) else (os.fspath(path),)
            raise OSError(code, os.strerror(code), *named)

    def _is_below(self, path):
        path = self._paths.get(path) if isinstance(path, int) else path
        return path is not None and os.fspath(path).startswith(self.folder)

    def _counted(self, name):
        def function(path, *arguments, **options):
            self.call(name, path)
            return self._real[name](path, *arguments, **options)

        return function

    def _open_descriptor(self, path, flags, *arguments, **options):
        self.call("open to write" if flags & (os.O_WRONLY | os.O_RDWR) else "open", path)
        handle = self._real["open"](path, flags, *arguments, **options)
        self._paths[handle] = path
        return handle

    def _fsync(self, handle):
        self.call("fsync", handle)
        self._real["fsync"](handle)

    def _write(self, handle, data):
        self.call("write", handle, lambda: self._real["write"](handle, data[: len(data) // 2]))
        return self._real["write"](handle, data)

    def _read_tensors(self, path, *arguments, **options):
        self.call("open", path)
        return self._safe_open(path, *arguments, **options)

    def _open_file(self, path, mode="r", buffering=-1, *arguments, **options):
        if not self._is_below(path):
            return self._open(path, mode, buffering, *arguments, **options)
        if "r" in mode and "+" not in mode:
            self.call("open", path)
            return self._open(path, mode, buffering, *arguments, **options)
        if not isinstance(path, int):
            self.call("open to write", path)
        assert "b" in mode, "text is encoded before it is written"
        raw = _File(path, mode.replace("b", ""), self)
        if buffering == 0:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)


class _File(io.FileIO):
    """A file of a failing disk, open to write."""

    def __init__(self, path, mode, disk):
        super().__init__(path, mode)
        self.disk, self.path = disk, disk._paths.get(path) if isinstance(path, int) else path
        disk._paths[self.fileno()] = self.path

    def write(self, data):
        self.disk.call("write", self.path, lambda: super(_File, self).write(bytes(data)[: len(data) // 2]))
        return super().write(data)

    def truncate(self, size=None):
        self.disk.call("truncate", self.path)
        return super().truncate(size)
